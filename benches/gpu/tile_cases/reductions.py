"""Reductions along each axis, norms, softmax."""

import triton
import triton.language as tl

from tile_cases.case import case, normal, np, result, softmax
from tile_cases.places import cube, plane, span


@triton.jit
def sum_of_rows(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS), tl.arange(0, COLUMNS)
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=mask, other=0)
    tl.store(out_ptr + row, tl.sum(x, 1), mask=row < rows)


@triton.jit
def sum_of_columns(x_ptr, out_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(1, ROWS), span(0, COLUMNS)
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=(column < columns)[None, :], other=0)
    tl.store(out_ptr + tl.program_id(1) * columns + column, tl.sum(x, 0), mask=column < columns)


@triton.jit
def sums_of_both(x_ptr, rows_ptr, columns_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    x = tl.load(x_ptr + plane(ROWS, COLUMNS))
    tl.store(rows_ptr + span(0, ROWS), tl.sum(x, 1))
    tl.store(columns_ptr + span(0, COLUMNS), tl.sum(x, 0))


@triton.jit
def argmax_of_rows(x_ptr, index_ptr, most_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS), tl.arange(0, COLUMNS)
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=mask, other=-float("inf"))
    most, index = tl.max(x, 1, return_indices=True)
    tl.store(index_ptr + row, index, mask=row < rows)
    tl.store(most_ptr + row, most, mask=row < rows)


@triton.jit
def argmin_of_columns(x_ptr, out_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(1, ROWS), span(0, COLUMNS)
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :])
    tl.store(out_ptr + tl.program_id(1) * columns + column, tl.argmin(x, 0))


