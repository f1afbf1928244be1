"""Quantization and packed bits."""

import triton
import triton.language as tl

from tile_cases.case import case, integers, normal, np, result, words
from tile_cases.places import plane, span


@triton.jit
def quantize_rows(x_ptr, out_ptr, scale_ptr, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + i, mask=i < columns, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x)), 1e-8) / 448.0
    tl.store(out_ptr + row * columns + i, (x / scale).to(out_ptr.dtype.element_ty), mask=i < columns)
    tl.store(scale_ptr + row, scale)


@triton.jit
def quantize_groups(x_ptr, out_ptr, scale_ptr, GROUPS: tl.constexpr, SIZE: tl.constexpr):
    x = tl.load(x_ptr + plane(GROUPS, SIZE)).to(tl.float32)
    scale = tl.max(tl.abs(x), 1) / 127.0
    tl.store(out_ptr + plane(GROUPS, SIZE), (x / scale[:, None]).to(out_ptr.dtype.element_ty))
    tl.store(scale_ptr + span(0, GROUPS), scale)


@triton.jit
def dequantize_blocks(x_ptr, scale_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = span(0, ROWS)[:, None], span(1, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * columns + column, mask=mask).to(tl.float32)
    scale = tl.load(scale_ptr + tl.program_id(0) * tl.cdiv(columns, COLUMNS) + tl.program_id(1))
    tl.store(out_ptr + row * columns + column, (x * scale).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def unpack_nibbles(packed_ptr, scale_ptr, out_ptr, BLOCK: tl.constexpr):
    """Two signed numbers of 4 bits in each byte, and a scale for each 64 bytes."""
    i = span(0, BLOCK)
    packed, scale = tl.load(packed_ptr + i), tl.load(scale_ptr + i // 64)
    low, high = ((packed << 4) >> 4).to(tl.float16) * scale, (packed >> 4).to(tl.float16) * scale
    tl.store(out_ptr + span(0, 2 * BLOCK), tl.interleave(low, high))


@triton.jit
def unpack_words(packed_ptr, scale_ptr, out_ptr, N, BK: tl.constexpr, BN: tl.constexpr):
    """Weights of 4 bits as GPTQ packs them: eight rows in a word, a scale for each 128 rows."""
    k, n = span(0, BK)[:, None], span(1, BN)[None, :]
    weight = (tl.load(packed_ptr + k // 8 * N + n) >> (k % 8 * 4)) & 0xF
    scale = tl.load(scale_ptr + k // 128 * N + n)
    tl.store(out_ptr + k * N + n, (weight - 8).to(tl.float16) * scale)


@triton.jit
def pack_signs(x_ptr, out_ptr, ROWS: tl.constexpr):
    positive = (tl.load(x_ptr + plane(ROWS, 32)) > 0).to(tl.int32)
    tl.store(out_ptr + span(0, ROWS), tl.sum(positive << tl.arange(0, 32)[None, :], 1))


@triton.jit
def unpack_signs(x_ptr, out_ptr, ROWS: tl.constexpr):
    bit = (tl.load(x_ptr + span(0, ROWS))[:, None] >> tl.arange(0, 32)[None, :]) & 1
    tl.store(out_ptr + plane(ROWS, 32), (2 * bit - 1).to(out_ptr.dtype.element_ty))


@triton.jit
def quantize_microscaled(x_ptr, out_ptr, exponent_ptr, ROWS: tl.constexpr, SIZE: tl.constexpr):
    """Groups with a power of two as the scale, and 4 bits for each number (MXFP4)."""
    x = tl.load(x_ptr + plane(ROWS, SIZE)).to(tl.float32)
    exponent = ((tl.max(tl.abs(x), 1).to(tl.int32, bitcast=True) >> 23) & 0xFF) - 2
    size = tl.abs(x * ((254 - exponent) << 23).to(tl.float32, bitcast=True)[:, None])
    code = (size > 0.25).to(tl.int32) + (size > 0.75).to(tl.int32) + (size > 1.25).to(tl.int32) + (size > 1.75).to(tl.int32)
    code += (size > 2.5).to(tl.int32) + (size > 3.5).to(tl.int32) + (size > 5.0).to(tl.int32)
    low, high = tl.split(tl.reshape(code | tl.where(x < 0, 8, 0), (ROWS, SIZE // 2, 2)))
    tl.store(out_ptr + plane(ROWS, SIZE // 2), (low | (high << 4)).to(tl.int8))
    tl.store(exponent_ptr + span(0, ROWS), exponent.to(tl.int8))


def cases(of):
    """The cases; `of` gives the sizes."""
    m = of(8192, 2)
    yield case("quantization of rows e4m3", quantize_rows, [normal("bf16", m, 4000), result("e4m3", m, 4000), result("fp32", m), 4000],
               (m,),
               lambda x: (x / (abs(x).max(1) / 448)[:, None], abs(x).max(1) / 448), warps=8, BLOCK=4096)
    m = of(1 << 18, 32)
    yield case("quantization of groups i8", quantize_groups,
               [normal("bf16", m, 128), result("i8", m, 128, bound=1), result("fp32", m)], (m // 16,),
               lambda x: (np.trunc(x / (abs(x).max(1) / 127)[:, None]), abs(x).max(1) / 127), GROUPS=16, SIZE=128)
    m, n = of(8192, 80), of(4096, 160)
    yield case("dequantization of blocks e4m3", dequantize_blocks,
               [normal("e4m3", m, n), normal("fp32", -(-m // 64), -(-n // 64)), result("bf16", m, n), m, n], (-(-m // 64), -(-n // 64)),
               lambda x, scale: x * scale.repeat(64, 0).repeat(64, 1)[:x.shape[0], :x.shape[1]], ROWS=64, COLUMNS=64)
    n = of(1 << 24, 2048)
    yield case("unpacking of nibbles fp16", unpack_nibbles,
               [integers("i8", n, low=-128, high=128), normal("fp16", n // 64), result("fp16", n, 2)], (n // 1024,),
               lambda x, scale: np.stack([((x & 15) ^ 8) - 8, x >> 4], 1) * scale.repeat(64)[:, None], BLOCK=1024)
    k, n = of(4096, 128), of(8192, 128)
    yield case("unpacking of words fp16", unpack_words,
               [integers("i32", k // 8, n, low=-(1 << 31), high=1 << 31), normal("fp16", k // 128, n), result("fp16", k, n), n],
               (k // 16, n // 128), lambda x, scale: (words(x) - 8) * scale.repeat(128, 0), BK=16, BN=128)
    m = of(1 << 19, 64)
    yield case("packing of signs fp32", pack_signs, [normal("fp32", m, 32), result("i32", m)], (m // 32,),
               lambda x: ((x > 0) << np.arange(32)).sum(1).astype(np.uint32).view(np.int32), ROWS=32)
    m = of(1 << 20, 64)
    yield case("unpacking of signs fp16", unpack_signs, [integers("i32", m, low=-(1 << 31), high=1 << 31), result("fp16", m, 32)],
               (m // 32,),
               lambda x: 2 * ((x[:, None] >> np.arange(32)) & 1) - 1, ROWS=32)
    m = of(1 << 19, 64)
    yield case("quantization to MXFP4", quantize_microscaled,
               [normal("bf16", m, 32), result("i8", m, 16, share=1e-3), result("i8", m)], (m // 32,), microscaled, ROWS=32, SIZE=32)


def microscaled(x):
    """The reference of `quantize_microscaled`."""
    exponent = np.floor(np.log2(abs(x).max(1))).astype(int) + 127 - 2
    size = abs(x) * 2.0 ** (127 - exponent)[:, None]
    code = sum((size > edge).astype(int) for edge in (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)) | np.where(x < 0, 8, 0)
    return (code[:, ::2] | (code[:, 1::2] << 4)).astype(np.int8), exponent.astype(np.int8)
