"""The gated delta rule of Qwen3-Next: in chunks for prefill, recurrent for decoding, and the norms around it."""

import torch
from case import case

#: heads of keys, heads of values.
MODELS = {"Qwen3-Next": (16, 32), "Qwen3-Next TP4": (4, 8)}
WIDTH = 128


def heads_of(make, model):
    """Fewer in a try."""
    return (1, 2) if make.small else MODELS[model]


def sequences(make, kind):
    """Lengths of sequences: `2 x 4096`."""
    count, length = map(int, kind.split(" x "))
    return [70, 33] if make.small else [length - 37 * i for i in range(count)]


def chunk_parts(make, lengths, size=64):
    """The chunks of sequences: pairs of sequence and chunk, and where the chunks of each begin."""
    pairs = [(i, j) for i, n in enumerate(lengths) for j in range(-(-n // size))]
    return make.tensor(pairs), make.starts([-(-n // size) for n in lengths])


@case("chunks {model} {kind}", model__kind=[("Qwen3-Next", "1 x 2048"), ("Qwen3-Next", "1 x 8192"), ("Qwen3-Next", "4 x 2048"),
                                            ("Qwen3-Next TP4", "8 x 1024"), ("Qwen3-Next TP4", "1 x 8192")])
def chunks(make, model, kind):
    """`chunk_gated_delta_rule`: norm, sum, k k^T, inverse, w and u, states, output."""
    module = make.module("vllm.third_party.flash_linear_attention.ops.chunk")
    few, many = heads_of(make, model)
    lengths = sequences(make, kind)
    t = sum(lengths)
    q, k, v = make.randn(1, t, few, WIDTH), make.randn(1, t, few, WIDTH), make.randn(1, t, many, WIDTH)
    g = make.rand(1, t, many, low=-0.2, high=-0.01)
    beta = make.rand(1, t, many, dtype=torch.bfloat16)
    state = make.randn(len(lengths), many, WIDTH, WIDTH, dtype=torch.float32, scale=0.1)
    starts, (indices, offsets) = make.starts(lengths), chunk_parts(make, lengths)
    return lambda: module.chunk_gated_delta_rule(q, k, v, g, beta, initial_state=state, output_final_state=True, cu_seqlens=starts,
                                                 chunk_indices=indices, chunk_offsets=offsets, use_qk_l2norm_in_kernel=True)


@case("recurrent {model} batch {batch}{text}", model__batch__text=[
    *[("Qwen3-Next", b, "") for b in (1, 16, 64, 256)], ("Qwen3-Next TP4", 64, ""), ("Qwen3-Next", 32, ", 4 tokens each")])
def recurrent(make, model, batch, text):
    """`fused_recurrent_gated_delta_rule` on states in a cache."""
    module = make.module("vllm.third_party.flash_linear_attention.ops.fused_recurrent")
    few, many = heads_of(make, model)
    batch, each = make.least(batch, 3), 4 if text else 1
    t = batch * each
    q, k, v = make.randn(1, t, few, WIDTH), make.randn(1, t, few, WIDTH), make.randn(1, t, many, WIDTH)
    g, beta = make.rand(1, t, many, low=-0.2, high=-0.01), make.rand(1, t, many, dtype=torch.bfloat16)
    state = make.randn(t + 1, many, WIDTH, WIDTH, dtype=torch.float32, scale=0.1)
    slots = (make.permutation(t) + 1).view(batch, each) if text else make.permutation(batch) + 1
    starts = make.starts([each] * batch)
    accepted = make.ints(1, each + 1, batch) if text else None
    return lambda: module.fused_recurrent_gated_delta_rule(q, k, v, g, beta, initial_state=state, inplace_final_state=True, cu_seqlens=starts,
                                                           ssm_state_indices=slots, num_accepted_tokens=accepted,
                                                           use_qk_l2norm_in_kernel=True)


def gates(make, tokens, many):
    """a, b, A_log and dt_bias."""
    return (make.randn(tokens, many), make.randn(tokens, many), make.rand(many, low=0.0, high=1.0), make.rand(many, low=-1.0, high=1.0))


@case("packed decode {model} batch {batch}", model__batch=[("Qwen3-Next", 16), ("Qwen3-Next", 64), ("Qwen3-Next", 256), ("Qwen3-Next TP4", 64)])
def packed(make, model, batch):
    """`fused_recurrent_gated_delta_rule_packed_decode`: the gates too."""
    module = make.module("vllm.third_party.flash_linear_attention.ops.fused_recurrent")
    few, many = heads_of(make, model)
    batch = make.least(batch, 3)
    qkv = make.randn(batch, (2 * few + many) * WIDTH)
    a, b, log, bias = gates(make, batch, many)
    state = make.randn(batch + 1, many, WIDTH, WIDTH, dtype=torch.float32, scale=0.1)
    out, slots = make.empty(batch, 1, many, WIDTH), make.permutation(batch) + 1
    return lambda: module.fused_recurrent_gated_delta_rule_packed_decode(qkv, a, b, log, bias, WIDTH ** -0.5, state, out, slots,
                                                                         use_qk_l2norm_in_kernel=True)


@case("sigmoid gating {model} batch {batch}", model__batch=[("Qwen3-Next", 16), ("Qwen3-Next", 128)])
def gating(make, model, batch):
    """`fused_sigmoid_gating_delta_rule_update`."""
    module = make.module("vllm.third_party.flash_linear_attention.ops.fused_sigmoid_gating")
    few, many = heads_of(make, model)
    batch = make.least(batch, 3)
    q, k, v = make.randn(1, batch, few, WIDTH), make.randn(1, batch, few, WIDTH), make.randn(1, batch, many, WIDTH)
    a, b, log, bias = gates(make, batch, many)
    state = make.randn(batch + 1, many, WIDTH, WIDTH, dtype=torch.float32, scale=0.1)
    slots, starts = make.permutation(batch) + 1, make.starts([1] * batch)
    return lambda: module.fused_sigmoid_gating_delta_rule_update(log, a, b, bias, q, k, v, initial_state=state, cu_seqlens=starts,
                                                                 ssm_state_indices=slots, use_qk_l2norm_in_kernel=True)


@case("after convolution {model} {tokens} tokens", model__tokens=[("Qwen3-Next", 2048), ("Qwen3-Next TP4", 8192)])
def prefill(make, model, tokens):
    """`fused_post_conv_prep`."""
    module = make.module("vllm.third_party.flash_linear_attention.ops.fused_gdn_prefill_post_conv")
    few, many = heads_of(make, model)
    tokens = make.least(tokens, 50)
    a, b, log, bias = gates(make, tokens, many)
    mixed = make.randn(tokens, (2 * few + many) * WIDTH)
    return lambda: module.fused_post_conv_prep(mixed, a, b, log, bias, few, WIDTH, WIDTH)


@case("several tokens {model} batch {batch}", model__batch=[("Qwen3-Next", 16), ("Qwen3-Next", 64)])
def several(make, model, batch):
    """`fused_gdn_decode_post_conv_mtp_triton`: four tokens of each sequence."""
    module = make.module("vllm.third_party.flash_linear_attention.ops.fused_gdn_decode_post_conv_mtp")
    module.num_compute_units = lambda *a: 132
    few, many = heads_of(make, model)
    batch, each = make.least(batch, 2), 4
    t = batch * each
    a, b, log, bias = gates(make, t, many)
    qkv = make.randn(t, (2 * few + many) * WIDTH)
    state = make.randn(t + 1, many, WIDTH, WIDTH, dtype=torch.float32, scale=0.1)
    slots, accepted = (make.permutation(t) + 1).view(batch, each), make.ints(1, each + 1, batch)
    gate, weight, out = make.randn(t, many, WIDTH), make.randn(WIDTH), make.empty(t, many, WIDTH)
    starts = make.starts([each] * batch)
    return lambda: module.fused_gdn_decode_post_conv_mtp_triton(qkv, a, b, log, bias, slots, starts, accepted, state, gate, weight, out,
                                                                WIDTH ** -0.5, 1e-6, "silu")


@case("gated norm {kind} {tokens} tokens", kind__tokens=[("rms", 64), ("rms", 4096), ("layer", 4096), ("norm gate", 4096), ("wide norm gate", 1024)])
def norms(make, kind, tokens):
    """`rmsnorm_fn`, `layernorm_fn` with a gate, and `rms_norm_gated`."""
    tokens = make.least(tokens, 20)
    heads = make.size(32, 2)
    if "gate" in kind:
        module = make.module("vllm.third_party.flash_linear_attention.ops.fused_norm_gate")
        width = 1024 if "wide" in kind else WIDTH
        x, z, weight = make.randn(tokens, heads, width), make.randn(tokens, heads, width), make.randn(width)
        return lambda: module.rms_norm_gated(x, z, weight, None)
    module = make.module("vllm.third_party.flash_linear_attention.ops.layernorm_guard")
    x, z, weight, bias = make.randn(tokens * heads, WIDTH), make.randn(tokens * heads, WIDTH), make.randn(WIDTH), make.randn(WIDTH)
    if kind == "rms":
        return lambda: module.rmsnorm_fn(x, weight, None, z, norm_before_gate=True)
    return lambda: module.layernorm_fn(x, weight, bias, z, norm_before_gate=False)
