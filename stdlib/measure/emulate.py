"""Runs the kernel-language sources of the standard library on numpy arrays.

The sources use Python's own grammar, so they are executed as they stand, with `tl` and `prim`
replaced by the small model below: one `Tile` is a numpy array plus a dtype name, operators follow
the promotion rules of the language, `prim.fma` rounds once, approximations are modelled by
`approx_error` (0 = correctly rounded). Functions for `map_elementwise` branch on arrays, and run again on
both parts where an array takes both ways. Used by measure.py and check_random.py; not part of the
product.
"""
import math as pymath
import pathlib
import numpy as np

np.seterr(all="ignore")
HERE = pathlib.Path(__file__).resolve().parent
RT = HERE.parent
approx_error = 0.0  # in ulp; +-, added to every modelled approximation


class DType:
    def __init__(self, name, np_type, kind, bits):
        self.name, self.np, self.kind, self.primitive_bitwidth = name, np_type, kind, bits
        self.itemsize = bits // 8
        self.int_bitwidth = bits

    def is_floating(self): return self.kind == "f"
    def is_int(self): return self.kind in "iub"
    def is_int_signed(self): return self.kind == "i"
    def is_int_unsigned(self): return self.kind in "ub"
    def is_bool(self): return self.kind == "b"
    def is_int1(self): return self.kind == "b"
    def is_fp64(self): return self.name == "fp64"
    def is_fp32(self): return self.name == "fp32"
    def is_fp16(self): return self.name == "fp16"
    def is_bf16(self): return self.name == "bf16"
    def __repr__(self): return self.name


int1 = DType("int1", np.bool_, "b", 1)
int8, int16, int32, int64 = (DType(f"int{b}", getattr(np, f"int{b}"), "i", b) for b in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DType(f"uint{b}", getattr(np, f"uint{b}"), "u", b) for b in (8, 16, 32, 64))
float16 = DType("fp16", np.float16, "f", 16)
bfloat16 = DType("bf16", np.float32, "f", 16)
float32 = DType("fp32", np.float32, "f", 32)
float64 = DType("fp64", np.float64, "f", 64)
BY_NP = {np.dtype(d.np): d for d in (int1, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64)}


def wrap(array):
    array = np.asarray(array)
    return Tile(array, BY_NP[array.dtype])


def const_type(c):
    if isinstance(c, bool): return int1
    if isinstance(c, int):
        for d in (int32, uint32, int64, uint64):
            i = np.iinfo(d.np)
            if i.min <= c <= i.max: return d
        raise ValueError(c)
    a = abs(c)
    return float32 if a == 0 or pymath.isinf(c) or c != c or 2.0**-126 <= a <= 3.4028234663852886e38 else float64


def typed(c):
    """A Python constant as a tile by the rules for constants on their own."""
    if isinstance(c, Tile): return c
    d = const_type(c)
    return Tile(np.asarray(c, dtype=d.np), d)


def join_types(a, b, div=False):
    if a is b: return float32 if div and a in (float16, bfloat16) else a
    for d in (float64, float32):
        if d in (a, b): return d
    if float16 in (a, b): return float32 if div else float16
    if bfloat16 in (a, b): return float32
    if a.kind == "b": return b
    if b.kind == "b": return a
    if a.kind == b.kind: return a if a.primitive_bitwidth >= b.primitive_bitwidth else b
    u, s = (a, b) if a.kind == "u" else (b, a)
    if div: raise TypeError(f"{a} / {b}")
    return u if u.primitive_bitwidth >= s.primitive_bitwidth else s


