"""Loops that hold a state, search, or iterate."""

import triton
import triton.language as tl

from tile_cases.case import case, integers, normal, np, result, steps, uniform
from tile_cases.places import plane, span


@triton.jit
def selective_scan(u_ptr, delta_ptr, b_ptr, c_ptr, a_ptr, out_ptr, steps, channels, CHANNELS: tl.constexpr, STATES: tl.constexpr):
    """The recurrence of Mamba."""
    channel, state = span(0, CHANNELS), tl.arange(0, STATES)
    first = tl.program_id(1) * steps
    a = tl.load(a_ptr + channel[:, None] * STATES + state[None, :])
    h = tl.zeros((CHANNELS, STATES), dtype=tl.float32)
    for step in range(first, first + steps):
        delta = tl.load(delta_ptr + step * channels + channel).to(tl.float32)
        u = tl.load(u_ptr + step * channels + channel).to(tl.float32)
        b = tl.load(b_ptr + step * STATES + state).to(tl.float32)
        c = tl.load(c_ptr + step * STATES + state).to(tl.float32)
        h = h * tl.exp(delta[:, None] * a) + (delta * u)[:, None] * b[None, :]
        tl.store(out_ptr + step * channels + channel, tl.sum(h * c[None, :], 1).to(out_ptr.dtype.element_ty))


@triton.jit
def decaying_outer_products(x_ptr, y_ptr, out_ptr, steps, A: tl.constexpr, B: tl.constexpr):
    a, b = tl.arange(0, A), tl.arange(0, B)
    first = tl.program_id(0) * steps
    h = tl.zeros((A, B), dtype=tl.float32)
    for step in range(first, first + steps):
        x, y = tl.load(x_ptr + step * A + a).to(tl.float32), tl.load(y_ptr + step * B + b).to(tl.float32)
        h = h * 0.9 + x[:, None] * y[None, :]
    tl.store(out_ptr + plane(A, B), h)


@triton.jit
def linear_attention(q_ptr, k_ptr, v_ptr, out_ptr, steps, DK: tl.constexpr, DV: tl.constexpr):
    i, j = tl.arange(0, DK), tl.arange(0, DV)
    first = tl.program_id(0) * steps
    state = tl.zeros((DK, DV), dtype=tl.float32)
    for step in range(first, first + steps):
        k, v, q = tl.load(k_ptr + step * DK + i), tl.load(v_ptr + step * DV + j), tl.load(q_ptr + step * DK + i)
        state += k[:, None] * v[None, :]
        tl.store(out_ptr + step * DV + j, tl.sum(state * q[:, None], 0))


@triton.jit
def delta_rule(q_ptr, k_ptr, v_ptr, beta_ptr, out_ptr, steps, DK: tl.constexpr, DV: tl.constexpr):
    i, j = tl.arange(0, DK), tl.arange(0, DV)
    first = tl.program_id(0) * steps
    state = tl.zeros((DK, DV), dtype=tl.float32)
    for step in range(first, first + steps):
        q, k = tl.load(q_ptr + step * DK + i).to(tl.float32), tl.load(k_ptr + step * DK + i).to(tl.float32)
        v = tl.load(v_ptr + step * DV + j).to(tl.float32)
        k = k / tl.sqrt(tl.sum(k * k) + 1e-6)
        v = (v - tl.sum(state * k[:, None], 0)) * tl.load(beta_ptr + step)
        state += k[:, None] * v[None, :]
        tl.store(out_ptr + step * DV + j, tl.sum(state * q[:, None], 0).to(out_ptr.dtype.element_ty))


@triton.jit
def nearest_center(x_ptr, center_ptr, index_ptr, distance_ptr, centers, ROWS: tl.constexpr, D: tl.constexpr):
    """The assignment of k-means: one center after another."""
    d = tl.arange(0, D)
    x = tl.load(x_ptr + plane(ROWS, D))
    least = tl.full((ROWS,), 1e30, dtype=tl.float32)
    index = tl.zeros((ROWS,), dtype=tl.int32)
    for center in range(centers):
        difference = x - tl.load(center_ptr + center * D + d)[None, :]
        distance = tl.sum(difference * difference, 1)
        index = tl.where(distance < least, center, index)
        least = tl.minimum(least, distance)
    tl.store(index_ptr + span(0, ROWS), index)
    tl.store(distance_ptr + span(0, ROWS), least)


