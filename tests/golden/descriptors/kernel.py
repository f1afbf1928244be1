"""Blocks of tensors by descriptors that the kernels make: copies over all edges, and a product of matrices."""
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, rows, cols, stride_x, stride_y, row_shift, col_shift, ROWS: tl.constexpr, COLS: tl.constexpr):
    # A block may begin before the tensor or end after it: zeros are loaded there, and nothing is stored.
    x = tl.make_tensor_descriptor(x_ptr, shape=[rows, cols], strides=[stride_x, 1], block_shape=[ROWS, COLS])
    y = tl.make_tensor_descriptor(y_ptr, shape=[rows, cols], strides=[stride_y, 1], block_shape=[ROWS, COLS])
    row = tl.program_id(0) * ROWS
    col = tl.program_id(1) * COLS
    y.store([row, col], x.load([row + row_shift, col + col_shift]))


@triton.jit
def add_kernel(x_ptr, y_ptr, rows, cols, stride_x, stride_y, row_shift, col_shift, ROWS: tl.constexpr, COLS: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[rows, cols], strides=[stride_x, 1], block_shape=[ROWS, COLS])
    y = tl.make_tensor_descriptor(y_ptr, shape=[rows, cols], strides=[stride_y, 1], block_shape=[ROWS, COLS])
    row = tl.program_id(0) * ROWS
    col = tl.program_id(1) * COLS
    y.atomic_add([row, col], x.load([row + row_shift, col + col_shift]))


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bn, stride_cm, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    # B lies transposed.
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_am, 1], block_shape=[BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[stride_bn, 1], block_shape=[BLOCK_N, BLOCK_K])
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[stride_cm, 1], block_shape=[BLOCK_M, BLOCK_N])
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    c.store([m, n], acc.to(c_ptr.dtype.element_ty))
