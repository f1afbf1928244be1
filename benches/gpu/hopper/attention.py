"""Attention forward, D = 64 or 128, fp16: O = softmax(Q Kᵀ · scale) V for [heads, S, D] tensors, as LLVM IR.

A producer warp group loads Q once and K, V through a ring; each consumer warp group owns 64 rows of Q. S = Q Kᵀ stays in
registers, becomes P there and is the register operand of P V.
"""
from dataclasses import dataclass
from .ir import Gen
from .instructions import Hopper, Ring


@dataclass
class Attention:
    name: str
    causal: bool = False
    d: int = 128
    bn: int = 128
    stages: int = 2
    consumers: int = 2
    overlap: bool = True      # the next Q Kᵀ is issued before this P V, and softmax runs under P V
    pingpong: bool = True     # named barriers make the warp groups issue in turn
    sync: bool = False        # every product is waited for at once, in the order of the source
    regs: tuple = (24, 240)
    heads_group: int = 4      # heads whose K and V share the L2 at a time
    minctas: int = 1
    dtype: str = "f16"

    @property
    def threads(self): return 128 * (self.consumers + 1)
    @property
    def bm(self): return 64 * self.consumers
    @property
    def q_bytes(self): return self.bm * self.d * 2
    @property
    def kv_bytes(self): return self.bn * self.d * 2
    @property
    def smem(self): return self.q_bytes + 2 * self.stages * self.kv_bytes + 256

    def maps(self):
        at = self.d // 64
        def m(t, rows): return (t, "f16", [64, "R", at], [("D", 2), (1, 128)], [64, rows, at], 128)
        return [m("q", self.bm), m("k", self.bn), m("v", self.bn)]

    def generate(self):
        c = self
        # Blocks of keys run from the last to the first. A row whose first block is all masked would have no maximum.
        assert not c.causal or c.bn == c.bm
        g = Gen(c.name, [("tq", "map"), ("tk", "map"), ("tv", "map"), ("o", "ptr"), ("S", "i32"), ("heads", "i32"), ("scale", "float")],
                c.threads, c.minctas)
        h = Hopper(g)
        A = g.args
        S, heads, scale = A["S"], A["heads"], A["scale"]
        atoms, ks = c.d // 64, c.d // 16
        sq = h.base
        sk = sq + c.q_bytes
        sv = sk + c.stages * c.kv_bytes
        bars = sv + c.stages * c.kv_bytes
        q_full = bars
        k_full, k_empty = bars + 8, bars + 8 + 8 * c.stages
        v_full, v_empty = bars + 8 + 16 * c.stages, bars + 8 + 24 * c.stages
        tid = h.tid
        warp = g.asm("shfl.sync.idx.b32 $0, $1, 0, 0x1f, 0xffffffff;", [tid >> 5], outs=["i32"])
        wg = warp >> 2
        leader = tid.eq(0)
        with g.if_(leader):
            h.bar_init(q_full, 1)
            for i in range(c.stages):
                h.bar_init(k_full + 8 * i, 1)
                h.bar_init(v_full + 8 * i, 1)
                h.bar_init(k_empty + 8 * i, c.consumers)
                h.bar_init(v_empty + 8 * i, c.consumers)
            h.init_fence()
        h.sync()
        cta = g.sreg("ctaid.x")
        n_m = (S + (c.bm - 1)) // c.bm
        per = n_m * c.heads_group
        grp, r = cta // per, cta % per
        head = grp * c.heads_group + r % c.heads_group
        pm = r // c.heads_group
        if c.causal:
            pm = n_m - 1 - pm      # long rows first
        m0 = pm * c.bm
        row0 = head * S
        blocks = (m0 + (c.bm + c.bn - 1)) // c.bn if c.causal else S // c.bn

        def producer():
            h.set_registers(c.regs[0], up=False)
            with g.if_(leader):
                h.bar_expect(q_full, c.q_bytes)
                h.tma_load(sq, A["tq"], [g.c(0), row0 + m0, g.c(0)], q_full)
                ring = Ring(g, c.stages)
                with g.loop(0, blocks) as i:
                    s = ring.s.get()
                    row = row0 + (blocks - 1 - i) * c.bn
                    for full, empty, dst, m in ((k_full, k_empty, sk, "tk"), (v_full, v_empty, sv, "tv")):
                        h.bar_wait(empty + s * 8, ring.ph.get() ^ 1)
                        h.bar_expect(full + s * 8, c.kv_bytes)
                        h.tma_load(dst + s * c.kv_bytes, A[m], [g.c(0), row, g.c(0)], full + s * 8)
                    ring.next()

        def consumer():
            h.set_registers(c.regs[1], up=True)
            cw = wg - 1
            t = tid & 127
            w, lane = warp & 3, tid & 31
            ns = c.bn // 2
            sacc = [g.var("float", 0.0) for _ in range(ns)]
            oacc = [g.var("float", 0.0) for _ in range(c.d // 2)]
            p = [g.var("i32", 0) for _ in range(ns // 2)]
            mx = [g.var("float", float("-inf")) for _ in range(2)]
            sm = [g.var("float", 0.0) for _ in range(2)]
            dq = h.descriptor(sq + cw * 8192, 16, 1024)
            dk0 = h.descriptor(sk, 16, 1024)
            dv0 = h.descriptor(sv, c.bn * 128, 1024)
            kr, vr = Ring(g, c.stages), Ring(g, c.stages)

            def qk(s):
                dk = dk0 + (s * (c.kv_bytes // 16)).zext()
                ops = []
                for i in range(ks):
                    aq, ak = (i // 4) * (c.bm * 8) + (i % 4) * 2, (i // 4) * (c.bn * 8) + (i % 4) * 2
                    ops.append((0, dq + aq, dk + ak))
                h.wgmma([sacc], c.bn, c.dtype, ops, 0, 0, 0)

            def pv(s, scale_d):
                dv = dv0 + (s * (c.kv_bytes // 16)).zext()
                h.wgmma([oacc], c.d, c.dtype, [(0, [p[4 * i + j].get() for j in range(4)], dv + i * 128) for i in range(c.bn // 16)],
                        scale_d, 0, 1)

            def fmax(a, b): return g.op(f"call float @llvm.maxnum.f32(float {a.n}, float {b.n})", "float")
            def fma(a, b, d): return g.op(f"call float @llvm.fma.f32(float {a.n}, float {b.n}, float {d.n})", "float")
            def ex2(a): return g.op(f"call float @llvm.nvvm.ex2.approx.ftz.f(float {a.n})", "float")
            def quad(f, v):
                for k in (1, 2):
                    o = g.asm(f"shfl.sync.bfly.b32 $0, $1, {k}, 0x1f, 0xffffffff;", [v], outs=["float"])
                    v = f(v, o)
                return v

            def four(f, xs):
                """A reduction in four chains."""
                parts = list(xs[:4])
                for i, x in enumerate(xs[4:]):
                    parts[i % 4] = f(parts[i % 4], x)
                return f(f(parts[0], parts[1]), f(parts[2], parts[3]))

            def softmax(first, j, masked):
                """Reads sacc; sets mx, sm and gives P as floats and the two row factors."""
                x = [v.get() for v in sacc]
                if masked:
                    base = j * c.bn + (lane & 3) * 2 - m0 - cw * 64 - w * 16 - (lane >> 2)
                    for i in range(ns):
                        col = (i // 4) * 8 + (i & 1)
                        row = 8 if i & 2 else 0
                        keep = (base + (col - row)).lt(1)
                        x[i] = g.op(f"select i1 {keep.n}, float {x[i].n}, float 0xFFF0000000000000", "float")
                factors, ys = [], [None] * ns
                for r in range(2):
                    idx = [i for i in range(ns) if (i >> 1) & 1 == r]
                    top = quad(fmax, four(fmax, [x[i] for i in idx]))
                    old = mx[r].get()
                    new = top if first else fmax(old, top)
                    neg = g.fbin("fmul", new, scale)
                    neg = g.op(f"fneg float {neg.n}", "float")
                    for i in idx:
                        ys[i] = ex2(fma(x[i], scale, neg))
                    total = four(lambda a, b: g.fbin("fadd", a, b), [ys[i] for i in idx])
                    if first:
                        sm[r].set(total)
                        factors.append(None)
                    else:
                        f = ex2(fma(old, scale, neg))
                        factors.append(f)
                        sm[r].set(fma(sm[r].get(), f, total))
                    mx[r].set(new)
                return ys, factors

            def set_p(ys):
                for i in range(ns // 2):
                    p[i].set(h.pack(ys[2 * i], ys[2 * i + 1], c.dtype))

            def release(empty, s):
                h.bar_arrive(empty + s * 8, t.eq(0))

            def turn_begin():
                if c.pingpong:
                    h.named_sync(cw + 2, 256)

            def turn_end():
                if c.pingpong:
                    h.named_arrive((cw ^ 1) + 2, 256)

            def rescale(factors):
                for i, v in enumerate(oacc):
                    v.set(g.fbin("fmul", v.get(), factors[(i >> 1) & 1]))

            if c.pingpong:
                with g.if_(cw.eq(1)):
                    h.named_arrive(2, 256)
            h.bar_wait(q_full, g.c(0))
            s = kr.s.get()
            h.bar_wait(k_full + s * 8, kr.ph.get())
            qk(s)
            h.wgmma_wait(0, sacc)
            release(k_empty, s)
            kr.next()
            ys, _ = softmax(True, blocks - 1, c.causal)
            f = [g.var("float", 1.0) for _ in range(2)]
            y = [g.var("float") for _ in range(ns)]

            def keep(ys, factors):
                for var, v in zip(y, ys):
                    var.set(v)
                for var, v in zip(f, factors):
                    if v is not None:
                        var.set(v)

            def finish(v, pred):
                """The P V in flight ends; O is scaled, and the next P becomes an operand."""
                h.wgmma_wait(0, oacc)
                h.bar_arrive(v_empty + v * 8, g.op(f"and i1 {t.eq(0).n}, {pred.n}", "i1"))
                for i, o in enumerate(oacc):
                    o.set(g.fbin("fmul", o.get(), f[(i >> 1) & 1].get()))
                set_p([v.get() for v in y])

            keep(ys, [None, None])
            last_v = g.var("i32", 0)

            def step(i):
                """The wait for the last P V stands at the head of the loop, not behind softmax: within one basic block
                ptxas moves it up, before the exponentials that it should follow."""
                s, v = kr.s.get(), vr.s.get()
                if c.overlap:
                    finish(last_v.get(), i.ne(1))
                    last_v.set(v)
                    h.bar_wait(k_full + s * 8, kr.ph.get())
                    turn_begin()
                    qk(s)
                    h.bar_wait(v_full + v * 8, vr.ph.get())
                    pv(v, i.ne(1))
                    turn_end()
                    h.wgmma_wait(1, sacc)
                    release(k_empty, s)
                    keep(*softmax(False, blocks - 1 - i, False))
                else:
                    set_p([v.get() for v in y])
                    if c.sync:
                        h.bar_wait(v_full + v * 8, vr.ph.get())
                        pv(v, i.ne(1))
                        h.wgmma_wait(0, oacc)
                        release(v_empty, v)
                        h.bar_wait(k_full + s * 8, kr.ph.get())
                        qk(s)
                        h.wgmma_wait(0, sacc)
                        release(k_empty, s)
                    else:
                        h.bar_wait(k_full + s * 8, kr.ph.get())
                        h.bar_wait(v_full + v * 8, vr.ph.get())
                        turn_begin()
                        pv(v, i.ne(1))
                        qk(s)
                        turn_end()
                        h.wgmma_wait(0, sacc, oacc)
                        release(k_empty, s)
                        release(v_empty, v)
                    ys, factors = softmax(False, blocks - 1 - i, False)
                    rescale(factors)
                    keep(ys, factors)
                kr.next()
                vr.next()

            with g.loop(1, blocks) as i:      # only the first block can be masked
                step(i)
            v = vr.s.get()
            if c.overlap:
                finish(last_v.get(), g.c("false", "i1"))
            else:
                set_p([v.get() for v in y])
            h.bar_wait(v_full + v * 8, vr.ph.get())
            pv(v, blocks.ne(1))
            h.wgmma_wait(0, oacc)
            # O / l, through the warp group's rows of the Q buffer, 16 bytes a thread.
            inv = []
            for r in range(2):
                tot = quad(lambda a, b: g.fbin("fadd", a, b), sm[r].get())
                inv.append(g.asm("rcp.approx.ftz.f32 $0, $1;", [tot], outs=["float"], effect=False))
            o = [g.fbin("fmul", v.get(), inv[(i >> 1) & 1]) for i, v in enumerate(oacc)]
            lr = (lane & 7) + ((lane >> 3) & 1) * 8
            ptr = g.op(f"ptrtoint ptr addrspace(1) {A['o'].n} to i64", "i64")
            buf = sq + cw * 8192 + w * 2048
            for q in range(atoms):
                b = buf + q * c.bm * 128
                for j in range(0, 8, 2):
                    rg = []
                    for jj in (8 * q + j, 8 * q + j + 1):
                        rg += [h.pack(o[4 * jj], o[4 * jj + 1], c.dtype), h.pack(o[4 * jj + 2], o[4 * jj + 3], c.dtype)]
                    chunk = (lane >> 4) + j
                    h.stmatrix4(b + lr * 128 + ((chunk ^ (lr & 7)) << 4), rg)
                g.asm("bar.warp.sync 0xffffffff;")
                rr, ch = lane >> 3, lane & 7
                for i in range(4):
                    r = rr + 4 * i
                    vv = g.asm("ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];", [b + r * 128 + ((ch ^ (r & 7)) << 4)], outs=["i32"] * 4)
                    row = m0 + cw * 64 + w * 16 + r
                    off = (row0 + row).zext() * (c.d * 2) + (ch * 16 + q * 128).zext()
                    g.asm("@$5 st.global.v4.b32 [$0], {$1, $2, $3, $4};", [ptr + off, *vv, row.lt(S)])

        g.if_else(wg.eq(0), producer, consumer)
        g.globals += ["declare float @llvm.maxnum.f32(float, float)", "declare float @llvm.fma.f32(float, float, float)",
                      "declare float @llvm.nvvm.ex2.approx.ftz.f(float)"]
        return g.text()
