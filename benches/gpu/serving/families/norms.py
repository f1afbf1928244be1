"""Norms that are fused with what is around them."""

import torch
from case import case


@case("embedding and norm {tokens} x {hidden}", tokens__hidden=[(64, 4096), (4096, 4096), (2048, 7168)])
def embedding(make, tokens, hidden):
    """`fused_embed_norm`."""
    module = make.module("vllm.model_executor.layers.fused_embed_norm")
    tokens, hidden, rows = make.least(tokens, 10), make.least(hidden, 256), make.size(32000, 50)
    ids, table, weight = make.ints(0, rows, tokens, dtype=torch.int64), make.randn(rows, hidden), make.randn(hidden)
    return lambda: module.fused_embed_norm(ids, table, weight, 1e-6)


@case("embedding and hidden states {tokens} x {hidden}", tokens__hidden=[(64, 7168), (2048, 4096)])
def draft(make, tokens, hidden):
    """`fused_embed_eh_norm` of a drafting layer."""
    module = make.module("vllm.model_executor.layers.fused_embed_norm")
    tokens, hidden, rows = make.least(tokens, 10), make.least(hidden, 256), make.size(32000, 50)
    ids, table, before = make.ints(0, rows, tokens, dtype=torch.int64), make.randn(rows, hidden), make.randn(tokens, hidden)
    weights, positions = [make.randn(hidden) for _ in range(2)], make.ints(0, 3, tokens, dtype=torch.int64)
    return lambda: module.fused_embed_eh_norm(positions, ids, table, before, *weights, 1e-6)


@case("q and k of MiniMax {tokens} tokens", tokens=[64, 4096])
def minimax(make, tokens):
    """`_minimax_qk_norm_tp_fallback`."""
    module = make.module("vllm.model_executor.layers.minimax_rms_norm.rms_norm_tp")
    module._all_reduce_variance = lambda x: x
    tokens, q, kv = make.least(tokens, 10), make.size(6144, 512), make.size(1024, 128)
    qkv, wq, wk = make.randn(tokens, q + 2 * kv), make.randn(q), make.randn(kv)
    return lambda: module._minimax_qk_norm_tp_fallback(qkv, wq, wk, q, kv, 0, 1, 1e-6)


@case("q and k of DeepSeek {tokens} tokens", tokens=[64, 4096])
def deepseek(make, tokens):
    """`fused_qk_rmsnorm` of latent queries and keys."""
    module = make.module("vllm.models.common.ops.fused_qk_rmsnorm")
    tokens = make.least(tokens, 10)
    q, kv, wq, wk = make.randn(tokens, 1536), make.randn(tokens, 512), make.randn(1536), make.randn(512)
    return lambda: module.fused_q_kv_rmsnorm(q, kv, wq, wk, 1e-6)


@case("images {n} x 3 x {pixels}", n__pixels=[(16, 224 * 224), (4, 1024 * 1024)])
def images(make, n, pixels):
    """`fused_mm_input_norm_triton`."""
    module = make.module("vllm.model_executor.layers.fusion.mm_input_norm")
    x = make.ints(0, 256, make.least(n, 2), 3, make.least(pixels, 500), dtype=torch.uint8)
    out, weight, bias = make.empty(*x.shape), make.rand(3), make.rand(3)
    return lambda: module.fused_mm_input_norm_triton(x, out, weight, bias)


@case("sparse gelu {tokens} x {width}", tokens__width=[(2048, 8192)])
def gelu(make, tokens, width):
    """`_gelu_and_mul_sparse_triton_op` of Gemma 3n."""
    module = make.module("vllm.kernels.triton.activation")
    x = make.randn(make.least(tokens, 10), 2 * make.least(width, 256))
    return lambda: module._gelu_and_mul_sparse_triton_op(x, 1.5)


@case("hyperconnections {what}, {tokens} tokens", what__tokens=[("norm", 2048), ("collapse", 2048), ("mix", 2048), ("head", 512)])
def hyper(make, what, tokens):
    """Kernels of manifold hyperconnections: `rmsnorm_nw`, `hc_collapse_triton`, `mhc_pre_mix_triton`, `hc_head_reduce_triton_kernel`."""
    module = make.module("vllm.model_executor.kernels.mhc.triton")
    tokens, hidden, n = make.least(tokens, 6), make.size(4096, 256), 4
    x = make.randn(tokens, n, hidden)
    wide = 2 * n + n * n
    if what == "norm":
        return lambda: module.rmsnorm_nw(x.view(tokens, -1), 1e-6)
    if what == "collapse":
        mix = make.rand(tokens, n)
        return lambda: module.hc_collapse_triton(x, mix)
    if what == "mix":
        product, squares = make.randn(1, tokens, wide, dtype=torch.float32), make.rand(1, tokens, low=100.0, high=200.0)
        scale, base = make.rand(3), make.rand(wide)
        return lambda: module.mhc_pre_mix_triton(product, squares, scale, base, n, n * hidden, 1e-6, 1e-6)
    weights, scale, base = make.randn(n, n * hidden, dtype=torch.float32, scale=0.01), make.rand(1), make.rand(n)
    out = make.empty(tokens, hidden)
    return lambda: module.hc_head_reduce_triton_kernel(x, weights, scale, base, out, 1e-6, 1e-6)
