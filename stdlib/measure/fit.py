"""Polynomials of the special functions (gamma.rt, normal.rt, bessel.rt): prints them as Horner steps.

    python3 fit.py [NAME ...]

Each is a weighted least-squares fit at Chebyshev nodes (mpmath, 70 digits) for the relative error; coefficients are
rounded to fp64 or fp32 one after the other, the lowest first, each time refitting the rest. Prints the worst relative
error in bits, too, and the zeros of Bessel functions in two parts.
"""
import functools
import struct
import sys

from mpmath import mp, mpf

mp.dps = 70


def chebyshev_nodes(a, b, n):
    return [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * n)) for k in range(n)]


def fp32(x):
    """x rounded to fp32, as a Python float."""
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def fit(f, a, b, centre, degree, rounded=float):
    """Coefficients (rounded, lowest first) of f(v) in powers of v - centre for v in [a, b], and the worst relative error."""
    a, b, centre = mpf(a), mpf(b), mpf(centre)
    nodes = chebyshev_nodes(a, b, 2 * degree + 6)
    values = [f(v) for v in nodes]
    weights = [1 / y for y in values]
    radius = max(abs(a - centre), abs(b - centre))
    unit = [(v - centre) / radius for v in nodes]
    rows = [[w * u**p for p in range(degree + 1)] for u, w in zip(unit, weights)]
    rest = [w * y for w, y in zip(weights, values)]
    n = degree + 1
    gram = [[mp.fsum(r[i] * r[j] for r in rows) for j in range(n)] for i in range(n)]
    done = []
    for k in range(n):
        m = mp.matrix(n - k, n - k)
        right = mp.matrix(n - k, 1)
        for i in range(k, n):
            for j in range(k, n): m[i - k, j - k] = gram[i][j]
            right[i - k] = mp.fsum(r[i] * y for r, y in zip(rows, rest))
        c = mp.lu_solve(m, right)[0] / radius**k
        done.append(rounded(c))
        rest = [y - r[k] * mpf(done[k]) * radius**k for y, r in zip(rest, rows)]
    worst = mpf(0)
    for i in range(3 * n):
        v = a + (b - a) * (mpf(i) + mpf("0.31")) / (3 * n)
        y = f(v)
        got = mp.fsum(mpf(c) * (v - centre)**p for p, c in enumerate(done))
        worst = max(worst, abs(got / y - 1))
    return done, worst


def erfcx(a):
    """erfc(a) * e^(a^2)."""
    if a < 60: return mp.exp(a * a) * mp.erfc(a)
    s, t, k = mpf(1), mpf(1), 1
    while True:
        n = -t * (2 * k - 1) / (2 * a * a)
        if abs(n) < mpf(10)**-65: return s / (a * mp.sqrt(mp.pi))
        t = n
        s += t
        k += 1


def scaled_erfc(k):
    """(1 + 2 a) * erfcx(a) in u = (a - k) / (a + k)."""
    def f(u):
        a = k * (1 + u) / (1 - u)
        return (1 + 2 * a) * erfcx(a)
    return f


def erf_small(z): return mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1


def erfinv_ratio(w):
    """erfinv(x) / x with x^2 = 1 - e^-w."""
    x = mp.sqrt(-mp.expm1(-w))
    if w < 4: return mp.erfinv(x) / x
    log_y = -w - mp.log(1 + x)  # of y = 1 - x
    z = mp.sqrt(w)
    for _ in range(60):
        e = mp.erfc(z)
        step = (mp.log(e) - log_y) * e * mp.exp(z * z) * mp.sqrt(mp.pi) / 2
        z += step
        if abs(step) < mpf(10)**-60: break
    return z / x


def erfinv_tail(k):
    """erfinv(x) / (x * s) in u = (s - k) / (s + k), where s^2 = w."""
    def f(u):
        s = k * (1 + u) / (1 - u)
        return erfinv_ratio(s * s) / s
    return f


def erfinv_by_root(s):
    """erfinv(x) / (x * s), where s^2 = w."""
    return erfinv_ratio(s * s) / s


def reciprocal_gamma(f): return (1 / mp.gamma(1 + f) - 1) / (f * (1 - f))


def stirling(z):
    x = 1 / mp.sqrt(z)
    return (mp.loggamma(x) - ((x - mpf(1) / 2) * mp.log(x) - x + mp.log(2 * mp.pi) / 2)) * x


