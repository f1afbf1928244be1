"""Kernels that single models bring along: norms, gates, hyperconnections, routing, experts at small batches."""

import torch
from case import case

SIZES = [(64, 4096), (4096, 4096)]


def sizes(make, tokens, hidden):
    """Small ones in a try."""
    return make.least(tokens, 6), make.least(hidden, 256)


@case("Inkling norms {tokens} x {hidden}", tokens__hidden=SIZES)
def inkling(make, tokens, hidden):
    """`add_rmsnorm`, `rmsnorm`, `embed_dual_rmsnorm_cat`, `silu_and_mul_triton`."""
    module = make.module("vllm.models.inkling.nvidia.ops.norm")
    other = make.module("vllm.models.inkling.nvidia.ops.silu_and_mul")
    tokens, hidden = sizes(make, tokens, hidden)
    x, y, w, v = make.randn(tokens, hidden), make.randn(tokens, hidden), make.randn(hidden), make.randn(hidden)
    wide = make.randn(tokens, 2 * hidden)

    def call():
        module.add_rmsnorm(x, y, w, 1e-6)
        module.rmsnorm(x, w, 1e-6)
        module.embed_dual_rmsnorm_cat(x, w, v, 1e-6, embeds=y)
        other.silu_and_mul_triton(wide)
    return call


@case("Inkling towers {tokens} x {hidden}", tokens__hidden=[(4096, 1024)])
def towers(make, tokens, hidden):
    """`rmsnorm_gelu`."""
    module = make.module("vllm.models.inkling.nvidia.ops.mm_towers")
    tokens, hidden = sizes(make, tokens, hidden)
    x, w = make.randn(tokens, hidden), make.randn(hidden)
    return lambda: module.rmsnorm_gelu(x, w, 1e-6)


