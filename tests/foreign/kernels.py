"""Kernels that Triton 3.6 compiles to the PTX of this folder; see make.py."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, z, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(z + o, tl.load(x + o, mask=o < n) + tl.load(y + o, mask=o < n), mask=o < n)


@triton.jit
def rows(x, z, columns, B: tl.constexpr):
    row = tl.program_id(0)
    o = tl.arange(0, B)
    v = tl.load(x + row * columns + o, mask=o < columns, other=-float("inf"))
    e = tl.where(o < columns, tl.exp2(v - tl.max(v, 0)), 0.0)
    tl.store(z + row * columns + o, e / tl.sum(e, 0), mask=o < columns)


@triton.jit
def matmul(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.program_id(0) * M + tl.arange(0, M)
    n = tl.arange(0, N)
    i = tl.arange(0, K)
    pa = a + m[:, None] * k + i[None, :]
    pb = b + i[:, None] * N + n[None, :]
    acc = tl.zeros((M, N), dtype=tl.float32)
    for step in range(0, k, K):
        acc = tl.dot(tl.load(pa, mask=i[None, :] < k - step, other=0.0), tl.load(pb, mask=i[:, None] < k - step, other=0.0), acc)
        pa += K
        pb += K * N
    tl.store(c + m[:, None] * N + n[None, :], acc)


@triton.jit
def matmul_tma(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    da = tl.make_tensor_descriptor(a, [M * 2, k], [k, 1], [M, K])
    db = tl.make_tensor_descriptor(b, [k, N], [N, 1], [K, N])
    dc = tl.make_tensor_descriptor(c, [M * 2, N], [N, 1], [M, N])
    pid = tl.program_id(0)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for step in range(0, k, K):
        acc = tl.dot(da.load([pid * M, step]), db.load([step, 0]), acc)
    dc.store([pid * M, 0], acc.to(tl.float16))


@triton.jit
def scan_sort(x, y, z, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * B + o)
    tl.store(y + tl.program_id(0) * B + o, tl.cumsum(v, 0))
    tl.store(z + tl.program_id(0) * B + o, tl.sort(v))


@triton.jit
def count(x, bins, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(bins + (tl.load(x + o, mask=o < n) & 7), 1, mask=o < n)


@triton.jit
def matmul_host_tma(da, db, dc, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    pid = tl.program_id(0)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for step in range(0, k, K):
        acc = tl.dot(da.load([pid * M, step]), db.load([step, 0]), acc)
    dc.store([pid * M, 0], acc.to(tl.float16))


@triton.jit
def reshaped_max(x, z):
    row, column = tl.arange(0, 16)[:, None], tl.arange(0, 8)[None, :]
    transposed = tl.load(x + row + column * 16)
    tl.store(z + tl.arange(0, 2), tl.max(tl.reshape(transposed, [2, 64]), 1))
