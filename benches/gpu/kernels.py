"""The kernels that are timed: plain functions of the kernel language, which `run.py` gives to each compiler."""

import triton.language as tl


def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + y, mask=i < n)


def softmax(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + i, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=i < n)


def rms_norm(x_ptr, w_ptr, out_ptr, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i, mask=i < n, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(out_ptr + row * stride + i, (x * scale * w).to(out_ptr.dtype.element_ty), mask=i < n)


def layer_norm(x_ptr, w_ptr, b_ptr, out_ptr, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    out_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    square = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)
        total += x
        square += x * x
    mean = tl.sum(total, axis=0) / n
    scale = tl.rsqrt(tl.sum(square, axis=0) / n - mean * mean + eps)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + i, mask=i < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + i, ((x - mean) * scale * w + b).to(out_ptr.dtype.element_ty), mask=i < n)


def cross_entropy(x_ptr, label_ptr, loss_ptr, stride, n, BLOCK: tl.constexpr):
    """Loss of a row in one pass: every 8 neighbours have a running maximum and a running sum."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride
    most = tl.full([BLOCK // 8], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK // 8], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK // 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
        x = tl.load(x_ptr + i, mask=i < n, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(most, tl.max(x, axis=1))
        # Where nothing was seen yet, both are minus infinity.
        base = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(most - base) + tl.sum(tl.exp(x - base[:, None]), axis=1)
        most = higher
    top = tl.max(most, axis=0)
    sum_ = tl.sum(total * tl.exp(most - top), axis=0)
    label = tl.load(label_ptr + row)
    tl.store(loss_ptr + row, tl.log(sum_) + top - tl.load(x_ptr + label).to(tl.float32))


def matmul(a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * tiles_n) * GROUP
    size = min(tiles_m - first, GROUP)
    tile_m = first + pid % (GROUP * tiles_n) % size
    tile_n = pid % (GROUP * tiles_n) // size
    rows = (tile_m * BM + tl.arange(0, BM)) % M
    columns = (tile_n * BN + tl.arange(0, BN)) % N
    inner = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * sa + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * sb + columns[None, :]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=inner[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=inner[:, None] < K - k * BK, other=0.0)
        sums = tl.dot(a, b, sums)
        a_ptrs += BK
        b_ptrs += BK * sb
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    at = c_ptr + rows[:, None] * sc + columns[None, :]
    tl.store(at, sums.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


def attention(q_ptr, k_ptr, v_ptr, o_ptr, scale, stride, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
              SHARE: tl.constexpr = 1):
    """SHARE heads of Q have one head of K and V together."""
    start = tl.program_id(0) * BM
    head = tl.program_id(1).to(tl.int64) * stride
    shared = (tl.program_id(1) // SHARE).to(tl.int64) * stride
    rows, keys, d = start + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * D + d[None, :])
    most = tl.full([BM], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    sums = tl.zeros([BM, D], dtype=tl.float32)
    end = start + BM if CAUSAL else S
    for at in range(0, end, BN):
        k = tl.load(k_ptr + shared + (at + keys)[:, None] * D + d[None, :])
        s = tl.dot(q, k.T) * (scale * 1.4426950408889634)
        if CAUSAL:
            s = tl.where(rows[:, None] >= (at + keys)[None, :], s, -float("inf"))
        higher = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp2(s - higher[:, None])
        fade = tl.exp2(most - higher)
        total = total * fade + tl.sum(p, axis=1)
        v = tl.load(v_ptr + shared + (at + keys)[:, None] * D + d[None, :])
        sums = tl.dot(p.to(v.dtype), v, sums * fade[:, None])
        most = higher
    tl.store(o_ptr + head + rows[:, None] * D + d[None, :], (sums / total[:, None]).to(o_ptr.dtype.element_ty))


def block_fp8(a_ptr, b_ptr, c_ptr, sa_ptr, sb_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """A (M x K) times B (N x K) transposed in fp8: a scale for each BK elements of a row of A, stored by columns, and for each
    block of BK x BK of B. BN divides BK, so that a tile has one scale of B at a time."""
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * tiles_n) * GROUP
    size = min(tiles_m - first, GROUP)
    tile_m = first + pid % (GROUP * tiles_n) % size
    tile_n = pid % (GROUP * tiles_n) // size
    rows = tile_m * BM + tl.arange(0, BM)
    read = rows % M
    columns = tile_n * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    a_ptrs = a_ptr + read[:, None] * K + inner[None, :]
    b_ptrs = b_ptr + columns[None, :] * K + inner[:, None]
    scale_b = sb_ptr + (tile_n * BN + tl.arange(0, 1)) // BK * (K // BK)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K // BK):
        dot = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs))
        sums += dot * (tl.load(sa_ptr + k * M + read) * tl.load(scale_b + k))[:, None]
        a_ptrs += BK
        b_ptrs += BK
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], sums.to(c_ptr.dtype.element_ty), mask=rows[:, None] < M)


def moe(x_ptr, w_ptr, out_ptr, id_ptr, expert_ptr, M, N, K, TOP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Rows of X by a list, TOP for each token, times the transposed weights of the expert of their block."""
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BN)
    block = pid // tiles_n
    rows = tl.load(id_ptr + block * BM + tl.arange(0, BM))
    real = rows < M
    expert = tl.load(expert_ptr + block).to(tl.int64)
    columns = pid % tiles_n * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    x_ptrs = x_ptr + (rows // TOP)[:, None] * K + inner[None, :]
    w_ptrs = w_ptr + expert * N * K + columns[None, :] * K + inner[:, None]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, tl.cdiv(K, BK)):
        sums = tl.dot(tl.load(x_ptrs, mask=real[:, None], other=0.0), tl.load(w_ptrs), sums)
        x_ptrs += BK
        w_ptrs += BK
    at = out_ptr + rows[:, None].to(tl.int64) * N + columns[None, :]
    tl.store(at, sums.to(out_ptr.dtype.element_ty), mask=real[:, None])


