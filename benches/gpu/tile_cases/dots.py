"""Small dots, dots of packed weights, chunks of attention."""

import triton
import triton.language as tl

from tile_cases.case import case, integers, normal, np, result, softmax, words
from tile_cases.places import cube, plane, span


@triton.jit
def dot(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr = "tf32"):
    """A small product for each program."""
    c = tl.dot(tl.load(a_ptr + plane(M, K)), tl.load(b_ptr + plane(K, N)), input_precision=PRECISION)
    tl.store(out_ptr + plane(M, N), c.to(out_ptr.dtype.element_ty))


@triton.jit
def dot_of_transposed(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    c = tl.dot(tl.load(a_ptr + plane(M, K)), tl.trans(tl.load(b_ptr + plane(N, K))))
    tl.store(out_ptr + plane(M, N), c.to(out_ptr.dtype.element_ty))


@triton.jit
def dot_of_batch(a_ptr, b_ptr, out_ptr, COUNT: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    tl.store(out_ptr + cube(COUNT, M, N), tl.dot(tl.load(a_ptr + cube(COUNT, M, K)), tl.load(b_ptr + cube(COUNT, K, N))))


@triton.jit
def dot_of_low_rank(a_ptr, b_ptr, out_ptr, N, BM: tl.constexpr, BN: tl.constexpr, K: tl.constexpr):
    """A tall matrix times a wide one, without a loop."""
    row, column, k = span(0, BM), span(1, BN), tl.arange(0, K)
    a = tl.load(a_ptr + row[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + column[None, :])
    tl.store(out_ptr + row[:, None] * N + column[None, :], tl.dot(a, b).to(out_ptr.dtype.element_ty))


@triton.jit
def dot_twice(x_ptr, first_ptr, second_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """Two layers of a network."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + plane(M, N))
    hidden = tl.maximum(tl.dot(x, tl.load(first_ptr + i * N + j)), 0.0).to(x.dtype)
    tl.store(out_ptr + plane(M, N), tl.dot(hidden, tl.load(second_ptr + i * N + j)).to(x.dtype))


@triton.jit
def matmul_packed(a_ptr, packed_ptr, scale_ptr, out_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Weights of 4 bits, eight rows in a word, a scale for each 128 rows."""
    row, column, inner = span(0, BM), span(1, BN), tl.arange(0, BK)
    shift = (inner % 8 * 4)[:, None]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + inner
        a = tl.load(a_ptr + row[:, None] * K + k[None, :])
        packed = tl.load(packed_ptr + (k // 8)[:, None] * N + column[None, :])
        scale = tl.load(scale_ptr + start // 128 * N + column)
        total = tl.dot(a, (((packed >> shift) & 0xF) - 8).to(tl.float16) * scale[None, :], total)
    tl.store(out_ptr + row[:, None] * N + column[None, :], total.to(out_ptr.dtype.element_ty))


@triton.jit
def matmul_of_bytes(a_ptr, b_ptr, scale_ptr, out_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Weights of 8 bits, a scale for each column."""
    row, column, inner = span(0, BM), span(1, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + inner
        a = tl.load(a_ptr + row[:, None] * K + k[None, :])
        total = tl.dot(a, tl.load(b_ptr + k[:, None] * N + column[None, :]).to(tl.float16), total)
    total *= tl.load(scale_ptr + column)[None, :]
    tl.store(out_ptr + row[:, None] * N + column[None, :], total.to(out_ptr.dtype.element_ty))


@triton.jit
def vector_times_nibbles(x_ptr, packed_ptr, scale_ptr, out_ptr, K, ROWS: tl.constexpr, BYTES: tl.constexpr):
    """One token and weights of 4 bits, two in a byte, a scale for each 128 of a row."""
    row, inner = span(0, ROWS), tl.arange(0, BYTES)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    for start in range(0, K // 2, BYTES):
        at = start + inner
        packed = tl.load(packed_ptr + row[:, None] * (K // 2) + at[None, :])
        low, high = (packed & 0xF) - 8, ((packed >> 4) & 0xF) - 8
        even, odd = tl.load(x_ptr + 2 * at).to(tl.float32)[None, :], tl.load(x_ptr + 2 * at + 1).to(tl.float32)[None, :]
        scale = tl.load(scale_ptr + row * (K // 128) + start // 64).to(tl.float32)
        total += tl.sum(low.to(tl.float32) * even + high.to(tl.float32) * odd, 1) * scale
    tl.store(out_ptr + row, total.to(out_ptr.dtype.element_ty))


@triton.jit
def matmul_of_gathered_rows(a_ptr, index_ptr, b_ptr, out_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column, inner = span(0, BM), span(1, BN), tl.arange(0, BK)
    index = tl.load(index_ptr + row)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + inner
        a = tl.load(a_ptr + index[:, None] * K + k[None, :])
        total = tl.dot(a, tl.load(b_ptr + k[:, None] * N + column[None, :]), total)
    tl.store(out_ptr + row[:, None] * N + column[None, :], total.to(out_ptr.dtype.element_ty))


@triton.jit
def chunk_of_state_space(x_ptr, b_ptr, c_ptr, decay_ptr, out_ptr, STEPS: tl.constexpr, STATES: tl.constexpr, D: tl.constexpr):
    """What the steps of a chunk of Mamba 2 give each other."""
    step = tl.arange(0, STEPS)
    sums = tl.cumsum(tl.load(decay_ptr + span(0, STEPS)), 0)
    c, b = tl.load(c_ptr + plane(STEPS, STATES)), tl.load(b_ptr + plane(STEPS, STATES))
    given = tl.dot(c, tl.trans(b)) * tl.exp(sums[:, None] - sums[None, :])
    given = tl.where(step[:, None] >= step[None, :], given, 0.0).to(x_ptr.dtype.element_ty)
    tl.store(out_ptr + plane(STEPS, D), tl.dot(given, tl.load(x_ptr + plane(STEPS, D))))


@triton.jit
def linear_attention_in_chunks(q_ptr, k_ptr, v_ptr, out_ptr, steps, STEPS: tl.constexpr, D: tl.constexpr):
    step, d = tl.arange(0, STEPS), tl.arange(0, D)
    first = tl.program_id(0) * steps
    state = tl.zeros((D, D), dtype=tl.float32)
    for start in range(first, first + steps, STEPS):
        at = (start + step)[:, None] * D + d[None, :]
        q, k, v = tl.load(q_ptr + at), tl.load(k_ptr + at), tl.load(v_ptr + at)
        inside = tl.where(step[:, None] >= step[None, :], tl.dot(q, tl.trans(k)), 0.0).to(q.dtype)
        tl.store(out_ptr + at, (tl.dot(inside, v) + tl.dot(q, state.to(q.dtype))).to(out_ptr.dtype.element_ty))
        state += tl.dot(tl.trans(k), v)


@triton.jit
def attention_of_one_token(q_ptr, k_ptr, v_ptr, out_ptr, keys, scale, KEYS: tl.constexpr, D: tl.constexpr):
    head, d = tl.program_id(0), tl.arange(0, D)
    q = tl.load(q_ptr + head * D + d).to(tl.float32) * scale
    most, total = -float("inf"), 0.0
    sums = tl.zeros((D,), dtype=tl.float32)
    for start in range(0, keys, KEYS):
        key = start + tl.arange(0, KEYS)
        at = (head * keys + key)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at, mask=(key < keys)[:, None], other=0.0).to(tl.float32)
        score = tl.where(key < keys, tl.sum(k * q[None, :], 1), -float("inf"))
        higher = tl.maximum(most, tl.max(score, 0))
        fade, p = tl.exp(most - higher), tl.exp(score - higher)
        v = tl.load(v_ptr + at, mask=(key < keys)[:, None], other=0.0).to(tl.float32)
        total = total * fade + tl.sum(p, 0)
        sums = sums * fade + tl.sum(p[:, None] * v, 0)
        most = higher
    tl.store(out_ptr + head * D + d, sums / total)


@triton.jit
def inverse_of_triangle(x_ptr, out_ptr, SIZE: tl.constexpr):
    """The inverse of a lower triangle with ones on the diagonal, row by row."""
    i = tl.arange(0, SIZE)
    row, column = i[:, None], i[None, :]
    inverse = -tl.where(row > column, tl.load(x_ptr + plane(SIZE, SIZE)), 0.0)
    for k in range(1, SIZE):
        line = tl.sum(tl.where(row == k, inverse, 0.0), 0)
        line += tl.sum(line[:, None] * inverse, 0)
        inverse = tl.where(row == k, line[None, :], inverse)
    tl.store(out_ptr + plane(SIZE, SIZE), inverse + (row == column).to(tl.float32))


def cases(of):
    """The cases; `of` gives the sizes."""
    for kind, p, m, n, k, warps in (("fp16", 65536, 16, 16, 16, 1), ("bf16", 16384, 32, 32, 64, 4), ("fp32", 16384, 32, 32, 32, 4)):
        p = of(p, 2)
        yield case(f"dot {m}x{n}x{k} {kind}", dot,
                   [normal(kind, p, m, k), normal(kind, p, k, n), result(kind, p, m, n, bound=2e-2)], (p,), lambda a, b: a @ b,
                   warps=warps, M=m, N=n, K=k)
    p = of(8192, 2)
    yield case("dot 32x32x32 fp32 ieee", dot, [normal("fp32", p, 32, 32), normal("fp32", p, 32, 32), result("fp32", p, 32, 32)], (p,),
               lambda a, b: a @ b, M=32, N=32, K=32, PRECISION="ieee")
    yield case("dot with transposed bf16", dot_of_transposed,
               [normal("bf16", p, 64, 64), normal("bf16", p, 64, 64), result("bf16", p, 64, 64)], (p,),
               lambda a, b: a @ b.swapaxes(1, 2), M=64, N=64, K=64)
    yield case("dot of integers i8", dot,
               [integers("i8", p, 64, 64, low=-99, high=99), integers("i8", p, 64, 64, low=-99, high=99), result("i32", p, 64, 64)], (p,),
               lambda a, b: a @ b, M=64, N=64, K=64)
    yield case("dot of a batch fp16", dot_of_batch,
               [normal("fp16", p, 4, 32, 32), normal("fp16", p, 4, 32, 32), result("fp32", p, 4, 32, 32, bound=1e-3)], (p,),
               lambda a, b: a @ b, COUNT=4, M=32, N=32, K=32)
    m, n = of(8192, 128), of(4096, 128)
    for kind, k in (("fp32", 32), ("fp16", 16)):
        yield case(f"dot of low rank {kind}", dot_of_low_rank,
                   [normal(kind, m, k), normal(kind, k, n), result(kind, m, n, bound=2e-2), n], (m // 64, n // 64), lambda a, b: a @ b,
                   BM=64, BN=64, K=k)
    yield case("two dots fp16", dot_twice,
               [normal("fp16", p, 64, 64), normal("fp16", 64, 64, spread=0.1), normal("fp16", 64, 64, spread=0.1),
                result("fp16", p, 64, 64)], (p,), lambda x, first, second: np.maximum(x @ first, 0) @ second, M=64, N=64)
    for m, n, k, bm, warps in ((16, 8192, 8192, 16, 4), (1024, 4096, 2048, 64, 4), (1024, 4096, 4096, 128, 8)):
        bn = 128 if bm == 128 else 64
        m, n, k = of(m, bm), of(n, 128), of(k, 256)
        yield case(f"product with packed weights {bm} rows", matmul_packed,
                   [normal("fp16", m, k), integers("i32", k // 8, n, low=-(1 << 31), high=1 << 31),
                    normal("fp16", k // 128, n, spread=0.01), result("fp16", m, n, bound=2e-2), n, k], (m // bm, n // bn),
                   lambda a, x, scale: a @ ((words(x) - 8) * scale.repeat(128, 0)), warps=warps, BM=bm, BN=bn, BK=32 if bm == 128 else 64)
    m, n, k = of(256, 64), of(8192, 128), of(4096, 64)
    yield case("product with weights of bytes fp16", matmul_of_bytes,
               [normal("fp16", m, k), integers("i8", k, n, low=-128, high=128), normal("fp16", n, spread=0.001),
                result("fp16", m, n, bound=2e-2), n, k],
               (m // 64, n // 64), lambda a, b, scale: a @ b * scale, BM=64, BN=64, BK=32)
    n, k = of(16384, 32), of(8192, 256)
    yield case("vector times nibbles fp16", vector_times_nibbles,
               [normal("fp16", k), integers("i8", n, k // 2, low=-128, high=128), normal("fp16", n, k // 128, spread=0.01),
                result("fp16", n, bound=2e-2), k], (n // 16,),
               lambda x, packed, scale: (nibbles(packed) * scale.repeat(128, 1)) @ x,
               ROWS=16, BYTES=64)
    m, n, k = of(4096, 128), of(1024, 64), of(1024, 64)
    yield case("product of gathered rows fp16", matmul_of_gathered_rows,
               [normal("fp16", m, k), integers("i32", m, high=m), normal("fp16", k, n), result("fp16", m, n, bound=2e-2), n, k],
               (m // 64, n // 64), lambda a, index, b: a[index] @ b, BM=64, BN=64, BK=32)
    p = of(4096, 2)
    yield case("chunk of a state space fp16", chunk_of_state_space,
               [normal("fp16", p, 64, 64), normal("fp16", p, 64, 16), normal("fp16", p, 64, 16), normal("fp32", p, 64, spread=0.1),
                result("fp32", p, 64, 64, bound=5e-2)], (p,), chunk, STEPS=64, STATES=16, D=64)
    p, t = of(256, 2), of(1024, 64)
    yield case("linear attention in chunks bf16", linear_attention_in_chunks,
               [normal("bf16", p, t, 64, spread=0.3), normal("bf16", p, t, 64, spread=0.3), normal("bf16", p, t, 64),
                result("bf16", p, t, 64, bound=5e-2), t], (p,), lambda q, k, v: np.tril(q @ k.swapaxes(1, 2)) @ v, STEPS=32, D=64)
    p, t = of(512, 2), of(512, 100)
    yield case("attention of one token fp16", attention_of_one_token,
               [normal("fp16", p, 128), normal("fp16", p, t, 128), normal("fp16", p, t, 128), result("fp32", p, 128), t, 0.088], (p,),
               lambda q, k, v: np.einsum("pt,ptd->pd", softmax(np.einsum("pd,ptd->pt", q, k) * 0.088, 1), v), KEYS=64, D=128)
    p = of(4096, 2)
    yield case("inverse of a triangle fp32", inverse_of_triangle,
               [normal("fp32", p, 32, 32, spread=0.2), result("fp32", p, 32, 32, bound=1e-3)],
               (p,), lambda x: np.linalg.inv(np.tril(x, -1) + np.eye(32)), SIZE=32)


def nibbles(x):
    """Two numbers from -8 to 7 from each byte of a row."""
    return (np.stack([x & 15, (x >> 4) & 15], 2) - 8).reshape(len(x), -1)


def chunk(x, b, c, decay):
    sums = decay.cumsum(1)
    return np.tril((c @ b.swapaxes(1, 2)) * np.exp(sums[:, :, None] - sums[:, None])) @ x
