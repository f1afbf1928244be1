"""Products of a mixture of experts, as `fused_experts` launches them: bf16, fp8 by tensor and by blocks, and in batches by expert."""

import torch
from case import case

#: experts, width of an expert on one GPU, hidden size, chosen experts; the widths by tensor parallelism.
MODELS = {"Mixtral 8x7B TP2": (8, 7168, 4096, 2), "Mixtral 8x22B TP8": (8, 2048, 6144, 2), "Qwen3-30B-A3B": (128, 768, 2048, 8),
          "DeepSeek-V3 TP8": (256, 256, 7168, 8), "gpt-oss-20b": (32, 2880, 2880, 4), "Llama-4-Scout TP8": (16, 1024, 5120, 1),
          "Qwen3-Next TP4": (512, 128, 2048, 10)}
SHAPES = {name: (min(e, 8), 128, 256, min(k, 2)) for name, (e, _, _, k) in MODELS.items()}


def model_of(make, name):
    """The sizes of a model, small ones in a try."""
    return (SHAPES if make.small else MODELS)[name]


def routing(make, tokens, experts, chosen):
    """Weights and experts of each token."""
    scores = make.rand(tokens, experts)
    weights, ids = torch.topk(torch.softmax(scores, -1), chosen)
    return weights.float(), ids.to(torch.int32)


def activations(make, tokens, hidden):
    """The hidden states."""
    return make.randn(tokens, hidden, scale=0.5)


@case("bf16 {model} {tokens} tokens", model__tokens=[
    *[(model, n) for model in ("Mixtral 8x7B TP2", "Qwen3-30B-A3B") for n in (1, 16, 64, 256, 4096)],
    *[(model, n) for model in ("Mixtral 8x22B TP8", "DeepSeek-V3 TP8", "Llama-4-Scout TP8", "Qwen3-Next TP4") for n in (64, 2048)]])
def bf16(make, model, tokens):
    """`fused_experts` with bf16."""
    experts, width, hidden, chosen = model_of(make, model)
    tokens = make.least(tokens, 24)
    fused = make.module("vllm.model_executor.layers.fused_moe.fused_moe")
    x, (weights, ids) = activations(make, tokens, hidden), routing(make, tokens, experts, chosen)
    w1, w2 = make.randn(experts, 2 * width, hidden, scale=0.05), make.randn(experts, hidden, width, scale=0.05)
    return lambda: fused.fused_experts_impl(x, w1, w2, weights, ids)


@case("bf16 with bias gpt-oss-20b {tokens} tokens", tokens=[1, 64, 2048])
def bias(make, tokens):
    """gpt-oss has biases."""
    experts, width, hidden, chosen = model_of(make, "gpt-oss-20b")
    tokens = make.least(tokens, 24)
    fused = make.module("vllm.model_executor.layers.fused_moe.fused_moe")
    x, (weights, ids) = activations(make, tokens, hidden), routing(make, tokens, experts, chosen)
    w1, w2 = make.randn(experts, 2 * width, hidden, scale=0.05), make.randn(experts, hidden, width, scale=0.05)
    b1, b2 = make.randn(experts, 2 * width), make.randn(experts, hidden)
    return lambda: fused.fused_experts_impl(x, w1, w2, weights, ids, w1_bias=b1, w2_bias=b2)


@case("fp8 by tensor {model} {tokens} tokens", tolerance=5e-2,
      model__tokens=[(model, n) for model in ("Mixtral 8x7B TP2", "Qwen3-30B-A3B") for n in (1, 16, 64, 256, 4096)])
def fp8(make, model, tokens):
    """`fused_experts` with one scale for each expert."""
    experts, width, hidden, chosen = model_of(make, model)
    tokens = make.least(tokens, 24)
    fused = make.module("vllm.model_executor.layers.fused_moe.fused_moe")
    x, (weights, ids) = activations(make, tokens, hidden), routing(make, tokens, experts, chosen)
    w1, w2 = make.fp8(experts, 2 * width, hidden), make.fp8(experts, hidden, width)
    s1, s2 = make.rand(experts, low=0.01, high=0.02), make.rand(experts, low=0.01, high=0.02)
    a1, a2 = make.tensor([0.02], torch.float32), make.tensor([0.05], torch.float32)
    return lambda: fused.fused_experts_impl(x, w1, w2, weights, ids, use_fp8_w8a8=True, w1_scale=s1, w2_scale=s2, a1_scale=a1, a2_scale=a2)


