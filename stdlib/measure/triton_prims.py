"""The primitives of the standard library as Triton functions, so that exhaustive.py can run the sources on a GPU."""
import triton
import triton.language as tl


@triton.jit
def _as(a, like: tl.constexpr):
    if isinstance(a, tl.tensor):
        return a
    else:
        return tl.full([], a, like)


@triton.jit
def fma(a, b, c):
    if isinstance(a, tl.tensor):
        d: tl.constexpr = a.dtype
    elif isinstance(b, tl.tensor):
        d: tl.constexpr = b.dtype
    else:
        d: tl.constexpr = c.dtype
    if d == tl.float64:
        return tl.inline_asm_elementwise("fma.rn.f64 $0, $1, $2, $3;", "=d,d,d,d", [_as(a, d), _as(b, d), _as(c, d)], dtype=tl.float64, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("fma.rn.f32 $0, $1, $2, $3;", "=f,f,f,f", [_as(a, d), _as(b, d), _as(c, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def mul_rn(a, b):
    if isinstance(a, tl.tensor):
        d: tl.constexpr = a.dtype
    else:
        d: tl.constexpr = b.dtype
    if d == tl.float64:
        return tl.inline_asm_elementwise("mul.rn.f64 $0, $1, $2;", "=d,d,d", [_as(a, d), _as(b, d)], dtype=tl.float64, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("mul.rn.f32 $0, $1, $2;", "=f,f,f", [_as(a, d), _as(b, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def div_rn(a, b):
    if isinstance(a, tl.tensor):
        d: tl.constexpr = a.dtype
    else:
        d: tl.constexpr = b.dtype
    if d == tl.float64:
        return tl.inline_asm_elementwise("div.rn.f64 $0, $1, $2;", "=d,d,d", [_as(a, d), _as(b, d)], dtype=tl.float64, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("div.rn.f32 $0, $1, $2;", "=f,f,f", [_as(a, d), _as(b, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def sqrt_rn(a):
    d: tl.constexpr = a.dtype
    if d == tl.float64:
        return tl.inline_asm_elementwise("sqrt.rn.f64 $0, $1;", "=d,d", [_as(a, d)], dtype=tl.float64, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("sqrt.rn.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def min_num(a, b):
    if isinstance(a, tl.tensor):
        d: tl.constexpr = a.dtype
    else:
        d: tl.constexpr = b.dtype
    if d == tl.float64:
        return tl.inline_asm_elementwise("min.f64 $0, $1, $2;", "=d,d,d", [_as(a, d), _as(b, d)], dtype=tl.float64, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("min.f32 $0, $1, $2;", "=f,f,f", [_as(a, d), _as(b, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def max_num(a, b):
    if isinstance(a, tl.tensor):
        d: tl.constexpr = a.dtype
    else:
        d: tl.constexpr = b.dtype
    if d == tl.float64:
        return tl.inline_asm_elementwise("max.f64 $0, $1, $2;", "=d,d,d", [_as(a, d), _as(b, d)], dtype=tl.float64, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("max.f32 $0, $1, $2;", "=f,f,f", [_as(a, d), _as(b, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def copysign(a, b):
    if isinstance(a, tl.tensor):
        d: tl.constexpr = a.dtype
    else:
        d: tl.constexpr = b.dtype
    if d == tl.float64:
        return tl.inline_asm_elementwise("copysign.f64 $0, $2, $1;", "=d,d,d", [_as(a, d), _as(b, d)], dtype=tl.float64, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("copysign.f32 $0, $2, $1;", "=f,f,f", [_as(a, d), _as(b, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def neg(a):
    d: tl.constexpr = a.dtype
    if d == tl.float64:
        return tl.inline_asm_elementwise("neg.f64 $0, $1;", "=d,d", [_as(a, d)], dtype=tl.float64, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("neg.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def abs(a):
    d: tl.constexpr = a.dtype
    if d == tl.float64:
        return tl.inline_asm_elementwise("abs.f64 $0, $1;", "=d,d", [_as(a, d)], dtype=tl.float64, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("abs.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def floor(a):
    d: tl.constexpr = a.dtype
    if d == tl.float64:
        return tl.inline_asm_elementwise("cvt.rmi.f64.f64 $0, $1;", "=d,d", [_as(a, d)], dtype=tl.float64, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("cvt.rmi.f32.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def ceil(a):
    d: tl.constexpr = a.dtype
    if d == tl.float64:
        return tl.inline_asm_elementwise("cvt.rpi.f64.f64 $0, $1;", "=d,d", [_as(a, d)], dtype=tl.float64, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("cvt.rpi.f32.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def trunc(a):
    d: tl.constexpr = a.dtype
    if d == tl.float64:
        return tl.inline_asm_elementwise("cvt.rzi.f64.f64 $0, $1;", "=d,d", [_as(a, d)], dtype=tl.float64, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("cvt.rzi.f32.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def rint(a):
    d: tl.constexpr = a.dtype
    if d == tl.float64:
        return tl.inline_asm_elementwise("cvt.rni.f64.f64 $0, $1;", "=d,d", [_as(a, d)], dtype=tl.float64, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("cvt.rni.f32.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def exp2_approx(a):
    d: tl.constexpr = a.dtype
    return tl.inline_asm_elementwise("ex2.approx.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def exp2_approx_ftz(a):
    d: tl.constexpr = a.dtype
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def log2_approx(a):
    d: tl.constexpr = a.dtype
    return tl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def sin_approx(a):
    d: tl.constexpr = a.dtype
    return tl.inline_asm_elementwise("sin.approx.ftz.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def cos_approx(a):
    d: tl.constexpr = a.dtype
    return tl.inline_asm_elementwise("cos.approx.ftz.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def tanh_approx(a):
    d: tl.constexpr = a.dtype
    return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def sqrt_approx(a):
    d: tl.constexpr = a.dtype
    return tl.inline_asm_elementwise("sqrt.approx.ftz.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def rsqrt_approx(a):
    d: tl.constexpr = a.dtype
    return tl.inline_asm_elementwise("rsqrt.approx.ftz.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def rcp_approx(a):
    d: tl.constexpr = a.dtype
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [_as(a, d)], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def umulhi(a, b):
    return tl.umulhi(a, b)
