"""Stencils, pooling, convolutions."""

import triton
import triton.language as tl

from tile_cases.case import case, normal, np, result
from tile_cases.places import span


@triton.jit
def five_points(x_ptr, out_ptr, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS)[:, None], span(1, COLUMNS)[None, :]
    mask = (row < height) & (column < width)
    at = x_ptr + row * width + column
    center = tl.load(at, mask=mask, other=0.0)
    above = tl.load(at - width, mask=mask & (row > 0), other=0.0)
    below = tl.load(at + width, mask=mask & (row < height - 1), other=0.0)
    left = tl.load(at - 1, mask=mask & (column > 0), other=0.0)
    right = tl.load(at + 1, mask=mask & (column < width - 1), other=0.0)
    tl.store(out_ptr + row * width + column, above + below + left + right - 4 * center, mask=mask)


@triton.jit
def depthwise(x_ptr, weight_ptr, out_ptr, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column, channel = span(0, ROWS)[:, None], span(1, COLUMNS)[None, :], tl.program_id(2)
    x_ptr += channel * height * width
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            y, x = row + i - 1, column + j - 1
            mask = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            weight = tl.load(weight_ptr + channel * 9 + i * 3 + j).to(tl.float32)
            total += tl.load(x_ptr + y * width + x, mask=mask, other=0.0).to(tl.float32) * weight
    at = (channel * height + row) * width + column
    tl.store(out_ptr + at, total.to(out_ptr.dtype.element_ty), mask=(row < height) & (column < width))


@triton.jit
def maximum_of_nine(x_ptr, out_ptr, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS)[:, None], span(1, COLUMNS)[None, :]
    most = tl.full((ROWS, COLUMNS), -10000.0, x_ptr.dtype.element_ty)
    for i in range(3):
        for j in range(3):
            y, x = row + i - 1, column + j - 1
            mask = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            most = tl.maximum(most, tl.load(x_ptr + y * width + x, mask=mask, other=-10000.0))
    tl.store(out_ptr + row * width + column, most, mask=(row < height) & (column < width))


@triton.jit
def maximum_of_four(x_ptr, out_ptr, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Halves height and width, which are those of the result."""
    row, column = span(0, ROWS)[:, None], span(1, COLUMNS)[None, :]
    mask = (row < height) & (column < width)
    at = x_ptr + row * 4 * width + column * 2
    above = tl.maximum(tl.load(at, mask=mask), tl.load(at + 1, mask=mask))
    below = tl.maximum(tl.load(at + 2 * width, mask=mask), tl.load(at + 2 * width + 1, mask=mask))
    tl.store(out_ptr + row * width + column, tl.maximum(above, below), mask=mask)


@triton.jit
def convolution(x_ptr, weight_ptr, out_ptr, n, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for tap in tl.static_range(TAPS):
        at = i + tap - TAPS // 2
        x = tl.load(x_ptr + at, mask=(at >= 0) & (at < n), other=0.0).to(tl.float32)
        total += x * tl.load(weight_ptr + tap).to(tl.float32)
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def causal_convolution(x_ptr, weight_ptr, out_ptr, steps, channels, CHANNELS: tl.constexpr):
    """Four taps along time, and SiLU; the last three inputs stay in registers."""
    channel = span(0, CHANNELS)
    x_ptr += tl.program_id(1) * steps * channels + channel
    out_ptr += tl.program_id(1) * steps * channels + channel
    weight_0 = tl.load(weight_ptr + channel * 4).to(tl.float32)
    weight_1 = tl.load(weight_ptr + channel * 4 + 1).to(tl.float32)
    weight_2 = tl.load(weight_ptr + channel * 4 + 2).to(tl.float32)
    weight_3 = tl.load(weight_ptr + channel * 4 + 3).to(tl.float32)
    x_0 = tl.zeros((CHANNELS,), dtype=tl.float32)
    x_1 = x_0
    x_2 = x_0
    for step in range(steps):
        x_3 = tl.load(x_ptr + step * channels).to(tl.float32)
        total = x_0 * weight_0 + x_1 * weight_1 + x_2 * weight_2 + x_3 * weight_3
        tl.store(out_ptr + step * channels, (total * tl.sigmoid(total)).to(out_ptr.dtype.element_ty))
        x_0 = x_1
        x_1 = x_2
        x_2 = x_3


def cases(of):
    """The cases; `of` gives the sizes."""
    h, w = of(4096, 12), of(4096, 160)
    yield case("five points fp32", five_points, [normal("fp32", h, w), result("fp32", h, w), h, w], (-(-h // 8), -(-w // 128)),
               lambda x: sum(around(x, i, j) for i, j in ((0, 1), (2, 1), (1, 0), (1, 2))) - 4 * x, ROWS=8, COLUMNS=128)
    h, w = of(4096, 20), of(4096, 80)
    yield case("maximum of nine fp16", maximum_of_nine, [normal("fp16", h, w), result("fp16", h, w), h, w], (-(-h // 32), -(-w // 64)),
               lambda x: np.max([around(x, i, j, -1e4) for i in range(3) for j in range(3)], 0), ROWS=32, COLUMNS=64)
    for kind, rows, columns in (("fp32", 8, 128), ("fp16", 16, 64)):
        h, w = of(2048, 20), of(4096, 80)
        yield case(f"maximum of four {kind}", maximum_of_four, [normal(kind, 2 * h, 2 * w), result(kind, h, w), h, w],
                   (-(-h // rows), -(-w // columns)), lambda x: x.reshape(x.shape[0] // 2, 2, -1, 2).max((1, 3)), ROWS=rows,
                   COLUMNS=columns)
    c, h, w = of(256, 2), of(256, 20), of(256, 80)
    yield case("depthwise convolution fp16", depthwise,
               [normal("fp16", c, h, w), normal("fp16", c, 9), result("fp16", c, h, w), h, w], (-(-h // 16), -(-w // 64), c),
               lambda x, weight: sum(around(x, i // 3, i % 3) * weight[:, i, None, None] for i in range(9)), ROWS=16, COLUMNS=64)
    n = of(1 << 24, 1500)
    yield case("convolution fp32", convolution, [normal("fp32", n), normal("fp32", 5), result("fp32", n), n], (-(-n // 1024),),
               lambda x, weight: np.correlate(x, weight, "same"), TAPS=5, BLOCK=1024)
    b, t, d = of(32, 2), of(256, 20), of(4096, 128)
    yield case("causal convolution fp16", causal_convolution,
               [normal("fp16", b, t, d), normal("fp16", d, 4), result("fp16", b, t, d), t, d], (d // 128, b), causal, CHANNELS=128)


def around(x, i, j, outside=0.0):
    """An image moved by i - 1 rows and j - 1 columns."""
    wider = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(1, 1), (1, 1)], constant_values=outside)
    return wider[..., i:i + x.shape[-2], j:j + x.shape[-1]]


def causal(x, weight):
    """The reference of `causal_convolution`."""
    before = np.pad(x, ((0, 0), (3, 0), (0, 0)))
    total = sum(before[:, i:i + x.shape[1]] * weight[:, i] for i in range(4))
    return total / (1 + np.exp(-total))
