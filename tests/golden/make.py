"""Makes the data of the golden tests: inputs with fixed seeds, expected outputs by PyTorch.

    python3 make.py [CASE ...]

Writes CASE/NAME.launch.json and CASE/NAME.safetensors for every launch below; README.md says what
is in them. Needs torch and safetensors, no GPU; expected values are computed in fp64 (or exactly,
for integers) and rounded once. Every output starts as POISON and is longer than what the kernel may
write; the rest must stay as it is.
"""
import json
import math
import pathlib
import sys
import torch
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).resolve().parent
ALL_DEVICES = ["interpreter", "emulator", "cuda"]
NAMES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32", torch.float64: "fp64",
         torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
         torch.uint8: "u8", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64", torch.bool: "u1",
         torch.float8_e5m2: "fp8e5", torch.float8_e4m3fn: "fp8e4nv"}
wanted = sys.argv[1:]
written = 0


class Const:
    """An argument that is a constexpr whatever its value."""
    def __init__(self, value): self.value = value


class At:
    """A tensor argument that starts some elements into the tensor."""
    def __init__(self, name, elements): self.name, self.elements = name, elements


def poison(shape, dtype):
    if dtype.is_floating_point and dtype.itemsize > 1:
        return torch.full(shape, -768.0, dtype=dtype)
    return torch.full(tuple(shape) + (dtype.itemsize,), 0x5A if dtype != torch.bool else 1, dtype=torch.uint8).view(dtype).reshape(shape)


def generator(text):
    g = torch.Generator()
    g.manual_seed(sum(ord(c) * 131**i for i, c in enumerate(text)) % 2**31)
    return g


def spec_argument(name, value, tensors):
    if isinstance(value, Const): return {"name": name, "constexpr": value.value}, None
    if isinstance(value, (str, At)):
        tensor, elements = (value, 0) if isinstance(value, str) else (value.name, value.elements)
        t = tensors[tensor]
        offset = elements * t.dtype.itemsize
        arg = {"name": name, "type": "*" + NAMES[t.dtype]}
        if offset % 16 == 0: arg["divisible_by"] = 16
        return arg, {"tensor": tensor, "offset": offset} if offset else {"tensor": tensor}
    if isinstance(value, float): return {"name": name, "type": "fp32"}, value
    if value == 1: return {"name": name, "constexpr": 1}, None
    arg = {"name": name, "type": "i32" if -2**31 <= value < 2**31 else "i64"}
    if value % 16 == 0: arg["divisible_by"] = 16
    return arg, value


def case(folder, name, kernel, grid, arguments, tensors, expected, tolerance, options=None, arch="sm_80", devices=ALL_DEVICES):
    """Writes one launch. `arguments`: name -> tensor name, At, int, float or Const; `expected`: output -> (tensor of
    all its elements); `tolerance`: output -> {"exact": true}, {"ulp": n} or {"bound": t}, or one for all."""
    global written
    if wanted and folder not in wanted: return
    spec_args, args = [], {}
    for key, value in arguments.items():
        spec, arg = spec_argument(key, value, tensors)
        spec_args.append(spec)
        if arg is not None: args[key] = arg
    grid = list(grid) + [1] * (3 - len(grid))
    launch = {
        "spec": {"kernel": kernel, "args": spec_args, "options": {"num_warps": 4, **(options or {})}, "arch": arch},
        "grid": grid, "args": args, "tensors": f"{name}.safetensors",
        "golden": {"outputs": {key: tolerance.get(key, tolerance) for key in expected}, "devices": devices},
    }
    data = {key: t.contiguous().clone() for key, t in tensors.items()}
    for key, t in expected.items():
        assert t.shape == tensors[key].shape and t.dtype == tensors[key].dtype, (folder, name, key, t.shape, tensors[key].shape, t.dtype)
        data["expect." + key] = t.contiguous().clone()
    (HERE / folder / f"{name}.launch.json").write_text(json.dumps(launch, indent=1) + "\n")
    save_file(data, HERE / folder / f"{name}.safetensors")
    written += 1


def with_tail(values, shape):
    """`values` written over the start of a poisoned tensor (2-D: over its top left corner)."""
    t = poison(shape, values.dtype)
    if values.dim() == 2: t[: values.shape[0], : values.shape[1]] = values
    else: t[: values.numel()] = values
    return t


