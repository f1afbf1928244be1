import numpy as np
import triton
import triton.language as tl
from matmul import inputs


@triton.jit
def matmul_bias_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    bias = tl.load(bias_ptr + cols, mask=cols < N, other=0.0)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32) + bias[None, :]
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        in_a = (rows[:, None] < M) & (k[None, :] < K)
        in_b = (k[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * stride_a + k[None, :], mask=in_a, other=0.0)
        b = tl.load(b_ptr + k[:, None] * stride_b + cols[None, :], mask=in_b, other=0.0)
        acc = tl.dot(a, b, acc)
    c = tl.maximum(acc, 0.0).to(c_ptr.dtype.element_ty)
    in_c = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * stride_c + cols[None, :], c, mask=in_c)


a, b = inputs(150, 136, 104)
bias = np.arange(136, dtype=np.float32)
c = np.empty((150, 136), np.float16)
matmul_bias_kernel[(3, 3)](a, b, bias, c, 150, 136, 104, 104, 136, 136, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
expected = np.maximum(a.astype(np.float32) @ b.astype(np.float32) + bias, 0)
print(np.allclose(c, expected, rtol=1e-3, atol=1e-3))
