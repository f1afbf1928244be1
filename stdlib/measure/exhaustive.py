"""Worst errors of the fp32 maths functions over all 2^32 arguments, and of the fp64 ones over random bit patterns, on
a GPU: the sources run as they stand, with Triton as the executor and the primitives of triton_prims.py as PTX.

    python3 exhaustive.py [--compile-only] [NAME ...]

References: PyTorch in fp64 on the GPU for fp32; the fp64 functions of PyTorch (themselves within 1 to 2 ulp) for fp64.
"""
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
names = [a for a in sys.argv[1:] if not a.startswith("--")]
FUNCTIONS = ["exp", "exp2", "log", "log2", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "erfc", "sqrt", "rsqrt", "expm1", "log1p", "log10",
             "exp10", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "cbrt"]
APPROX = ["exp2_approx", "exp2_approx_ftz", "log2_approx", "rcp_approx", "rsqrt_approx", "sqrt_approx", "tanh_approx", "sin_approx", "cos_approx"]
folder = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / "stdlib_math_as_triton"
folder.mkdir(exist_ok=True)
text = "import triton\nimport triton.language as tl\nimport triton_prims as prim\n\n\n"
text += "\n\n".join((HERE.parent / f"{part}.rt").read_text() for part in ("exponential", "trigonometric", "special", "elementary"))
for f in FUNCTIONS:
    text += f"\n\n@triton.jit\ndef run_{f}(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(out_ptr + i, {f}(tl.load(x_ptr + i)))\n"
for f in APPROX:
    text += f"\n\n@triton.jit\ndef run_{f}(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(out_ptr + i, prim.{f}(tl.load(x_ptr + i)))\n"
for f in ("pow", "atan2", "hypot"):
    text += f"\n\n@triton.jit\ndef run_{f}(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(out_ptr + i, {f}(tl.load(x_ptr + i), tl.load(y_ptr + i)))\n"
(folder / "stdlib_math.py").write_text(text)
sys.path.insert(0, str(folder))
import stdlib_math  # noqa: E402

BINARY = ["pow", "atan2", "hypot"]
if "--compile-only" in sys.argv:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    for f in names or FUNCTIONS + BINARY + APPROX:
        for t in ("fp32",) if f in APPROX else ("fp32", "fp64"):
            source = ASTSource(fn=getattr(stdlib_math, "run_" + f), signature={"x_ptr": "*" + t, "y_ptr": "*" + t, "out_ptr": "*" + t, "BLOCK": "constexpr"}, constexprs={(3,): 128})
            start = time.time()
            k = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
            print(f, t, f"{time.time() - start:.1f} s", k.asm["ptx"].count("\n"), "PTX lines", flush=True)
    sys.exit()

import torch  # noqa: E402


def reference(name, x, y):
    table = {"sigmoid": torch.sigmoid, "exp10": lambda v: torch.pow(torch.full_like(v, 10.0), v), "cbrt": lambda v: torch.copysign(torch.pow(v.abs(), 1 / 3), v),
             "exp2_approx": torch.exp2, "exp2_approx_ftz": torch.exp2, "log2_approx": torch.log2, "rcp_approx": lambda v: 1 / v, "rsqrt_approx": lambda v: 1 / v.sqrt(), "rsqrt": lambda v: 1 / v.sqrt(),
             "sqrt_approx": torch.sqrt, "tanh_approx": torch.tanh, "sin_approx": torch.sin, "cos_approx": torch.cos}
    if name in BINARY: return getattr(torch, name)(x, y)
    r = table.get(name) or getattr(torch, name)
    r = r(x)
    if name == "cbrt":
        r = torch.where((x == 0) | x.isinf() | x.isnan(), x, r)
        r = torch.where((x != 0) & x.isfinite(), r - (r * r * r - x) / (3 * r * r), r)
    return r


def errors(got, want, bits):
    """In units of the spacing at `want`; inf where NaN or infinity disagree."""
    mantissa, low = (23, -149) if bits == 32 else (52, -1074)
    top = torch.finfo(torch.float32 if bits == 32 else torch.float64).max
    finite = want.isfinite() & (want.abs() <= top * (1 + 2.0 ** -25) if bits == 32 else want.isfinite())
    _, e = torch.frexp(torch.where(finite, want, 1.0))
    unit = torch.pow(2.0, (e - 1 - mantissa).clamp(min=low).double())
    g = got.double()
    g = torch.where(g.isinf() & finite, torch.copysign(torch.full_like(g, top), g), g)
    err = ((g - want) / unit).abs()
    agree = torch.where(want.isnan(), got.isnan(), got.double() == torch.copysign(torch.full_like(want, float("inf")), want))
    return torch.where(finite, err, torch.where(agree, 0.0, float("inf")))


FLUSHES = {"exp2", "exp2_approx_ftz", "sqrt", "rsqrt", "log2_approx", "rcp_approx", "sqrt_approx", "rsqrt_approx", "sin_approx", "cos_approx", "tanh_approx"}
print(torch.cuda.get_device_name(), torch.__version__)
chunk = 1 << 25
for name in names or APPROX + FUNCTIONS + BINARY:
    start = time.time()
    for bits in (32,) if name in APPROX else (32, 64):
        worst, at = -1.0, None
        absolute = 0.0
        g = torch.Generator(device="cuda")
        g.manual_seed(1)
        for k in range(128 if bits == 32 and name not in BINARY else 8):
            if bits == 32 and name not in BINARY:
                x = torch.arange(k * chunk, (k + 1) * chunk, device="cuda", dtype=torch.int64).to(torch.int32).view(torch.float32)
                y = x
            else:
                dtype = torch.float32 if bits == 32 else torch.float64
                word = torch.int32 if bits == 32 else torch.int64
                x, y = (torch.randint(-2**63, 2**63 - 1, (chunk,), device="cuda", generator=g, dtype=torch.int64).bitwise_right_shift(64 - bits).to(word).view(dtype) for _ in range(2))
                if k % 2:
                    x = (torch.rand(chunk, device="cuda", generator=g, dtype=torch.float64) * (4 if k < 4 else 40)).to(dtype)
                    y = (torch.rand(chunk, device="cuda", generator=g, dtype=torch.float64) * 80 - 40).to(dtype)
            out = torch.empty_like(x)
            getattr(stdlib_math, "run_" + name)[(chunk // 512,)](x, y, out, BLOCK=512)
            want = reference(name, x.double(), y.double())
            err = errors(out, want, bits)
            if bits == 32 and name in FLUSHES:
                small = (want.abs() < 2.0**-126) | (x.abs() < 2.0**-126)
                err = torch.where(small | (x.abs() > 2.0**126 if name == "rcp_approx" else False), 0.0, err)
            if name in ("sin_approx", "cos_approx", "log2_approx", "tanh_approx"):
                region = x.abs() <= 3.1415927 if name[0] in "sc" else (x >= 0.5) & (x <= 2) if name[0] == "l" else x == x
                absolute = max(absolute, (out.double() - want).abs()[region & want.isfinite()].max().item() if bool((region & want.isfinite()).any()) else 0.0)
                err = torch.where(region, torch.zeros_like(err), err) if name == "log2_approx" else err
            m, i = err.max(0)
            if m.item() > worst: worst, at = m.item(), (x[i].item(), y[i].item(), out[i].item(), want[i].item())
            if time.time() - start > 12: break
        print(f"| {name} | fp{bits} | {worst:.3f} | {'exhaustive' if bits == 32 and k == 127 else f'{(k + 1) * chunk} arguments'} | {at} | {absolute:.3e} | {time.time() - start:.1f} s |", flush=True)
