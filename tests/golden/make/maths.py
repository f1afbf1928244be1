"""Integer division, casts, and functions of floats."""
import math
import torch
from core import Const, NAMES, case, cases, cdiv, generator, poison, random, with_tail


@cases
def make_int_division():
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64):
        for n in (1, 128, 129) if dtype == torch.int32 else (150,):
            g = generator(f"div{dtype}{n}")
            a, b = random(g, (n,), dtype), random(g, (n,), dtype)
            small = random(g, (n,), torch.int8).to(torch.int64) // 16
            signed = dtype in (torch.int8, torch.int16, torch.int32, torch.int64)
            ai, bi = [int(v) for v in a.tolist()], [int(v) for v in b.tolist()]
            for i in range(n):
                if i % 2: bi[i] = int(small[i]) if signed else abs(int(small[i]))
                if bi[i] == 0 or signed and bi[i] == -1 and ai[i] == -2 ** (dtype.itemsize * 8 - 1): bi[i] = 3
            for i, (p, q) in enumerate([(-7, 2), (7, -2), (-7, -2), (7, 2), (-1, 5), (0, -3)][:n]):
                if signed: ai[i], bi[i] = p, q

            def trunc_div(p, q): return abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)
            half, full = 2 ** (dtype.itemsize * 8 - 1), 2 ** (dtype.itemsize * 8)
            def wrap(v): return (v + half) % full - half if signed else v % full
            quotient = [trunc_div(p, q) for p, q in zip(ai, bi)]
            rest = [p - q * t for p, q, t in zip(ai, bi, quotient)]
            shifted = [wrap(r + q) for r, q in zip(rest, bi)]
            wrapped = [s - q * trunc_div(s, q) for s, q in zip(shifted, bi)]
            tensors = dict(a=torch.tensor(ai, dtype=dtype), b=torch.tensor(bi, dtype=dtype))
            expected = {}
            for key, values in (("quotient", quotient), ("remainder", rest), ("wrapped", wrapped)):
                tensors[key] = poison((n + 16,), dtype)
                expected[key] = torch.cat([torch.tensor(values, dtype=dtype), tensors[key][n:]])
            case("int_division", f"{NAMES[dtype]}_{n}", "int_division_kernel", [cdiv(n, 128)],
                 dict(a_ptr="a", b_ptr="b", quotient_ptr="quotient", remainder_ptr="remainder", wrapped_ptr="wrapped", n=n, BLOCK=Const(128)), tensors, expected, {"exact": True})


