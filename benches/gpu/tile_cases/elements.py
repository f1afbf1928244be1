"""Element by element, in pairs and halves."""

import triton
import triton.language as tl

from tile_cases.case import case, in_place, integers, normal, np, result, uniform
from tile_cases.places import plane, span


@triton.jit
def rotate_halves(x_ptr, cosine_ptr, sine_ptr, heads, HEADS: tl.constexpr, D: tl.constexpr):
    """Rotary embedding in place: element i with element i + D / 2."""
    position, head, d = tl.program_id(0), tl.arange(0, HEADS)[:, None], tl.arange(0, D // 2)
    cosine = tl.load(cosine_ptr + position * (D // 2) + d)[None, :]
    sine = tl.load(sine_ptr + position * (D // 2) + d)[None, :]
    at = x_ptr + (position * heads + head) * D + d[None, :]
    a = tl.load(at, mask=head < heads).to(tl.float32)
    b = tl.load(at + D // 2, mask=head < heads).to(tl.float32)
    tl.store(at, (a * cosine - b * sine).to(x_ptr.dtype.element_ty), mask=head < heads)
    tl.store(at + D // 2, (b * cosine + a * sine).to(x_ptr.dtype.element_ty), mask=head < heads)


@triton.jit
def rotate_pairs(x_ptr, cosine_ptr, sine_ptr, out_ptr, ROWS: tl.constexpr, D: tl.constexpr):
    """Rotary embedding: element 2 i with element 2 i + 1."""
    x = tl.load(x_ptr + plane(ROWS, D)).to(tl.float32)
    a, b = tl.split(tl.reshape(x, (ROWS, D // 2, 2)))
    cosine, sine = tl.load(cosine_ptr + plane(ROWS, D // 2)), tl.load(sine_ptr + plane(ROWS, D // 2))
    x = tl.interleave(a * cosine - b * sine, b * cosine + a * sine)
    tl.store(out_ptr + plane(ROWS, D), x.to(out_ptr.dtype.element_ty))


@triton.jit
def complex_product(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    mask = i < n
    x_real, x_imaginary = tl.load(x_ptr + 2 * i, mask=mask), tl.load(x_ptr + 2 * i + 1, mask=mask)
    y_real, y_imaginary = tl.load(y_ptr + 2 * i, mask=mask), tl.load(y_ptr + 2 * i + 1, mask=mask)
    tl.store(out_ptr + 2 * i, x_real * y_real - x_imaginary * y_imaginary, mask=mask)
    tl.store(out_ptr + 2 * i + 1, x_real * y_imaginary + x_imaginary * y_real, mask=mask)


@triton.jit
def gray(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    red = tl.load(x_ptr + 3 * i, mask=i < n).to(tl.float32)
    green = tl.load(x_ptr + 3 * i + 1, mask=i < n).to(tl.float32)
    blue = tl.load(x_ptr + 3 * i + 2, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, (0.3 * red + 0.59 * green + 0.11 * blue).to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def interleave(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    at = span(0, BLOCK)
    tl.store(out_ptr + span(0, 2 * BLOCK), tl.interleave(tl.load(x_ptr + at), tl.load(y_ptr + at)))


@triton.jit
def dropout(x_ptr, out_ptr, n, probability, seed, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    kept = tl.rand(seed, i) > probability
    tl.store(out_ptr + i, tl.where(kept, x / (1 - probability), 0.0).to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def mask_by_bits(x_ptr, bits_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = span(0, BLOCK)
    bits = tl.load(bits_ptr + i // 8, mask=i < n, other=0)
    kept = (bits >> (i % 8).to(tl.int8)) & 1
    tl.store(out_ptr + i, tl.where(kept != 0, tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


def cases(of):
    """The cases; `of` gives the sizes."""
    s, h = of(8192, 3), 32
    yield case("rotation of halves bf16", rotate_halves,
               [in_place(normal("bf16", s, h, 128)), uniform("fp32", s, 64), uniform("fp32", s, 64), h], (s,), rotated(halves=True),
               HEADS=32, D=128)
    s = of(1 << 18, 32)
    yield case("rotation of pairs fp16", rotate_pairs,
               [normal("fp16", s, 128), uniform("fp32", s, 64), uniform("fp32", s, 64), result("fp16", s, 128)], (s // 16,),
               rotated(halves=False), ROWS=16, D=128)
    n = of(1 << 22, 1500)
    yield case("complex product fp32", complex_product, [normal("fp32", 2 * n), normal("fp32", 2 * n), result("fp32", 2 * n), n],
               (-(-n // 1024),), lambda x, y: (x.view(complex) * y.view(complex)).view(float), BLOCK=1024)
    n = of(1 << 23, 1500)
    yield case("gray fp32", gray, [normal("fp32", n, 3), result("fp32", n), n], (-(-n // 1024),),
               lambda x: x @ np.array([0.3, 0.59, 0.11]), BLOCK=1024)
    n = of(1 << 24, 2048)
    yield case("interleaving fp16", interleave, [normal("fp16", n), normal("fp16", n), result("fp16", n, 2)], (n // 1024,),
               lambda x, y: np.stack([x, y], 1), BLOCK=1024)
    yield case("dropout fp16", dropout, [normal("fp16", n), result("fp16", n), n, 0.2, 17], (n // 1024,), BLOCK=1024)
    yield case("mask by bits fp32", mask_by_bits, [normal("fp32", n), integers("i8", n // 8, low=-128, high=128), result("fp32", n), n],
               (n // 1024,), lambda x, bits: x * ((bits[:, None] >> np.arange(8)) & 1).ravel(), BLOCK=1024)


def rotated(halves):
    """The reference of rotary embeddings."""
    def rotate(x, cosine, sine):
        pair = x.reshape(*x.shape[:-1], *((2, -1) if halves else (-1, 2)))
        pair = pair if halves else pair.swapaxes(-1, -2)
        if x.ndim == 3:
            cosine, sine = cosine[:, None], sine[:, None]
        a, b = pair[..., 0, :], pair[..., 1, :]
        both = np.stack([a * cosine - b * sine, b * cosine + a * sine], -2)
        return (both if halves else both.swapaxes(-1, -2)).reshape(x.shape)
    return rotate