def cdiv(a, b): return -(-a // b)


def random(g, shape, dtype):
    if dtype == torch.bool: return torch.randint(0, 2, shape, generator=g).bool()
    if dtype.is_floating_point: return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)
    bits = dtype.itemsize * 8
    return torch.randint(-2**63, 2**63 - 1, shape, generator=g, dtype=torch.int64).bitwise_right_shift(64 - bits).to(
        {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}[bits]).view(dtype)


# ---------------------------------------------------------------- element-wise

def make_add():
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int8):
        for n in (0, 1, 127, 128, 129, 1000) if dtype == torch.float32 else (1000,):
            g = generator(f"add{dtype}{n}")
            x, y = random(g, (n,), dtype), random(g, (n,), dtype)
            out = poison((n + 16,), dtype)
            case("add", f"{NAMES[dtype]}_{n}", "add_kernel", [cdiv(n, 128)], dict(x_ptr="x", y_ptr="y", out_ptr="out", n=n, BLOCK=Const(128)),
                 dict(x=x, y=y, out=out), dict(out=with_tail(x + y, out.shape)), {"exact": True})
    g = generator("add misaligned")
    x, y = random(g, (301,), torch.float32), random(g, (303,), torch.float32)
    out = poison((320,), torch.float32)
    want = out.clone()
    want[5:305] = x[1:] + y[3:]
    case("add", "misaligned", "add_kernel", [3], dict(x_ptr=At("x", 1), y_ptr=At("y", 3), out_ptr=At("out", 5), n=300, BLOCK=Const(128)),
         dict(x=x, y=y, out=out), dict(out=want), {"exact": True})
    out = poison((64,), torch.float32)
    case("add", "all_masked", "add_kernel", [2], dict(x_ptr="x", y_ptr="y", out_ptr="out", n=0, BLOCK=Const(128)),
         dict(x=x, y=y, out=out), dict(out=out), {"exact": True})


def make_launch_options():
    g = generator("launch options")
    x = random(g, (500,), torch.float32)
    y = poison((512,), torch.float32)
    case("launch_options", "pdl", "dependent_kernel", [4], dict(x_ptr="x", y_ptr="y", n=500, BLOCK=Const(128)), dict(x=x, y=y),
         dict(y=with_tail(x * 2, y.shape)), {"exact": True}, options={"launch_pdl": True}, arch="sm_90a")
    x = random(g, (8, 128), torch.float32)
    y = poison((1040,), torch.float32)
    # The interpreter runs one program after the other, so none can wait for a later one.
    case("launch_options", "cooperative", "ring_kernel", [8], dict(x_ptr="x", y_ptr="y", z_ptr="z", count_ptr="count", BLOCK=Const(128)),
         dict(x=x, y=y, z=y, count=torch.zeros(1, dtype=torch.int32)),
         dict(y=with_tail((x + 1).flatten(), y.shape), z=with_tail((x + 1).roll(-1, 0).flatten(), y.shape), count=torch.tensor([8], dtype=torch.int32)),
         {"exact": True}, options={"launch_cooperative_grid": True}, arch="sm_90a", devices=["emulator", "cuda"])


def philox(seed, counters):
    """The four 32-bit words for each counter (int64 values), as Python integers."""
    m32 = 0xFFFFFFFF
    out = []
    for c in counters:
        c0, c1, c2, c3 = c & m32, (c >> 32) & m32, 0, 0
        k0, k1 = seed & m32, (seed >> 32) & m32
        for _ in range(10):
            a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
            c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & m32, (a >> 32) ^ c3 ^ k1, a & m32
            k0, k1 = (k0 + 0x9E3779B9) & m32, (k1 + 0xBB67AE85) & m32
        out.append((c0, c1, c2, c3))
    return out


def uniform(words):
    signed = torch.tensor([w - 2**32 if w >= 2**31 else w for w in words], dtype=torch.int64)
    magnitude = torch.where(signed < 0, -signed - 1, signed)
    return (magnitude.to(torch.float32) * torch.tensor(4.6566125955216364e-10, dtype=torch.float32)).to(torch.float32)