def promote(a, b, div=False, scalars=True):
    if not isinstance(a, Tile) and not isinstance(b, Tile): scalars = False
    if isinstance(a, Tile) and isinstance(b, Tile) or not scalars:
        a, b = typed(a), typed(b)
        d = join_types(a.dtype, b.dtype, div)
        return a.to(d), b.to(d)
    t, c = (a, b) if isinstance(a, Tile) else (b, a)
    rank = {"b": 0, "i": 1, "u": 1, "f": 2}
    ck = "b" if isinstance(c, bool) else "i" if isinstance(c, int) else "f"
    d = t.dtype if rank[ck] <= rank[t.dtype.kind] else join_types(t.dtype, const_type(c))
    if div and d in (float16, bfloat16): d = float32
    if d.kind in "iu":
        i = np.iinfo(d.np)
        if not i.min <= c <= i.max: raise ValueError(f"constant {c} does not fit {d}")
    k = Tile(np.asarray(c).astype(d.np) if d.kind == "f" else np.asarray(c, dtype=d.np), d)
    t = t.to(d)
    return (t, k) if isinstance(a, Tile) else (k, t)


class Tile:
    __array_priority__ = 1000

    def __init__(self, v, dtype):
        self.v, self.dtype = np.asarray(v), dtype
        assert self.v.dtype == dtype.np, (self.v.dtype, dtype)

    @property
    def shape(self): return tuple(self.v.shape)
    @property
    def type(self): return self
    @property
    def scalar(self): return self.dtype
    @property
    def numel(self): return self.v.size
    def __len__(self): raise TypeError("len of a tile")

    def to(self, d, bitcast=False, fp_downcast_rounding=None):
        if bitcast:
            assert d.primitive_bitwidth == self.dtype.primitive_bitwidth, (d, self.dtype)
            return Tile(self.v.view(d.np) if self.v.ndim else np.asarray(self.v[None].view(d.np)[0]), d)
        if d is self.dtype: return self
        if d is int1: return Tile(self.v != 0, d)
        if d.kind in "iu" and self.dtype.kind == "f":
            i = np.iinfo(d.np)
            v = np.trunc(self.v.astype(np.longdouble))
            v = np.where(np.isnan(v), 0, np.clip(v, np.longdouble(i.min), np.longdouble(i.max)))
            return Tile(v.astype(d.np), d)
        v = self.v.astype(d.np)
        if d is bfloat16: v = bf16_round(v)
        return Tile(v, d)

    cast = to
    def _bin(self, o, f, div=False):
        a, b = promote(self, o, div)
        return Tile(np.asarray(f(a.v, b.v)).astype(a.dtype.np), a.dtype)
    def _rbin(self, o, f, div=False):
        a, b = promote(o, self, div)
        return Tile(np.asarray(f(a.v, b.v)).astype(a.dtype.np), a.dtype)
    def __add__(s, o): return s._bin(o, np.bitwise_xor if s.dtype is int1 and isinstance(o, Tile) and o.dtype is int1 else np.add)
    def __radd__(s, o): return s._rbin(o, np.add)
    def __sub__(s, o): return s._bin(o, np.subtract)
    def __rsub__(s, o): return s._rbin(o, np.subtract)
    def __mul__(s, o): return s._bin(o, np.multiply)
    def __rmul__(s, o): return s._rbin(o, np.multiply)
    def _div(a, b):
        a, b = promote(a, b, div=True)
        if a.dtype.kind != "f": a, b = a.to(float32), b.to(float32)
        return Tile(a.v / b.v, a.dtype)
    def __truediv__(s, o): return Tile._div(s, o)
    def __rtruediv__(s, o): return Tile._div(o, s)
    def _idiv(a, b):
        a, b = promote(a, b, div=True)
        if a.dtype.kind == "f": raise TypeError("// of floats")
        q = np.floor_divide(a.v, b.v)
        return Tile((q + ((q < 0) & (q * b.v != a.v))).astype(a.dtype.np), a.dtype)
    def __floordiv__(s, o): return Tile._idiv(s, o)
    def __rfloordiv__(s, o): return Tile._idiv(o, s)
    def __mod__(s, o):
        a, b = promote(s, o, div=True)
        return Tile(np.fmod(a.v, b.v), a.dtype)
    def __and__(s, o): return s._bin(o, np.bitwise_and)
    def __rand__(s, o): return s._rbin(o, np.bitwise_and)
    def __or__(s, o): return s._bin(o, np.bitwise_or)
    def __ror__(s, o): return s._rbin(o, np.bitwise_or)
    def __xor__(s, o): return s._bin(o, np.bitwise_xor)
    def __rxor__(s, o): return s._rbin(o, np.bitwise_xor)
    def __lshift__(s, o): return s._bin(o, np.left_shift)
    def __rshift__(s, o):
        a, b = promote(s, o)
        if s.dtype.kind == "i" and a.dtype.kind == "u":
            return Tile(np.right_shift(a.v.view(s.dtype.np), b.v.view(s.dtype.np)).view(a.dtype.np), a.dtype)
        return Tile(np.right_shift(a.v, b.v), a.dtype)
    def __neg__(s): return Tile((np.zeros_like(s.v) - s.v).astype(s.dtype.np), s.dtype)
    def __invert__(s): return Tile(~s.v, s.dtype)
    def _cmp(s, o, f):
        a, b = promote(s, o, scalars=False)
        return Tile(np.asarray(f(a.v, b.v)), int1)
    def __lt__(s, o): return s._cmp(o, np.less)
    def __le__(s, o): return s._cmp(o, np.less_equal)
    def __gt__(s, o): return s._cmp(o, np.greater)
    def __ge__(s, o): return s._cmp(o, np.greater_equal)
    def __eq__(s, o): return s._cmp(o, np.equal)
    def __ne__(s, o): return s._cmp(o, np.not_equal)
    __hash__ = None
    def __bool__(self):
        if Tile.branches == 0: raise TypeError("a tile as a static condition")
        if self.v.size and self.v.min() != self.v.max(): raise Mixed(self.v)
        return bool(self.v.size and self.v.flat[0])
    branches = 0  # how many calls of map_elementwise are being executed


