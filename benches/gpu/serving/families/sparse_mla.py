"""Sparse latent attention of DeepSeek-V3.2 and V4: indices, quantized latent rows, rotary parts with quantization."""

import torch
from case import case

V4 = "vllm.models.deepseek_v4.common.ops."


@case("global indices {tokens} x {chosen}", tokens__chosen=[(64, 2048), (1024, 2048)])
def indices(make, tokens, chosen):
    """`triton_convert_req_index_to_global_index`, and safe lengths."""
    module = make.module("vllm.v1.attention.backends.mla.sparse_utils")
    tokens, chosen, requests = make.least(tokens, 5), make.least(chosen, 256), 4
    owner, table = make.ints(0, requests, tokens), make.ints(0, 5000, requests, 512)
    wanted = make.ints(-1, 512 * 64, tokens, chosen)

    def call():
        found, counts = module.triton_convert_req_index_to_global_index(owner, table, wanted, NUM_TOPK_TOKENS=chosen, return_valid_counts=True)
        module.prepare_sparse_mla_safe_lengths(found, counts)
    return call


@case("latent cache {tokens} tokens", tokens=[64, 4096])
def latent(make, tokens):
    """`quantize_and_insert_k_cache` and `dequantize_and_gather_k_cache`."""
    module = make.module(V4 + "cache_utils")
    tokens = make.least(tokens, 20)
    pages = max(2 * tokens // 64, 2)
    k, cache = make.randn(tokens, 512), make.empty(pages, 37440, dtype=torch.uint8)
    slots = make.permutation(pages * 64, torch.int64)[:tokens]
    table, out = make.permutation(pages).view(1, pages), make.empty(1, tokens, 512)
    lengths = make.tensor([tokens])

    def call():
        module.quantize_and_insert_k_cache(k, cache, slots)
        module.dequantize_and_gather_k_cache(out, cache, lengths, None, table, 64, 0)
    return call


@case("indexer queries {tokens} tokens", tokens=[64, 2048])
def indexer(make, tokens):
    """`fused_indexer_q_rope_quant`."""
    module = make.module(V4 + "fused_indexer_q")
    tokens, heads = make.least(tokens, 5), make.size(64, 8)
    positions, q = make.ints(0, 4000, tokens, dtype=torch.int64), make.randn(tokens, heads, 128)
    cache, weights = make.rand(4096, 64, low=-1.0), make.randn(tokens, heads)
    return lambda: module.fused_indexer_q_rope_quant(positions, q, cache, weights, 0.1, 0.125)


@case("inverse rope and fp8 {tokens} tokens", tokens=[64, 2048])
def inverse(make, tokens):
    """`fused_inv_rope_fp8_quant`."""
    module = make.module(V4 + "fused_inv_rope_fp8_quant")
    tokens, groups, each = make.least(tokens, 5), 4, 4
    o, positions = make.randn(tokens, groups * each, 512), make.ints(0, 4000, tokens, dtype=torch.int64)
    cache = make.rand(4096, 64, low=-1.0)
    return lambda: module.fused_inv_rope_fp8_quant(o, positions, cache, groups, each)


@case("top indices of DeepSeek-V4 {tokens} x {chosen}", tokens__chosen=[(64, 512), (1024, 512)])
def top(make, tokens, chosen):
    """`compute_global_topk_indices_and_lens`."""
    module = make.module(V4 + "cache_utils")
    tokens, requests = make.least(tokens, 5), 4
    wanted, owner = make.ints(-1, 64 * 100, tokens, chosen), make.ints(0, requests, tokens)
    table, valid = make.ints(0, 5000, requests, 128), make.tensor([i % 9 != 0 for i in range(tokens)], torch.bool)
    return lambda: module.compute_global_topk_indices_and_lens(wanted, owner, table, 64, valid)


@case("queries of DeepSeek-V3.2 {tokens} tokens", tokens=[64, 1024])
def queries(make, tokens):
    """`fused_q` and `fused_eh_norm`."""
    module = make.module("vllm.models.deepseek_v32.common.kernels")
    tokens, heads, few = make.least(tokens, 5), make.size(16, 2), make.size(64, 4)
    positions, pe, nope = make.ints(0, 4000, tokens, dtype=torch.int64), make.randn(tokens, heads, 64), make.randn(tokens, heads, 512)
    cache, index, scale = make.rand(4096, 64, low=-1.0), make.randn(tokens, few, 128), make.tensor([1.0], torch.float32)
    weights, hidden = make.randn(tokens, few), make.size(7168, 256)
    embeds, before, we, wh = make.randn(tokens, hidden), make.randn(tokens, hidden), make.randn(hidden), make.randn(hidden)

    def call():
        module.fused_q(positions, pe, cache, index, cache, nope, scale, weights, 0.1, 0.125)
        module.fused_eh_norm(positions, embeds, before, we, wh, 1e-6)
    return call


@case("MiniMax-M3 {what}", what=["decode 16", "prefill 1024"])
def minimax(make, what):
    """Scores of blocks, the best of them, and attention over these."""
    scores = make.module("vllm.models.minimax_m3.common.ops.index_topk")
    module = make.module("vllm.models.minimax_m3.common.ops.sparse_attn")
    heads, kv_heads, width, chosen = make.size(16, 4), 2, 128, 4
    batch, new, context = (2, 1, 300) if make.small else (16, 1, 8192) if "decode" in what else (1, 1024, 4096)
    new = 20 if make.small and "prefill" in what else new
    pages = -(-context // 128)
    cache = make.randn(batch * pages, kv_heads, 128, 2 * width)
    keys = make.randn(batch * pages, 128, width)
    table, lengths = make.permutation(batch * pages).view(batch, pages), make.tensor([context] * batch)
    q, index, out = make.randn(batch * new, heads, width), make.randn(batch * new, kv_heads, width), make.empty(batch * new, heads, width)
    starts, prefix = make.starts([new] * batch), make.tensor([context - new] * batch)

    def call():
        if "decode" in what:
            best = scores.minimax_m3_index_decode(index, keys, table, lengths, context, chosen, 1, 1, kv_heads, 1, 1)
            module.minimax_m3_sparse_attn_decode(q, cache, best, table, lengths, kv_heads, width ** -0.5, out, 1)
        else:
            score = scores.minimax_m3_index_score(index, keys, table, starts, lengths, prefix, new, context, kv_heads)
            best = scores.minimax_m3_index_topk(score, starts, prefix, new, chosen, 1, 1)
            module.minimax_m3_sparse_attn(q, cache, best, table, starts, lengths, prefix, new, kv_heads, width ** -0.5, out)
    return call
