"""Kimi delta attention: gates, chunks for prefill, recurrent for decoding."""

import torch
from case import case
from families.delta_rule import WIDTH, chunk_parts, sequences

NAME = "vllm.third_party.flash_linear_attention.ops.kda"


@case("chunks {heads} heads, {kind}", heads__kind=[(32, "1 x 2048"), (32, "2 x 4096"), (8, "1 x 8192")])
def chunks(make, heads, kind):
    """`chunk_kda`."""
    module = make.module(NAME)
    lengths, heads = sequences(make, kind), make.least(heads, 2)
    t = sum(lengths)
    q, k, v = (make.randn(1, t, heads, WIDTH) for _ in range(3))
    g, beta = make.rand(1, t, heads, WIDTH, low=-0.1, high=-0.01), make.rand(1, t, heads)
    state = make.randn(len(lengths), heads, WIDTH, WIDTH, dtype=torch.float32, scale=0.1)
    starts, (indices, offsets) = make.starts(lengths), chunk_parts(make, lengths)
    return lambda: module.chunk_kda(q, k, v, g, beta, initial_state=state, output_final_state=True, use_qk_l2norm_in_kernel=True,
                                    cu_seqlens=starts, chunk_indices=indices, chunk_offsets=offsets)


@case("recurrent {heads} heads, batch {batch}", heads__batch=[(32, 1), (32, 64), (8, 128)])
def recurrent(make, heads, batch):
    """`fused_recurrent_kda`."""
    module = make.module(NAME)
    heads, batch = make.least(heads, 2), make.least(batch, 3)
    q, k, v = (make.randn(1, batch, heads, WIDTH) for _ in range(3))
    g, beta = make.rand(1, batch, heads, WIDTH, low=-0.1, high=-0.01), make.rand(1, batch, heads)
    state = make.randn(batch + 1, heads, WIDTH, WIDTH, dtype=torch.float32, scale=0.1)
    slots = make.permutation(batch) + 1
    return lambda: module.fused_recurrent_kda(q, k, v, g, beta, initial_state=state, cu_seqlens=make.starts([1] * batch),
                                              ssm_state_indices=slots)


@case("gate {heads} heads, {tokens} tokens", heads__tokens=[(32, 4096), (32, 64)])
def gate(make, heads, tokens):
    """`fused_kda_gate` and `fused_kda_gate_chunk_cumsum`."""
    module = make.module(NAME)
    heads, tokens = make.least(heads, 2), make.least(tokens, 70)
    raw, log, bias = make.randn(tokens, heads * WIDTH), make.rand(heads), make.randn(heads * WIDTH, dtype=torch.float32)

    def call():
        module.fused_kda_gate(raw, log, WIDTH, bias)
        module.fused_kda_gate_chunk_cumsum(raw.view(1, tokens, heads, WIDTH), log, bias)
    return call


@case("gated norm {tokens} x 32 heads", tokens=[4096, 64])
def norm(make, tokens):
    """`rms_norm_gated` with a sigmoid."""
    module = make.module(NAME)
    tokens, heads = make.least(tokens, 10), make.size(32, 2)
    x, z, weight = make.randn(tokens, heads, WIDTH), make.randn(tokens, heads, WIDTH), make.randn(WIDTH)
    return lambda: module.rms_norm_gated(x, z, weight, None, activation="sigmoid")
