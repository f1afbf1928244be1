"""Quantization of activations, weights of 4 bits, embeddings that are quantized, nvfp4 and mxfp8 where the GPU has no instruction."""

import torch
from case import case

UTILS = "vllm.model_executor.layers.quantization.utils."


@case("fp8 groups of 128, {order} {tokens} x {hidden}", order__tokens__hidden=[
    ("rows", 64, 4096), ("rows", 4096, 4096), ("rows", 2048, 7168), ("columns", 4096, 4096), ("columns", 64, 7168)])
def fp8_groups(make, order, tokens, hidden):
    """`per_token_group_quant_fp8` of rows that are not one after another, which the compiled one does not take."""
    module = make.module(UTILS + "fp8_utils")
    tokens, hidden = make.least(tokens, 20), make.least(hidden, 512)
    x = make.randn(tokens, hidden + 128)[:, :hidden]
    return lambda: module.per_token_group_quant_fp8(x, 128, column_major_scales=order == "columns")


@case("int8 {kind} {tokens} x {hidden}", kind__tokens__hidden=[("rows", 64, 4096), ("rows", 4096, 4096), ("groups", 2048, 7168), ("groups", 64, 4096)])
def int8(make, kind, tokens, hidden):
    """`per_token_quant_int8` and `per_token_group_quant_int8`."""
    module = make.module(UTILS + "int8_utils")
    x = make.randn(make.least(tokens, 20), make.least(hidden, 512))
    if kind == "rows":
        return lambda: module.per_token_quant_int8(x)
    module.current_platform = Elsewhere(module.current_platform)
    return lambda: module.per_token_group_quant_int8(x, 128)


class Elsewhere:
    """A platform for which a library chooses its Triton kernel."""

    def __init__(self, platform):
        self.platform = platform

    def __getattr__(self, name):
        return (lambda *a, **k: False) if name.startswith("is_") else getattr(self.platform, name)


@case("mxfp8 {tokens} x {hidden}", tokens__hidden=[(64, 4096), (4096, 4096)])
def mxfp8(make, tokens, hidden):
    """`_mxfp8_e4m3_quantize_triton`."""
    module = make.module(UTILS + "mxfp8_utils")
    x = make.randn(make.least(tokens, 20), make.least(hidden, 512))
    return lambda: module._mxfp8_e4m3_quantize_triton(x)


@case("nvfp4 {kind} {rows} x {columns}", tolerance=0.2, kind__rows__columns=[("there and back", 2048, 4096), ("weights", 4096, 4096)])
def nvfp4(make, kind, rows, columns):
    """`_triton_nvfp4_quant_dequant` and `_triton_dequantize_nvfp4`."""
    module = make.module(UTILS + "nvfp4_emulation_utils")
    rows, columns = make.least(rows, 16), make.least(columns, 256)
    scale = make.tensor([2.0], torch.float32)
    if kind == "weights":
        packed, scales = make.ints(0, 256, rows, columns // 2, dtype=torch.uint8), make.fp8(rows, columns // 16)
        return lambda: module._triton_dequantize_nvfp4(packed, scales, scale, torch.bfloat16)
    x = make.randn(rows, columns)
    return lambda: module._triton_nvfp4_quant_dequant(x, scale, 16)


@case("4 bits {n} x {k}, {tokens} tokens{text}", n__k__tokens__text=[
    (6144, 4096, 1, ""), (6144, 4096, 16, ""), (6144, 4096, 64, ", zero points"), (6144, 4096, 2048, ""), (4096, 14336, 64, "")])
def w4a16(make, n, k, tokens, text):
    """`triton_w4a16_gemm_kernel`."""
    module = make.module("vllm.model_executor.kernels.linear.mixed_precision.triton_w4a16")
    n, k, m = make.least(n, 256), make.least(k, 256), make.least(tokens, 20)
    x, q = make.randn(m, k), make.ints(-(1 << 31), (1 << 31) - 1, k, n // 8)
    scales = make.rand(k // 128, n, low=0.001, high=0.002, dtype=torch.bfloat16)
    zeros = make.ints(-(1 << 31), (1 << 31) - 1, k // 128, n // 8) if text else None
    return lambda: module._triton_w4a16_gemm_impl(x, q, scales, zeros, 128)


@case("embedding of {bits} bits, {tokens} tokens of {hidden}", bits__tokens__hidden=[(4, 4096, 4096), (8, 256, 4096)])
def embedding(make, bits, tokens, hidden):
    """`_dequant_gather_triton`."""
    module = make.module("vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors_embedding")
    tokens, hidden, rows = make.least(tokens, 20), make.least(hidden, 256), make.size(32768, 100)
    ids, packed = make.ints(0, rows, tokens, dtype=torch.int64), make.ints(-(1 << 31), (1 << 31) - 1, rows, hidden * bits // 32)
    scale = make.rand(rows, hidden // 128, low=0.01, high=0.02, dtype=torch.bfloat16)
    return lambda: module._dequant_gather_triton(ids, packed, scale, hidden, bits)


@case("padded fp8 {tokens} x {heads} x {width}", tokens__heads__width=[(4096, 16, 72), (4096, 16, 80)])
def padded(make, tokens, heads, width):
    """`quantize_fp8_pad_head_dim_triton` of a vision encoder."""
    module = make.module("vllm.kernels.triton.qkv_padded_fp8_quant")
    x, scale = make.randn(make.least(tokens, 20), heads, width), make.tensor([0.02], torch.float32)
    return lambda: module.quantize_fp8_pad_head_dim_triton(x, scale)


@case("squared relu and fp8 {tokens} x {width}", tokens__width=[(2048, 16384), (64, 16384)])
def relu2(make, tokens, width):
    """`_relu_squared_static_fp8_quant_kernel`."""
    module = make.module("vllm.model_executor.layers.fusion.relu2_fp8_quant")
    x, scale = make.randn(make.least(tokens, 20), make.least(width, 256)), make.tensor([0.02], torch.float32)
    linear = type("Linear", (), {"input_scale": scale})()
    return lambda: module.relu_squared_static_fp8_quant(x, linear)
