"""Gathers and scatters."""

import triton
import triton.language as tl

from tile_cases.case import added, case, integers, normal, np, permutation, result, steps
from tile_cases.places import plane, span


@triton.jit
def gather(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    index = tl.load(index_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, tl.load(x_ptr + index, mask=i < n), mask=i < n)


@triton.jit
def scatter(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    index = tl.load(index_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + index, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def gather_in_tile(x_ptr, index_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr):
    at = plane(ROWS, COLUMNS)
    tl.store(out_ptr + at, tl.gather(tl.load(x_ptr + at), tl.load(index_ptr + at), AXIS))


@triton.jit
def gather_from_table(table_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr, ENTRIES: tl.constexpr):
    table = tl.load(table_ptr + tl.arange(0, ENTRIES))
    tl.store(out_ptr + span(0, BLOCK), tl.gather(table, tl.load(index_ptr + span(0, BLOCK)), 0))


@triton.jit
def embedding(index_ptr, weight_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS), span(1, COLUMNS)
    index = tl.load(index_ptr + row, mask=row < rows, other=0)
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    x = tl.load(weight_ptr + index[:, None] * columns + column[None, :], mask=mask)
    tl.store(out_ptr + row[:, None] * columns + column[None, :], x, mask=mask)


@triton.jit
def embedding_bag(index_ptr, start_ptr, weight_ptr, out_ptr, D: tl.constexpr):
    bag, d = tl.program_id(0), tl.arange(0, D)
    total = tl.zeros((D,), dtype=tl.float32)
    for at in range(tl.load(start_ptr + bag), tl.load(start_ptr + bag + 1)):
        total += tl.load(weight_ptr + tl.load(index_ptr + at) * D + d)
    tl.store(out_ptr + bag * D + d, total.to(out_ptr.dtype.element_ty))


@triton.jit
def sum_of_gathered_rows(x_ptr, index_ptr, out_ptr, count, ROWS: tl.constexpr, D: tl.constexpr):
    d = tl.arange(0, D)
    index_ptr += tl.program_id(0) * count
    total = tl.zeros((ROWS, D), dtype=tl.float32)
    for start in range(0, count, ROWS):
        index = tl.load(index_ptr + start + tl.arange(0, ROWS))
        total += tl.load(x_ptr + index[:, None] * D + d[None, :])
    tl.store(out_ptr + tl.program_id(0) * D + d, tl.sum(total, 0))


@triton.jit
def messages(x_ptr, out_ptr, source_ptr, target_ptr, edges, EDGES: tl.constexpr, D: tl.constexpr):
    """Adds the row of the source of each edge of a graph to that of its target."""
    d = tl.arange(0, D)
    for start in range(tl.program_id(0) * EDGES, edges, tl.num_programs(0) * EDGES):
        edge = start + tl.arange(0, EDGES)
        source = tl.load(source_ptr + edge, mask=edge < edges, other=0)
        target = tl.load(target_ptr + edge, mask=edge < edges, other=0)
        x = tl.load(x_ptr + source[:, None] * D + d[None, :], mask=(edge < edges)[:, None], other=0.0)
        tl.atomic_add(out_ptr + target[:, None] * D + d[None, :], x, mask=(edge < edges)[:, None], sem="relaxed")


@triton.jit
def paged_gather(cache_ptr, table_ptr, length_ptr, out_ptr, pages, heads, PAGE: tl.constexpr, D: tl.constexpr):
    """Copies the keys of a head of a sequence out of the pages of a cache."""
    sequence, head = tl.program_id(0), tl.program_id(1)
    length = tl.load(length_ptr + sequence)
    slot, d = tl.arange(0, PAGE)[:, None], tl.arange(0, D)[None, :]
    for start in range(0, length, PAGE):
        page = tl.load(table_ptr + sequence * pages + start // PAGE)
        x = tl.load(cache_ptr + ((page * PAGE + slot) * heads + head) * D + d, mask=start + slot < length)
        at = (sequence * heads + head) * pages * PAGE + start + slot
        tl.store(out_ptr + at * D + d, x, mask=start + slot < length)


@triton.jit
def sparse_times_vector(start_ptr, column_ptr, value_ptr, x_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    end = tl.load(start_ptr + row + 1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(tl.load(start_ptr + row), end, BLOCK):
        at = first + tl.arange(0, BLOCK)
        column = tl.load(column_ptr + at, mask=at < end, other=0)
        total += tl.load(value_ptr + at, mask=at < end, other=0.0) * tl.load(x_ptr + column, mask=at < end, other=0.0)
    tl.store(out_ptr + row, tl.sum(total))


@triton.jit
def image_to_columns(x_ptr, out_ptr, channels, width, out_width, n, BLOCK: tl.constexpr):
    """The 3 x 3 neighbours of each pixel side by side."""
    i = span(0, BLOCK)
    channel, at = i % channels, i // channels
    tap, pixel = at % 9, at // 9
    row, column = pixel // out_width + tap // 3, pixel % out_width + tap % 3
    x = tl.load(x_ptr + (row * width + column) * channels + channel, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x, mask=i < n)


def cases(of):
    """The cases; `of` gives the sizes."""
    n = of(1 << 22, 3000)
    yield case("gather fp16 i64", gather, [normal("fp16", n), integers("i64", n, high=n), result("fp16", n), n], (-(-n // 1024),),
               lambda x, index: x[index], BLOCK=1024)
    yield case("scatter fp32 i32", scatter, [normal("fp32", n), permutation("i32", n), result("fp32", n), n], (-(-n // 1024),),
               lambda x, index: x[np.argsort(index)], BLOCK=1024)
    p = of(4096, 2)
    for axis in (0, 1):
        yield case(f"gather along axis {axis} fp32", gather_in_tile,
                   [normal("fp32", p, 64, 64), integers("i32", p, 64, 64, high=64), result("fp32", p, 64, 64)], (p,),
                   lambda x, index, axis=axis: np.take_along_axis(x, index, axis + 1), ROWS=64, COLUMNS=64, AXIS=axis)
    yield case("gather from a table fp16", gather_from_table,
               [normal("fp16", 256), integers("i32", p * 4096, high=256), result("fp16", p * 4096)], (p * 4,),
               lambda x, index: x[index], BLOCK=1024, ENTRIES=256)
    m, d = of(65536, 40), of(512, 160)
    yield case("embedding fp16", embedding,
               [integers("i32", m, high=of(32768, 100)), normal("fp16", of(32768, 100), d), result("fp16", m, d), m, d],
               (-(-m // 16), -(-d // 128)), lambda index, weight: weight[index], ROWS=16, COLUMNS=128)
    bags = of(8192, 4)
    yield case("embedding bag fp16", embedding_bag,
               [integers("i32", bags * 32, high=of(65536, 100)), steps(bags + 1, 32), normal("fp16", of(65536, 100), 128),
                result("fp16", bags, 128)], (bags,), lambda index, start, weight: weight[index].reshape(-1, 32, 128).sum(1), D=128)
    p = of(2048, 2)
    yield case("sum of gathered rows fp32", sum_of_gathered_rows,
               [normal("fp32", of(65536, 100), 64), integers("i32", p * 256, high=of(65536, 100)), result("fp32", p, 64), 256], (p,),
               lambda x, index: x[index].reshape(-1, 256, 64).sum(1), ROWS=16, D=64)
    edges, nodes = of(1 << 18, 100), of(65536, 50)
    yield case("messages fp32", messages,
               [normal("fp32", nodes, 64), result("fp32", nodes, 64), integers("i32", edges, high=nodes),
                integers("i32", edges, high=nodes), edges], (of(2048, 2),),
               lambda x, source, target: added(target, x[source], nodes), EDGES=16, D=64)
    b, h, pages = of(64, 2), of(8, 2), of(64, 4)
    yield case("paged gather fp16", paged_gather,
               [normal("fp16", b * pages, 16, h, 128), permutation("i32", b * pages),
                integers("i32", b, low=pages * 16 - 20, high=pages * 16),
                result("fp16", b, h, pages * 16, 128), pages, h], (b, h), paged(b, pages), PAGE=16, D=128)
    rows, columns = of(16384, 4), of(16384, 100)
    yield case("sparse matrix times vector fp32", sparse_times_vector,
               [steps(rows + 1, 300), integers("i32", rows * 300, high=columns), normal("fp32", rows * 300), normal("fp32", columns),
                result("fp32", rows)], (rows,), lambda start, column, value, x: (value * x[column]).reshape(-1, 300).sum(1), BLOCK=256)
    c, h, w = of(64, 8), of(256, 10), of(256, 12)
    n = h * w * 9 * c
    yield case("image to columns fp16", image_to_columns,
               [normal("fp16", h + 2, w + 2, c), result("fp16", n), c, w + 2, w, n], (-(-n // 512),),
               lambda x: np.lib.stride_tricks.sliding_window_view(x, (3, 3), (0, 1)).transpose(0, 1, 3, 4, 2).ravel(), BLOCK=512)


def paged(sequences, pages):
    """The reference of `paged_gather`."""
    def gather(cache, table, length):
        x = cache[table.reshape(sequences, pages)].transpose(0, 3, 1, 2, 4)
        x = x.reshape(sequences, x.shape[1], -1, x.shape[4])
        return x * (np.arange(x.shape[2]) < length[:, None])[:, None, :, None]
    return gather
