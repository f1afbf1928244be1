import numpy as np
import triton
import triton.language as tl
from matmul import inputs


@triton.jit
def parts_kernel(
    a_ptr, b_ptr, parts_ptr, M, N, K, stride_a, stride_b, K_PART,
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
    part = parts_ptr + tl.program_id(2) * M * N + rows[:, None] * N + cols[None, :]
    tl.store(part, acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def sum_kernel(parts_ptr, c_ptr, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for part in range(PARTS):
        acc += tl.load(parts_ptr + part * n + i, mask=i < n, other=0.0)
    tl.store(c_ptr + i, acc.to(c_ptr.dtype.element_ty), mask=i < n)


def splitk(a, b, parts=4):
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    (M, K), N = a.shape, b.shape[1]
    sums = np.empty((parts, M, N), np.float32)
    c = np.empty((M, N), np.float32)
    part = triton.cdiv(K, 32 * parts) * 32
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32), parts)
    parts_kernel[grid](a, b, sums, M, N, K, K, N, part, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
    sum_kernel[(triton.cdiv(M * N, 256),)](sums, c, M * N, PARTS=parts, BLOCK=256)
    return c


kernel_fn = splitk


def reference_fn(a, b):
    return a.astype(np.float32) @ b.astype(np.float32)


def get_inputs():
    return inputs(48, 40, 300)
