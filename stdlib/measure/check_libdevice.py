"""Checks the exact functions of libdevice.rt, run by emulate.py, against numpy; exits 1 on a difference."""
import numpy as np
import emulate as e

e.tl.static_range = range
env = e.load("math", "libdevice")["libdevice"]
rng = np.random.default_rng(7)
W = e.wrap
count = 0


def same(name, got, want):
    global count
    count += 1
    g, w = np.asarray(got.v), np.asarray(want)
    assert g.dtype == w.dtype, (name, g.dtype, w.dtype)
    bad = ~((g == w) & ((g.dtype.kind != "f") | (np.signbit(g) == np.signbit(w))) | (g != g) & (w != w))
    assert not bad.any(), (name, np.argwhere(bad)[:3].tolist(), g[bad][:3], w[bad][:3])


for t, u in ((np.float32, np.uint32), (np.float64, np.uint64)):
    bits = rng.integers(0, 1 << 63, 100000, dtype=np.uint64)
    x = np.concatenate([(bits >> np.uint64(31)).astype(u).view(t) if t == np.float32 else (bits * np.uint64(2)).view(t),
                        np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1, -1], t), rng.uniform(-9, 9, 1000).astype(t)])
    y = rng.permutation(x)
    X, Y = W(x), W(y)
    for f, g in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("rint", np.rint), ("isnan", np.isnan), ("isinf", np.isinf)):
        same(f, env[f](X), g(x))
    same("round", env["round"](X), np.copysign(np.floor(np.abs(x.astype(np.longdouble)) + 0.5), x).astype(t))
    same("copysign", env["copysign"](X, Y), np.copysign(x, y))
    same("nextafter", env["nextafter"](X, Y), np.nextafter(x, y))
    same("signbit", env["signbit"](X), np.signbit(x).astype(np.int32))
    n = rng.integers(-2200 if t == np.float64 else -300, 2200 if t == np.float64 else 300, x.size).astype(np.int32)
    same("ldexp", env["ldexp"](X, W(n)), np.ldexp(x, n))
    if t == np.float32: same("fmod", env["fmod"](X, Y), np.fmod(x, y))
for t in (np.int32, np.int64):
    a = rng.integers(np.iinfo(t).min, np.iinfo(t).max, 10000, dtype=t)
    a[:4] = [0, -1, 1, np.iinfo(t).min]
    b = rng.permutation(a)
    bits = a.itemsize * 8
    same("mulhi", env["mulhi"](W(a), W(b)), np.array([(int(p) * int(q)) >> bits for p, q in zip(a, b)], t))
    same("ffs", env["ffs"](W(a)), np.array([(int(p) & -int(p)).bit_length() for p in a], np.int32))
    same("clz", env["clz"](W(a)), np.array([bits - (int(p) % (1 << bits)).bit_length() for p in a], np.int32))
    same("brev", env["brev"](W(a)), np.array([int(bin((int(p) % (1 << bits)) + (1 << bits))[:2:-1], 2) for p in a], np.uint64).astype(t))
a = rng.integers(-(2**31), 2**31, 1000).astype(np.int32)
b, s = rng.permutation(a), rng.permutation(a)
want = []
for p, q, k in zip(a.view(np.uint32).tolist(), b.view(np.uint32).tolist(), s.view(np.uint32).tolist()):
    v = (q << 32 | p).to_bytes(8, "little")
    want.append(int.from_bytes(bytes(v[k >> 4 * i & 7] for i in range(4)), "little"))
same("byte_perm", env["byte_perm"](W(a), W(b), W(s)), np.array(want, np.uint32).view(np.int32))
same("hadd", env["hadd"](W(a), W(b)), ((a.astype(np.int64) + b) >> 1).astype(np.int32))
same("rhadd", env["rhadd"](W(a), W(b)), ((a.astype(np.int64) + b + 1) >> 1).astype(np.int32))
print(f"{count} checks passed")
