"""Scans, sorts, histograms."""

import triton
import triton.language as tl

from tile_cases.case import case, integers, normal, np, result, scratch, uniform
from tile_cases.places import plane, span


@triton.jit
def sums_along_rows(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    tl.store(out_ptr + plane(ROWS, COLUMNS), tl.cumsum(tl.load(x_ptr + plane(ROWS, COLUMNS)), 1))


@triton.jit
def sums_along_columns(x_ptr, out_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = span(1, ROWS)[:, None] * columns + span(0, COLUMNS)[None, :]
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), 0))


@triton.jit
def sums_along_long_rows(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * columns
    out_ptr += tl.program_id(0) * columns
    before = 0.0
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < columns, other=0)
        tl.store(out_ptr + i, before + tl.cumsum(x, 0), mask=i < columns)
        before += tl.sum(x, 0)


@triton.jit
def affine(factor_a, term_a, factor_b, term_b):
    """One linear function after another."""
    return factor_a * factor_b, term_a * factor_b + term_b


@triton.jit
def recurrence_along_columns(factor_ptr, term_ptr, out_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = span(1, ROWS)[:, None] * columns + span(0, COLUMNS)[None, :]
    factor, term = tl.load(factor_ptr + at).to(tl.float32), tl.load(term_ptr + at).to(tl.float32)
    factor, term = tl.associative_scan((factor, term), 0, affine)
    tl.store(out_ptr + at, term.to(out_ptr.dtype.element_ty))


@triton.jit
def recurrence_backwards(factor_ptr, term_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = plane(ROWS, COLUMNS)
    factor, term = tl.associative_scan((tl.load(factor_ptr + at), tl.load(term_ptr + at)), 1, affine, reverse=True)
    tl.store(out_ptr + at, term)


@triton.jit
def of_segment(start_a, sum_a, start_b, sum_b):
    """Sums that begin again where a segment starts."""
    return start_a | start_b, tl.where(start_b != 0, sum_b, sum_a + sum_b)


@triton.jit
def sums_along_segments(start_ptr, x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = span(0, BLOCK)
    start, total = tl.associative_scan((tl.load(start_ptr + at), tl.load(x_ptr + at)), 0, of_segment)
    tl.store(out_ptr + at, total)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def running_maximum(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = span(0, BLOCK)
    tl.store(out_ptr + at, tl.associative_scan(tl.load(x_ptr + at), 0, larger))


@triton.jit
def keep_positive(x_ptr, out_ptr, next_ptr, length, BLOCK: tl.constexpr):
    """Appends what is positive to a ring of `length` numbers."""
    x = tl.load(x_ptr + span(0, BLOCK))
    kept = (x > 0).to(tl.int32)
    first = tl.atomic_add(next_ptr, tl.sum(kept, 0))
    at = (first + tl.cumsum(kept, 0) - kept) % length
    tl.store(out_ptr + at, x, mask=kept != 0)


@triton.jit
def sort_rows(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    tl.store(out_ptr + plane(ROWS, COLUMNS), tl.sort(tl.load(x_ptr + plane(ROWS, COLUMNS)), 1, descending=True))


@triton.jit
def order_of_rows(key_ptr, index_ptr, BLOCK: tl.constexpr):
    """Which positions the keys of a row have in ascending order: key and position are sorted as one number."""
    at = span(0, BLOCK)
    both = (tl.load(key_ptr + at).to(tl.int64) << 32) | tl.arange(0, BLOCK).to(tl.int64)
    tl.store(index_ptr + at, (tl.sort(both) & 0xFFFFFFFF).to(tl.int32))


@triton.jit
def largest_of_rows(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BEST: tl.constexpr):
    tl.store(out_ptr + plane(ROWS, BEST), tl.topk(tl.load(x_ptr + plane(ROWS, COLUMNS)), BEST))


@triton.jit
def histogram(x_ptr, count_ptr, BLOCK: tl.constexpr, BINS: tl.constexpr):
    count = tl.histogram(tl.load(x_ptr + span(0, BLOCK)), BINS)
    tl.atomic_add(count_ptr + tl.arange(0, BINS), count)


def cases(of):
    """The cases; `of` gives the sizes."""
    m = of(1 << 17, 32)
    yield case("sums along rows fp32", sums_along_rows, [normal("fp32", m, 128), result("fp32", m, 128)], (m // 16,),
               lambda x: x.cumsum(1), ROWS=16, COLUMNS=128)
    b, n = of(64, 2), of(4096, 64)
    yield case("sums along columns fp32", sums_along_columns, [normal("fp32", b, 64, n), result("fp32", b, 64, n), n], (n // 32, b),
               lambda x: x.cumsum(1), ROWS=64, COLUMNS=32)
    m, n = of(1024, 2), of(16384, 3000)
    yield case("sums along long rows fp32", sums_along_long_rows, [normal("fp32", m, n), result("fp32", m, n, bound=1e-3), n], (m,),
               lambda x: x.cumsum(1), BLOCK=1024)
    n = of(4096, 64)
    for kind in ("fp32", "fp16"):
        yield case(f"recurrence along columns {kind}", recurrence_along_columns,
                   [uniform(kind, b, 64, n), normal(kind, b, 64, n), result(kind, b, 64, n), n], (n // 32, b), recurrence, ROWS=64,
                   COLUMNS=32)
    m = of(1 << 18, 32)
    yield case("recurrence backwards fp32", recurrence_backwards,
               [uniform("fp32", m, 64), normal("fp32", m, 64), result("fp32", m, 64)], (m // 16,),
               lambda factor, term: recurrence(factor[:, ::-1], term[:, ::-1])[:, ::-1], ROWS=16, COLUMNS=64)
    p = of(8192, 2)
    yield case("sums along segments fp32", sums_along_segments,
               [integers("i32", p, 1024, high=2), normal("fp32", p, 1024), result("fp32", p, 1024)], (p,),
               lambda start, x: recurrence(1 - start, x), BLOCK=1024)
    yield case("running maximum fp32", running_maximum, [normal("fp32", p, 1024), result("fp32", p, 1024)], (p,),
               lambda x: np.maximum.accumulate(x, 1), BLOCK=1024)
    n = p * 1024
    yield case("keep positive i32", keep_positive,
               [integers("i32", n, low=-1000, high=1000), result("i32", n, unordered=True), scratch("i32", 1), n], (p,),
               lambda x: np.pad(x[x > 0], (0, (x <= 0).sum())), BLOCK=1024)
    m = of(1 << 16, 32)
    yield case("sort of rows fp32", sort_rows, [normal("fp32", m, 64), result("fp32", m, 64)], (m // 16,),
               lambda x: -np.sort(-x, 1), ROWS=16, COLUMNS=64)
    p = of(4096, 1)
    yield case("order of rows i32", order_of_rows, [integers("i32", p, 512, low=-999999, high=999999), result("i32", p, 512)], (p,),
               lambda x: np.argsort(x, 1, "stable"), BLOCK=512)
    m = of(1 << 16, 16)
    yield case("largest of rows fp32", largest_of_rows, [normal("fp32", m, 128), result("fp32", m, 8)], (m // 8,),
               lambda x: -np.sort(-x, 1)[:, :8], ROWS=8, COLUMNS=128, BEST=8)
    p = of(8192, 2)
    yield case("histogram i32", histogram, [integers("i32", p * 2048, high=256), result("i32", 256)], (p,),
               lambda x: np.bincount(x, minlength=256), BLOCK=2048, BINS=256)


def recurrence(factor, term):
    """The linear recurrence along axis 1."""
    states = [term[:, 0]]
    for step in range(1, term.shape[1]):
        states.append(states[-1] * factor[:, step] + term[:, step])
    return np.stack(states, 1)
