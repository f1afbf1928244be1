"""Loops over tiles: vectors that change or stay, norms, softmax."""

import triton
import triton.language as tl

from tile_cases.case import case, normal, np, result, softmax, steps, uniform
from tile_cases.places import span


@triton.jit
def scale_rows_in_loop(x_ptr, scale_ptr, out_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TILES: tl.constexpr):
    """A tile after another down some columns; each row has a factor."""
    column = span(0, COLUMNS)
    first = tl.program_id(1) * ROWS * TILES
    for start in range(first, first + ROWS * TILES, ROWS):
        row = start + tl.arange(0, ROWS)
        at = row[:, None] * columns + column[None, :]
        x = tl.load(x_ptr + at) * tl.load(scale_ptr + row)[:, None]
        tl.store(out_ptr + at, x.to(out_ptr.dtype.element_ty))


@triton.jit
def scale_columns_in_loop(x_ptr, scale_ptr, out_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A tile after another along some rows; each column has a factor."""
    row = span(0, ROWS)
    for start in range(0, columns, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        at = row[:, None] * columns + column[None, :]
        x = tl.load(x_ptr + at) * tl.load(scale_ptr + column)[None, :]
        tl.store(out_ptr + at, x.to(out_ptr.dtype.element_ty))


@triton.jit
def matrix_times_vector(a_ptr, x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = span(0, ROWS)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    for start in range(0, columns, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        mask = (row < rows)[:, None] & (column < columns)[None, :]
        a = tl.load(a_ptr + row[:, None] * columns + column[None, :], mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + column, mask=column < columns, other=0.0).to(tl.float32)
        total += tl.sum(a * x[None, :], 1)
    tl.store(out_ptr + row, total.to(out_ptr.dtype.element_ty), mask=row < rows)


@triton.jit
def vector_times_matrix(a_ptr, x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = span(0, COLUMNS)
    first = tl.program_id(1) * rows
    total = tl.zeros((COLUMNS,), dtype=tl.float32)
    for start in range(first, first + rows, ROWS):
        row = start + tl.arange(0, ROWS)
        a = tl.load(a_ptr + row[:, None] * columns + column[None, :]).to(tl.float32)
        total += tl.sum(a * tl.load(x_ptr + row).to(tl.float32)[:, None], 0)
    tl.store(out_ptr + tl.program_id(1) * columns + column, total)


@triton.jit
def layer_norm_gradient(g_ptr, x_ptr, weight_ptr, mean_ptr, scale_ptr, out_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = span(0, ROWS)
    mean, scale = tl.load(mean_ptr + row)[:, None], tl.load(scale_ptr + row)[:, None]
    along_x = tl.zeros((ROWS,), dtype=tl.float32)
    along_mean = tl.zeros((ROWS,), dtype=tl.float32)
    for start in range(0, columns, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        at = row[:, None] * columns + column[None, :]
        x = (tl.load(x_ptr + at).to(tl.float32) - mean) * scale
        g = tl.load(g_ptr + at).to(tl.float32) * tl.load(weight_ptr + column).to(tl.float32)[None, :]
        along_x += tl.sum(x * g, 1)
        along_mean += tl.sum(g, 1)
    along_x = along_x / columns
    along_mean = along_mean / columns
    for start in range(0, columns, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        at = row[:, None] * columns + column[None, :]
        x = (tl.load(x_ptr + at).to(tl.float32) - mean) * scale
        g = tl.load(g_ptr + at).to(tl.float32) * tl.load(weight_ptr + column).to(tl.float32)[None, :]
        result = (g - (x * along_x[:, None] + along_mean[:, None])) * scale
        tl.store(out_ptr + at, result.to(out_ptr.dtype.element_ty))


@triton.jit
def online_softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * columns
    out_ptr += tl.program_id(0) * columns
    most, total = -float("inf"), 0.0
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < columns, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(most, tl.max(x, 0))
        total = total * tl.exp(most - higher) + tl.sum(tl.exp(x - higher), 0)
        most = higher
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < columns, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + i, (tl.exp(x - most) / total).to(out_ptr.dtype.element_ty), mask=i < columns)


@triton.jit
def log_of_sum_of_exponentials(x_ptr, out_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = span(0, ROWS)
    most = tl.full((ROWS,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    for start in range(0, columns, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=(column < columns)[None, :], other=-float("inf"))
        x = x.to(tl.float32)
        higher = tl.maximum(most, tl.max(x, 1))
        total = total * tl.exp(most - higher) + tl.sum(tl.exp(x - higher[:, None]), 1)
        most = higher
    tl.store(out_ptr + row, most + tl.log(total))


@triton.jit
def group_norm(x_ptr, weight_ptr, out_ptr, pixels, groups, CHANNELS: tl.constexpr, PIXELS: tl.constexpr):
    group, channel = tl.program_id(0), tl.arange(0, CHANNELS)
    total = tl.zeros((CHANNELS, PIXELS), dtype=tl.float32)
    square = tl.zeros((CHANNELS, PIXELS), dtype=tl.float32)
    for start in range(0, pixels, PIXELS):
        pixel = (start + tl.arange(0, PIXELS))[None, :]
        x = tl.load(x_ptr + (group * CHANNELS + channel[:, None]) * pixels + pixel, mask=pixel < pixels, other=0.0).to(tl.float32)
        total += x
        square += x * x
    count = CHANNELS * pixels
    mean = tl.sum(total) / count
    scale = tl.rsqrt(tl.sum(square) / count - mean * mean + 1e-5)
    weight = tl.load(weight_ptr + group % groups * CHANNELS + channel).to(tl.float32)
    for start in range(0, pixels, PIXELS):
        pixel = (start + tl.arange(0, PIXELS))[None, :]
        at = (group * CHANNELS + channel[:, None]) * pixels + pixel
        x = tl.load(x_ptr + at, mask=pixel < pixels, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, ((x - mean) * scale * weight[:, None]).to(out_ptr.dtype.element_ty), mask=pixel < pixels)


@triton.jit
def sum_of_segments(x_ptr, start_ptr, out_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    segment, column = tl.program_id(0), span(1, COLUMNS)
    end = tl.load(start_ptr + segment + 1)
    total = tl.zeros((COLUMNS,), dtype=tl.float32)
    for first in range(tl.load(start_ptr + segment), end, ROWS):
        row = first + tl.arange(0, ROWS)
        mask = (row < end)[:, None] & (column < columns)[None, :]
        total += tl.sum(tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=mask, other=0.0), 0)
    tl.store(out_ptr + segment * columns + column, total, mask=column < columns)


def cases(of):
    """The cases; `of` gives the sizes."""
    m, n = of(4096, 128), of(4096, 128)
    for kind, rows, columns in (("fp32", 32, 64), ("bf16", 32, 128)):
        arguments = [normal(kind, m, n), normal("fp32", m), result(kind, m, n), n]
        yield case(f"scaling of rows in a loop {kind}", scale_rows_in_loop, arguments, (n // columns, m // (rows * 4)),
                   lambda x, scale: x * scale[:, None], ROWS=rows, COLUMNS=columns, TILES=4)
        arguments = [normal(kind, m * 2, n), normal("fp32", n), result(kind, m * 2, n), n]
        yield case(f"scaling of columns in a loop {kind}", scale_columns_in_loop, arguments, (m * 2 // rows,),
                   lambda x, scale: x * scale, ROWS=rows, COLUMNS=columns)
    m, n = of(8192, 80), of(4096, 300)
    for kind, rows, columns, warps in (("fp32", 16, 64, 4), ("fp16", 16, 256, 4), ("bf16", 32, 64, 8)):
        yield case(f"matrix times vector {kind}", matrix_times_vector,
                   [normal(kind, m, n), normal(kind, n), result("fp32", m, bound=1e-3), m, n], (-(-m // rows),), lambda a, x: a @ x,
                   warps=warps, ROWS=rows, COLUMNS=columns)
    b, m, n = of(16, 2), 512, of(4096, 128)
    yield case("vector times matrix fp16", vector_times_matrix,
               [normal("fp16", b, m, n), normal("fp16", b, m), result("fp32", b, n), m, n],
               (n // 64, b), lambda a, x: (a * x[:, :, None]).sum(1), ROWS=64, COLUMNS=64)
    m, n = of(8192, 64), of(2048, 128)
    for kind, rows, columns in (("fp32", 16, 64), ("fp16", 32, 32)):
        yield case(f"gradient of layer norm {kind}", layer_norm_gradient,
                   [normal(kind, m, n), normal(kind, m, n), normal(kind, n), normal("fp32", m), uniform("fp32", m), result(kind, m, n), n],
                   (m // rows,), layer_norm_gradient_reference, ROWS=rows, COLUMNS=columns)
    m, n = of(4096, 2), of(8192, 2500)
    yield case("online softmax fp16", online_softmax, [normal("fp16", m, n), result("fp16", m, n), n], (m,), lambda x: softmax(x, 1),
               BLOCK=1024)
    m = of(8192, 8)
    yield case("logarithm of sum of exponentials fp16", log_of_sum_of_exponentials, [normal("fp16", m, n), result("fp32", m), n],
               (m // 4,), lambda x: np.log(np.exp(x).sum(1)), ROWS=4, COLUMNS=256)
    b, pixels = of(512, 2), of(4096, 300)
    yield case("group norm fp16", group_norm,
               [normal("fp16", b, 8, pixels), normal("fp16", 2, 8), result("fp16", b, 8, pixels), pixels, 2], (b,),
               lambda x, weight: ((x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
                                  * np.tile(weight, (len(x) // 2, 1))[:, :, None]), CHANNELS=8, PIXELS=128)
    segments, d = of(4096, 4), of(128, 64)
    yield case("sum of segments fp32", sum_of_segments,
               [normal("fp32", segments, 50, d), steps(segments + 1, 50), result("fp32", segments, d), d], (segments, d // 64),
               lambda x, start: x.sum(1), ROWS=32, COLUMNS=64)


def layer_norm_gradient_reference(g, x, weight, mean, scale):
    x = (x - mean[:, None]) * scale[:, None]
    g = g * weight
    return (g - x * (x * g).mean(1)[:, None] - g.mean(1)[:, None]) * scale[:, None]