@triton.jit
def squared_distances(x_ptr, y_ptr, row, column, D: tl.constexpr):
    """Of points in D dimensions, each of the rows from each of the columns."""
    square = tl.zeros((row.shape[0], column.shape[0]), dtype=tl.float32)
    for d in tl.static_range(D):
        difference = tl.load(x_ptr + row * D + d)[:, None] - tl.load(y_ptr + column * D + d)[None, :]
        square += difference * difference
    return square


@triton.jit
def nearest_neighbour(x_ptr, y_ptr, index_ptr, distance_ptr, count, ROWS: tl.constexpr, COLUMNS: tl.constexpr, D: tl.constexpr):
    """A tile of distances after another; the coordinates of the rows do not change in the loop."""
    row = span(0, ROWS)
    least = tl.full((ROWS,), 1e30, dtype=tl.float32)
    index = tl.zeros((ROWS,), dtype=tl.int32)
    for start in range(0, count, COLUMNS):
        square = squared_distances(x_ptr, y_ptr, row, start + tl.arange(0, COLUMNS), D)
        nearest, at = tl.min(square, 1, return_indices=True)
        index = tl.where(nearest < least, start + at, index)
        least = tl.minimum(least, nearest)
    tl.store(index_ptr + row, index)
    tl.store(distance_ptr + row, least)


@triton.jit
def nearest_distance(x_ptr, y_ptr, out_ptr, count, ROWS: tl.constexpr, COLUMNS: tl.constexpr, D: tl.constexpr):
    row = span(0, ROWS)
    least = tl.full((ROWS,), 1e30, dtype=tl.float32)
    for start in range(0, count, COLUMNS):
        square = squared_distances(x_ptr, y_ptr, row, start + tl.arange(0, COLUMNS), D)
        least = tl.minimum(least, tl.min(square, 1))
    tl.store(out_ptr + row, least)


