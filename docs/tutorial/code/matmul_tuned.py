import numpy as np
import triton
import triton.language as tl
from matmul import inputs, reference


def configs():
    sizes = [(64, 64, 32), (128, 64, 64), (128, 128, 64), (128, 256, 64)]
    return [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=warps, num_stages=3)
        for m, n, k in sizes
        for warps in (4, 8)
    ]


@triton.autotune(configs=configs(), key=["M", "N", "K"])
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        in_a = (rows[:, None] < M) & (k[None, :] < K)
        in_b = (k[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * stride_a + k[None, :], mask=in_a, other=0.0)
        b = tl.load(b_ptr + k[:, None] * stride_b + cols[None, :], mask=in_b, other=0.0)
        acc = tl.dot(a, b, acc)
    c = acc.to(c_ptr.dtype.element_ty)
    in_c = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * stride_c + cols[None, :], c, mask=in_c)


def kernel_fn(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = np.empty((M, N), a.dtype)
    grid = lambda config: (triton.cdiv(M, config["BLOCK_M"]), triton.cdiv(N, config["BLOCK_N"]))
    matmul_kernel[grid](a, b, c, M, N, K, K, N, N)
    return c


reference_fn = reference


def get_inputs():
    return inputs()