def make_random():
    for name, seed, start, n in (("seed_0", 0, 0, 100), ("seed_42", 42, 7, 64), ("seed_minus_1", -1, 0, 33), ("seed_large", 2**40 + 3, 2**31 - 50, 40), ("offset_large", 5, 2**32 + 5, 65)):
        # 32-bit offsets wrap, and count as unsigned words.
        wide = not -2**31 <= start < 2**31
        counters = [(start + i) & (2**64 - 1 if wide else 2**32 - 1) for i in range(n)]
        words = philox(seed, counters)
        bits = torch.tensor([w - 2**32 if w >= 2**31 else w for four in words for w in four], dtype=torch.int32)
        u = poison((n + 16,), torch.float32)
        b = poison((n * 4 + 16,), torch.int32)
        case("random", name, "random_kernel", [cdiv(n, 64)], dict(uniform_ptr="uniform", bits_ptr="bits", n=n, seed=seed, start=start, BLOCK=Const(64)),
             dict(uniform=u, bits=b), dict(uniform=with_tail(uniform([w[0] for w in words]), u.shape), bits=with_tail(bits, b.shape)), {"exact": True})


def gelu_dropout(g, dtype, n, p, seed):
    """Arguments and results of GELU, rounded to dtype, then dropout."""
    x = (random(g, (n,), torch.float64) * 2).to(dtype)
    w = x.double()
    gelu = (0.5 * w * (1 + torch.erf(w * math.sqrt(0.5)))).to(dtype)
    p32 = torch.tensor(p, dtype=torch.float32)
    keep = uniform([w[0] for w in philox(seed, range(n))]) > p32
    return x, torch.where(keep, gelu.double() / (1 - p32).double(), torch.zeros((), dtype=torch.float64)).to(dtype)


