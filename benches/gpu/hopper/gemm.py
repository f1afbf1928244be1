"""C[M, N] = A[M, K] · B for Hopper, as LLVM IR, in the structures that a tile compiler would choose among.

A is row-major. B is row-major [K, N] (`b_major="n"`, transposed by its descriptor) or [N, K] (`b_major="k"`).
With TMA loads and stores and 2-D maps (`b_3d=False`) sizes need not be multiples of the block; rows must be multiples of
16 bytes. The other structures are for measuring and want multiples.
"""
from dataclasses import dataclass
from .instructions import Hopper, Ring, WGMMA
from .ir import Gen


@dataclass
class Gemm:
    name: str
    dtype: str = "f16"
    bm: int = 128
    bn: int = 256
    bk: int = 64
    stages: int = 4
    loader: str = "tma"        # tma | cp (cp.async by threads)
    ws: bool = True            # a producer warp group beside the consumers
    persistent: bool = True
    cluster_m: int = 1         # 2: pairs of blocks along M share B by multicast
    cluster_n: int = 1         # 2: pairs of blocks along N share A by multicast
    thin: bool = False         # the producer is one warp after the consumers, and setmaxnreg is not used
    defer: bool = False        # the epilogue is spread over the first steps of the next tile
    device_maps: bool = False  # each block makes its tensor maps itself
    dry: bool = False          # no copies (wrong results): what the consumers reach when data is always there
    even: bool = False         # launch as many blocks as share the waves evenly, not one for each SM
    epi_bufs: int = 2          # 64-column buffers of a warp group's TMA epilogue
    epilogue: str = "tma"      # direct | st16 (stmatrix, 16-byte stores) | tma (stmatrix, TMA stores)
    a_major: str = "k"         # m: A is stored [K, M]
    b_major: str = "n"
    group: int = 8
    init: str = "pred"         # pred: scale-d false in the first step | zero (ptxas serialises) | zero_opaque
    in_flight: int = 1         # groups of products that are not waited for
    regs: tuple = (40, 232)
    cp_fence: bool = True
    cp_far: bool = False       # no roles, cp.async: copies run stages - 1 ahead, and empty barriers say when a slot is free
    b_3d: bool = True          # B by one 3-D copy instead of one 2-D copy for each 64 columns
    minctas: int = 1
    consumers: int = 2
    out: str = "f16"

    @property
    def cluster(self): return self.cluster_m * self.cluster_n
    @property
    def threads(self): return 128 * self.consumers + (32 if self.thin else 128 if self.ws else 0)
    @property
    def size(self): return WGMMA[self.dtype][2]
    @property
    def a_bytes(self): return self.bm * self.bk * self.size
    @property
    def b_bytes(self): return self.bn * self.bk * self.size
    @property
    def stage_bytes(self): return self.a_bytes + self.b_bytes
    @property
    def epi_bytes(self):
        return {"direct": 0, "st16": self.consumers * 8192, "tma": self.consumers * self.epi_bufs * 8192}[self.epilogue]
    @property
    def smem(self): return self.stages * self.stage_bytes + self.epi_bytes + 256 + (512 if self.device_maps else 0)

    @property
    def row(self):
        """Bytes of a row of an operand with K innermost: the width of its swizzle."""
        return min(128, self.bk * self.size)

    def maps(self):
        """Tensor maps: (tensor, element type, dims inner first, strides in bytes, box, swizzle)."""
        row = self.row // self.size
        c = ("c", self.out, ["N", "M"], [("N", 2)], [64, 64], 128)
        a = ("a", self.dtype, ["K", "M"], [("K", self.size)], [row, self.bm // self.cluster_n], self.row)
        if self.a_major == "m":
            a = ("a", self.dtype, ["M", "K"], [("M", self.size)], [64, self.bk], 128)
        if self.b_major == "k":
            b = ("b", self.dtype, ["K", "N"], [("K", self.size)], [row, self.bn // self.cluster_m], self.row)
        elif self.b_3d:
            b = ("b", self.dtype, [64, "K", ("N", 64)], [("N", self.size), (1, 128)], [64, self.bk, self.bn // 64 // self.cluster_m], 128)
        else:
            b = ("b", self.dtype, ["N", "K"], [("N", self.size)], [64, self.bk], 128)
        return [a, b, c]

    def generate(self):
        c = self
        g = Gen(c.name, [("ta", "map"), ("tb", "map"), ("tc", "map"), ("a", "ptr"), ("b", "ptr"), ("c", "ptr"),
                         ("M", "i32"), ("N", "i32"), ("K", "i32")] + ([("scratch", "ptr")] if c.device_maps else []), c.threads, c.minctas, c.cluster)
        h = Hopper(g)
        A = g.args
        M, N, K = A["M"], A["N"], A["K"]
        kinst = WGMMA[c.dtype][1]
        rows = c.bm // c.consumers          # rows of a warp group
        mt = rows // 64                     # instructions along M of a warp group
        sa = h.base
        sb = h.base + c.stages * c.a_bytes
        epi = h.base + c.stages * c.stage_bytes
        full = epi + c.epi_bytes
        empty = full + 8 * c.stages
        tid = h.tid
        warp = g.asm("shfl.sync.idx.b32 $0, $1, 0, 0x1f, 0xffffffff;", [tid >> 5], outs=["i32"])
        wg = warp >> 2
        leader = tid.eq(256 if c.thin else 0)
        cta = g.sreg("ctaid.x")
        grid = g.sreg("nctaid.x")
        rank = cta % c.cluster
        rank_m, rank_n = rank // c.cluster_n, rank % c.cluster_n
        cl, ncl = cta // c.cluster, grid // c.cluster
        def cdiv(x, n): return (x + (n - 1)) // n
        tiles_m, tiles_n, steps = cdiv(M, c.bm * c.cluster_m), cdiv(N, c.bn * c.cluster_n), cdiv(K, c.bk)
        tiles = tiles_m * tiles_n

        producers = {"tma": 1, "cp": 128 if c.ws else 0}[c.loader]
        with g.if_(leader):
            for i in range(c.stages):
                h.bar_init(full + 8 * i, max(producers, 1))
                h.bar_init(empty + 8 * i, c.consumers * (c.cluster_m + c.cluster_n - 1))
            h.init_fence()
        if c.device_maps:
            make_maps(c, g, h, A, full + 16 * c.stages, warp, cta)
        if c.cluster > 1:
            h.cluster_sync()
        else:
            h.sync()
        if c.device_maps:
            for m in ("ta", "tb", "tc"):
                g.asm("fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", [A[m]])

        def coords(tile):
            width = c.group * tiles_n
            gid = tile // width
            first = gid * c.group
            gsz = g.min(tiles_m - first, g.c(c.group))
            inner = tile % width
            pm, pn = first + inner % gsz, inner // gsz
            return (pm * c.cluster_m + rank_m) * c.bm, (pn * c.cluster_n + rank_n) * c.bn

        def tma_stage(s, k0, m0, n0):
            """Copies of one stage by one thread."""
            bar = full + s * 8
            if c.dry:
                h.bar_arrive(bar)
                return
            h.bar_expect(bar, c.stage_bytes)
            if c.cluster_n == 2:
                h.tma_load(sa + s * c.a_bytes + rank_n * (c.a_bytes // 2), A["ta"], [k0, m0 + rank_n * (c.bm // 2)], bar,
                           (g.c(3) << (rank_m * 2)).trunc("i16"))
            elif c.a_major == "m":
                for j in range(c.bm // 64):
                    h.tma_load(sa + s * c.a_bytes + j * c.bk * 128, A["ta"], [m0 + 64 * j, k0], bar)
            else:
                h.tma_load(sa + s * c.a_bytes, A["ta"], [k0, m0], bar)
            dst, mask, part = sb + s * c.b_bytes, None, c.bn // c.cluster_m
            if c.cluster_m == 2:
                dst = dst + rank_m * (c.b_bytes // 2)
                n0 = n0 + rank_m * part
                mask = (g.c(1 | 1 << c.cluster_n) << rank_n).trunc("i16")
            if c.b_major == "k":
                h.tma_load(dst, A["tb"], [k0, n0], bar, mask)
            elif c.b_3d:
                h.tma_load(dst, A["tb"], [g.c(0), k0, n0 >> 6], bar, mask)
            else:
                for j in range(part // 64):
                    h.tma_load(dst + j * c.bk * 128, A["tb"], [n0 + 64 * j, k0], bar, mask)

        def cp_stage(s, k0, m0, n0, t, n_threads):
            """Copies of one stage by all threads, 16 bytes each; the size operand stands for the mask of K."""
            per_row = 8                                     # 16-byte pieces of 128 bytes
            r0, ch = t // per_row, t % per_row
            step = n_threads // per_row
            left = g.min((K - k0 - ch * (16 // c.size)) * c.size, g.c(16))
            src = A["a"]
            off = ((m0 + r0) * K + k0).zext() * c.size + (ch * 16).zext()
            dst = sa + s * c.a_bytes + r0 * 128 + ((ch ^ (r0 & 7)) << 4)   # step is a multiple of 8 rows
            row = (K * (step * c.size)).zext()
            ptr = g.op(f"ptrtoint ptr addrspace(1) {src.n} to i64", "i64") + off
            for i in range(c.bm // step):
                h.cp_async(dst + i * step * 128, ptr, left)
                ptr = ptr + row
            # B row-major: for each row of K, bn / 64 pieces of 128 bytes
            ptr = g.op(f"ptrtoint ptr addrspace(1) {A['b'].n} to i64", "i64") + ((k0 + r0) * N + n0).zext() * c.size + (ch * 16).zext()
            dst = sb + s * c.b_bytes + r0 * 128 + ((ch ^ (r0 & 7)) << 4)
            row = (N * (step * c.size)).zext()
            for i in range(c.bk // step):
                size = (K - k0 - (r0 + i * step)).ge(1).select(g.c(16), g.c(0))
                for j in range(c.bn // 64):
                    h.cp_async(dst + i * step * 128 + j * c.bk * 128, ptr + j * 128, size)
                ptr = ptr + row

        # --- consumer ---------------------------------------------------------------------------------------------
        acc = [[g.var("float", 0.0) for _ in range(c.bn // 2)] for _ in range(mt)]
        cw = wg - 1 if c.ws and not c.thin else wg
        if c.a_major == "m":
            da0, a_step, a_tile = h.descriptor(sa + cw * (rows * c.bk * c.size), 16, 1024), kinst * 128 // 16, 64 * c.bk * c.size // 16
        else:
            da0, a_step, a_tile = h.descriptor(sa + cw * (rows * c.row), 16, 8 * c.row, c.row), kinst * c.size // 16, 64 * c.row // 16
        if c.b_major == "k":
            db0, b_step = h.descriptor(sb, 16, 8 * c.row, c.row), kinst * c.size // 16
        else:
            db0, b_step = h.descriptor(sb, c.bk * 128, 1024), kinst * 128 // 16

        def mma_stage(s, first, parts=False):
            """`first` is an i1 that is false in the first step of a tile (scale-d). With `parts` the wait is left out."""
            da = da0 + (s * (c.a_bytes // 16)).zext()
            db = db0 + (s * (c.b_bytes // 16)).zext()
            ops = []
            for kk in range(c.bk // kinst):
                b = db + kk * b_step
                ops += [(m, da + (kk * a_step + m * a_tile), b) for m in range(mt)]
            h.wgmma(acc, c.bn, c.dtype, ops, first if c.init == "pred" else 1, int(c.a_major == "m"), int(c.b_major == "n"),
                    wait=None if parts else c.in_flight)

        def wait_mma(n):
            h.wgmma_wait(n, *acc)

        t = tid & 127
        lane, w = tid & 31, warp & 3

        def release(s, pred):
            if c.cluster > 1:
                # One thread for each block that writes into this one: the pair along M, the pair along N, itself.
                peers = c.cluster_m + c.cluster_n - 1
                p = g.op(f"and i1 {pred.n}, {t.lt(peers).n}", "i1")
                to = t if c.cluster == 2 else t.eq(0).select(rank, t.eq(1).select(rank ^ 1, rank ^ 2))
                h.bar_arrive_cluster(empty + s * 8, to, p)
            else:
                h.bar_arrive(empty + s * 8, g.op(f"and i1 {pred.n}, {t.eq(0).n}", "i1"))

        def packed(m, j):
            """The two registers of the 8 columns `j`: rows lane/4 and lane/4 + 8."""
            v = [acc[m][4 * j + i].get() for i in range(4)]
            return [h.pack(v[0], v[1], c.out), h.pack(v[2], v[3], c.out)]

        def tma_chunk(q, regs, row0, n0):
            """64 columns of a warp group's 64 rows to shared memory, from there by a TMA store."""
            buf = epi + cw * (c.epi_bufs * 8192) + (q % c.epi_bufs) * 8192
            lr = (lane & 7) + ((lane >> 3) & 1) * 8
            with g.if_(t.eq(0)):
                h.tma_wait_read(c.epi_bufs - 1)
            h.named_sync(cw + 1, 128)
            for j in range(0, 8, 2):
                chunk = (lane >> 4) + j
                h.stmatrix4(buf + w * 2048 + lr * 128 + ((chunk ^ (lr & 7)) << 4), regs[2 * j:2 * j + 4])
            h.proxy_fence()
            h.named_sync(cw + 1, 128)
            with g.if_(t.eq(0)):
                h.tma_store(A["tc"], [n0 + 64 * q, row0], buf)
                h.tma_commit()

        def epilogue(m0, n0):
            if c.epilogue == "tma":
                for m in range(mt):
                    for q in range(c.bn // 64):
                        tma_chunk(q, [r for j in range(8) for r in packed(m, 8 * q + j)], m0 + cw * rows + m * 64, n0)
                return
            for m in range(mt):
                row0 = m0 + cw * rows + m * 64
                if c.epilogue == "direct":
                    r, col = row0 + w * 16 + (lane >> 2), n0 + (lane & 3) * 2
                    p0 = g.op(f"ptrtoint ptr addrspace(1) {A['c'].n} to i64", "i64") + (r * N + col).zext() * 2
                    p1 = p0 + (N * 16).zext()
                    for j in range(c.bn // 8):
                        x, y = packed(m, j)
                        g.asm("st.global.b32 [$0], $1;", [p0 + 16 * j, x])
                        g.asm("st.global.b32 [$0], $1;", [p1 + 16 * j, y])
                    continue
                lr = (lane & 7) + ((lane >> 3) & 1) * 8     # row that this lane addresses for stmatrix
                for q in range(c.bn // 64):
                    buf = epi + cw * 8192 + w * 2048
                    g.asm("bar.warp.sync 0xffffffff;")
                    for j in range(0, 8, 2):
                        chunk = (lane >> 4) + j
                        h.stmatrix4(buf + lr * 128 + ((chunk ^ (lr & 7)) << 4), packed(m, 8 * q + j) + packed(m, 8 * q + j + 1))
                    g.asm("bar.warp.sync 0xffffffff;")
                    rr, ch = lane >> 3, lane & 7
                    p = (g.op(f"ptrtoint ptr addrspace(1) {A['c'].n} to i64", "i64")
                         + ((row0 + w * 16 + rr) * N + n0 + 64 * q).zext() * 2 + (ch * 16).zext())
                    for i in range(4):
                        r = rr + 4 * i
                        v = g.asm("ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];", [buf + r * 128 + ((ch ^ (r & 7)) << 4)], outs=["i32"] * 4)
                        ok = (n0 + 64 * q + ch * 8).lt(N)
                        g.asm("@$5 st.global.v4.b32 [$0], {$1, $2, $3, $4};", [p + (N * (8 * i)).zext(), *v, ok])

        def for_tiles(body):
            if c.persistent:
                with g.loop(cl, tiles, ncl) as tile:
                    body(tile)
            else:
                body(cl)

        def produce_ws():
            ring = Ring(g, c.stages)
            def one(tile):
                m0, n0 = coords(tile)
                with g.loop(0, steps) as k:
                    s = ring.s.get()
                    h.bar_wait(empty + s * 8, ring.ph.get() ^ 1)
                    if c.loader == "tma":
                        tma_stage(s, k * c.bk, m0, n0)
                    else:
                        cp_stage(s, k * c.bk, m0, n0, t, 128)
                        g.asm("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", [full + s * 8])
                    ring.next()
            for_tiles(one)
            if c.loader == "cp":
                g.asm("cp.async.wait_all;")

        def consume(after_step=None):
            ring = Ring(g, c.stages)
            prev = g.var("i32", 0)
            yes = g.c("true", "i1")
            chunks = c.bn // 64
            if c.defer:                       # what is left of the last tile: packed results, their place, whether any
                assert mt == 1 and c.epilogue == "tma" and c.persistent
                held = [g.var("i32", 0) for _ in range(c.bn // 4)]
                hm, hn, has = g.var("i32", 0), g.var("i32", 0), g.var("i1", g.c("false", "i1"))

            def store_held(q):
                tma_chunk(q, [v.get() for v in held[16 * q:16 * q + 16]], hm.get() + cw * rows, hn.get())

            def both(a, b): return g.op(f"and i1 {a.n}, {b.n}", "i1")

            def step(k):
                s = ring.s.get()
                h.bar_wait(full + s * 8, ring.ph.get())
                if c.loader == "cp" and c.cp_fence:
                    h.proxy_fence()
                mma_stage(s, k.ne(0), parts=c.defer)
                if c.defer:                   # under these products a part of the last tile's results goes out
                    with g.if_(both(has.get(), k.lt(chunks))):
                        for q in range(chunks):
                            with g.if_(k.eq(q)):
                                store_held(q)
                    wait_mma(c.in_flight)
                release(*((prev.get(), k.ne(0)) if c.in_flight else (s, yes)))
                if after_step:
                    after_step()
                prev.set(s)
                ring.next()

            def one(tile):
                m0, n0 = coords(tile)
                if c.init.startswith("zero"):
                    for row in acc:
                        for v in row:
                            v.set(0.0)
                        if c.init == "zero_opaque":     # hides the zeros from LLVM, which would repeat them on edges
                            outs = g.asm("// zeros", outs=["float"] * len(row), tied=[v.get() for v in row])
                            for v, o in zip(row, outs):
                                v.set(o)
                with g.loop(0, steps) as k:
                    step(k)
                if c.defer:                   # fewer steps than chunks
                    with g.if_(both(has.get(), steps.lt(chunks))):
                        for q in range(1, chunks):
                            with g.if_(steps.lt(q + 1)):
                                store_held(q)
                if c.in_flight:
                    wait_mma(0)
                    release(prev.get(), yes)
                if c.defer:
                    for j in range(c.bn // 8):
                        v = [acc[0][4 * j + i].get() for i in range(4)]
                        held[2 * j].set(h.pack(v[0], v[1], c.out, effect=True))
                        held[2 * j + 1].set(h.pack(v[2], v[3], c.out, effect=True))
                    hm.set(m0)
                    hn.set(n0)
                    has.set(yes)
                else:
                    epilogue(m0, n0)
            for_tiles(one)
            if c.defer:
                with g.if_(has.get()):
                    for q in range(chunks):
                        store_held(q)
            if c.epilogue == "tma":
                with g.if_(t.eq(0)):
                    h.tma_wait(0)

        def together_tma():
            """No roles: after each step thread 0 of the consumers starts the copies of the step `stages - 1` later, be it
            of this tile or of the next."""
            ring, k = Ring(g, c.stages), g.var("i32", 0)
            tile, m, n = g.var("i32", cl), g.var("i32", 0), g.var("i32", 0)

            def place():
                m0, n0 = coords(tile.get())
                m.set(m0)
                n.set(n0)

            def produce():
                with g.if_(g.op(f"and i1 {leader.n}, {tile.get().lt(tiles).n}", "i1")):
                    s = ring.s.get()
                    h.bar_wait(empty + s * 8, ring.ph.get() ^ 1)
                    tma_stage(s, k.get() * c.bk, m.get(), n.get())
                    ring.next()
                    k.set(k.get() + 1)
                    with g.if_(k.get().eq(steps)):
                        k.set(0)
                        tile.set(tile.get() + ncl if c.persistent else tiles)
                        place()
            place()
            with g.loop(0, c.stages - 1):
                produce()
            consume(produce)

        def together_cp():
            """No roles: cp.async of all threads, a block barrier for each step."""
            m0, n0 = coords(cl)
            n_threads = 128 * c.consumers
            ahead = c.stages - 1 if c.cp_far else c.stages - 2
            for k in range(ahead):
                cp_stage(g.c(k), g.c(k * c.bk), m0, n0, tid, n_threads)
                g.asm("cp.async.commit_group;")
            ring, fill, parity = g.var("i32", 0), g.var("i32", ahead), g.var("i32", 1)
            with g.loop(0, steps) as k:
                s, f = ring.get(), fill.get()
                g.asm(f"cp.async.wait_group {ahead - 1};")
                if c.cp_fence:
                    h.proxy_fence()
                h.sync()
                nxt = k + ahead
                mma_stage(s, k.ne(0), parts=not c.cp_far)
                if c.cp_far:
                    release(f, k.ne(0))
                with g.if_(nxt.lt(steps)):
                    if c.cp_far:                                       # slot f held step k - 1
                        h.bar_wait(empty + f * 8, parity.get())
                    cp_stage(f, nxt * c.bk, m0, n0, tid, n_threads)
                g.asm("cp.async.commit_group;")
                if not c.cp_far:
                    wait_mma(1)
                ring.set((s + 1).eq(c.stages).select(g.c(0), s + 1))
                wrap = (f + 1).eq(c.stages)
                fill.set(wrap.select(g.c(0), f + 1))
                parity.set(parity.get() ^ wrap.zext("i32"))
            wait_mma(0)
            epilogue(m0, n0)

        if c.ws:
            def producer():
                if not c.thin:
                    h.set_registers(c.regs[0], up=False)
                if c.loader == "tma":
                    with g.if_(leader):
                        produce_ws()
                else:
                    produce_ws()

            def consumer():
                if not c.thin:
                    h.set_registers(c.regs[1], up=True)
                consume()

            g.if_else(warp.eq(8) if c.thin else wg.eq(0), producer, consumer)
        elif c.loader == "tma":
            together_tma()
        else:
            together_cp()
        if c.cluster > 1:
            h.cluster_sync()
        return g.text()


def make_maps(c, g, h, A, place, warp, cta):
    """Warp 0 writes the tensor maps field by field in shared memory and copies them to this block's scratch."""
    size = {"M": A["M"], "N": A["N"], "K": A["K"]}
    codes = {"f16": 6, "bf16": 10, "e4m3": 0}
    place = (place + 127) & -128
    raw = g.op(f"ptrtoint ptr addrspace(1) {A['scratch'].n} to i64", "i64")
    lane = h.tid & 31

    def value(x):
        return size[x] if isinstance(x, str) else size[x[0]] // x[1] if isinstance(x, tuple) else g.c(x)
    with g.if_(warp.eq(0)):
        for i, (t, ty, dims, strides, box, _) in enumerate(c.maps()):
            at = place + 128 * i
            g.asm("st.shared.b32 [$0], 0;", [at + lane * 4])
            g.asm("bar.warp.sync 0xffffffff;")
            with g.if_(lane.eq(0)):
                def put(field, kind, *args):
                    text = ", ".join(str(a) if isinstance(a, int) else f"${1 + [x for x in args if not isinstance(x, int)].index(a)}" for a in args)
                    g.asm(f"tensormap.replace.tile.{field}.shared::cta.b1024.{kind} [$0], {text};", [at] + [a for a in args if not isinstance(a, int)])
                put("global_address", "b64", g.op(f"ptrtoint ptr addrspace(1) {A[t].n} to i64", "i64"))
                put("rank", "b32", g.c(len(dims) - 1))
                for d in range(len(dims)):
                    put("box_dim", "b32", d, g.c(box[d]))
                    put("global_dim", "b32", d, value(dims[d]))
                    put("element_stride", "b32", d, g.c(1))
                    if d + 1 < len(dims):
                        st = strides[d]
                        st = (size[st[0]] * st[1]).zext() if isinstance(st[0], str) else g.c(st[0] * st[1], "i64")
                        put("global_stride", "b64", d, st)
                put("elemtype", "b32", codes[ty])
                put("interleave_layout", "b32", 0)
                put("swizzle_mode", "b32", 3)
                put("fill_mode", "b32", 0)
            g.asm("bar.warp.sync 0xffffffff;")
            to = raw + (cta * 384 + 128 * i).zext()
            g.asm("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128;", [to, at])
    for i, m in enumerate(("ta", "tb", "tc")):
        A[m] = raw + (cta * 384 + 128 * i).zext()