@triton.jit
def gravity(x_ptr, out_ptr, bodies, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    x, y = tl.load(x_ptr + i * 2), tl.load(x_ptr + i * 2 + 1)
    force_x = tl.zeros((BLOCK,), dtype=tl.float32)
    force_y = tl.zeros((BLOCK,), dtype=tl.float32)
    for body in range(bodies):
        away_x, away_y = tl.load(x_ptr + body * 2) - x, tl.load(x_ptr + body * 2 + 1) - y
        near = tl.rsqrt(away_x * away_x + away_y * away_y + 1e-3)
        near = near * near * near
        force_x += away_x * near
        force_y += away_y * near
    tl.store(out_ptr + i * 2, force_x)
    tl.store(out_ptr + i * 2 + 1, force_y)


@triton.jit
def transport(cost_ptr, left_ptr, right_ptr, SIZE: tl.constexpr, STEPS: tl.constexpr):
    """Sinkhorn's iteration: sums of rows and of columns in turn."""
    kernel = tl.exp(-tl.load(cost_ptr + plane(SIZE, SIZE)))
    left = tl.full((SIZE,), 1.0, dtype=tl.float32)
    right = tl.full((SIZE,), 1.0, dtype=tl.float32)
    for _ in range(STEPS):
        left = 1.0 / tl.sum(kernel * right[None, :], 1)
        right = 1.0 / tl.sum(kernel * left[:, None], 0)
    tl.store(left_ptr + span(0, SIZE), left)
    tl.store(right_ptr + span(0, SIZE), right)


@triton.jit
def search(key_ptr, x_ptr, out_ptr, keys, BLOCK: tl.constexpr):
    """How many of the ascending keys are lower than each number."""
    x = tl.load(x_ptr + span(0, BLOCK))
    low = tl.zeros((BLOCK,), dtype=tl.int32)
    high = tl.full((BLOCK,), keys, dtype=tl.int32)
    left = keys
    while left > 0:
        middle = (low + high) // 2
        lower = (tl.load(key_ptr + middle, mask=middle < keys, other=2147483647) < x) & (low < high)
        low = tl.where(lower, middle + 1, low)
        high = tl.where(lower, high, middle)
        left = left // 2
    tl.store(out_ptr + span(0, BLOCK), low)


def cases(of):
    """The cases; `of` gives the sizes."""
    b, t, d = of(8, 2), of(128, 8), of(4096, 64)
    yield case("selective scan fp16", selective_scan,
               [normal("fp16", b, t, d), uniform("fp16", b, t, d), normal("fp16", b, t, 16), normal("fp16", b, t, 16),
                normal("fp32", d, 16, spread=0.1), result("fp16", b, t, d, bound=5e-2), t, d], (d // 32, b), selective_scan_reference,
               CHANNELS=32, STATES=16)
    p, t = of(1024, 2), of(128, 8)
    yield case("decaying outer products fp16", decaying_outer_products,
               [normal("fp16", p, t, 16), normal("fp16", p, t, 64), result("fp32", p, 16, 64), t], (p,),
               lambda x, y: np.einsum("pta,ptb,t->pab", x, y, 0.9 ** np.arange(x.shape[1])[::-1]), A=16, B=64)
    yield case("linear attention fp32", linear_attention,
               [normal("fp32", p, t, 32), normal("fp32", p, t, 32), normal("fp32", p, t, 32), result("fp32", p, t, 32, bound=1e-3), t],
               (p,),
               lambda q, k, v: np.tril(q @ k.swapaxes(1, 2)) @ v, DK=32, DV=32)
    p = of(512, 2)
    yield case("delta rule bf16", delta_rule,
               [normal("bf16", p, t, 64), normal("bf16", p, t, 64), normal("bf16", p, t, 32), uniform("fp32", p, t),
                result("bf16", p, t, 32, bound=5e-2), t], (p,), delta_rule_reference, warps=2, DK=64, DV=32)
    m, k = of(65536, 128), of(128, 8)
    yield case("nearest center fp32", nearest_center,
               [normal("fp32", m, 32), normal("fp32", k, 32), result("i32", m, share=1e-3), result("fp32", m), k], (m // 64,),
               lambda x, y: nearest(x, y), ROWS=64, D=32)
    m, n = of(32768, 64), of(1024, 64)
    yield case("nearest neighbour fp32", nearest_neighbour,
               [normal("fp32", m, 8), normal("fp32", n, 8), result("i32", m, share=1e-3), result("fp32", m), n], (m // 32,),
               lambda x, y: nearest(x, y), ROWS=32, COLUMNS=32, D=8)
    yield case("nearest distance fp32", nearest_distance, [normal("fp32", m, 8), normal("fp32", n, 8), result("fp32", m), n], (m // 32,),
               lambda x, y: nearest(x, y)[1], ROWS=32, COLUMNS=32, D=8)
    n = of(4096, 128)
    yield case("gravity fp32", gravity, [normal("fp32", n, 2), result("fp32", n, 2, bound=1e-3), n], (n // 64,), gravity_reference,
               BLOCK=64)
    p = of(2048, 2)
    yield case("transport fp32", transport, [uniform("fp32", p, 64, 64), result("fp32", p, 64), result("fp32", p, 64)], (p,),
               transport_reference, SIZE=64, STEPS=20)
    n, k = of(1 << 21, 512), of(1 << 16, 100)
    yield case("binary search i32", search, [steps(k, 3), integers("i32", n, high=k * 3), result("i32", n), k], (n // 256,),
               lambda keys, x: np.searchsorted(keys, x), BLOCK=256)


def selective_scan_reference(u, delta, b, c, a):
    h, out = np.zeros((u.shape[0], *a.shape)), []
    for t in range(u.shape[1]):
        h = h * np.exp(delta[:, t, :, None] * a) + (delta[:, t] * u[:, t])[:, :, None] * b[:, t, None]
        out.append((h * c[:, t, None]).sum(2))
    return np.stack(out, 1)


def delta_rule_reference(q, k, v, beta):
    k = k / np.sqrt((k * k).sum(2, keepdims=True) + 1e-6)
    state, out = np.zeros((q.shape[0], q.shape[2], v.shape[2])), []
    for t in range(q.shape[1]):
        rest = (v[:, t] - np.einsum("pij,pi->pj", state, k[:, t])) * beta[:, t, None]
        state = state + k[:, t, :, None] * rest[:, None]
        out.append(np.einsum("pij,pi->pj", state, q[:, t]))
    return np.stack(out, 1)


def nearest(x, y):
    distance = ((x[:, None] - y) ** 2).sum(2)
    return distance.argmin(1), distance.min(1)


def gravity_reference(x):
    away = x[None] - x[:, None]
    return (away / (((away ** 2).sum(2) + 1e-3) ** 1.5)[:, :, None]).sum(1)


def transport_reference(cost):
    kernel, right = np.exp(-cost), np.ones(cost.shape[:2])
    for _ in range(20):
        left = 1 / (kernel * right[:, None]).sum(2)
        right = 1 / (kernel * left[:, :, None]).sum(1)
    return left, right
