"""Products of a mixture of experts with weights of 8 and 4 bits."""

import torch
from case import case
from families.moe import activations, model_of, routing

MODELS = ("Mixtral 8x7B TP2", "Qwen3-30B-A3B")


def inputs(make, model, tokens):
    """The module, sizes, hidden states and routing."""
    experts, width, hidden, chosen = model_of(make, model)
    tokens = make.least(tokens, 24)
    fused = make.module("vllm.model_executor.layers.fused_moe.fused_moe")
    fused.should_moe_wna16_use_cuda = lambda *a, **k: False
    return fused, experts, width, hidden, activations(make, tokens, hidden), routing(make, tokens, experts, chosen)


@case("int4 {model} {tokens} tokens{text}", model__tokens__text=[
    *[(model, n, ", zero points") for model in MODELS for n in (1, 16, 64, 256, 4096)], *[("Mixtral 8x7B TP2", n, "") for n in (16, 2048)]])
def int4(make, model, tokens, text):
    """Weights of 4 bits in groups of 128, as AWQ and GPTQ have them."""
    fused, experts, width, hidden, x, (weights, ids) = inputs(make, model, tokens)
    group = 128
    w1 = make.ints(0, 256, experts, 2 * width, hidden // 2, dtype=torch.uint8)
    w2 = make.ints(0, 256, experts, hidden, width // 2, dtype=torch.uint8)
    s1 = make.rand(experts, 2 * width, hidden // group, low=0.005, high=0.01, dtype=torch.bfloat16)
    s2 = make.rand(experts, hidden, width // group, low=0.005, high=0.01, dtype=torch.bfloat16)
    z1 = z2 = None
    if text:
        z1 = make.ints(0, 256, experts, width, hidden // group, dtype=torch.uint8)
        z2 = make.ints(0, 256, experts, hidden // 2, width // group, dtype=torch.uint8)
    return lambda: fused.fused_experts_impl(x, w1, w2, weights, ids, use_int4_w4a16=True, w1_scale=s1, w2_scale=s2, w1_zp=z1, w2_zp=z2,
                                            block_shape=[0, group])


@case("int8 weights, groups {model} {tokens} tokens", model__tokens=[("Mixtral 8x7B TP2", 16), ("Qwen3-30B-A3B", 64), ("Qwen3-30B-A3B", 4096)])
def int8_groups(make, model, tokens):
    """Weights of 8 bits in groups of 128, with zero points."""
    fused, experts, width, hidden, x, (weights, ids) = inputs(make, model, tokens)
    group = 128
    w1 = make.ints(0, 256, experts, 2 * width, hidden, dtype=torch.uint8)
    w2 = make.ints(0, 256, experts, hidden, width, dtype=torch.uint8)
    s1 = make.rand(experts, 2 * width, hidden // group, low=0.0005, high=0.001, dtype=torch.bfloat16)
    s2 = make.rand(experts, hidden, width // group, low=0.0005, high=0.001, dtype=torch.bfloat16)
    z1 = make.ints(100, 156, experts, 2 * width, hidden // group, dtype=torch.uint8)
    z2 = make.ints(100, 156, experts, hidden, width // group, dtype=torch.uint8)
    return lambda: fused.fused_experts_impl(x, w1, w2, weights, ids, use_int8_w8a16=True, w1_scale=s1, w2_scale=s2, w1_zp=z1, w2_zp=z2,
                                            block_shape=[0, group])


@case("int8 weights {model} {tokens} tokens", model__tokens=[("Mixtral 8x7B TP2", 16), ("Qwen3-30B-A3B", 64), ("Mixtral 8x7B TP2", 2048)])
def int8_weights(make, model, tokens):
    """Weights of 8 bits, one scale for each column (experts_int8)."""
    fused, experts, width, hidden, x, (weights, ids) = inputs(make, model, tokens)
    w1 = make.ints(-127, 128, experts, 2 * width, hidden, dtype=torch.int8)
    w2 = make.ints(-127, 128, experts, hidden, width, dtype=torch.int8)
    s1, s2 = (make.rand(experts, n, low=0.0005, high=0.001) for n in (2 * width, hidden))
    return lambda: fused.fused_experts_impl(x, w1, w2, weights, ids, use_int8_w8a16=True, w1_scale=s1, w2_scale=s2)


@case("int8 {model} {tokens} tokens", tolerance=5e-2, model__tokens=[(model, n) for model in MODELS for n in (16, 256, 4096)])
def int8(make, model, tokens):
    """int8 by int8, scales for tokens and columns."""
    fused, experts, width, hidden, x, (weights, ids) = inputs(make, model, tokens)
    w1 = make.ints(-127, 128, experts, 2 * width, hidden, dtype=torch.int8)
    w2 = make.ints(-127, 128, experts, hidden, width, dtype=torch.int8)
    s1, s2 = (make.rand(experts, n, 1, low=0.0005, high=0.001) for n in (2 * width, hidden))
    return lambda: fused.fused_experts_impl(x, w1, w2, weights, ids, use_int8_w8a8=True, per_channel_quant=True, w1_scale=s1, w2_scale=s2)


@case("int8 by blocks Qwen3-30B-A3B {tokens} tokens", tolerance=5e-2, tokens=[64, 2048])
def int8_blocks(make, tokens):
    """int8 by int8, scales of 128 x 128 blocks."""
    fused, experts, width, hidden, x, (weights, ids) = inputs(make, "Qwen3-30B-A3B", tokens)
    w1 = make.ints(-127, 128, experts, 2 * width, hidden, dtype=torch.int8)
    w2 = make.ints(-127, 128, experts, hidden, width, dtype=torch.int8)
    s1 = make.rand(experts, 2 * width // 128, hidden // 128, low=0.0005, high=0.001)
    s2 = make.rand(experts, hidden // 128, width // 128, low=0.0005, high=0.001)
    return lambda: fused.fused_experts_impl(x, w1, w2, weights, ids, use_int8_w8a8=True, w1_scale=s1, w2_scale=s2, block_shape=[128, 128])
