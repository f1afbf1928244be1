"""Tiles that are copied, transposed, permuted, or broadcast to."""

import triton
import triton.language as tl

from tile_cases.case import case, integers, normal, np, result
from tile_cases.places import cube, span


@triton.jit
def copy(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS)[:, None], span(1, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    tl.store(out_ptr + row * columns + column, tl.load(x_ptr + row * columns + column, mask=mask, other=0), mask=mask)


@triton.jit
def transpose_by_stores(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS)[:, None], span(1, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    tl.store(out_ptr + column * rows + row, tl.load(x_ptr + row * columns + column, mask=mask, other=0), mask=mask)


@triton.jit
def transpose_tile(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS), span(1, COLUMNS)
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=mask, other=0)
    mask = (column[:, None] < columns) & (row[None, :] < rows)
    tl.store(out_ptr + column[:, None] * rows + row[None, :], tl.trans(x), mask=mask)


@triton.jit
def transpose_in_loop(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = span(0, COLUMNS)
    first = tl.program_id(1) * ROWS * 8
    for start in range(first, first + ROWS * 8, ROWS):
        row = start + tl.arange(0, ROWS)
        x = tl.load(x_ptr + row[:, None] * columns + column[None, :])
        tl.store(out_ptr + column[:, None] * rows + row[None, :], tl.trans(x))


@triton.jit
def swap_last_axes(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    tl.store(out_ptr + cube(A, C, B), tl.permute(tl.load(x_ptr + cube(A, B, C)), (0, 2, 1)))


@triton.jit
def swap_first_axes(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    tl.store(out_ptr + cube(B, A, C), tl.permute(tl.load(x_ptr + cube(A, B, C)), (1, 0, 2)))


@triton.jit
def pixel_shuffle(x_ptr, out_ptr, R: tl.constexpr, S: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    at = span(0, R * S * H * W)
    x = tl.permute(tl.reshape(tl.load(x_ptr + at), (R, S, H, W)), (2, 0, 3, 1))
    tl.store(out_ptr + at, tl.reshape(x, (R * S * H * W,)))


@triton.jit
def channels_last(x_ptr, out_ptr, channels, pixels, CHANNELS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    channel = span(1, CHANNELS)[:, None, None]
    pixel = tl.program_id(0) * HEIGHT * WIDTH + tl.arange(0, HEIGHT)[None, :, None] * WIDTH + tl.arange(0, WIDTH)[None, None, :]
    tl.store(out_ptr + pixel * channels + channel, tl.load(x_ptr + channel * pixels + pixel))


@triton.jit
def heads_first(x_ptr, out_ptr, positions, heads, POSITIONS: tl.constexpr, D: tl.constexpr):
    batch, head = tl.program_id(0) // heads, tl.program_id(0) % heads
    position, d = span(1, POSITIONS)[:, None], tl.arange(0, D)[None, :]
    mask = position < positions
    x = tl.load(x_ptr + ((batch * positions + position) * heads + head) * D + d, mask=mask)
    tl.store(out_ptr + ((batch * heads + head) * positions + position) * D + d, x, mask=mask)


@triton.jit
def outer_product(x_ptr, y_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS), span(1, COLUMNS)
    x = tl.load(x_ptr + row, mask=row < rows)
    y = tl.load(y_ptr + column, mask=column < columns)
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    tl.store(out_ptr + row[:, None] * columns + column[None, :], x[:, None] * y[None, :], mask=mask)


@triton.jit
def scale_and_bias(x_ptr, scale_ptr, bias_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS), span(1, COLUMNS)
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    at = row[:, None] * columns + column[None, :]
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    scale = tl.load(scale_ptr + row, mask=row < rows)
    bias = tl.load(bias_ptr + column, mask=column < columns).to(tl.float32)
    tl.store(out_ptr + at, (x * scale[:, None] + bias[None, :]).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def add_transposed(x_ptr, y_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS)[:, None], span(1, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * columns + column, mask=mask, other=0)
    y = tl.load(y_ptr + column * rows + row, mask=mask, other=0)
    tl.store(out_ptr + row * columns + column, x + y, mask=mask)


@triton.jit
def lower_triangle(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    row, column = span(0, BLOCK)[:, None], span(1, BLOCK)[None, :]
    mask = (row < size) & (column < size)
    x = tl.load(x_ptr + row * size + column, mask=mask, other=0.0)
    tl.store(out_ptr + row * size + column, tl.where(row >= column, x, 0.0), mask=mask)


@triton.jit
def pairwise_distances(x_ptr, y_ptr, out_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr, D: tl.constexpr):
    row, column, d = span(0, ROWS), span(1, COLUMNS), tl.arange(0, D)
    x = tl.load(x_ptr + row[:, None] * D + d[None, :])
    y = tl.load(y_ptr + column[:, None] * D + d[None, :])
    difference = x[:, None, :] - y[None, :, :]
    tl.store(out_ptr + row[:, None] * columns + column[None, :], tl.sqrt(tl.sum(difference * difference, 2)))


def cases(of):
    """The cases; `of` gives the sizes."""
    for kind, m, n in (("fp32", 4096, 4096), ("i8", 8192, 8192)):
        m, n = of(m, 80), of(n, 112)
        x = normal(kind, m, n) if kind == "fp32" else integers(kind, m, n, low=-100, high=100)
        tiles = (-(-m // 64), -(-n // 64))
        yield case(f"copy {kind}", copy, [x, result(kind, m, n), m, n], tiles, lambda x: x, ROWS=64, COLUMNS=64)
    for kind, m, n in (("fp32", 4096, 4096), ("fp16", 8192, 4096), ("i8", 8192, 8192)):
        m, n = of(m, 80), of(n, 112)
        x = normal(kind, m, n) if kind[0] == "f" else integers(kind, m, n, low=-100, high=100)
        tiles = (-(-m // 64), -(-n // 64))
        for kernel, how in ((transpose_by_stores, "by stores"), (transpose_tile, "of tiles")):
            yield case(f"transposition {how} {kind}", kernel, [x, result(kind, n, m), m, n], tiles, lambda x: x.T, ROWS=64, COLUMNS=64)
    m, n = of(4096, 256), of(4096, 64)
    yield case("transposition in a loop fp32", transpose_in_loop, [normal("fp32", m, n), result("fp32", n, m), m, n], (n // 32, m // 256),
               lambda x: x.T, ROWS=32, COLUMNS=32)
    p = of(4096, 2)
    yield case("axes 0 2 1 fp16", swap_last_axes, [normal("fp16", p, 4, 32, 64), result("fp16", p, 4, 64, 32)], (p,),
               lambda x: x.swapaxes(2, 3), A=4, B=32, C=64)
    yield case("axes 1 0 2 fp16", swap_first_axes, [normal("fp16", p, 8, 16, 64), result("fp16", p, 16, 8, 64)], (p,),
               lambda x: x.swapaxes(1, 2), A=8, B=16, C=64)
    yield case("pixel shuffle fp16", pixel_shuffle, [normal("fp16", p, 2, 2, 32, 64), result("fp16", p, 32, 2, 64, 2)], (p,),
               lambda x: x.transpose(0, 3, 1, 4, 2), R=2, S=2, H=32, W=64)
    c, pixels = of(512, 64), of(65536, 512)
    yield case("channels last fp16", channels_last, [normal("fp16", c, pixels), result("fp16", pixels, c), c, pixels],
               (pixels // 256, c // 64), lambda x: x.T, CHANNELS=64, HEIGHT=4, WIDTH=64)
    b, s, h = of(8, 1), of(4096, 48), of(16, 2)
    yield case("heads first fp16", heads_first, [normal("fp16", b, s, h, 64), result("fp16", b, h, s, 64), s, h], (b * h, -(-s // 32)),
               lambda x: x.swapaxes(1, 2), POSITIONS=32, D=64)
    m, n = of(8192, 160), of(8192, 80)
    yield case("outer product fp32", outer_product, [normal("fp32", m), normal("fp32", n), result("fp32", m, n), m, n],
               (-(-m // 64), -(-n // 64)), np and np.outer, ROWS=64, COLUMNS=64)
    yield case("outer product fp16", outer_product, [normal("fp16", m), normal("fp16", n), result("fp16", m, n), m, n],
               (-(-m // 128), -(-n // 32)), np and np.outer, ROWS=128, COLUMNS=32)
    m, n = of(8192, 80), of(4096, 160)
    for rows, columns in ((64, 64), (32, 128)):
        yield case(f"scale and bias {rows}x{columns} fp16", scale_and_bias,
                   [normal("fp16", m, n), normal("fp32", m), normal("fp16", n), result("fp16", m, n), m, n],
                   (-(-m // rows), -(-n // columns)), lambda x, scale, bias: x * scale[:, None] + bias, ROWS=rows, COLUMNS=columns)
    yield case("add transposed fp16", add_transposed, [normal("fp16", m, n), normal("fp16", n, m), result("fp16", m, n), m, n],
               (-(-m // 64), -(-n // 64)), lambda x, y: x + y.T, ROWS=64, COLUMNS=64)
    n = of(8192, 160)
    yield case("lower triangle fp16", lower_triangle, [normal("fp16", n, n), result("fp16", n, n), n], (-(-n // 64), -(-n // 64)),
               np and np.tril, BLOCK=64)
    m, n = of(4096, 64), of(4096, 64)
    yield case("pairwise distances fp32", pairwise_distances, [normal("fp32", m, 16), normal("fp32", n, 16), result("fp32", m, n), n],
               (m // 32, n // 32), lambda x, y: np.sqrt(((x[:, None] - y) ** 2).sum(2)), ROWS=32, COLUMNS=32, D=16)
