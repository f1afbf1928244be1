"""Worst errors of the maths functions of the standard library, in ulp of the exact result.

    python3 measure.py [--samples N] [--approx-error E] [NAME ...]

fp32 functions are compared with numpy in float64, fp64 functions with the C library in 80-bit
arithmetic (erf family: mpmath). Inputs: bit patterns at an even stride over the whole type (every
exponent, both signs, denormals, inf, NaN), random points in the ranges where functions change
form, and special values. --approx-error adds that many ulp, with a pseudo-random sign, to each modelled
`.approx` instruction. Prints one table row per function.
"""
import argparse
import math
import numpy as np
import mpmath
import emulate
from emulate import Tile, float32, float64

rng = np.random.default_rng(20240229)
L = np.longdouble


def inputs32(n):
    bits = np.arange(n, dtype=np.uint64) * ((1 << 32) // n) + rng.integers(0, (1 << 32) // n, n, dtype=np.uint64)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, 0.5, 1e-45, -1e-45, 3.4028235e38], np.float32)
    near = [rng.uniform(a, b, n // 8) for a, b in ((-1, 1), (0.4, 2), (-100, 100), (-12, 12), (1e5, 3e5), (-0.01, 0.01))]
    return np.concatenate([bits.astype(np.uint32).view(np.float32), special] + [v.astype(np.float32) for v in near])


def inputs64(n):
    bits = rng.integers(0, 1 << 63, n, dtype=np.uint64) * np.uint64(2) + rng.integers(0, 2, n, dtype=np.uint64)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, 0.5, 5e-324, -5e-324, 1.7976931348623157e308])
    near = [rng.uniform(a, b, n // 4) for a, b in ((-1, 1), (0.4, 2), (-800, 800), (-12, 12), (1e8, 3e9), (-0.01, 0.01))]
    return np.concatenate([bits.view(np.float64), special] + near)


def ulp_errors(got, want, dtype):
    """|got - want| in units of the spacing of `dtype` at `want`; NaN and inf must agree."""
    fi = np.finfo(dtype)
    tiny_exp = fi.minexp - fi.nmant
    finite = np.isfinite(want) & (np.abs(want) < L(fi.max) * (1 + L(2.0) ** -(fi.nmant + 2)))
    _, e = np.frexp(np.where(finite, want, 1))
    unit = np.ldexp(np.ones_like(want), np.maximum(e - 1 - fi.nmant, tiny_exp))
    g = got.astype(want.dtype)
    g = np.where(np.isinf(g) & finite, np.copysign(want.dtype.type(fi.max) * (1 + want.dtype.type(fi.eps)), g), g)
    err = np.abs(g - want) / unit
    agree = np.where(np.isnan(want), np.isnan(got), got == np.where(finite, got, np.where(np.isnan(want), 0, np.copysign(np.inf, want))))
    return np.where(finite, err, np.where(agree, 0, np.inf))


def vec_mp(f):
    def run(*xs):
        xs = [np.asarray(x, np.float64) for x in xs]
        out = []
        with mpmath.workprec(120):
            for args in zip(*[x.tolist() for x in xs]):
                try: v = f(*[mpmath.mpf(a) for a in args])
                except (ValueError, ZeroDivisionError): v = mpmath.nan
                except OverflowError: v = mpmath.mpf(0 if args[0] > 0 else 2)
                if isinstance(v, mpmath.mpc): v = mpmath.nan
                h = float(v)
                out.append(L(h) + L(float(v - h)) if np.isfinite(h) else L(h))
        return np.array(out, L)
    return run


def sigmoid_reference(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def half_turns(x, quarter):
    """sin(pi * x + quarter * pi/2), reduced exactly."""
    y = np.fmod(x, 2)
    n = np.rint(2 * y)
    f = (y - n / 2).astype(L) * L("3.14159265358979323846264338328")
    k = np.mod(np.where(np.isfinite(n), n, 0) + quarter, 4).astype(int)
    return np.choose(k, [np.sin(f), np.cos(f), -np.sin(f), -np.cos(f)])


def remainder_reference(x, y):
    try: return math.remainder(float(x), float(y))
    except ValueError: return math.nan


erf_mp, erfc_mp = vec_mp(mpmath.erf), vec_mp(mpmath.erfc)
UNARY = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "tanh": np.tanh, "sigmoid": sigmoid_reference, "erf": "erf", "erfc": "erfc",
    "expm1": np.expm1, "log1p": np.log1p, "log10": np.log10, "exp10": lambda x: np.power(x.dtype.type(10), x),
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt, "rcbrt": lambda x: 1 / np.cbrt(x),
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sinpi": lambda x: half_turns(x, 0), "cospi": lambda x: half_turns(x, 1),
}
BINARY = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod, "remainder": np.vectorize(remainder_reference, otypes=[L])}
FLUSHES = {"exp2", "sqrt", "rsqrt"}  # fp32: denormals are flushed, as documented; those are left out
SLOW = {"erf": erf_mp, "erfc": erfc_mp}


def reference(name, table, xs, dtype):
    f = table[name]
    if isinstance(f, str):
        if dtype == np.float32:
            return np.vectorize(getattr(math, f), otypes=[float])(xs[0].astype(np.float64))
        return SLOW[name](*xs)
    wide = np.float64 if dtype == np.float32 else L
    return f(*[x.astype(wide) for x in xs])


def pairs(x, dtype):
    y = rng.permutation(x)
    a = rng.uniform(0, 4, x.size // 2).astype(dtype)
    b = rng.uniform(-60, 60, a.size).astype(dtype)
    c = np.exp2(rng.uniform(-120, 120, a.size)).astype(dtype)
    d = (rng.uniform(-1, 1, a.size) * (128 if dtype == np.float32 else 1024) / np.where(c == 1, 1, np.log2(c.astype(np.float64)))).astype(dtype)
    e = rng.integers(-20, 20, a.size).astype(dtype)
    f = rng.integers(-20, 20, a.size).astype(dtype)
    sx = x[-12:]
    g, h = np.meshgrid(np.array([0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e30, -1e30]), np.array([0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e30, -1e30]))
    return (np.concatenate([x, a, c, e, g.ravel()]).astype(dtype), np.concatenate([y, b, d, f, h.ravel()]).astype(dtype))


def measure(name, f, dtype, n):
    td = float32 if dtype == np.float32 else float64
    table = BINARY if name in BINARY else UNARY
    if table.get(name) in ("erf", "erfc"): n = min(n, 1 << 18 if dtype == np.float32 else 20000)
    xs = [inputs32(n) if dtype == np.float32 else inputs64(n)]
    if table is BINARY: xs = list(pairs(xs[0], dtype))
    worst, where, zero_signs = 0.0, None, 0
    for i in range(0, xs[0].size, 1 << 20):
        part = [x[i:i + (1 << 20)] for x in xs]
        got = f(*[Tile(p, td) for p in part]).v
        want = reference(name, table, part, dtype)
        err = ulp_errors(got, want, dtype)
        if name in FLUSHES and dtype == np.float32:
            err = np.where((np.abs(want) < 2.0**-126) | (np.abs(part[0]) < 2.0**-126) & (name != "exp2"), 0, err)
        k = int(np.argmax(err))
        zero_signs += int(np.sum((want == 0) & (np.signbit(want) != np.signbit(got))))
        if err[k] > worst: worst, where = float(err[k]), ([float(p[k]) for p in part], float(got[k]), float(want[k]))
    return worst, where, zero_signs, xs[0].size


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--samples", type=int, default=1 << 20)
    parser.add_argument("--approx-error", type=float, default=0.0)
    parser.add_argument("--dtype", default="fp32,fp64")
    o = parser.parse_args()
    emulate.approx_error = o.approx_error
    import os
    mods = ["math"] + (["libdevice"] if (emulate.RT / "libdevice.rt").exists() else [])
    env = emulate.load(*mods)
    for name in o.names or list(UNARY) + list(BINARY):
        f = env["math"].get(name) or env.get("libdevice", {}).get(name)
        if f is None: continue
        for d in o.dtype.split(","):
            dtype = np.float32 if d == "fp32" else np.float64
            w, at, zs, n = measure(name, f, dtype, o.samples if d == "fp32" else o.samples // 4)
            print(f"| {name} | {d} | {w:.3f} | {n} | {at} | zero signs wrong {zs} |", flush=True)