def attention_backward_rows(o_ptr, do_ptr, delta_ptr, dq_ptr, D: tl.constexpr, ROWS: tl.constexpr):
    """What the gradients of a row's scores are reduced by, and zeros where the rows of dQ are summed."""
    row, d = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS), tl.arange(0, D)
    at = row[:, None] * D + d[None, :]
    tl.store(delta_ptr + row, tl.sum(tl.load(o_ptr + at).to(tl.float32) * tl.load(do_ptr + at).to(tl.float32), axis=1))
    tl.store(dq_ptr + at, tl.zeros([ROWS, D], dtype=tl.float32))


def attention_backward(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, scale, S,
                       D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    """The gradients of attention: a program has those of BN keys in registers and adds its part of dQ, without the factor of the
    scores, to float32 in memory. Tiles of scores are transposed: P and dS are left operands as they are computed."""
    start, head = tl.program_id(0) * BN, tl.program_id(1).to(tl.int64)
    at = head * S * D
    q = tl.make_tensor_descriptor(q_ptr + at, [S, D], [D, 1], [BM, D])
    do = tl.make_tensor_descriptor(do_ptr + at, [S, D], [D, 1], [BM, D])
    dq = tl.make_tensor_descriptor(dq_ptr + at, [S, D], [D, 1], [BM, D])
    keys, d = start + tl.arange(0, BN), tl.arange(0, D)
    tile = at + keys[:, None] * D + d[None, :]
    k, v = tl.load(k_ptr + tile), tl.load(v_ptr + tile)
    dk = tl.zeros([BN, D], dtype=tl.float32)
    dv = tl.zeros([BN, D], dtype=tl.float32)
    for m in range(start if CAUSAL else 0, S, BM):
        rows = m + tl.arange(0, BM)
        tile_q = q.load([m, 0])
        p = tl.exp2(tl.dot(k, tile_q.T) * (scale * 1.4426950408889634) - tl.load(lse_ptr + head * S + rows)[None, :] * 1.4426950408889634)
        if CAUSAL:
            p = tl.where(rows[None, :] >= keys[:, None], p, 0.0)
        tile_do = do.load([m, 0])
        dv = tl.dot(p.to(tile_do.dtype), tile_do, dv)
        ds = (p * (tl.dot(v, tile_do.T) - tl.load(delta_ptr + head * S + rows)[None, :])).to(tile_q.dtype)
        dk = tl.dot(ds, tile_q, dk)
        dq.atomic_add([m, 0], tl.dot(ds.T, k))
    tl.store(dv_ptr + tile, dv.to(dv_ptr.dtype.element_ty))
    tl.store(dk_ptr + tile, (dk * scale).to(dk_ptr.dtype.element_ty))


def scaled(x_ptr, out_ptr, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, (tl.load(x_ptr + i) * scale).to(out_ptr.dtype.element_ty))


def mla_decode(q_ptr, k_ptr, out_ptr, scale, S, HEADS: tl.constexpr, L: tl.constexpr, R: tl.constexpr, BH: tl.constexpr, BN: tl.constexpr):
    """Attention of one token of each sequence over latent vectors that all heads share; the values are the first L elements of
    the keys, the other R carry the position."""
    heads, batch = tl.program_id(0) * BH + tl.arange(0, BH), tl.program_id(1).to(tl.int64)
    keys, latent, rope = tl.arange(0, BN), tl.arange(0, L), L + tl.arange(0, R)
    q_ptr += (batch * HEADS + heads)[:, None] * (L + R)
    q, q_rope = tl.load(q_ptr + latent[None, :]), tl.load(q_ptr + rope[None, :])
    k_ptr += batch * S * (L + R)
    most = tl.full([BH], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BH], dtype=tl.float32)
    sums = tl.zeros([BH, L], dtype=tl.float32)
    for at in range(0, S, BN):
        row = k_ptr + (at + keys)[:, None] * (L + R)
        k = tl.load(row + latent[None, :])
        s = tl.dot(q, k.T)
        s = tl.dot(q_rope, tl.load(row + rope[None, :]).T, s) * (scale * 1.4426950408889634)
        higher = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp2(s - higher[:, None])
        fade = tl.exp2(most - higher)
        total = total * fade + tl.sum(p, axis=1)
        sums = tl.dot(p.to(k.dtype), k, sums * fade[:, None])
        most = higher
    at = out_ptr + (batch * HEADS + heads)[:, None] * L + latent[None, :]
    tl.store(at, (sums / total[:, None]).to(out_ptr.dtype.element_ty))