@case("Inkling convolution {kind}", kind=["decode 64", "prefill 2048"])
def sconv(make, kind):
    """`fused_sconv` over a cache of pages, and `sconv_seq_metadata`."""
    module = make.module("vllm.models.inkling.nvidia.ops.sconv")
    heads, width, page, taps = 8, 128, 16, 4
    batch, each = (2, 1 if "decode" in kind else 9) if make.small else (64, 1) if "decode" in kind else (2, 1024)
    t, pages = batch * each, -(-(each + 64) // 16)
    x, weight = make.randn(t, heads * width), make.randn(heads * width, taps)
    cache, table = make.randn(batch * pages, heads, page, width), make.permutation(batch * pages).view(batch, pages)
    positions = (torch.arange(each, device=make.device) + 32).repeat(batch)
    owner = torch.arange(batch, dtype=torch.int32, device=make.device).repeat_interleave(each)
    slots = table[owner.long(), positions // page].long() * page + positions % page
    first = owner * each
    out = [torch.zeros_like(owner) for _ in range(2)]

    def call():
        module.sconv_seq_metadata(make.starts([each] * batch), batch, t, *out)
        module.fused_sconv(x, weight, cache, positions, table, owner, slots, first, 0, width, page, "silu")
    return call


@case("Qwen4 hyperconnections {tokens} x {hidden}", tokens__hidden=[(64, 2048), (2048, 2048)])
def qwen4(make, tokens, hidden):
    """`grouped_gemma_rmsnorm`, `hc_silu`, `hc_gate_mix`, `hc_combine`, `hc_combine_norm`, `ple_gate`."""
    module = make.module("vllm.models.qwen4_exp.nvidia.ops.hc")
    other = make.module("vllm.models.qwen4_exp.common.ops.ple")
    tokens, hidden = sizes(make, tokens, hidden)
    n = 4
    x, y, gate = make.randn(tokens, n * hidden), make.randn(tokens, hidden), make.randn(tokens, n * hidden)
    logits, w, key = make.randn(tokens, n), make.randn(hidden), make.randn(tokens, n * hidden)

    def call():
        module.grouped_gemma_rmsnorm(x, w, 1e-6, n)
        module.hc_silu(x, n)
        module.hc_gate_mix(x, gate, n)
        module.hc_combine(x, y, logits, n)
        module.hc_combine_norm(x, y, logits, w, 1e-6, n)
        other.ple_gate(key, y, x, make.randn(n, hidden), make.randn(n, hidden), make.randn(n, hidden), 1e-6)
    return call


@case("Muse {tokens} x {hidden}", tokens__hidden=[(64, 8192), (2048, 8192)])
def muse(make, tokens, hidden):
    """`fused_rmsnorm_fwd`, `fused_norm_residual_norm_fwd`, `fused_musespark1x_routing`."""
    module = make.module("vllm.models.muse_spark.common.ops.fused_rmsnorm")
    other = make.module("vllm.models.muse_spark.common.ops.fused_routing")
    tokens, hidden = sizes(make, tokens, hidden)
    x, stream, w, v = make.randn(tokens, hidden), make.randn(tokens, hidden, dtype=torch.float32), make.randn(hidden), make.randn(hidden)
    beta, scores, bias = make.rand(1), make.randn(tokens, 128, dtype=torch.float32), make.randn(128, dtype=torch.float32)

    def call():
        module.fused_rmsnorm_fwd(x, w, 1e-6)
        module.fused_norm_residual_norm_fwd(x, stream, w, v, 1e-6, 1e-6, alpha=1.0, beta=beta)
        other.fused_musespark1x_routing(scores, bias, 8, 1.5)
    return call


@case("Step {tokens} x {hidden}", tokens__hidden=SIZES)
def step(make, tokens, hidden):
    """`add_fp32`, `headwise_sigmoid_gate`, `norm_concat`."""
    add, gating = make.module("vllm.models.step5.nvidia.ops.add"), make.module("vllm.models.step5.nvidia.ops.attention_gate")
    norm = make.module("vllm.models.step5.nvidia.ops.mtp_norm")
    tokens, hidden = sizes(make, tokens, hidden)
    x, y, gate = make.randn(tokens, hidden), make.randn(tokens, hidden), make.randn(tokens, hidden // 128)
    w, v = make.randn(hidden), make.randn(hidden)

    def call():
        add.add_fp32(x.float(), y)
        gating.headwise_sigmoid_gate(x, gate)
        norm.norm_concat(x, y, w, v, 1e-6, False, False)
    return call


@case("Beam {tokens} x {hidden}", tokens__hidden=SIZES)
def beam(make, tokens, hidden):
    """`beam_rms_norm`, `beam_norm_residual_norm`, `beam_silu_mul`, `beam_softcap_logits`, `beam_output_gate`, `beam_qk_norm_rope`."""
    norms, activation = make.module("vllm.models.beam.nvidia.layernorm"), make.module("vllm.models.beam.nvidia.activation")
    attention = make.module("vllm.models.beam.nvidia.attention_ops")
    tokens, hidden = sizes(make, tokens, hidden)
    x, y, w, v = make.randn(tokens, hidden), make.randn(tokens, hidden), make.randn(hidden), make.randn(hidden)
    wide, heads = make.randn(tokens, 2 * hidden), hidden // 128
    gate, bias, k = make.randn(tokens, hidden), make.randn(heads), make.randn(tokens, hidden // 2)
    positions, cache = make.ints(0, 900, tokens, dtype=torch.int64), make.rand(1024, 128, low=-1.0)

    def call():
        norms.beam_rms_norm(x, w, 1e-6)
        norms.beam_norm_residual_norm(x, y, w, 1e-6, v, 1e-6, (1.0, 0.5))
        activation.beam_silu_mul(wide)
        attention.beam_output_gate(x, gate, bias, num_heads=heads, head_dim=128)
        attention.beam_qk_norm_rope(x, k, make.randn(128), make.randn(128), 1e-6, positions, cache, 128, 128)
        activation.beam_softcap_logits(x, 30.0)
    return call


@case("Flint {tokens} x {hidden}", tokens__hidden=SIZES)
def flint(make, tokens, hidden):
    """`rms_norm`, `silu_and_mul`, `qk_norm_rope_cache`."""
    norms, rope = make.module("vllm.models.flint.ops.norm"), make.module("vllm.models.flint.ops.qk_norm_rope")
    tokens, hidden = sizes(make, tokens, hidden)
    x, w, wide = make.randn(tokens, hidden), make.randn(hidden), make.randn(tokens, 2 * hidden)
    heads, kv_heads, width = 16, 4, 128
    qkv, positions = make.randn(tokens, (heads + 2 * kv_heads) * width), make.ints(0, 900, tokens, dtype=torch.int64)
    cache, pages = make.rand(1024, width, low=-1.0), -(-tokens // 16) + 1
    kc, vc = (make.empty(pages, 16, kv_heads, width) for _ in range(2))
    slots = make.permutation(pages * 16, torch.int64)[:tokens]

    def call():
        norms.rms_norm(x, w, 1e-6)
        norms.silu_and_mul(wide)
        rope.qk_norm_rope_cache(qkv, positions, make.randn(width), make.randn(width), 1e-6, cache, kc, vc, slots, heads, kv_heads, width)
    return call


@case("Flint experts {tokens} x {hidden}", tokens__hidden=SIZES)
def flint_experts(make, tokens, hidden):
    """`route`: scores by rows of the router for few tokens, and the best experts."""
    module = make.module("vllm.models.flint.ops.moe")
    tokens, hidden = sizes(make, tokens, hidden)
    x, router, counter = make.randn(tokens, hidden), make.randn(128, hidden), make.empty(8192, dtype=torch.int32)
    return lambda: module.route(x, router, 8, counter)


@case("Hunyuan hyperconnections {tokens} x {hidden}", tokens__hidden=[(64, 4096), (1024, 4096)])
def hunyuan(make, tokens, hidden):
    """`triton_ihc_pre` and `triton_ihc_post`."""
    module = make.module("vllm.models.hy_v4.nvidia.triton_ihc")
    tokens, hidden = sizes(make, tokens, hidden)
    n = 4
    x, weight = make.randn(tokens, n, hidden), make.randn(2 * n, n * hidden, dtype=torch.float32, scale=0.01)
    scale, base, out = make.rand(2), make.rand(2 * n), make.randn(tokens, hidden)

    def call():
        _, post = module.triton_ihc_pre(x, weight, scale, base, 1.0, 1e-6, 1e-6)
        module.triton_ihc_post(out, x, post)
    return call


@case("Kimi residuals {tokens} x {hidden}", tokens__hidden=[(64, 7168), (1024, 7168)])
def kimi(make, tokens, hidden):
    """`attn_res`."""
    module = make.module("vllm.models.kimi_k3.nvidia.ops.attn_res")
    tokens, hidden = sizes(make, tokens, hidden)
    prefix, delta, blocks = make.randn(tokens, hidden), make.randn(tokens, hidden), make.randn(tokens, 8, hidden)
    w, qk, out = make.randn(hidden), make.randn(hidden), make.randn(hidden)
    return lambda: module.attn_res(prefix, delta, blocks, w, qk, out, 4, 4, 1e-6, 1e-6)


@case("GLM indexer {rows}", rows=[4096, 131072])
def glm(make, rows):
    """`fwht128_quant_fp8`."""
    module = make.module("vllm.models.glm5next.nvidia.ops.kpool_compress")
    x = make.randn(make.least(rows, 40), 128)
    return lambda: module.fwht128_quant_fp8(x)


@case("GLM drafts {tokens} x {hidden}", tokens__hidden=[(64, 5120), (2048, 5120)])
def glm_drafts(make, tokens, hidden):
    """`fused_eh_norm`."""
    module = make.module("vllm.models.glm5next.nvidia.ops.fused_eh_norm")
    tokens, hidden = sizes(make, tokens, hidden)
    positions, x, y = make.ints(0, 3, tokens, dtype=torch.int64), make.randn(tokens, hidden), make.randn(tokens, hidden)
    return lambda: module.fused_eh_norm(positions, x, y, make.randn(hidden), make.randn(hidden), 1e-6)