@functools.cache
def zero(kind, n): return (mp.besseljzero if kind[0] == "j" else mp.besselyzero)(int(kind[1]), n)


def j0(n): return lambda t: mp.besselj(0, mp.sqrt(t)) / (t - zero("j0", n)**2)


def j1(n): return lambda t: mp.besselj(1, mp.sqrt(t)) / mp.sqrt(t) / (t - zero("j1", n)**2)


def y0(n):
    def f(t):
        x, z = mp.sqrt(t), zero("y0", n)
        return (mp.bessely(0, x) - 2 / mp.pi * mp.log(x / z) * mp.besselj(0, x)) / (t - z**2)
    return f


def y1(n):
    def f(t):
        x, z = mp.sqrt(t), zero("y1", n)
        return x * (mp.bessely(1, x) - 2 / mp.pi * mp.log(x / z) * mp.besselj(1, x)) / (t - z**2)
    return f


def wave(order, second):
    """P of the asymptotic form in 1/x^2, or Q times x."""
    def f(v):
        x = 1 / mp.sqrt(v)
        phase, s = x - (2 * order + 1) * mp.pi / 4, mp.sqrt(mp.pi * x / 2)
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        return s * (y * mp.cos(phase) - j * mp.sin(phase)) * x if second else s * (j * mp.cos(phase) + y * mp.sin(phase))
    return f


def below(f, last):
    """f in last - t, where all coefficients can be positive."""
    return lambda s: f(last - s)


def y_factors(kind, *zeros):
    """y0 or y1 over the factors of some zeros."""
    def f(x):
        y = mp.bessely(int(kind[1]), x)
        for k in zeros: y /= x - zero(kind, k)
        return y
    return f


def modulus(order):
    """(sqrt((J^2 + Y^2) * x * pi/2) - 1) * x^2 in 1/x^2."""
    def f(v):
        x = 1 / mp.sqrt(v)
        return (mp.sqrt(mp.pi * x / 2 * (mp.besselj(order, x)**2 + mp.bessely(order, x)**2)) - 1) / v
    return f


def phase(order):
    """t * x in 1/x^2, where J : Y = cos(p) : sin(p) for p = x - (2 * order + 1) * pi/4 - t."""
    def f(v):
        x = 1 / mp.sqrt(v)
        t = x - (2 * order + 1) * mp.pi / 4 - mp.atan2(mp.bessely(order, x), mp.besselj(order, x))
        return (t - 2 * mp.pi * mp.nint(t / (2 * mp.pi))) * x
    return f


def j_small(n): return lambda t: mp.besselj(n, mp.sqrt(t)) / mp.sqrt(t)**n


def i_small(n): return lambda t: mp.besseli(n, mp.sqrt(t)) / mp.sqrt(t)**n


def i_large(n):
    def f(v):
        x = 16 / (v + 1)
        return mp.besseli(n, x) * mp.sqrt(x) * mp.exp(-x)
    return f


def i_scaled(n):
    """In 8 / x, with e^(x - 4), so that the exponential does not overflow before the function."""
    def f(w):
        x = 8 / mpf(w)
        return mp.besseli(n, x) * mp.sqrt(x) * mp.exp(4 - x)
    return f


def log_gamma(f): return mp.loggamma(1 + f) / (f * (f - 1))