@cases
def make_casts():
    floats = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 65504.0, 65519.0, 1e-8, 6e-8, 3.0e38, 447.0, 0.001953125, 0.0029296875, 1e-3, 3.14159, 100.7, -100.7]
    g = generator("casts")
    x = torch.cat([torch.tensor(floats), (torch.randn(108, generator=g, dtype=torch.float64) * 50).float()])
    n = x.numel()
    for source, target in ((torch.float32, torch.float16), (torch.float32, torch.bfloat16), (torch.float32, torch.float64), (torch.float64, torch.float16), (torch.float64, torch.bfloat16),
                           (torch.float16, torch.bfloat16), (torch.bfloat16, torch.float16), (torch.float32, torch.float8_e5m2), (torch.float32, torch.float8_e4m3fn),
                           (torch.float16, torch.float8_e5m2), (torch.float8_e5m2, torch.float32), (torch.float8_e4m3fn, torch.float16), (torch.float8_e4m3fn, torch.float32),
                           (torch.float32, torch.int32), (torch.float32, torch.int8), (torch.float32, torch.uint8), (torch.float64, torch.int64),
                           (torch.int32, torch.float32), (torch.int64, torch.float32), (torch.int64, torch.float64), (torch.int8, torch.int64), (torch.uint8, torch.int32), (torch.int32, torch.int8), (torch.int64, torch.int32), (torch.int32, torch.float16), (torch.bool, torch.float32), (torch.bool, torch.int32)):
        v = x.double()
        if source.is_floating_point:
            limit = {torch.int32: 2.0**31 - 129, torch.int8: 127.0, torch.uint8: 255.0, torch.int64: 2.0**62}.get(target)
            if limit: v = v.clamp(0.0 if target == torch.uint8 else -limit, limit)
            s = v.clamp(-57344.0, 57344.0).float().to(source) if source == torch.float8_e5m2 else v.clamp(-448.0, 448.0).float().to(source) if source == torch.float8_e4m3fn else v.to(source)
            if source == torch.float16: s = torch.where(s.isinf(), torch.ones_like(s), s)
            if source == torch.bfloat16 and target == torch.float16: s = torch.where(s.float().abs() > 65000, torch.ones_like(s), s)
        else:
            s = random(generator(f"casts{source}"), (n,), source)
        if target in (torch.float8_e5m2, torch.float8_e4m3fn):
            top = 57344.0 if target == torch.float8_e5m2 else 448.0
            want = s.float().clamp(-top, top).to(target)  # saturating
        elif source == torch.float64 and target in (torch.float16, torch.bfloat16):
            want = round_once(s, target)
        elif source in (torch.float8_e5m2, torch.float8_e4m3fn): want = s.float().to(target)
        else: want = s.to(target)
        out = poison((n + 16,), target)
        want = torch.cat([want.view(torch.uint8), out.view(torch.uint8)[n * target.itemsize:]]).view(target)
        fp8 = "fp8" in NAMES[source] + NAMES[target]
        case("casts", f"{NAMES[source]}_to_{NAMES[target]}", "cast_kernel", [cdiv(n, 128)], dict(x_ptr="x", y_ptr="y", n=n, BLOCK=Const(128)), dict(x=s, y=out), dict(y=want), {"exact": True},
             arch="sm_89" if fp8 else "sm_80")


def round_once(x, target):
    """fp64 to fp16 or bf16 with one rounding: fp32 in between is rounded to odd."""
    f = x.float()
    bits = f.view(torch.int32)
    low = f.double().abs() > x.abs()
    bits = torch.where(low, bits - 1, bits)
    inexact = bits.view(torch.float32).double() != x
    return torch.where(inexact, bits | 1, bits).view(torch.float32).to(target)