def make_gelu_dropout():
    for dtype, n, p, seed in ((torch.float32, 1000, 0.1, 1234), (torch.float32, 1, 0.5, 7), (torch.float32, 255, 0.5, 2**33 + 9), (torch.float32, 256, 0.0, 3), (torch.float16, 257, 0.25, 99), (torch.bfloat16, 300, 0.1, 0)):
        x, y = gelu_dropout(generator(f"gelu{dtype}{n}"), dtype, n, p, seed)
        out = poison((n + 16,), dtype)
        # Cancellation in 1 + erf for negative x: bounded, not by ulp.
        bound = {torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[dtype]
        case("gelu_dropout", f"{NAMES[dtype]}_{n}", "gelu_dropout_kernel", [cdiv(n, 256)], dict(x_ptr="x", out_ptr="out", n=n, p=float(p), seed=seed, BLOCK=Const(256)),
             dict(x=x, out=out), dict(out=with_tail(y, out.shape)), {"bound": bound})


def make_abs():
    n = 300
    for dtype in NAMES:
        g = generator(f"abs{dtype}")
        x = random(g, (n,), dtype) if dtype.itemsize > 1 or not dtype.is_floating_point else random(g, (n,), torch.float32).to(dtype)
        bits = dtype.itemsize * 8
        if dtype.is_floating_point:
            # Every sign and exponent, and the special values; NaN only with a clear sign.
            word = {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}[bits]
            x[:n - 60] = random(g, (n - 60,), word).view(dtype)
            x[:2] = torch.tensor([0.0, -0.0]).to(dtype)
            if dtype != torch.float8_e4m3fn: x[2:4] = torch.tensor([float("inf"), -float("inf")]).to(dtype)
            y = x.view(word) & torch.iinfo(word).max
            nan = y.view(dtype).isnan() if bits > 8 else y.view(dtype).float().isnan()
            x = torch.where(nan, torch.ones(n, dtype=word), x.view(word)).view(dtype)
            y = (x.view(word) & torch.iinfo(word).max).view(dtype)
        elif dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
            x[:4] = torch.tensor([torch.iinfo(dtype).min, torch.iinfo(dtype).max, -1, 0], dtype=dtype)
            y = x.abs()
        else:
            y = x.clone()
        out = poison((n + 16,), dtype)
        case("abs", NAMES[dtype], "abs_kernel", [cdiv(n, 256)], dict(in_ptr="x", out_ptr="out", n=n, BLOCK=Const(256), SUB=Const(64)),
             dict(x=x, out=out), dict(out=torch.cat([y.view(torch.uint8), out.view(torch.uint8)[n * dtype.itemsize:]]).view(dtype)), {"exact": True},
             arch="sm_89" if bits == 8 and dtype.is_floating_point else "sm_80")


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


# ---------------------------------------------------------------- rows

def make_softmax():
    for name, rows, cols, x_stride, dtype, block in (("1x1", 1, 1, 1, torch.float32, 128), ("3x127", 3, 127, 127, torch.float32, 128), ("4x128", 4, 128, 128, torch.float32, 128), ("5x129", 5, 129, 129, torch.float32, 256),
                                                     ("odd_stride", 3, 200, 211, torch.float32, 256), ("fp16", 3, 300, 304, torch.float16, 512), ("bf16", 2, 64, 64, torch.bfloat16, 64), ("no_columns", 2, 0, 16, torch.float32, 128), ("no_rows", 0, 16, 16, torch.float32, 64)):
        g = generator("softmax" + name)
        x = (random(g, (rows, x_stride), torch.float64) * 4).to(dtype)
        if cols > 100: x[0, 3], x[rows - 1, 0] = -float("inf"), 80.0
        want = torch.softmax(x[:, :cols].double(), 1).to(dtype) if cols else x[:, :0]
        y = poison((rows + 1, max(cols, 1) + 5), dtype)
        bound = {torch.float32: {"bound": 1e-6}, torch.float16: {"bound": 1e-3}, torch.bfloat16: {"bound": 8e-3}}[dtype]
        case("softmax", name, "softmax_kernel", [rows], dict(x_ptr="x", y_ptr="y", x_stride=x_stride, y_stride=y.shape[1], n_cols=cols, BLOCK=Const(block)),
             dict(x=x, y=y), dict(y=with_tail(want, y.shape)), bound)


def make_norms():
    shapes = (("1x1", 1, 1, 1), ("3x63", 3, 63, 63), ("2x64", 2, 64, 64), ("4x65", 4, 65, 65), ("odd_stride", 3, 150, 157), ("no_rows", 0, 64, 64))
    for name, rows, n, stride in shapes:
        for dtype in (torch.float32, torch.float16, torch.bfloat16) if name == "odd_stride" else (torch.float32,):
            g = generator(f"rms{name}{dtype}")
            x = random(g, (rows, stride), dtype)
            w = random(g, (n,), dtype)
            v = x[:, :n].double()
            want = (v * torch.rsqrt((v * v).mean(1, keepdim=True) + 1e-5) * w.double()).to(dtype)
            y = poison((rows + 1, stride), dtype)
            bound = {"bound": {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[dtype]}
            label = name if dtype == torch.float32 else f"{name}_{NAMES[dtype]}"
            case("rms_norm", label, "rms_norm_kernel", [rows], dict(x_ptr="x", w_ptr="w", y_ptr="y", stride=stride, N=n, eps=1e-5, BLOCK=Const(64)), dict(x=x, w=w, y=y), dict(y=with_tail(want, y.shape)), bound)
    for name, rows, n, stride in shapes:
        for affine in (True, False) if name == "odd_stride" else (True,):
            g = generator("layer" + name)
            x = random(g, (rows, stride), torch.float32) * 3 + 1
            w, b = random(g, (n,), torch.float32), random(g, (n,), torch.float32)
            v = x[:, :n].double()
            mean, var = v.mean(1), v.var(1, correction=0)
            rstd = torch.rsqrt(var + 1e-5)
            want = (v - mean[:, None]) * rstd[:, None]
            if affine: want = want * w.double() + b.double()
            tensors = dict(x=x, w=w, b=b, y=poison((rows + 1, stride), torch.float32), mean=poison((rows + 4,), torch.float32), rstd=poison((rows + 4,), torch.float32))
            expected = {key: with_tail(value.float(), tensors[key].shape) for key, value in (("y", want), ("mean", mean), ("rstd", rstd))}
            arguments = dict(x_ptr="x", w_ptr="w", b_ptr="b", y_ptr="y", mean_ptr="mean", rstd_ptr="rstd", stride=stride, N=n, eps=1e-5, HAS_AFFINE=Const(affine), BLOCK=Const(64))
            if not affine:
                arguments["w_ptr"] = arguments["b_ptr"] = Const(None)
                del tensors["w"], tensors["b"]
            # One column: the variance is 0 and rstd is 316, so that an ulp of the mean counts.
            bound = {"bound": 2e-4 if n == 1 else 5e-6}
            case("layer_norm", name if affine else "no_affine", "layer_norm_kernel", [rows], arguments, tensors, expected, bound)


def gelu_tanh(v): return 0.5 * v * (1 + torch.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))


def layer_norm_gelu(text, m, n, stride_m, stride_n, block, as_written):
    """(x, weight, bias, poisoned y, expected y); as_written: the lanes' means are added up, not merged."""
    g = generator("lng" + text)
    x = random(g, (m, stride_m), torch.float16)
    w, b = random(g, (n,), torch.float32), random(g, (n,), torch.float32)
    v = x[:, : n * stride_n: stride_n].double()
    if as_written:
        means, m2s = torch.zeros(m, block, dtype=torch.float64), torch.zeros(m, block, dtype=torch.float64)
        counts = torch.zeros(block, dtype=torch.float64)
        for off in range(0, n, block):
            part = v[:, off: off + block]
            k = part.shape[1]
            counts[:k] += 1
            d = part - means[:, :k]
            means[:, :k] += d / counts[:k]
            m2s[:, :k] += d * (part - means[:, :k])
        mean, var = means.sum(1) / n, m2s.sum(1) / n
    else:
        mean, var = v.mean(1), v.var(1, correction=0)
    want = gelu_tanh((v - mean[:, None]) * torch.rsqrt(var + 1e-5)[:, None] * w.double() + b.double()).half()
    y = poison((m + 1, stride_m), torch.float16)
    expected = y.clone()
    expected[:m, : n * stride_n: stride_n] = want
    return x, w, b, y, expected


def make_layer_norm_gelu():
    for folder in ("layer_norm_gelu_three_pass", "layer_norm_gelu_welford", "layer_norm_gelu_as_written"):
        for name, m, n, stride_m, stride_n, block in (("2x63", 2, 63, 63, 1, 64), ("3x64", 3, 64, 64, 1, 64), ("2x65", 2, 65, 65, 1, 64), ("2x300", 2, 300, 304, 1, 128), ("column_stride_2", 2, 100, 201, 2, 64), ("no_rows", 0, 64, 64, 1, 64)):
            x, w, b, y, expected = layer_norm_gelu(name, m, n, stride_m, stride_n, block, folder.endswith("as_written"))
            case(folder, name, "layer_norm_gelu_kernel", [m], dict(x_ptr="x", weight_ptr="w", bias_ptr="b", y_ptr="y", M=m, N=n, eps=1e-5, stride_xm=stride_m, stride_xn=stride_n, BLOCK_N=Const(block)),
                 dict(x=x, w=w, b=b, y=y), dict(y=expected), {"bound": 4e-3})


# ---------------------------------------------------------------- matrices

def make_matmul():
    plain = (32, 32, 32)
    cases = [("fp16_1x1x1", torch.float16, 1, 1, 1, plain, {}), ("fp16_31x33x31", torch.float16, 31, 33, 31, plain, {}), ("fp16_32x32x32", torch.float16, 32, 32, 32, plain, {}), ("fp16_70x50x40", torch.float16, 70, 50, 40, plain, {}),
             ("fp16_64x32x16_tiles", torch.float16, 65, 50, 33, (64, 32, 16), {}), ("fp16_no_k", torch.float16, 20, 20, 0, plain, {}), ("fp16_no_rows", torch.float16, 0, 20, 20, plain, {}),
             ("fp16_transposed_b", torch.float16, 40, 33, 50, plain, {"b_transposed": True}), ("fp16_odd_strides", torch.float16, 33, 35, 37, plain, {"pad": 3}), ("fp16_8_warps", torch.float16, 70, 70, 40, (64, 64, 32), {"warps": 8}),
             ("bf16_70x50x40", torch.bfloat16, 70, 50, 40, plain, {}), ("tf32_70x50x40", torch.float32, 70, 50, 40, plain, {}), ("tf32_33x31x17", torch.float32, 33, 31, 17, (32, 32, 16), {}),
             ("ieee_33x31x17", torch.float32, 33, 31, 17, (32, 32, 16), {"precision": "ieee"}), ("int8_70x50x40", torch.int8, 70, 50, 40, plain, {}), ("int8_33x31x65", torch.int8, 33, 31, 65, (32, 32, 64), {})]
    for name, dtype, m, n, k, (bm, bn, bk), extra in cases:
        g = generator("matmul" + name)
        pad = extra.get("pad", 0)
        a, b = random(g, (m, k + pad), dtype), random(g, (n, k + pad) if extra.get("b_transposed") else (k, n + pad), dtype)
        precision = extra.get("precision", "tf32")
        if dtype == torch.float32 and precision == "tf32":
            # Values that tf32 holds exactly: the result then depends on the order of sums alone.
            a, b = ((t.view(torch.int32) & ~0x1FFF).view(torch.float32) for t in (a, b))
        if dtype == torch.float16: a, b = a * 0.5, b * 0.5
        av, bv = a[:, :k], b[:, :k].T if extra.get("b_transposed") else b[:, :n]
        stride_bk, stride_bn = (1, b.shape[1]) if extra.get("b_transposed") else (b.shape[1], 1)
        if dtype == torch.int8:
            want, acc, out_dtype = (av.long() @ bv.long()).int(), "i32", torch.int32
        else:
            out_dtype, acc = dtype, "fp32"
            want = (av.double() @ bv.double()).to(out_dtype)
        c = poison((m + 1, n + 5), out_dtype)
        bound = {torch.int32: {"exact": True}, torch.float16: {"bound": 2e-3}, torch.bfloat16: {"bound": 1.6e-2}, torch.float32: {"bound": 1e-5}}[out_dtype]
        case("matmul", name, "matmul_kernel", [cdiv(m, bm) * cdiv(n, bn)],
             dict(a_ptr="a", b_ptr="b", c_ptr="c", M=m, N=n, K=k, stride_am=a.shape[1], stride_ak=1, stride_bk=stride_bk, stride_bn=stride_bn, stride_cm=c.shape[1], stride_cn=1,
                  BLOCK_M=Const(bm), BLOCK_N=Const(bn), BLOCK_K=Const(bk), GROUP_M=Const(2), PRECISION=Const(precision), ACC=Const({"dtype": acc})),
             dict(a=a, b=b, c=c), dict(c=with_tail(want, c.shape)), bound, options={"num_warps": extra.get("warps", 4)})


def make_reductions():
    for dtype, m, n in ((torch.float32, 16, 64), (torch.float16, 8, 32), (torch.int32, 4, 128), (torch.int8, 32, 8), (torch.uint8, 16, 16), (torch.float32, 1, 512), (torch.float32, 256, 1)):
        for function in ("sum", "max", "min", "argmax", "argmin", "reduce"):
            for axis in (0, 1):
                if function == "reduce" and dtype != torch.float32: continue
                g = generator(f"reduce{function}{dtype}{axis}")
                x = random(g, (m, n), dtype)
                v = x.double() if dtype.is_floating_point else x.long()
                bound = {"exact": True}
                if function == "sum":
                    want = v.sum(axis)
                    out = torch.int32 if dtype in (torch.int8, torch.int32) else torch.int32 if dtype == torch.uint8 else dtype
                    if dtype.is_floating_point: bound = {"bound": 4e-6 if dtype == torch.float32 else 1e-2}
                elif function in ("max", "min"):
                    want = getattr(torch, "a" + function)(v, axis)
                    out = torch.float32 if dtype.is_floating_point else torch.int32
                elif function == "reduce":
                    want, out = v.gather(axis, v.abs().argmax(axis, keepdim=True)).squeeze(axis), dtype
                else:
                    # The first of equals.
                    best = v.amax(axis, keepdim=True) if function == "argmax" else v.amin(axis, keepdim=True)
                    want, out = (v == best).int().argmax(axis), torch.int32
                y = poison((want.numel() + 16,), out)
                case("reductions", f"{function}_{NAMES[dtype]}_{m}x{n}_axis{axis}", "reduction_kernel", [1], dict(x_ptr="x", y_ptr="y", FUNCTION=Const(function), AXIS=Const(axis), M=Const(m), N=Const(n)),
                     dict(x=x, y=y), dict(y=with_tail(want.to(out), y.shape)), bound)


# ---------------------------------------------------------------- kernels of others, ../seeds

def make_seeds():
    g = generator("seeds")
    for n in (1, 256, 300):
        x = random(g, (n,), torch.float32)
        out = poison((n + 16,), torch.float32)
        case("../seeds/elementwise_skeleton", f"n_{n}", "kernel", [cdiv(n, 256)], dict(x_ptr="x", out_ptr="out", n_elements=n, BLOCK_SIZE=Const(256)), dict(x=x, out=out), dict(out=with_tail(x, out.shape)), {"exact": True})
    for rows, cols in ((1, 1), (3, 63), (2, 64)):
        x = random(g, (rows, cols), torch.float32)
        out = poison((rows * cols + 16,), torch.float32)
        case("../seeds/rowwise_skeleton", f"{rows}x{cols}", "kernel", [rows], dict(x_ptr="x", out_ptr="out", n_cols=cols, BLOCK_SIZE=Const(64)), dict(x=x, out=out), dict(out=with_tail(x.flatten(), out.shape)), {"exact": True})
    for dtype, m, n, k in ((torch.float16, 70, 50, 40), (torch.float16, 33, 31, 64), (torch.float32, 40, 33, 32)):
        a, b = random(g, (m, k), dtype) * 0.5, random(g, (k, n), dtype) * 0.5
        if dtype == torch.float32: a, b = ((t.view(torch.int32) & ~0x1FFF).view(torch.float32) for t in (a, b))
        c = poison((m + 1, n + 5), dtype)
        case("../seeds/matmul", f"{NAMES[dtype]}_{m}x{n}x{k}", "matmul_kernel", [cdiv(m, 32) * cdiv(n, 32)],
             dict(a_ptr="a", b_ptr="b", c_ptr="c", M=m, N=n, K=k, stride_am=k, stride_ak=1, stride_bk=n, stride_bn=1, stride_cm=c.shape[1], stride_cn=1,
                  BLOCK_M=Const(32), BLOCK_N=Const(32), BLOCK_K=Const(32), GROUP_SIZE_M=Const(8)),
             dict(a=a, b=b, c=c), dict(c=with_tail((a.double() @ b.double()).to(dtype), c.shape)), {"bound": 2e-3 if dtype == torch.float16 else 1e-5})
    for dtype, n, p, seed in ((torch.float32, 1000, 0.1, 4711), (torch.float16, 257, 0.5, 12)):
        x, y = gelu_dropout(g, dtype, n, p, seed)
        out = poison((n + 16,), dtype)
        case("../seeds/fused_gelu_dropout", f"{NAMES[dtype]}_{n}", "fused_gelu_dropout_kernel", [cdiv(n, 256)], dict(x_ptr="x", out_ptr="out", n_elements=n, p=float(p), seed=seed, BLOCK_SIZE=Const(256)),
             dict(x=x, out=out), dict(out=with_tail(y, out.shape)), {"bound": 1e-6 if dtype == torch.float32 else 2e-3})
    for version, kernel in (("v1", "fused_layernorm_gelu_kernel"), ("v2", "fused_layernorm_gelu_v2")):
        for m, n, block in ((2, 64, 64), (3, 100, 128), (2, 300, 128)):
            x, w, b, y, expected = layer_norm_gelu(f"seed{m}{n}", m, n, n, 1, block, version == "v2")
            case(f"../seeds/layernorm_gelu_{version}", f"{m}x{n}", kernel, [m], dict(x_ptr="x", weight_ptr="w", bias_ptr="b", y_ptr="y", M=m, N=n, eps=1e-5, stride_xm=n, stride_xn=1, BLOCK_N=Const(block)),
                 dict(x=x, w=w, b=b, y=y), dict(y=expected), {"bound": 4e-3})
    for dtype in (torch.float16, torch.float32, torch.int8, torch.uint8):
        x = random(g, (512,), dtype)
        out = poison((528,), dtype)
        case("../seeds/triton_abs", NAMES[dtype], "triton_abs", [2], dict(in_ptr0="x", out_ptr0="out", XBLOCK=Const(256), XBLOCK_SUB=Const(64)), dict(x=x, out=out), dict(out=with_tail(x if dtype == torch.uint8 else x.abs(), out.shape)), {"exact": True})


def make_examples():
    """The data of ../../examples: the file names there are the examples' own."""
    global written
    if wanted: return
    g = generator("examples")
    x = random(g, (64, 781), torch.float32) * 3
    y = poison((64, 781), torch.float32)
    example("softmax", "softmax_kernel", [8], dict(x_ptr="x", y_ptr="y", x_stride=781, y_stride=781, n_rows=64, n_cols=781, BLOCK=Const(1024), STAGES=Const(2)), dict(x=x, y=y), dict(y=torch.softmax(x.double(), 1).float()), {"bound": 1e-6})
    a, b = random(g, (1000,), torch.float32), random(g, (1000,), torch.float32)
    example("vector_add", "add_kernel", [4], dict(x_ptr="x", y_ptr="y", out_ptr="out", n=1000, BLOCK=Const(256)), dict(x=a, y=b, out=poison((1000,), torch.float32)), dict(out=a + b), {"exact": True})
    a, b = random(g, (150, 100), torch.float16) * 0.5, random(g, (100, 130), torch.float16) * 0.5
    example("matmul", "matmul_kernel", [9], dict(a_ptr="a", b_ptr="b", c_ptr="c", M=150, N=130, K=100, stride_am=100, stride_ak=1, stride_bk=130, stride_bn=1, stride_cm=130, stride_cn=1,
            BLOCK_M=Const(64), BLOCK_N=Const(64), BLOCK_K=Const(32), GROUP_M=Const(4), ACTIVATION=Const({"function": "leaky_relu"})),
            dict(a=a, b=b, c=poison((150, 130), torch.float16)), dict(c=torch.nn.functional.leaky_relu(a.double() @ b.double(), 0.01).half()), {"bound": 2e-3})
    x, y = gelu_dropout(g, torch.float32, 1000, 0.25, 2024)
    example("dropout", "gelu_dropout_kernel", [4], dict(x_ptr="x", out_ptr="out", n=1000, p=0.25, seed=2024, BLOCK=Const(256)), dict(x=x, out=poison((1000,), torch.float32)), dict(out=y), {"bound": 1e-6})
    x = random(g, (32, 300), torch.float32) * 2 + 1
    w, b = random(g, (300,), torch.float32), random(g, (300,), torch.float32)
    example("layer_norm", "layer_norm_kernel", [32], dict(x_ptr="x", weight_ptr="weight", bias_ptr="bias", y_ptr="y", stride=300, N=300, eps=1e-5, BLOCK=Const(128)), dict(x=x, weight=w, bias=b, y=poison((32, 300), torch.float32)),
            dict(y=torch.nn.functional.layer_norm(x.double(), (300,), w.double(), b.double(), 1e-5).float()), {"bound": 5e-6})


def example(folder, *rest):
    """As case, but the files are launch.json, inputs.safetensors and expected.safetensors (for `rtc run --check`)."""
    case("../../examples/" + folder, "inputs", *rest)
    path = HERE / "../../examples" / folder
    (path / "inputs.launch.json").rename(path / "launch.json")
    data = load_file(path / "inputs.safetensors")
    save_file({key: t for key, t in data.items() if not key.startswith("expect.")}, path / "inputs.safetensors")
    save_file({key[7:]: t for key, t in data.items() if key.startswith("expect.")}, path / "expected.safetensors")


if __name__ == "__main__":
    for folder in wanted or [p.name for p in HERE.iterdir() if p.is_dir()] + ["../seeds/" + p.name for p in (HERE / "../seeds").iterdir() if p.is_dir()]:
        for old in list((HERE / folder).glob("*.launch.json")) + list((HERE / folder).glob("*.safetensors")): old.unlink()
    for make in (make_add, make_launch_options, make_random, make_gelu_dropout, make_abs, make_int_division, make_casts, make_float_math, make_softmax, make_norms, make_layer_norm_gelu, make_matmul, make_reductions, make_seeds, make_examples): make()
    print(f"{written} launches written")
