"""Worst errors of the special functions (gamma.rt, normal.rt, bessel.rt) in ulp, by mpmath with 40 digits.

    python3 measure_special.py [--samples N] [NAME ...]

The sources run on numpy arrays (emulate.py). Arguments: random points of the ranges where a function changes its form,
points close to its zeros, powers of two over the whole type. For Bessel functions also the worst absolute error beyond 8.
"""
import argparse
import numpy as np
from mpmath import mp, mpf
import emulate

mp.dps = 40
rng = np.random.default_rng(20240301)
uniform = rng.uniform
functions = emulate.load("math")["math"]


def powers(low, high, n): return np.exp2(uniform(low, high, n))


def near(points, n): return [p + uniform(-1, 1, n) * 1e-9 for p in points]


def erfcx(x):
    if x < 60: return mp.exp(x * x) * mp.erfc(x)
    s, t = mpf(1), mpf(1)
    for k in range(1, 20):
        t *= -(2 * k - 1) / (2 * x * x)
        s += t
    return s / (x * mp.sqrt(mp.pi))


def inverse_erfc(y):
    """erfcinv by Newton's method from our own result; precise for y in (0, 1]."""
    if y == 0: return mp.inf
    if y > mpf("0.2"): return mp.erfinv(1 - y)
    z, target = mpf(float(functions["erfcinv"](emulate.wrap(np.array([float(y)]))).v[0])), mp.log(y)
    for _ in range(8):
        e = mp.erfc(z)
        z += (mp.log(e) - target) * e * mp.exp(z * z) * mp.sqrt(mp.pi) / 2
    return z


def erfcinv(y): return inverse_erfc(y) if y <= 1 else -inverse_erfc(2 - y)


def log_gamma(x): return mp.log(abs(mp.gamma(x))) if x < 0 else mp.loggamma(x)


def cases(n):
    zeros = {f: [float(g(int(f[1]), k)) for k in (1, 2, 3)] for f, g in (("j0", mp.besseljzero), ("j1", mp.besseljzero), ("y0", mp.besselyzero), ("y1", mp.besselyzero))}
    zeros = {f: [z for z in v if z < 8] for f, v in zeros.items()}
    ones = [1 + powers(-50, -2, n), 2 - powers(-50, -2, n), 1 - powers(-50, -2, n), 2 + powers(-50, -2, n)]
    return {
        "lgamma": (log_gamma, [uniform(-2.26, 9, 2 * n), uniform(8, 40, n), powers(-1000, 1000, n), -powers(-1000, 0, n), uniform(-60, -23.01, n)] + ones),
        "tgamma": (mp.gamma, [uniform(-8, 9, 2 * n), uniform(8, 171.6, 2 * n), uniform(-183, -8, n), powers(-1000, 1, n), -powers(-1000, 1, n)]),
        "erfcx": (erfcx, [uniform(-26.6, 0, n), uniform(-3, 3, n), uniform(0, 30, n), powers(-60, 60, n), powers(50, 1000, n)]),
        "normcdf": (lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, [uniform(-38.5, 0, 2 * n), uniform(-3, 9, 2 * n), -powers(-60, 5, n), powers(-60, 3, n)]),
        "erfinv": (lambda x: mp.sign(x) * (mp.erfinv(abs(x)) if abs(x) < 0.5 else inverse_erfc(1 - abs(x))), [uniform(-1, 1, 2 * n), 1 - powers(-53, -1, n), powers(-1000, -1, n)]),
        "erfcinv": (erfcinv, [uniform(0, 2, n), powers(-1074, 0, n), 2 - powers(-52, 0, n), 1 - powers(-50, -2, n)]),
        "normcdfinv": (lambda p: -mp.sqrt(2) * erfcinv(2 * p), [uniform(0, 1, n), powers(-1074, -1, n), 1 - powers(-52, -1, n), .5 - powers(-50, -2, n), .5 + powers(-50, -2, n)]),
        "j0": (lambda x: mp.besselj(0, x), [uniform(-8, 8, 3 * n), powers(-200, 3, n)] + near(zeros["j0"], n)),
        "j1": (lambda x: mp.besselj(1, x), [uniform(-8, 8, 3 * n), powers(-1000, 3, n)] + near(zeros["j1"], n)),
        "y0": (lambda x: mp.bessely(0, x), [uniform(0, 8, 3 * n), powers(-1000, 3, n)] + near(zeros["y0"], n)),
        "y1": (lambda x: mp.bessely(1, x), [uniform(0, 8, 3 * n), powers(-1000, 3, n)] + near(zeros["y1"], n)),
        "cyl_bessel_i0": (lambda x: mp.besseli(0, x), [uniform(-8, 8, n), uniform(8, 713, n), powers(-100, 4, n)]),
        "cyl_bessel_i1": (lambda x: mp.besseli(1, x), [uniform(-8, 8, n), uniform(8, 713, n), powers(-1000, 4, n)]),
    }


def worst(name, f, x):
    got = functions[name](emulate.wrap(x)).v
    top = float(np.finfo(x.dtype).max)
    best = (0.0, None)
    for a, g in zip(x, got):
        want = f(mpf(float(a)))
        if abs(want) > top or want == 0:
            error = 0.0 if want == 0 or g == mp.sign(want) * np.inf or abs(g) == top else np.inf
        else:
            unit = np.spacing(np.abs(x.dtype.type(float(want))))
            error = float(abs(mpf(float(g)) - want) / mpf(float(unit))) if np.isfinite(g) else (0.0 if float(want) >= top else np.inf)
        if not error <= best[0]: best = (error, float(a))
    return best


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--samples", type=int, default=4000)
    o = parser.parse_args()
    table = cases(o.samples)
    for name in o.names or table:
        f, parts = table[name]
        x = np.concatenate(parts)
        for dtype in (np.float32, np.float64):
            y = x.astype(dtype)
            y = y[np.isfinite(y) & (y != 0)][:: 4 if dtype == np.float32 else 1]
            error, at = worst(name, f, y)
            print(f"| {name} | {np.dtype(dtype)} | {error:.2f} | {y.size} | at {at!r}", flush=True)
        if name[0] in "jy":
            x = np.concatenate([uniform(8, 100, o.samples), powers(3, 40, o.samples)])
            got = functions[name](emulate.wrap(x)).v
            print(f"| {name} beyond 8 | absolute {max(float(abs(mpf(float(g)) - f(mpf(float(a))))) for a, g in zip(x, got)):.1e}", flush=True)