@case("fp8 by blocks {model} {tokens} tokens", tolerance=5e-2,
      model__tokens=[*[("DeepSeek-V3 TP8", n) for n in (1, 16, 64, 256, 4096)], *[("Qwen3-30B-A3B", n) for n in (1, 64, 4096)],
                     *[("Qwen3-Next TP4", n) for n in (16, 2048)]])
def fp8_blocks(make, model, tokens):
    """`fused_experts` with scales of 128 x 128 blocks."""
    experts, width, hidden, chosen = model_of(make, model)
    tokens = make.least(tokens, 24)
    fused = make.module("vllm.model_executor.layers.fused_moe.fused_moe")
    x, (weights, ids) = activations(make, tokens, hidden), routing(make, tokens, experts, chosen)
    w1, w2 = make.fp8(experts, 2 * width, hidden), make.fp8(experts, hidden, width)
    s1 = make.rand(experts, 2 * width // 128, hidden // 128, low=0.01, high=0.02)
    s2 = make.rand(experts, hidden // 128, width // 128, low=0.01, high=0.02)
    return lambda: fused.fused_experts_impl(x, w1, w2, weights, ids, use_fp8_w8a8=True, w1_scale=s1, w2_scale=s2, block_shape=[128, 128])


@case("fp8 by channel {model} {tokens} tokens", tolerance=5e-2, model__tokens=[("Qwen3-30B-A3B", 64), ("Mixtral 8x7B TP2", 2048)])
def fp8_channels(make, model, tokens):
    """Scales for each token and each channel, as compressed-tensors has them."""
    experts, width, hidden, chosen = model_of(make, model)
    tokens = make.least(tokens, 24)
    fused = make.module("vllm.model_executor.layers.fused_moe.fused_moe")
    x, (weights, ids) = activations(make, tokens, hidden), routing(make, tokens, experts, chosen)
    w1, w2 = make.fp8(experts, 2 * width, hidden), make.fp8(experts, hidden, width)
    s1, s2 = make.rand(experts, 2 * width, 1, low=0.01, high=0.02), make.rand(experts, hidden, 1, low=0.01, high=0.02)
    return lambda: fused.fused_experts_impl(x, w1, w2, weights, ids, use_fp8_w8a8=True, per_channel_quant=True, w1_scale=s1, w2_scale=s2)


@case("batched {kind} DeepSeek-V3 EP32 {most} tokens for an expert", tolerance=5e-2,
      kind__most=[("bf16", 64), ("bf16", 256), ("fp8 by blocks", 64), ("fp8 by blocks", 256), ("fp8 by tensor", 128)])
def batched(make, kind, most):
    """Experts' tokens in a tensor of three dimensions, as after a dispatch between GPUs."""
    experts, width, hidden = (4, 128, 256) if make.small else (8, 2048, 7168)
    most = make.least(most, 16)
    module = make.module("vllm.model_executor.layers.fused_moe.experts.fused_batched_moe")
    tl = make.module("vllm.triton_utils").tl
    fused = make.module("vllm.model_executor.layers.fused_moe.fused_moe")
    counts = make.ints(1, most + 1, experts)
    out = make.empty(experts, most, 2 * width)
    dtype = None if kind == "bf16" else "fp8_w8a8"
    block = [128, 128] if "blocks" in kind else None
    config = fused.try_get_optimal_moe_config((experts, 2 * width, hidden), (experts, hidden, width), 8, dtype, most, block_shape=block)
    if kind == "bf16":
        x, w = make.randn(experts, most, hidden, scale=0.5), make.randn(experts, 2 * width, hidden, scale=0.05)
        a = b = None
    else:
        x, w = make.fp8(experts, most, hidden), make.fp8(experts, 2 * width, hidden)
        a = make.rand(experts, most, hidden // 128, low=0.01, high=0.02) if block else make.rand(experts, 1, 1, low=0.01, high=0.02)
        b = make.rand(experts, 2 * width // 128, hidden // 128, low=0.01, high=0.02) if block else make.rand(experts, low=0.01, high=0.02)
    return lambda: module.invoke_moe_batched_triton_kernel(x, w, out, counts, tl.bfloat16, a, b, None, kind != "bf16", False, False, config,
                                                           False, block)