def softmax_split(x_ptr, out_ptr, part_ptr, count_ptr, stride, n, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    """Softmax of rows that one program cannot hold: SPLIT programs, which start one after the other, share a row and wait for
    each other's maximum and sum. The counters, two for each row, are zero before and after."""
    row, part = (tl.program_id(0) // SPLIT).to(tl.int64), tl.program_id(0) % SPLIT
    i = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i, mask=i < n, other=-float("inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    tl.store(part_ptr + row * SPLIT * 2 + part, top)
    tl.store(part_ptr + row * SPLIT * 2 + SPLIT + part, tl.sum(tl.exp(x - top), axis=0))
    tl.atomic_add(count_ptr + row * 2, 1, sem="release")
    while tl.atomic_add(count_ptr + row * 2, 0, sem="acquire") < SPLIT:
        pass
    parts = part_ptr + row * SPLIT * 2 + tl.arange(0, SPLIT)
    tops = tl.load(parts)
    top = tl.max(tops, axis=0)
    scale = 1.0 / tl.sum(tl.load(parts + SPLIT) * tl.exp(tops - top), axis=0)
    tl.store(out_ptr + row * stride + i, (tl.exp(x - top) * scale).to(out_ptr.dtype.element_ty), mask=i < n)
    if tl.atomic_add(count_ptr + row * 2 + 1, 1, sem="relaxed") == SPLIT - 1:
        tl.store(count_ptr + row * 2, 0)
        tl.store(count_ptr + row * 2 + 1, 0)


def cross_entropy_backward(x_ptr, label_ptr, grad_ptr, lse_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i, mask=i < n, other=0.0).to(tl.float32)
    p = tl.exp(x - tl.load(lse_ptr + row))
    g = tl.where(i == tl.load(label_ptr + row), p - 1.0, p) * tl.load(grad_ptr + row)
    tl.store(out_ptr + row * stride + i, g.to(out_ptr.dtype.element_ty), mask=i < n)


def rms_norm_backward(x_ptr, w_ptr, dy_ptr, rstd_ptr, dx_ptr, dw_ptr, M, stride, n, BLOCK: tl.constexpr):
    """Each program takes every so many rows, and leaves one row of partial sums of the weight's gradient."""
    i = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    dw = tl.zeros([BLOCK], dtype=tl.float32)
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        at = row.to(tl.int64) * stride + i
        x = tl.load(x_ptr + at, mask=i < n, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + at, mask=i < n, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        normal, wdy = x * rstd, w * dy
        dx = (wdy - normal * (tl.sum(normal * wdy, axis=0) / n)) * rstd
        dw += dy * normal
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=i < n)
    tl.store(dw_ptr + tl.program_id(0) * n + i, dw, mask=i < n)


def layer_norm_backward(x_ptr, w_ptr, dy_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, M, stride, n, BLOCK: tl.constexpr,
                        PARTS: tl.constexpr):
    """As rms_norm_backward, with the gradient of the bias; a row has up to three parts of BLOCK elements."""
    at = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    dw0, dw1, dw2 = tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32)
    db0, db1, db2 = tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32)
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        first = row.to(tl.int64) * stride
        mean, rstd = tl.load(mean_ptr + row), tl.load(rstd_ptr + row)
        along, total = tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32)
        for part in tl.static_range(PARTS):
            i = part * BLOCK + at
            x = tl.load(x_ptr + first + i, mask=i < n, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + first + i, mask=i < n, other=0.0).to(tl.float32)
            if PARTS > 1:
                w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
            wdy = w * dy
            along += (x - mean) * rstd * wdy
            total += wdy
        slope, shift = tl.sum(along, axis=0) / n, tl.sum(total, axis=0) / n
        for part in tl.static_range(PARTS):
            i = part * BLOCK + at
            if PARTS > 1:       # one part is still in registers
                x = tl.load(x_ptr + first + i, mask=i < n, other=0.0).to(tl.float32)
                dy = tl.load(dy_ptr + first + i, mask=i < n, other=0.0).to(tl.float32)
                wdy = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32) * dy
            normal = (x - mean) * rstd
            tl.store(dx_ptr + first + i, ((wdy - normal * slope - shift) * rstd).to(dx_ptr.dtype.element_ty), mask=i < n)
            if part == 0:
                dw0 += dy * normal
                db0 += dy
            elif part == 1:
                dw1 += dy * normal
                db1 += dy
            else:
                dw2 += dy * normal
                db2 += dy
    out = tl.program_id(0) * n + at
    tl.store(dw_ptr + out, dw0, mask=at < n)
    tl.store(db_ptr + out, db0, mask=at < n)
    if PARTS > 1:
        tl.store(dw_ptr + out + BLOCK, dw1, mask=at + BLOCK < n)
        tl.store(db_ptr + out + BLOCK, db1, mask=at + BLOCK < n)
    if PARTS > 2:
        tl.store(dw_ptr + out + 2 * BLOCK, dw2, mask=at + 2 * BLOCK < n)
        tl.store(db_ptr + out + 2 * BLOCK, db2, mask=at + 2 * BLOCK < n)