class Mixed(Exception):
    """A branch that some elements take and others do not."""


def bf16_round(v):
    u = v.astype(np.float32).view(np.uint32)
    r = ((u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(v), v, r).astype(np.float32)


def fma(a, b, c):
    if a.dtype == np.float32:
        return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float32)
    plain = a * b + c
    # With a and b in [1/2, 1) no product of their halves overflows or is lost.
    a, b, c = np.broadcast_arrays(a, b, c)
    (a, ea), (b, eb) = np.frexp(a), np.frexp(b)
    c = np.ldexp(c, -(ea + eb))
    def split(x):
        t = x * 134217729.0
        h = t - (t - x)
        return h, x - h
    p = a * b
    ah, al = split(a)
    bh, bl = split(b)
    e = ((ah * bh - p) + ah * bl + al * bh) + al * bl
    s = p + c
    z = s - p
    t = (p - (s - z)) + (c - z)
    r = s + (t + e)
    return np.where(np.isfinite(r), np.ldexp(r, ea + eb), plain)


def prim_args(*args):
    """Arguments of a primitive: Python numbers take the type of the tiles."""
    d = None
    for a in args:
        if isinstance(a, Tile): d = a.dtype if d is None else join_types(d, a.dtype)
    return [a.to(d) if isinstance(a, Tile) else Tile(np.asarray(a).astype(d.np), d) for a in args], d


def approx(f, flush=False):
    def run(x):
        x = x if isinstance(x, Tile) else typed(x)
        v = x.v
        if flush: v = np.where(np.abs(v) < np.float32(2.0**-126), np.copysign(np.float32(0), v), v).astype(np.float32)
        r = f(v.astype(np.float64))
        if approx_error:
            sign = np.where((v.view(np.uint32) * np.uint32(2654435761)) >> np.uint32(31), 1.0, -1.0)
            r = r * (1 + sign * approx_error * 2.0**-23)
        r = r.astype(np.float32)
        if flush: r = np.where(np.abs(r) < np.float32(2.0**-126), np.copysign(np.float32(0), r), r).astype(np.float32)
        return Tile(r, float32)
    return run


