import numpy as np
import triton
import triton.language as tl
from matmul import inputs


@triton.jit
def splitk_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, K_PART,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.program_id(2) * K_PART
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(first, min(first + K_PART, K), BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        in_a = (rows[:, None] < M) & (k[None, :] < K)
        in_b = (k[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * stride_a + k[None, :], mask=in_a, other=0.0)
        b = tl.load(b_ptr + k[:, None] * stride_b + cols[None, :], mask=in_b, other=0.0)
        acc = tl.dot(a, b, acc)
    c = c_ptr + rows[:, None] * stride_c + cols[None, :]
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c, tl.load(c, mask=mask) + acc, mask=mask)


def splitk(a, b, parts=4):
    (M, K), N = a.shape, b.shape[1]
    c = np.zeros((M, N), np.float32)
    part = triton.cdiv(K, 32 * parts) * 32
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32), parts)
    splitk_kernel[grid](a, b, c, M, N, K, K, N, N, part, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
    return c


if __name__ == "__main__":
    a, b = inputs(48, 40, 300)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    print("equal to numpy within 0.001:", np.allclose(splitk(a, b), expected, rtol=1e-3, atol=1e-3))
