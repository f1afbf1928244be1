"""Checks random.rt and standard.rt, run by emulate.py, against known values; exits 1 on a difference."""
import numpy as np
import emulate as e

env = e.load("math", "standard", "random")
R, S = env["random"], env["standard"]
e.tl.static_range = range



def iota(x, axis):
    shape = [1] * x.v.ndim
    shape[axis] = x.v.shape[axis]
    return e.wrap(np.broadcast_to(np.arange(x.v.shape[axis], dtype=np.int32).reshape(shape), x.v.shape).copy())


e.prim.iota = staticmethod(iota)
seen = []


def check(name, got, want):
    seen.append(name)
    assert np.asarray(got).tolist() == np.asarray(want).tolist(), (name, got, want)


def seed(s): return e.Tile(np.array(s, np.int64), e.int64)


for s, offset, words, uniform in [
    (0, np.int32(0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], "0x1.989fa2p-1"),
    (0, np.int32(1), [0xF8E4CCA4], "0x1.c6ccd4p-5"),
    (42, np.int32(0), [0x9CEAF053, 0x77F5493B, 0x12BF50AD, 0x5742B3D7], "0x1.8c543cp-1"),
    (42, np.int32(1), [0xFCDB2127], "0x1.926f6ap-6"),
    (42, np.int64(2**32 + 5), [0x131A8A04], "0x1.31a89ep-3"),
    (-1, np.int32(0), [0x72A47709, 0x15474739, 0x9F41B01F, 0x22799A5A], "0x1.ca91dap-1"),
]:
    o = e.wrap(np.array([offset]))
    got = [int(c.v[0]) for c in R["randint4x"](seed(s), o)]
    check(f"randint4x {s} {offset}", got[: len(words)], words)
    check(f"rand {s} {offset}", float(R["rand"](seed(s), o).v[0]), float.fromhex(uniform))

x = e.wrap(np.array([[1, 2, 3, 120], [-7, 100, 100, 100]], np.int8))
check("sum int8", S["sum"](x, 1).v, np.array([126, 293], np.int32))
check("sum bool", str(S["sum"](x > 2, 0).dtype), "uint32")
check("max", S["max"](x, 1).v, [120, 100])
check("argmax", S["argmax"](x, 1).v, [3, 1])
check("argmin", S["argmin"](x, 0).v, [1, 0, 0, 1])
check("cumsum reverse", S["cumsum"](x, 1, reverse=True).v, np.cumsum(x.v[:, ::-1].astype(np.int32), 1)[:, ::-1])
v, i = S["max"](x, 1, return_indices=True)
check("max pair dtype", (str(v.dtype), str(i.dtype)), ("int8", "int32"))
check("xor_sum", S["xor_sum"](x, 1).v, np.bitwise_xor.reduce(x.v, 1))
f = e.wrap(np.array([1, np.nan, 3, -1], np.float16))
check("max fp16 nan", (float(S["max"](f, 0).v), str(S["max"](f, 0).dtype)), (3.0, "fp32"))
check("sum fp16 dtype", str(S["sum"](f, 0).dtype), "fp16")
i, j = S["swizzle2d"](e.wrap(np.arange(6, dtype=np.int32) // 2), e.wrap(np.arange(6, dtype=np.int32) % 2), 3, 2, 2)
check("swizzle2d", (i.v.tolist(), j.v.tolist()), ([0, 1, 0, 1, 2, 2], [0, 0, 1, 1, 0, 1]))
print(f"{len(seen)} checks passed")