class prim:
    def fma(a, b, c):
        (a, b, c), d = prim_args(a, b, c)
        return Tile(fma(a.v, b.v, c.v), d)
    exp2_approx = staticmethod(approx(np.exp2))
    exp2_approx_ftz = staticmethod(approx(np.exp2, True))
    log2_approx = staticmethod(approx(np.log2, True))
    sin_approx = staticmethod(approx(np.sin, True))
    cos_approx = staticmethod(approx(np.cos, True))
    tanh_approx = staticmethod(approx(np.tanh))
    sqrt_approx = staticmethod(approx(np.sqrt, True))
    rsqrt_approx = staticmethod(approx(lambda x: 1 / np.sqrt(x), True))
    rcp_approx = staticmethod(approx(lambda x: 1 / x, True))
    def mul_rn(a, b):
        (a, b), d = prim_args(a, b)
        return Tile(a.v * b.v, d)
    def max_num(a, b):
        (a, b), d = prim_args(a, b)
        return Tile(np.fmax(a.v, b.v), d)
    def min_num(a, b):
        (a, b), d = prim_args(a, b)
        return Tile(np.fmin(a.v, b.v), d)
    def sqrt_rn(x): return Tile(np.sqrt(x.v), x.dtype)
    def div_rn(a, b):
        (a, b), d = prim_args(a, b)
        return Tile(a.v / b.v, d)
    def floor(x): return Tile(np.floor(x.v), x.dtype)
    def ceil(x): return Tile(np.ceil(x.v), x.dtype)
    def trunc(x): return Tile(np.trunc(x.v), x.dtype)
    def rint(x): return Tile(np.rint(x.v), x.dtype)
    def abs(x): return Tile(np.abs(x.v), x.dtype)
    def neg(x): return Tile(-x.v, x.dtype)
    def copysign(a, b):
        (a, b), d = prim_args(a, b)
        return Tile(np.copysign(a.v, b.v), d)
    def umulhi(a, b):
        (a, b), d = prim_args(a, b)
        if d.primitive_bitwidth == 32:
            return Tile(((a.v.astype(np.uint32).astype(np.uint64) * b.v.astype(np.uint32)) >> np.uint64(32)).astype(np.uint32).astype(d.np), d)
        a, b = np.broadcast_arrays(a.v.astype(np.uint64), b.v.astype(np.uint64))
        m, k = np.uint64(0xFFFFFFFF), np.uint64(32)
        ah, al, bh, bl = a >> k, a & m, b >> k, b & m
        mid = (al * bl >> k) + (ah * bl & m) + (al * bh & m)
        return Tile((ah * bh + (ah * bl >> k) + (al * bh >> k) + (mid >> k)).astype(d.np), d)
    def popc(x): return Tile(np.bitwise_count(x.v.view(f"u{x.v.itemsize}")).astype(np.int32), int32)
    def clz(x):
        bits = x.v.itemsize * 8
        v, n = x.v.view(f"u{x.v.itemsize}").copy(), np.zeros(x.v.shape, np.int32)
        for k in range(bits):
            n = np.where((v >> np.array(bits - 1 - k, v.dtype)) == 0, k + 1, n)
        return Tile(n.astype(np.int32), int32)
    def brev(x):
        v, r = x.v.view(f"u{x.v.itemsize}"), np.zeros_like(x.v.view(f"u{x.v.itemsize}"))
        for k in range(x.v.itemsize * 8):
            r = (r << np.array(1, v.dtype)) | ((v >> np.array(k, v.dtype)) & np.array(1, v.dtype))
        return Tile(r.view(x.v.dtype), x.dtype)


class constexpr:
    pass


