"""C = A @ B by fewer programs than there are tiles: each computes every PROGRAMS-th one."""
import triton
import triton.language as tl


@triton.jit
def tile_of(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    in_group = GROUP_M * tiles_n
    first = tile // in_group * GROUP_M
    rows = tl.minimum(tiles_m - first, GROUP_M)
    return first + tile % in_group % rows, tile % in_group // rows


@triton.jit
def matmul_persistent_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, PROGRAMS: tl.constexpr,
                             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=True):
        pid_m, pid_n = tile_of(tile, tiles_m, tiles_n, GROUP_M)
        m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
        n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for i in range(tl.cdiv(K, BLOCK_K)):
            at = i * BLOCK_K + k
            a = tl.load(a_ptr + m[:, None] * stride_am + at[None, :], mask=(m < M)[:, None] & (at < K)[None, :], other=0.0)
            b = tl.load(b_ptr + at[:, None] * stride_bk + n[None, :], mask=(at < K)[:, None] & (n < N)[None, :], other=0.0)
            acc = tl.dot(a, b, acc)
        c = acc.to(c_ptr.dtype.element_ty)
        tl.store(c_ptr + m[:, None] * stride_cm + n[None, :], c, mask=(m < M)[:, None] & (n < N)[None, :])
