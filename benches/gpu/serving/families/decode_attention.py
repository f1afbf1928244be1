"""Decoding in parts that are reduced (MLA, grouped heads, one head each), and merging of two states of attention."""

import torch
from case import case


def sizes(make, batch, context):
    """Small ones in a try."""
    return (2, 70) if make.small else (batch, context)


def table(make, lengths, page):
    """A table of pages, one after another in another order."""
    pages = max(-(-n // page) for n in lengths)
    return make.permutation(len(lengths) * pages).view(len(lengths), pages)


@case("MLA {model} {dtype} batch {batch} x {context}", model__dtype__batch__context=[
    *[("DeepSeek-V3 TP8", "bf16", b, 4096) for b in (1, 16, 64, 256)], ("DeepSeek-V3", "bf16", 16, 2048), ("DeepSeek-V3 TP8", "fp8", 64, 4096)])
def mla(make, model, dtype, batch, context):
    """`decode_attention_fwd` over latent rows of 576."""
    module = make.module("vllm.v1.attention.ops.triton_decode_attention")
    heads, page = 16 if "TP8" in model or make.small else 128, 64
    batch, context = sizes(make, batch, context)
    lengths = [max(context * (2 + i % 3) // 4, 1) for i in range(batch)]
    pages = table(make, lengths, page)
    cache = make.randn(pages.numel(), page, 1, 576, dtype=torch.float8_e4m3fn if dtype == "fp8" else torch.bfloat16)
    q, out = make.randn(batch, heads, 576), make.empty(batch, heads, 512)
    lse, splits = make.empty(batch, heads), 4 if batch >= 64 else 16
    logits = make.empty(batch, heads, splits, 513, dtype=torch.float32)
    one, counts = make.tensor([1.0], torch.float32), make.tensor(lengths)
    return lambda: module.decode_attention_fwd(q, cache, cache[..., :512], out, lse, pages, counts, logits, splits, 0.1, page, 0.0, one, one,
                                               is_mla=True)


@case("{kind} batch {batch} x {context}", kind__batch__context=[
    ("grouped 32/8", 16, 4096), ("grouped 32/8", 128, 2048), ("grouped 64/8", 64, 2048), ("single 32", 4, 4096), ("single 32", 64, 1024)])
def plain(make, kind, batch, context):
    """`decode_attention_fwd` with heads of keys and values."""
    module = make.module("vllm.v1.attention.ops.triton_decode_attention")
    batch, context = sizes(make, batch, context)
    heads = int(kind.split()[1].split("/")[0])
    kv_heads, width, page = (int(kind.split("/")[1]) if "/" in kind else heads), 128, 16
    lengths = [max(context * (2 + i % 3) // 4, 1) for i in range(batch)]
    pages = table(make, lengths, page)
    k, v = (make.randn(pages.numel(), page, kv_heads, width) for _ in range(2))
    q, out = make.randn(batch, heads, width), make.empty(batch, heads, width)
    lse, splits = make.empty(batch, heads), 8
    logits = make.empty(batch, heads, splits, width + 1, dtype=torch.float32)
    one, counts = make.tensor([1.0], torch.float32), make.tensor(lengths)
    return lambda: module.decode_attention_fwd(q, k, v, out, lse, pages, counts, logits, splits, width ** -0.5, page, 0.0, one, one)


@case("merge {heads}x{width} {tokens} tokens{text}", heads__width__tokens__text=[
    (32, 128, 64, ""), (32, 128, 4096, ""), (16, 128, 2048, ", fp8 output"), (128, 128, 1024, "")])
def merge(make, heads, width, tokens, text):
    """`merge_attn_states`."""
    module = make.module("vllm.v1.attention.ops.triton_merge_attn_states")
    tokens = make.least(tokens, 20)
    heads = make.least(heads, 4)
    a, b = make.randn(tokens, heads, width), make.randn(tokens, heads, width)
    la, lb = make.randn(heads, tokens, dtype=torch.float32), make.randn(heads, tokens, dtype=torch.float32)
    out, lse = make.empty(tokens, heads, width, dtype=torch.float8_e4m3fn if text else torch.bfloat16), torch.empty_like(la)
    scale = make.tensor([0.02], torch.float32) if text else None
    return lambda: module.merge_attn_states(out, a, la, b, lb, lse, output_scale=scale)
