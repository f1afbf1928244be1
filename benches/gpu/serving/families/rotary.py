"""Rotary embeddings of several dimensions, and with norms and gates."""

import torch
from case import case

ROTARY = "vllm.model_executor.layers.rotary_embedding."


@case("mrope {heads}/{kv_heads} x {width}{text}, {tokens} tokens", heads__kv_heads__width__tokens__text=[
    (28, 4, 128, 64, ""), (28, 4, 128, 4096, ""), (64, 8, 128, 4096, ", interleaved"), (32, 4, 128, 8192, "")])
def mrope(make, heads, kv_heads, width, tokens, text):
    """`triton_mrope` of Qwen2-VL and Qwen3-VL."""
    module = make.module(ROTARY + "mrope")
    tokens = make.least(tokens, 10)
    q, k = make.randn(tokens, heads * width), make.randn(tokens, kv_heads * width)
    cos, sin = (make.rand(3, tokens, width // 2, low=-1.0, dtype=torch.bfloat16) for _ in range(2))
    return lambda: module.triton_mrope(q, k, cos, sin, [24, 20, 20] if text else [16, 24, 24], width, width, bool(text), True)


@case("Bailing {heads}/{kv_heads} x {width}, {tokens} tokens", heads__kv_heads__width__tokens=[(16, 4, 128, 2048)])
def bailing(make, heads, kv_heads, width, tokens):
    """`triton_bailing_mrope`."""
    module = make.module(ROTARY + "bailing_mrope")
    tokens = make.least(tokens, 10)
    q, k = make.randn(tokens, heads * width), make.randn(tokens, kv_heads * width)
    positions, cache = make.ints(0, 100, 3, tokens, dtype=torch.int64), make.rand(128, width, low=-1.0)
    return lambda: module.triton_bailing_mrope(q, k, positions, cache, width // 8, width, width)


@case("packed {length} x {heads} x {width}", length__heads__width=[(4096, 16, 64), (1024, 16, 64)])
def packed(make, length, heads, width):
    """`packed_qk_rope_` in a vision encoder."""
    module = make.module(ROTARY + "packed_qk_rope")
    length = make.least(length, 20)
    x = make.randn(length, 3, heads, width)
    angles = torch.polar(torch.ones(length, width // 2, device=make.device), make.rand(length, width // 2, high=6.0))
    return lambda: module.packed_qk_rope_(x, angles)


@case("norm, rope and gate {heads}/{kv_heads} x {width}, {tokens} tokens", heads__kv_heads__width__tokens=[
    (16, 2, 256, 64), (16, 2, 256, 4096)])
def gated(make, heads, kv_heads, width, tokens):
    """`fused_qk_rmsnorm_rope_gate` of Qwen3-Next."""
    module = make.module("vllm.model_executor.layers.fused_qk_norm_rope")
    tokens = make.least(tokens, 10)
    q, k = make.randn(tokens, heads * 2 * width), make.randn(tokens, kv_heads * width)
    weights = [make.randn(width) for _ in range(2)]
    cache, positions = make.rand(8192, width // 4, low=-1.0, dtype=torch.bfloat16), make.ints(0, 8192, tokens, dtype=torch.int64)
    return lambda: module.fused_qk_rmsnorm_rope_gate(q, k, *weights, cache, positions, 1e-6, heads, kv_heads, width, width // 4)


@case("angles of {tokens} patches", tokens=[64, 4096])
def positions(make, tokens):
    """`_vit_mrope_setup_kernel`: cosines and sines for images."""
    module = make.module(ROTARY + "mrope_vit_setup")
    setup = module.VitMropeSetup.__new__(module.VitMropeSetup)
    side = make.size(64 if tokens > 64 else 8, 4)
    parts = [make.rand(n) for n in (8, 16, 16)]
    return lambda: setup.forward(*parts, [[1, side, side]], 2)
