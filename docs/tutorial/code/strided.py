import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i * stride, mask=i < n), mask=i < n)