@triton.jit
def sum_of_first_axis(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    tl.store(out_ptr + plane(B, C), tl.sum(tl.load(x_ptr + cube(A, B, C)).to(tl.float32), 0))


@triton.jit
def sum_of_middle_axis(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    tl.store(out_ptr + plane(A, C), tl.sum(tl.load(x_ptr + cube(A, B, C)).to(tl.float32), 1))


@triton.jit
def maximum_of_last_axis(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    tl.store(out_ptr + plane(A, B), tl.max(tl.load(x_ptr + cube(A, B, C)).to(tl.float32), 2))


@triton.jit
def softmax_of_middle_axis(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    x = tl.load(x_ptr + cube(A, B, C)).to(tl.float32)
    e = tl.exp(x - tl.max(x, 1, keep_dims=True))
    tl.store(out_ptr + cube(A, B, C), (e / tl.sum(e, 1, keep_dims=True)).to(out_ptr.dtype.element_ty))


@triton.jit
def sum_of_groups_of_rows(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    x = tl.load(x_ptr + plane(A * B, C)).to(tl.float32)
    tl.store(out_ptr + plane(A, C), tl.sum(tl.reshape(x, (A, B, C)), 1))


@triton.jit
def sum_of_middle_axis_in_loop(x_ptr, out_ptr, count, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    first = tl.program_id(0) * count
    total = tl.zeros((A, C), dtype=tl.float32)
    for block in range(first, first + count):
        total += tl.sum(tl.load(x_ptr + ((block * A + a) * B + b) * C + c), 1)
    tl.store(out_ptr + plane(A, C), total)


@triton.jit
def softmax_of_rows(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * columns + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 1)[:, None])
    tl.store(out_ptr + row * columns + column, (e / tl.sum(e, 1)[:, None]).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_of_columns(x_ptr, out_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = span(1, ROWS)[:, None] * columns + span(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + at).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0)[None, :])
    tl.store(out_ptr + at, (e / tl.sum(e, 0)[None, :]).to(out_ptr.dtype.element_ty))


@triton.jit
def layer_norm_of_rows(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, epsilon, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS), tl.arange(0, COLUMNS)
    mask = column < columns
    at = row[:, None] * columns + column[None, :]
    x = tl.load(x_ptr + at, mask=mask[None, :], other=0.0).to(tl.float32)
    mean = tl.sum(x, 1) / columns
    x = tl.where(mask[None, :], x - mean[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(x * x, 1) / columns + epsilon)
    weight = tl.load(weight_ptr + column, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=mask).to(tl.float32)
    x = x * scale[:, None] * weight[None, :] + bias[None, :]
    tl.store(out_ptr + at, x.to(out_ptr.dtype.element_ty), mask=mask[None, :])


@triton.jit
def norm_of_heads(x_ptr, weight_ptr, out_ptr, HEADS: tl.constexpr, D: tl.constexpr):
    at = span(0, HEADS * D)
    x = tl.reshape(tl.load(x_ptr + at).to(tl.float32), (HEADS, D))
    scale = tl.rsqrt(tl.sum(x * x, 1, keep_dims=True) / D + 1e-6)
    x = x * scale * tl.load(weight_ptr + tl.arange(0, D))[None, :]
    tl.store(out_ptr + at, tl.reshape(x, (HEADS * D,)).to(out_ptr.dtype.element_ty))


@triton.jit
def welford(mean_a, square_a, count_a, mean_b, square_b, count_b):
    """Mean, sum of squares of differences and number of two sets together."""
    difference = mean_b - mean_a
    count = count_a + count_b
    share = count_b / tl.maximum(count, 1.0)
    return mean_a + difference * share, square_a + square_b + difference * difference * count_a * share, count


@triton.jit
def variance_of_rows(x_ptr, mean_ptr, variance_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS), tl.arange(0, COLUMNS)
    mask = tl.broadcast_to((column < columns)[None, :], (ROWS, COLUMNS))
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=mask, other=0.0).to(tl.float32)
    mean, square, count = tl.reduce((x, tl.zeros_like(x), mask.to(tl.float32)), 1, welford)
    tl.store(mean_ptr + row, mean)
    tl.store(variance_ptr + row, square / count)


@triton.jit
def variance_of_columns(x_ptr, mean_ptr, variance_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(1, ROWS), span(0, COLUMNS)
    mask = tl.broadcast_to((column < columns)[None, :], (ROWS, COLUMNS))
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=mask, other=0.0).to(tl.float32)
    mean, square, count = tl.reduce((x, tl.zeros_like(x), mask.to(tl.float32)), 0, welford)
    at = tl.program_id(1) * columns + column
    tl.store(mean_ptr + at, mean, mask=column < columns)
    tl.store(variance_ptr + at, square / count, mask=column < columns)


@triton.jit
def cosines_of_rows(x_ptr, y_ptr, cosine_ptr, out_ptr, ROWS: tl.constexpr, D: tl.constexpr):
    x = tl.load(x_ptr + plane(ROWS, D)).to(tl.float32)
    y = tl.load(y_ptr + plane(ROWS, D)).to(tl.float32)
    cosine = tl.sum(x * y, 1) / tl.sqrt(tl.sum(x * x, 1) * tl.sum(y * y, 1))
    tl.store(cosine_ptr + span(0, ROWS), cosine)
    tl.store(out_ptr + plane(ROWS, D), (x * cosine[:, None]).to(out_ptr.dtype.element_ty))


@triton.jit
def best_experts(x_ptr, index_ptr, weight_ptr, ROWS: tl.constexpr, EXPERTS: tl.constexpr, BEST: tl.constexpr):
    row, expert = span(0, ROWS), tl.arange(0, EXPERTS)
    x = tl.softmax(tl.load(x_ptr + plane(ROWS, EXPERTS)), 1, keep_dims=True)
    for best in tl.static_range(BEST):
        most, index = tl.max(x, 1, return_indices=True)
        tl.store(weight_ptr + row * BEST + best, most)
        tl.store(index_ptr + row * BEST + best, index)
        x = tl.where(expert[None, :] == index[:, None], -1.0, x)


def cases(of):
    """The cases; `of` gives the sizes."""
    m = of(1 << 19, 80)
    yield case("sum of rows fp32", sum_of_rows, [normal("fp32", m, 64), result("fp32", m), m, 64], (-(-m // 32),),
               lambda x: x.sum(1), ROWS=32, COLUMNS=64)
    m = of(1 << 20, 80)
    yield case("sum of rows bf16", sum_of_rows, [normal("bf16", m, 64), result("bf16", m, bound=2e-1), m, 64], (-(-m // 64),),
               lambda x: x.sum(1), ROWS=64, COLUMNS=64)
    b, n = of(64, 2), of(8192, 192)
    yield case("sum of columns fp32", sum_of_columns, [normal("fp32", b, 64, n), result("fp32", b, n), n], (-(-n // 128), b),
               lambda x: x.sum(1), ROWS=64, COLUMNS=128)
    yield case("sum of columns bf16", sum_of_columns, [normal("bf16", b, 128, n), result("bf16", b, n, bound=2e-1), n], (-(-n // 128), b),
               lambda x: x.sum(1), warps=8, ROWS=128, COLUMNS=128)
    yield case("argmin of columns fp16", argmin_of_columns, [normal("fp16", b, 64, n), result("i32", b, n, share=1e-3), n], (n // 64, b),
               lambda x: x.argmin(1), ROWS=64, COLUMNS=64)
    p = of(4096, 2)
    yield case("sums of rows and columns fp32", sums_of_both, [normal("fp32", p, 64, 64), result("fp32", p, 64), result("fp32", p, 64)],
               (p,), lambda x: (x.sum(2), x.sum(1)), ROWS=64, COLUMNS=64)
    m = of(1 << 18, 80)
    yield case("argmax of rows fp32", argmax_of_rows,
               [normal("fp32", m, 100), result("i32", m), result("fp32", m), m, 100], (-(-m // 32),),
               lambda x: (x.argmax(1), x.max(1)), ROWS=32, COLUMNS=128)
    p = of(8192, 2)
    for kind, a, b, c in (("fp32", 8, 16, 32), ("fp16", 16, 8, 64), ("bf16", 32, 4, 64)):
        yield case(f"sum of the middle axis {a}x{b}x{c} {kind}", sum_of_middle_axis,
                   [normal(kind, p, a, b, c), result("fp32", p, a, c)], (p,), lambda x: x.sum(2), A=a, B=b, C=c)
    yield case("sum of the middle axis in a loop fp32", sum_of_middle_axis_in_loop,
               [normal("fp32", of(512, 2), 8, 8, 16, 32), result("fp32", of(512, 2), 8, 32), 8], (of(512, 2),),
               lambda x: x.sum((1, 3)), A=8, B=16, C=32)
    yield case("sum of the first axis fp16", sum_of_first_axis, [normal("fp16", p, 16, 8, 64), result("fp32", p, 8, 64)], (p,),
               lambda x: x.sum(1), A=16, B=8, C=64)
    yield case("maximum of the last axis fp16", maximum_of_last_axis, [normal("fp16", p, 16, 8, 64), result("fp32", p, 16, 8)], (p,),
               lambda x: x.max(3), A=16, B=8, C=64)
    for kind, a, b, c in (("fp32", 8, 16, 32), ("fp16", 16, 4, 64)):
        yield case(f"softmax of the middle axis {kind}", softmax_of_middle_axis, [normal(kind, p, a, b, c), result(kind, p, a, b, c)],
                   (p,),
                   lambda x: softmax(x, 2), A=a, B=b, C=c)
    yield case("sum of groups of rows fp16", sum_of_groups_of_rows, [normal("fp16", p, 64, 4, 32), result("fp32", p, 64, 32)], (p,),
               lambda x: x.sum(2), A=64, B=4, C=32)
    m = of(1 << 18, 40)
    yield case("softmax of short rows fp16", softmax_of_rows, [normal("fp16", m, 100), result("fp16", m, 100), m, 100], (-(-m // 16),),
               lambda x: softmax(x, 1), ROWS=16, COLUMNS=128)
    b, n = of(64, 2), of(4096, 32)
    yield case("softmax of columns fp16", softmax_of_columns, [normal("fp16", b, 128, n), result("fp16", b, 128, n), n], (n // 16, b),
               lambda x: softmax(x, 1), ROWS=128, COLUMNS=16)
    m = of(32768, 8)
    yield case("layer norm of rows fp16", layer_norm_of_rows,
               [normal("fp16", m, 1000), normal("fp16", 1000), normal("fp16", 1000), result("fp16", m, 1000), 1000, 1e-5], (m // 4,),
               lambda x, weight, bias: (x - x.mean(1)[:, None]) / np.sqrt(x.var(1) + 1e-5)[:, None] * weight + bias, ROWS=4, COLUMNS=1024)
    p = of(32768, 2)
    yield case("norm of heads fp16", norm_of_heads, [normal("fp16", p, 16, 64), normal("fp32", 64), result("fp16", p, 16, 64)], (p,),
               lambda x, weight: x / np.sqrt((x * x).mean(2) + 1e-6)[:, :, None] * weight, HEADS=16, D=64)
    m = of(1 << 19, 32)
    yield case("variance of rows fp32", variance_of_rows, [normal("fp32", m, 60), result("fp32", m), result("fp32", m), 60], (m // 16,),
               lambda x: (x.mean(1), x.var(1)), ROWS=16, COLUMNS=64)
    b, n = of(64, 2), of(8192, 80)
    yield case("variance of columns fp32", variance_of_columns,
               [normal("fp32", b, 64, n), result("fp32", b, n), result("fp32", b, n), n], (-(-n // 32), b),
               lambda x: (x.mean(1), x.var(1)), ROWS=64, COLUMNS=32)
    m = of(1 << 18, 64)
    yield case("cosines of rows fp16", cosines_of_rows,
               [normal("fp16", m, 128), normal("fp16", m, 128), result("fp32", m), result("fp16", m, 128)], (m // 32,),
               lambda x, y: ((x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1)), None), ROWS=32, D=128)
    m = of(1 << 17, 64)
    yield case("best experts fp32", best_experts, [normal("fp32", m, 64), result("i32", m, 8), result("fp32", m, 8)], (m // 32,),
               lambda x: (np.argsort(-x, 1)[:, :8], None), ROWS=32, EXPERTS=64, BEST=8)
