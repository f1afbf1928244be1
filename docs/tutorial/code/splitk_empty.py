import numpy as np
import triton
import triton.language as tl
from splitk_checked import get_inputs, reference_fn


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
    tl.atomic_add(c, acc, mask=mask)


def splitk(a, b, parts=4):
    (M, K), N = a.shape, b.shape[1]
    c = np.empty((M, N), np.float32)
    part = triton.cdiv(K, 32 * parts) * 32
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32), parts)
    splitk_kernel[grid](a, b, c, M, N, K, K, N, N, part, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
    return c


kernel_fn = splitk
