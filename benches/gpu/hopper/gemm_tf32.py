"""C = A · B in tf32 with both row-major. wgmma takes tf32 operands from shared memory only with K innermost, and B has N
innermost. So the block computes Cᵀ = Bᵀ Aᵀ: A as it lies is the shared-memory operand, and Bᵀ comes from registers.

The rows of B are permuted on their way into shared memory by the dimensions of the tensor map (k = 8a + 4h + b goes to row
8a + 2b + h of the 128-byte rows), so that the hardware's 128-byte swizzle makes the fragment loads free of bank
conflicts: 8 bytes a thread where a warp group owns 64 columns, 16 bytes where it owns 128.
"""
from dataclasses import dataclass
from .ir import Gen
from .instructions import Hopper, Ring


@dataclass
class GemmTf32:
    name: str
    bm: int = 256
    bn: int = 128
    bk: int = 32
    stages: int = 4
    group: int = 8
    persistent: bool = True
    rounding: str = "copy"     # copy: by the copy engine, both operands | registers: B only | none: both truncated
    regs: tuple = (40, 232)
    dtype: str = "tf32"
    b_major: str = "n"
    cluster: int = 1
    minctas: int = 1
    consumers: int = 2

    @property
    def threads(self): return 384
    @property
    def a_bytes(self): return self.bm * self.bk * 4
    @property
    def b_bytes(self): return self.bn * self.bk * 4
    @property
    def stage_bytes(self): return self.a_bytes + self.b_bytes
    @property
    def smem(self): return self.stages * self.stage_bytes + 256

    def maps(self):
        ty = "tf32" if self.rounding == "copy" else "f32"
        a = ("a", ty, ["K", "M"], [("K", 4)], [32, self.bm], 128)
        b = ("b", ty, [32, 2, 4, ("K", 8), ("N", 32)], [("N", 16), ("N", 4), ("N", 32), (1, 128)], [32, 2, 4, self.bk // 8, self.bn // 32], 128)
        return [a, b, a]

    def generate(self):
        c = self
        g = Gen(c.name, [("ta", "map"), ("tb", "map"), ("tc", "map"), ("a", "ptr"), ("b", "ptr"), ("c", "ptr"),
                         ("M", "i32"), ("N", "i32"), ("K", "i32")], c.threads)
        h = Hopper(g)
        A = g.args
        M, N, K = A["M"], A["N"], A["K"]
        nt = c.bn // 128                      # instructions of 64 columns of C for each warp group
        sa, sb = h.base, h.base + c.stages * c.a_bytes
        full = h.base + c.stages * c.stage_bytes
        empty = full + 8 * c.stages
        tid = h.tid
        warp = g.asm("shfl.sync.idx.b32 $0, $1, 0, 0x1f, 0xffffffff;", [tid >> 5], outs=["i32"])
        wg = warp >> 2
        leader = tid.eq(0)
        cta, grid = g.sreg("ctaid.x"), g.sreg("nctaid.x")
        tiles_m, tiles_n, steps = M // c.bm, N // c.bn, K // c.bk
        tiles = tiles_m * tiles_n
        with g.if_(leader):
            for i in range(c.stages):
                h.bar_init(full + 8 * i, 1)
                h.bar_init(empty + 8 * i, 2)
            h.init_fence()
        h.sync()

        def coords(tile):
            width = c.group * tiles_n
            gid = tile // width
            first = gid * c.group
            gsz = g.min(tiles_m - first, g.c(c.group))
            inner = tile % width
            return (first + inner % gsz) * c.bm, (inner // gsz) * c.bn

        def for_tiles(body):
            if c.persistent:
                with g.loop(cta, tiles, grid) as tile:
                    body(tile)
            else:
                body(cta)

        def producer():
            h.set_registers(c.regs[0], up=False)
            with g.if_(leader):
                ring = Ring(g, c.stages)
                def one(tile):
                    m0, n0 = coords(tile)
                    with g.loop(0, steps) as k:
                        s = ring.s.get()
                        bar = full + s * 8
                        h.bar_wait(empty + s * 8, ring.ph.get() ^ 1)
                        h.bar_expect(bar, c.stage_bytes)
                        h.tma_load(sa + s * c.a_bytes, A["ta"], [k * c.bk, m0], bar)
                        h.tma_load(sb + s * c.b_bytes, A["tb"], [g.c(0), g.c(0), g.c(0), k * (c.bk // 8), n0 >> 5], bar)
                        ring.next()
                for_tiles(one)

        def consumer():
            h.set_registers(c.regs[1], up=True)
            cw, t, w, lane = wg - 1, tid & 127, warp & 3, tid & 31
            gl, tl = lane >> 2, lane & 3
            acc = [[g.var("float", 0.0) for _ in range(c.bm // 2)] for _ in range(nt)]
            frag = [[g.var("i32", 0) for _ in range(c.bk // 8 * 4 * nt)] for _ in range(2)]
            da0 = h.descriptor(sa, 16, 1024)
            if nt == 1:
                col = (cw * 2 + (w >> 1)) * (c.bk * 128)
                chunk, sub = ((w & 1) << 2) + (gl >> 1), (gl & 1) * 8
            else:
                col = (cw * 4 + w) * (c.bk * 128)
                chunk, sub = gl, g.c(0)
            at = [sb + col + sub + tl * 256 + hh * 128 + ((chunk ^ (tl * 2 + hh)) << 4) for hh in range(2)]
            ring = Ring(g, c.stages)
            prev = g.var("i32", 0)

            def load(dst, s):
                """The fragments of one stage: for each 8 rows of B, [tile][row g, row g+8] at k = t, then at k = t + 4."""
                for a in range(c.bk // 8):
                    for hh in range(2):
                        addr = at[hh] + s * c.b_bytes + a * 1024
                        n = 2 * nt
                        regs = ", ".join(f"${i}" for i in range(n))
                        v = g.asm(f"ld.shared.v{n}.b32 {{{regs}}}, [${n}];", [addr], outs=["i32"] * n)
                        if c.rounding == "registers":
                            v = [g.asm("cvt.rna.tf32.f32 $0, $1;", [x], outs=["i32"], effect=False) for x in v]
                        for i in range(nt):
                            dst[(a * nt + i) * 4 + 2 * hh].set(v[2 * i])
                            dst[(a * nt + i) * 4 + 2 * hh + 1].set(v[2 * i + 1])

            def mma(src, s, more):
                da = da0 + (s * (c.a_bytes // 16)).zext()
                frags = [v.get() for v in src]
                ops = []
                for a in range(c.bk // 8):
                    b = da + 2 * a
                    ops += [(i, frags[(a * nt + i) * 4:(a * nt + i) * 4 + 4], b) for i in range(nt)]
                h.wgmma(acc, c.bm, "tf32", ops, more, wait=1)

            def release(s, pred):
                h.bar_arrive(empty + s * 8, g.op(f"and i1 {pred.n}, {t.eq(0).n}", "i1"))

            yes = g.c("true", "i1")

            def one(tile):
                m0, n0 = coords(tile)
                h.bar_wait(full + ring.s.get() * 8, ring.ph.get())
                load(frag[0], ring.s.get())

                def half(cur, nxt, more, last, first):
                    """Products of this step; then, with one step in flight, the fragments of the next."""
                    s = ring.s.get()
                    mma(cur, s, more)
                    ring.next()
                    release(prev.get(), first)
                    prev.set(s)
                    with g.if_(last):
                        n = ring.s.get()
                        h.bar_wait(full + n * 8, ring.ph.get())
                        load(nxt, n)

                with g.loop(0, steps, 2) as k:
                    half(frag[0], frag[1], k.ne(0), yes, k.ne(0))
                    half(frag[1], frag[0], yes, (k + 2).lt(steps), yes)
                h.wgmma_wait(0, *acc)
                release(prev.get(), yes)
                n = 2 * nt
                r = n0 + cw * (64 * nt) + w * (16 * nt) + gl * n
                ptr = g.op(f"ptrtoint ptr addrspace(1) {A['c'].n} to i64", "i64") + ((m0 + tl * 2) * N + r).zext() * 4
                row = (N * 4).zext()
                step = row * 8
                names = ", ".join(f"${1 + i}" for i in range(n))
                for j in range(c.bm // 8):
                    for e in range(2):
                        v = [acc[i][4 * j + e + 2 * hh].get() for i in range(nt) for hh in range(2)]
                        g.asm(f"st.global.v{n}.f32 [$0], {{{names}}};", [ptr + row if e else ptr, *v])
                    ptr = ptr + step
            for_tiles(one)

        g.if_else(wg.eq(0), producer, consumer)
        return g.text()
