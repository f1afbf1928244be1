"""Atomics of all types."""

import triton
import triton.language as tl

from tile_cases.case import added, case, in_place, integers, normal, np, result, scratch
from tile_cases.places import plane, span


@triton.jit
def atomic_add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    tl.atomic_add(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def atomic_add_with_result(x_ptr, out_ptr, before_ptr, n, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    before = tl.atomic_add(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
    tl.store(before_ptr + i, before, mask=i < n)


@triton.jit
def atomic_add_of_rows(x_ptr, index_ptr, out_ptr, ROWS: tl.constexpr, D: tl.constexpr):
    index = tl.load(index_ptr + span(0, ROWS))
    tl.atomic_add(out_ptr + index[:, None] * D + tl.arange(0, D)[None, :], tl.load(x_ptr + plane(ROWS, D)))


@triton.jit
def atomic_sum_of_columns(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    total = tl.sum(tl.load(x_ptr + plane(ROWS, COLUMNS)), 0)
    tl.atomic_add(out_ptr + tl.program_id(0) % 64 * COLUMNS + tl.arange(0, COLUMNS), total, sem="relaxed")


@triton.jit
def atomic_max_of_groups(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    tl.atomic_max(out_ptr + i // 16, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def atomic_bits(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.atomic_or(out_ptr + (i >> 5), 1 << (i & 31), mask=(i < n) & (x > 0))


@triton.jit
def compare_and_swap(at_ptr, old_ptr, new_ptr, out_ptr, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    tl.store(out_ptr + i, tl.atomic_cas(at_ptr + i, tl.load(old_ptr + i), tl.load(new_ptr + i)))


@triton.jit
def sum_by_last_program(x_ptr, part_ptr, count_ptr, out_ptr, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    """Each program has a sum; the last one to end adds them all."""
    tl.store(part_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + span(0, BLOCK))))
    ended = tl.atomic_add(count_ptr, 1, sem="acq_rel")
    if ended == tl.num_programs(0) - 1:
        part = tl.arange(0, PARTS)
        parts = tl.load(part_ptr + part, mask=part < tl.num_programs(0), other=0.0, cache_modifier=".cg")
        tl.store(out_ptr, tl.sum(parts))
        tl.store(count_ptr, 0)


@triton.jit
def slots_of_experts(expert_ptr, count_ptr, slot_ptr, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    tl.store(slot_ptr + i, tl.atomic_add(count_ptr + tl.load(expert_ptr + i), 1))


@triton.jit
def add_under_lock(lock_ptr, x_ptr, out_ptr, locks, BLOCK: tl.constexpr):
    lock, i = tl.program_id(0) % locks, tl.arange(0, BLOCK)
    x = tl.load(x_ptr + span(0, BLOCK))
    while tl.atomic_cas(lock_ptr + lock, 0, 1) == 1:
        pass
    at = out_ptr + lock * BLOCK + i
    tl.store(at, tl.load(at) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + lock, 0)


@triton.jit
def matmul_in_parts(a_ptr, b_ptr, out_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr):
    row, column = span(0, BM), span(1, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(tl.program_id(2) * BK, K, BK * PARTS):
        k = start + tl.arange(0, BK)
        total = tl.dot(tl.load(a_ptr + row[:, None] * K + k[None, :]), tl.load(b_ptr + k[:, None] * N + column[None, :]), total)
    tl.atomic_add(out_ptr + row[:, None] * N + column[None, :], total, sem="relaxed")


def cases(of):
    """The cases; `of` gives the sizes."""
    for kind, n in (("fp32", 1 << 23), ("fp16", 1 << 22), ("bf16", 1 << 22), ("i32", 1 << 23), ("i64", 1 << 22)):
        n = of(n, 2000)
        x = normal(kind, n) if kind[0] != "i" else integers(kind, n, low=-1000, high=1000)
        yield case(f"atomic addition {kind}", atomic_add, [x, result(kind, n), n], (-(-n // 1024),), lambda x: x, BLOCK=1024)
    for kind, n in (("fp32", 1 << 23), ("fp16", 1 << 22), ("i32", 1 << 23)):
        n = of(n, 2000)
        x = normal(kind, n) if kind[0] == "f" else integers(kind, n, low=-1000, high=1000)
        yield case(f"atomic addition with result {kind}", atomic_add_with_result, [x, result(kind, n), result(kind, n), n],
                   (-(-n // 1024),), lambda x: (x, x * 0), BLOCK=1024)
    m, k = of(1 << 16, 64), of(1 << 14, 32)
    for kind, d in (("fp32", 64), ("fp16", 128)):
        yield case(f"atomic addition of rows {kind}", atomic_add_of_rows,
                   [normal(kind, m, d), integers("i32", m, high=k), result(kind, k, d, bound=5e-2 if kind == "fp16" else None)],
                   (m // 32,), lambda x, index, k=k: added(index, x, k), ROWS=32, D=d)
    p = of(8192, 4)
    yield case("atomic sum of columns fp32", atomic_sum_of_columns, [normal("fp32", p, 64, 64), result("fp32", 64, 64, bound=1e-3)], (p,),
               lambda x: added(np.arange(len(x)) % 64, x.sum(1), 64), ROWS=64, COLUMNS=64)
    n = of(1 << 23, 2048)
    for kind in ("fp32", "i32"):
        x = normal(kind, n) if kind == "fp32" else integers(kind, n, low=-1000, high=1000)
        yield case(f"atomic maximum {kind}", atomic_max_of_groups, [x, result(kind, n // 16), n], (-(-n // 1024),),
                   lambda x: np.maximum(x.reshape(-1, 16).max(1), 0), BLOCK=1024)
    yield case("atomic bits i32", atomic_bits, [integers("i32", n, low=-9, high=9), result("i32", n // 32), n], (-(-n // 1024),),
               lambda x: ((x.reshape(-1, 32) > 0) << np.arange(32)).sum(1).astype(np.uint32).view(np.int32), BLOCK=1024)
    yield case("compare and swap i32", compare_and_swap,
               [in_place(integers("i32", n, high=2)), integers("i32", n, high=2), integers("i32", n, high=9), result("i32", n)],
               (n // 512,),
               lambda at, old, new: (np.where(at == old, new, at), at), BLOCK=512)
    p = of(4096, 4)
    yield case("sum by the last program fp32", sum_by_last_program,
               [normal("fp32", p * 4096), scratch("fp32", p), scratch("i32", 1), result("fp32", 1, bound=1e-3)], (p,),
               lambda x: x.sum().reshape(1), BLOCK=4096, PARTS=4096)
    n = of(1 << 20, 256)
    yield case("slots of experts i32", slots_of_experts,
               [integers("i32", n, high=256), result("i32", 256), result("i32", n, unordered=True)], (n // 256,),
               lambda expert: (np.bincount(expert, minlength=256), None), BLOCK=256)
    p = of(2048, 4)
    locks = of(256, 2)
    yield case("add under a lock fp32", add_under_lock,
               [scratch("i32", locks), normal("fp32", p, 128), result("fp32", locks, 128), locks], (p,),
               lambda x, locks=locks: x.reshape(-1, locks, 128).sum(0), BLOCK=128)
    m, n, k = of(1024, 64), of(2048, 64), of(4096, 256)
    yield case("matrix product in parts fp16", matmul_in_parts,
               [normal("fp16", m, k), normal("fp16", k, n), result("fp32", m, n, bound=1e-3), n, k], (m // 64, n // 64, 4),
               lambda a, b: a @ b, BM=64, BN=64, BK=32, PARTS=4)