FITS = {  # name: (function, from, to, centre, degree[, the type of the coefficients])
    "erfcx": (scaled_erfc(4), -1, 1, 0, 23),
    "erfinv_a": (erfinv_ratio, 0, 6.25, 3.125, 23),
    "erfinv_b": (erfinv_tail(4), (2.5 - 4) / (2.5 + 4), (6.25 - 4) / (6.25 + 4), 0, 25),
    "erfinv_c": (erfinv_tail(13), (6.25 - 13) / (6.25 + 13), (27.5 - 13) / (27.5 + 13), 0, 20),
    "gamma": (reciprocal_gamma, 0, 1, 0.5, 13),
    "stirling": (stirling, 0, 1 / 64, 0, 5),
    "j0_a": (j0(1), 0, 16, 8, 10), "j0_b": (j0(2), 16, 64, 40, 13),
    "j1_a": (j1(1), 0, 29, 14.5, 11), "j1_b": (j1(2), 29, 64, 46, 12),
    "y0_a": (y0(1), 0, 4.84, 2.5, 8), "y0_b": (y0(2), 4.84, 30.25, 17, 11), "y0_c": (y0(3), 30.25, 64, 47, 12),
    "y1_a": (y1(1), 0, 14.5, 7.25, 11), "y1_b": (y1(2), 14.5, 64, 39, 14),
    "p0": (wave(0, False), 0, 1 / 64, 1 / 128, 10), "q0": (wave(0, True), 0, 1 / 64, 1 / 128, 10),
    "p1": (wave(1, False), 0, 1 / 64, 1 / 128, 10), "q1": (wave(1, True), 0, 1 / 64, 1 / 128, 10),
    "i0": (i_small(0), 0, 64, 0, 15), "i1": (i_small(1), 0, 64, 0, 14),
    "i0_large": (i_large(0), -1, 1, 0, 24), "i1_large": (i_large(1), -1, 1, 0, 24),
    "erfcx_fp32": (scaled_erfc(2), -0.6, 1, 0, 10, fp32), "erf_small_fp32": (erf_small, 0, 0.29, 0, 4, fp32),
    "erfinv_a_fp32": (erfinv_ratio, 0, 6.25, 3.125, 10, fp32), "erfinv_b_fp32": (erfinv_by_root, 2.5, 4.1, 3.3, 8, fp32),
    "erfinv_c_fp32": (lambda r: erfinv_by_root(1 / r), 1 / 10.2, 1 / 2.5, 0.22, 11, fp32),
    "j0_a_fp32": (below(j0(1), 16), 0, 16, 0, 6, fp32), "j0_b_fp32": (j0(2), 16, 64, 52, 8, fp32),
    "j1_a_fp32": (below(j1(1), 29), 0, 29, 0, 7, fp32), "j1_b_fp32": (j1(2), 29, 64, 46, 7, fp32),
    "j0_y_fp32": (j_small(0), 0, 6.25, 0, 6, fp32), "j1_y_fp32": (j_small(1), 0, 9, 0, 6, fp32),
    "y0_a_fp32": (y0(1), 0, 6.25, 0, 5, fp32), "y0_b_fp32": (y_factors("y0", 2, 3), 2.5, 8, 5.5, 11, fp32),
    "y1_a_fp32": (y1(1), 0, 9, 0, 6, fp32), "y1_b_fp32": (y_factors("y1", 2), 3, 8, 6, 11, fp32),
    "m0_fp32": (modulus(0), 0, 1 / 64, 0, 2, fp32), "m1_fp32": (modulus(1), 0, 1 / 64, 0, 2, fp32),
    "t0_fp32": (phase(0), 0, 1 / 64, 0, 3, fp32), "t1_fp32": (phase(1), 0, 1 / 64, 0, 3, fp32),
    "i0_fp32": (i_small(0), 0, 64, 0, 9, fp32), "i1_fp32": (i_small(1), 0, 64, 0, 9, fp32),
    "i0_large_fp32": (i_scaled(0), 0, 1, 0, 5, fp32), "i1_large_fp32": (i_scaled(1), 0, 1, 0, 5, fp32),
    "gamma_fp32": (reciprocal_gamma, 0, 1, 0.5, 7, fp32), "log_gamma_fp32": (log_gamma, 0, 1, 0.5, 8, fp32),
    "stirling_fp32": (stirling, 0, 1 / 36, 0, 2, fp32),
}
ZEROS = [("j0", 1), ("j0", 2), ("j1", 1), ("j1", 2), ("y0", 1), ("y0", 2), ("y0", 3), ("y1", 1), ("y1", 2)]


def horner(result, variable, c):
    """Kernel-language steps of a polynomial, lowest coefficient first."""
    lines = [f"{result} = prim.fma({variable}, {c[-1]!r}, {c[-2]!r})"]
    return lines + [f"{result} = prim.fma({result}, {variable}, {k!r})" for k in c[-3::-1]]


def parts(kind, n, rounded=float):
    """A zero as the sum of two numbers, its reciprocal, its logarithm and its square as the sum of two numbers."""
    z = zero(kind, n)
    s = z * z
    return [rounded(v) for v in (z, z - mpf(rounded(z)), 1 / z, mp.log(z), s, s - mpf(rounded(s)))]


if __name__ == "__main__":
    for name in sys.argv[1:] or FITS:
        c, worst = fit(*FITS[name])
        print(f"# {name}: {float(mp.log(worst, 2)):.1f} bits", *horner("p", "v", c), sep="\n", flush=True)
    for kind, n in ZEROS:
        for rounded in float, fp32: print(f"# zero {n} of {kind}, {rounded.__name__}:", *parts(kind, n, rounded))