class tl:
    int1, int8, int16, int32, int64 = int1, int8, int16, int32, int64
    uint8, uint16, uint32, uint64 = uint8, uint16, uint32, uint64
    float16, bfloat16, float32, float64 = float16, bfloat16, float32, float64
    constexpr = constexpr
    static_range = range
    def where(c, a, b):
        a, b = promote(a, b)
        return Tile(np.where(c.v, a.v, b.v), a.dtype)
    def full(shape, value, dtype): return Tile(np.full(tuple(shape), value, dtype=dtype.np), dtype)
    def static_assert(c, msg=""): assert c, msg
    class PropagateNan:
        ALL, NONE = True, False
    def maximum(a, b, propagate_nan=False):
        a, b = promote(a, b, scalars=False)
        return Tile((np.maximum if propagate_nan else np.fmax)(a.v, b.v), a.dtype)
    def minimum(a, b, propagate_nan=False):
        a, b = promote(a, b, scalars=False)
        return Tile((np.minimum if propagate_nan else np.fmin)(a.v, b.v), a.dtype)
    def map_elementwise(f, *args):
        """`f` for the whole arrays; where they take different branches, once more for each part of them."""
        full = np.broadcast_arrays(*[a.v for a in args])
        flat = [Tile(v.reshape(-1), a.dtype) for v, a in zip(full, args)]
        def run(parts):
            try:
                r = f(*parts)
                return r if isinstance(r, tuple) else (r,)
            except Mixed as mixed:
                taken = mixed.args[0].astype(bool)
                yes, no = (run([Tile(t.v[mask], t.dtype) for t in parts]) for mask in (taken, ~taken))
                out = [Tile(np.empty(taken.size, y.v.dtype), y.dtype) for y in yes]
                for o, y, n in zip(out, yes, no): o.v[taken], o.v[~taken] = y.v, n.v
                return tuple(out)
        Tile.branches += 1
        try: r = run(flat)
        finally: Tile.branches -= 1
        r = tuple(Tile(t.v.reshape(full[0].shape), t.dtype) for t in r)
        return r if len(r) > 1 else r[0]
    umulhi = prim.umulhi
    def abs(x): return prim.abs(x)
    def floor(x): return prim.floor(x)
    def reduce(x, axis, f, keep_dims=False):
        xs = x if isinstance(x, (tuple, list)) else (x,)
        vs = [np.moveaxis(t.v.reshape(-1) if axis is None else t.v, 0 if axis is None else axis, 0) for t in xs]
        vals = [Tile(v, t.dtype) for v, t in zip(vs, xs)]
        n = vs[0].shape[0]
        while n > 1:
            lo = [Tile(t.v[: n // 2], t.dtype) for t in vals]
            hi = [Tile(t.v[n // 2: n], t.dtype) for t in vals]
            r = f(*lo, *hi)
            vals = list(r) if isinstance(r, tuple) else [r]
            n //= 2
        out = [Tile(t.v[0], t.dtype) for t in vals]
        if keep_dims: out = [Tile(np.expand_dims(t.v, axis if axis is not None else tuple(range(xs[0].v.ndim))), t.dtype) for t in out]
        return tuple(out) if isinstance(x, (tuple, list)) else out[0]
    def associative_scan(x, axis, f, reverse=False):
        v = np.moveaxis(x.v, axis, 0)
        if reverse: v = v[::-1]
        acc, out = Tile(v[0], x.dtype), [v[0]]
        for i in range(1, v.shape[0]):
            acc = f(acc, Tile(v[i], x.dtype))
            out.append(acc.v)
        o = np.stack(out)
        if reverse: o = o[::-1]
        return Tile(np.moveaxis(o, 0, axis), x.dtype)


class triton:
    def jit(f): return f
    def constexpr_function(f): return f


MODULES = {
    "math": ("exponential", "trigonometric", "special", "elementary", "gamma", "normal", "bessel"),
    "libdevice": ("libdevice", "conversions", "rounded", "orders"),
}


def load(*names):
    """Executes modules of the standard library; `tl` learns each name, as in the language."""
    tl.math = tl
    env = {}
    for name in names:
        g = {"tl": tl, "prim": prim, "triton": triton, "libdevice": type("libdevice", (), {})}
        text = "\n\n".join((RT / f"{part}.rt").read_text() for part in MODULES.get(name, (name,)))
        exec(compile(text, f"{name}.rt", "exec"), g)
        env[name] = g
        if name != "libdevice":
            for k, v in g.items():
                if callable(v) and not k.startswith("_") and k not in ("tl", "prim", "triton"): setattr(tl, k, v)
    return env