def column_sums(x_ptr, out_ptr, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        total += tl.load(x_ptr + row[:, None] * n + i[None, :], mask=(row[:, None] < rows) & (i[None, :] < n), other=0.0)
    tl.store(out_ptr + i, tl.sum(total, axis=0).to(out_ptr.dtype.element_ty), mask=i < n)


def int4_matmul(a_ptr, b_ptr, scale_ptr, c_ptr, parts_ptr, counts_ptr, M, N, K, SIZE: tl.constexpr, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """A (M x K) times the transpose of B (N x K) of 4 bits, with 8 as zero and a scale (K / SIZE x N) for each SIZE elements of a
    row. Their first half is in the lower bits of SIZE / 2 bytes, the second one in the upper bits, so that each byte is loaded once.
    With SPLIT parts of K, the last program of a tile adds the sums of all."""
    HALF: tl.constexpr = SIZE // 2
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * tiles_n) * GROUP
    size = min(tiles_m - first, GROUP)
    rows = (first + pid % (GROUP * tiles_n) % size) * BM + tl.arange(0, BM)
    columns = pid % (GROUP * tiles_n) // size * BN + tl.arange(0, BN)
    inner = tl.arange(0, HALF)
    part, steps = tl.program_id(1) if SPLIT > 1 else 0, K // SIZE // SPLIT
    a_ptrs = a_ptr + (rows % M)[:, None] * K + part * steps * SIZE + inner[None, :]
    b_ptrs = b_ptr + columns[None, :] * (K // 2) + part * steps * HALF + inner[:, None]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(part * steps, part * steps + steps):
        b = tl.load(b_ptrs)
        scale = tl.load(scale_ptr + k * N + columns)[None, :]
        # With these bits above it, a number of 4 bits is 1024 and itself.
        low = ((b & 15).to(tl.int16) | 0x6400).to(tl.float16, bitcast=True) - 1032.0
        high = ((b >> 4).to(tl.int16) | 0x6400).to(tl.float16, bitcast=True) - 1032.0
        sums = tl.dot(tl.load(a_ptrs), low * scale, sums)
        sums = tl.dot(tl.load(a_ptrs + HALF), high * scale, sums)
        a_ptrs += SIZE
        b_ptrs += HALF
    places, mask = rows[:, None] * N + columns[None, :], rows[:, None] < M
    if SPLIT > 1:
        tl.store(parts_ptr + part * M * N + places, sums, mask=mask)
        tl.debug_barrier()
        is_last = tl.atomic_add(counts_ptr + pid, 1) == SPLIT - 1
        tl.store(counts_ptr + pid, 0, mask=is_last)
        mask = mask & is_last
        sums = tl.zeros_like(sums)
        for i in tl.static_range(SPLIT):
            sums += tl.load(parts_ptr + i * M * N + places, mask=mask, other=0.0)
    tl.store(c_ptr + places, sums.to(c_ptr.dtype.element_ty), mask=mask)


def int4_rows(a_ptr, b_ptr, scale_ptr, c_ptr, parts_ptr, counts_ptr, M, N, K, stride_b, SIZE: tl.constexpr, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """The same with B as the left operand: its rows are those of the transposed result."""
    HALF: tl.constexpr = SIZE // 2
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * tiles_n) * GROUP
    size = min(tiles_m - first, GROUP)
    rows = (first + pid % (GROUP * tiles_n) % size) * BM + tl.arange(0, BM)
    columns = pid % (GROUP * tiles_n) // size * BN + tl.arange(0, BN)
    inner = tl.arange(0, HALF)
    part, steps = tl.program_id(1) if SPLIT > 1 else 0, K // SIZE // SPLIT
    a_ptrs = a_ptr + (rows % M)[None, :] * K + part * steps * SIZE + inner[:, None]
    b_ptrs = b_ptr + columns[:, None] * stride_b + part * steps * HALF + inner[None, :]
    sums = tl.zeros((BN, BM), dtype=tl.float32)
    for k in range(part * steps, part * steps + steps):
        b = tl.load(b_ptrs)
        scale = tl.load(scale_ptr + k * N + columns)[:, None]
        low = ((b & 15).to(tl.int16) | 0x6400).to(tl.float16, bitcast=True) - 1032.0
        high = ((b >> 4).to(tl.int16) | 0x6400).to(tl.float16, bitcast=True) - 1032.0
        sums = tl.dot(low * scale, tl.load(a_ptrs), sums)
        sums = tl.dot(high * scale, tl.load(a_ptrs + HALF), sums)
        a_ptrs += SIZE
        b_ptrs += HALF
    places, mask = rows[None, :] * N + columns[:, None], rows[None, :] < M
    if SPLIT > 1:
        tl.store(parts_ptr + part * M * N + places, sums, mask=mask)
        tl.debug_barrier()
        is_last = tl.atomic_add(counts_ptr + pid, 1) == SPLIT - 1
        tl.store(counts_ptr + pid, 0, mask=is_last)
        mask = mask & is_last
        sums = tl.zeros_like(sums)
        for i in tl.static_range(SPLIT):
            sums += tl.load(parts_ptr + i * M * N + places, mask=mask, other=0.0)
    tl.store(c_ptr + places, sums.to(c_ptr.dtype.element_ty), mask=mask)