@cases
def make_float_math():
    functions = {"exp": torch.exp, "libdevice_exp": torch.exp, "exp2": torch.exp2, "log": torch.log, "log2": torch.log2, "sin": torch.sin, "cos": torch.cos, "erf": torch.erf, "tanh": torch.tanh,
                 "sigmoid": torch.sigmoid, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "pow": torch.pow, "floor": torch.floor, "ceil": torch.ceil,
                 "maximum": torch.fmax, "minimum": torch.fmin, "div": torch.div, "fma": None}
    ranges = {"exp": (-90, 90), "libdevice_exp": (-90, 90), "exp2": (-120, 127), "log": (0, 4), "log2": (0, 4), "sin": (-20, 20), "cos": (-20, 20), "erf": (-4, 4), "tanh": (-6, 6), "sigmoid": (-20, 20), "sqrt": (0, 100), "rsqrt": (0.01, 100), "pow": (0, 4)}
    special = [0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan"), 0.5, -0.5, 2.0, -2.0, 1e-20, 1e20, -1e20, 3.0, -3.0]
    for dtype, n in ((torch.float32, 640), (torch.float64, 320)):
        for name, f in functions.items():
            if dtype == torch.float64 and name not in ("exp", "log", "sin", "cos", "erf", "tanh", "pow", "sqrt", "div", "exp2", "log2"): continue
            g = generator(f"math{name}{dtype}")
            low, high = ranges.get(name, (-50, 50))
            if dtype == torch.float64 and name in ("exp", "exp2"): low, high = low * 7, high * 7
            x = (torch.rand(n, generator=g, dtype=torch.float64) * (high - low) + low).to(dtype)
            y = (torch.rand(n, generator=g, dtype=torch.float64) * 40 - 20).to(dtype)
            x[: len(special)] = torch.tensor(special, dtype=dtype)
            if name in ("pow", "maximum", "minimum"):
                pairs = [(p, q) for p in special[:11] for q in special[:11] if not (name != "pow" and p == q == 0)]
                x[: len(pairs)] = torch.tensor([p for p, _ in pairs], dtype=dtype)
                y[: len(pairs)] = torch.tensor([q for _, q in pairs], dtype=dtype)
            if name in ("sin", "cos"):
                # Every exponent up to the largest: reduction by many bits of 2/pi.
                top = 127 if dtype == torch.float32 else 1023
                k = torch.linspace(5, top, 150).floor().double()
                x[32:182] = ((1 + torch.rand(150, generator=g, dtype=torch.float64)) * torch.pow(2.0, k)).to(dtype)
            if name in ("log", "log2"):
                k = torch.linspace(-120, 120, 100, dtype=torch.float64)
                x[32:132] = torch.exp2(k).to(dtype)
                if dtype == torch.float32: x[132:134] = torch.tensor([1e-40, 3e-45])
                x[134:150] = 1 + (torch.randn(16, generator=g, dtype=torch.float64) * 1e-3).to(dtype)
            if name in ("exp", "libdevice_exp") and dtype == torch.float32: x[32:34] = torch.tensor([88.72283, -100.0])
            if dtype == torch.float64:
                want = reference64(name, x, y)
            else:
                want = f(x.double(), y.double()) if name in ("pow", "maximum", "minimum", "div") else x.double() * y.double() + x.double() if name == "fma" else f(x.double())
                want = want.to(dtype)
            if name == "exp2" and dtype == torch.float32: want = torch.where(want < 2.0**-126, torch.zeros(()), want)
            ulp = {"floor": 0, "ceil": 0, "maximum": 0, "minimum": 0, "fma": 0}.get(name, 2)
            # x * log2(e) is rounded before `ex2.approx`, as in Triton: that alone is 63 ulp near x = 88 (stdlib/MATH.md).
            if dtype == torch.float32: ulp = {"exp": 65, "sigmoid": 19}.get(name, ulp)
            if dtype == torch.float64 and name in ("sqrt", "div"): ulp = 0
            out = poison((n + 16,), dtype)
            case("float_math", f"{name}_{NAMES[dtype]}", "float_math_kernel", [cdiv(n, 256)], dict(x_ptr="x", y_ptr="y", out_ptr="out", n=n, FUNCTION=Const(name), BLOCK=Const(256)),
                 dict(x=x, y=y, out=out), dict(out=with_tail(want, out.shape)), {"ulp": ulp} if ulp else {"exact": True})


def reference64(name, x, y):
    """Correctly rounded fp64 values by mpmath where it is installed, else PyTorch's own (within 1 ulp)."""
    f = {"exp": "exp", "log": "log", "sin": "sin", "cos": "cos", "erf": "erf", "tanh": "tanh"}.get(name)
    try:
        import mpmath
    except ImportError:
        mpmath = None
    torch_value = {"exp": torch.exp, "exp2": torch.exp2, "log": torch.log, "log2": torch.log2, "sin": torch.sin, "cos": torch.cos, "erf": torch.erf, "tanh": torch.tanh}
    if name == "sqrt": return torch.tensor([math.sqrt(v) if v >= 0 else math.nan for v in x.tolist()], dtype=torch.float64).copysign(x)
    plain = torch.pow(x, y) if name == "pow" else torch.div(x, y) if name == "div" else torch_value[name](x)
    if mpmath is None or f is None: return plain
    out = plain.clone()
    with mpmath.workprec(1200):
        for i, v in enumerate(x.tolist()):
            if math.isfinite(v) and v != 0 and math.isfinite(plain[i].item()) and plain[i] != 0: out[i] = float(getattr(mpmath, f)(mpmath.mpf(v)))
    return out
