import numpy as np
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + inner
        in_a = (rows[:, None] < M) & (k[None, :] < K)
        in_b = (k[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * stride_a + k[None, :], mask=in_a, other=0.0)
        b = tl.load(b_ptr + k[:, None] * stride_b + cols[None, :], mask=in_b, other=0.0)
        acc = tl.dot(a, b, acc)
    c = acc.to(c_ptr.dtype.element_ty)
    in_c = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * stride_c + cols[None, :], c, mask=in_c)


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = np.empty((M, N), a.dtype)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    matmul_kernel[grid](a, b, c, M, N, K, K, N, N, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    return c


def reference(a, b):
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(a.dtype)


def inputs(M=150, N=136, K=104):
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N))]


if __name__ == "__main__":
    a, b = inputs()
    print("equal to numpy within 0.001:", np.allclose(matmul(a, b), reference(a, b), rtol=1e-3, atol=1e-3))
