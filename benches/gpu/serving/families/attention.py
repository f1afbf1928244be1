"""Attention over a cache of pages: the unified kernel, prefill with a prefix, chunked prefill, and attention without a cache."""

import math

import torch
from case import case

#: query heads, heads of keys and values, width of a head.
MODELS = {"Llama-3-8B": (32, 8, 128), "Llama-3-70B TP8": (8, 1, 128), "Qwen3-30B-A3B": (32, 4, 128), "gpt-oss-20b": (64, 8, 64),
          "Gemma-3-27B TP2": (16, 8, 128), "Phi-3-mini": (32, 32, 96)}


def lengths_of(make, kind):
    """New tokens and all tokens of each sequence: `decode 16 x 4096`, `prefill 2048`, `mixed`, `chunk 2048 of 8192`."""
    words = kind.split()
    if words[0] == "decode":
        batch, context = (3, 100) if make.small else (int(words[1]), int(words[3]))
        return [1] * batch, [max(context * (2 + i % 3) // 4, 1) for i in range(batch)]
    if words[0] == "prefill":
        return ([20, 35], [20, 35]) if make.small else ([int(words[1])], [int(words[1])])
    if words[0] == "chunk":
        return ([20], [70]) if make.small else ([int(words[1])], [int(words[3])])
    return ([1, 1, 30], [60, 90, 50]) if make.small else ([1] * 24 + [512, 1024], [1024 + 100 * i for i in range(24)] + [512, 3072])


class Paged:
    """Queries, a cache of pages and its table."""

    def __init__(self, make, model, kind, dtype=torch.bfloat16, page=16):
        self.heads, self.kv_heads, self.width = MODELS[model]
        if make.small:
            self.heads, self.kv_heads = (self.heads // self.kv_heads * 2, 2) if self.kv_heads > 1 else (self.heads, 1)
        self.new, self.all = lengths_of(make, kind)
        tokens, pages = sum(self.new), [-(-n // page) for n in self.all]
        self.q = make.randn(tokens, self.heads, self.width)
        self.k, self.v = (make.randn(tokens, self.kv_heads, self.width) for _ in range(2))
        self.key_cache, self.value_cache = (make.randn(sum(pages) + 1, page, self.kv_heads, self.width, dtype=dtype) for _ in range(2))
        self.starts, self.lengths = make.starts(self.new), make.tensor(self.all)
        order, self.table = make.permutation(sum(pages)), make.empty(len(pages), max(pages) + 16, dtype=torch.int32)
        at = 0
        for row, n in enumerate(pages):
            self.table[row, :n] = order[at:at + n]
            at += n
        self.out = make.empty(tokens, self.heads, self.width)
        self.scale = 1 / math.sqrt(self.width)
        self.one = make.tensor([1.0], torch.float32)


@case("unified {model} {kind}{text}", model__kind__text=[
    *[("Llama-3-8B", f"decode {b} x 4096", "") for b in (1, 16, 64, 256)], *[("Llama-3-8B", f"prefill {n}", "") for n in (2048, 8192)],
    ("Llama-3-70B TP8", "decode 64 x 8192", ""), ("Llama-3-70B TP8", "prefill 4096", ""), ("Llama-3-8B", "mixed", ""),
    *[("gpt-oss-20b", kind, ", window and sinks") for kind in ("decode 16 x 4096", "decode 128 x 2048", "prefill 4096")],
    ("gpt-oss-20b", "prefill 4096", ", sinks"), ("Gemma-3-27B TP2", "prefill 4096", ", softcap"), ("Phi-3-mini", "prefill 2048", ""),
    ("Qwen3-30B-A3B", "decode 64 x 4096", ", fp8 cache"), ("Llama-3-8B", "prefill 4096", ", fp8 cache"),
    ("Llama-3-8B", "decode 16 x 4096", ", fp8 cache"), ("Llama-3-8B", "decode 64 x 4096", ", int8 cache by head"),
    ("Llama-3-8B", "prefill 2048", ", int8 cache by head"), ("Llama-3-8B", "decode 16 x 2048", ", alibi")])
def unified(make, model, kind, text):
    """`unified_attention`: in two dimensions, and for few sequences in parts that are reduced."""
    module = make.module("vllm.v1.attention.ops.triton_unified_attention")
    modes = make.module("vllm.v1.kv_cache_interface").KVQuantMode
    by_head = "by head" in text
    p = Paged(make, model, kind, torch.int8 if by_head else torch.float8_e4m3fn if "fp8" in text else torch.bfloat16)
    segments, rows, padded = 16, min(len(p.q), 256), 1 << (p.width - 1).bit_length()
    caches = {}
    if by_head:
        caches = {f"{x}_scale_cache": make.rand(*p.key_cache.shape[:3], low=0.01, high=0.02) for x in "kv"}
    optional = dict(
        sinks=make.randn(p.heads, dtype=torch.float32).to(torch.bfloat16) if "sinks" in text else None,
        alibi_slopes=make.rand(p.heads, low=0.01, high=0.1) if "alibi" in text else None,
        kv_quant_mode=modes.INT8_PER_TOKEN_HEAD if by_head else modes.FP8_PER_TENSOR if "fp8" in text else modes.NONE)
    parts = dict(seq_threshold_3D=128 // p.kv_heads, num_par_softmax_segments=segments,
                 softmax_segm_output=make.empty(rows, p.heads, segments, padded, dtype=torch.float32),
                 softmax_segm_max=make.empty(rows, p.heads, segments, dtype=torch.float32),
                 softmax_segm_expsum=make.empty(rows, p.heads, segments, dtype=torch.float32))
    scales = (None, p.one, p.one) if "fp8" in text else (None, None, None)
    window = (127, 0) if "window" in text else (-1, -1)
    return lambda: module.unified_attention(
        p.q, p.key_cache, p.value_cache, p.out, p.starts, max(p.new), p.lengths, max(p.all), p.scale, True, window, p.table,
        50.0 if "softcap" in text else 0, *scales, **parts, **caches, **optional)


@case("prefix prefill {model} {kind}{text}", model__kind__text=[
    ("Llama-3-8B", "chunk 2048 of 8192", ""), ("Llama-3-8B", "prefill 4096", ""), ("Llama-3-8B", "mixed", ", alibi"), ("Qwen3-30B-A3B", "mixed", ""),
    ("Llama-3-8B", "chunk 1024 of 4096", ", fp8 cache"), ("gpt-oss-20b", "chunk 1024 of 4096", ", window")])
def prefix(make, model, kind, text):
    """`context_attention_fwd`, and for the sequences with one new token `kernel_paged_attention_2d`."""
    module = make.module("vllm.v1.attention.ops.chunked_prefill_paged_decode")
    p = Paged(make, model, kind, torch.uint8 if "fp8" in text else torch.bfloat16)
    count, page = p.key_cache.shape[:2]
    if "fp8" in text:
        caches = [make.fp8(count, p.kv_heads, p.width // 16, page, 16), make.fp8(count, p.kv_heads, p.width, page)]
    else:
        caches = [make.randn(count, p.kv_heads, p.width // 8, page, 8), make.randn(count, p.kv_heads, p.width, page)]
    slopes = make.rand(p.heads, low=0.01, high=0.1) if "alibi" in text else None
    return lambda: module.chunked_prefill_paged_decode(
        p.q, p.k, p.v, p.out, "fp8" if "fp8" in text else "auto", *caches, p.table, p.starts, p.lengths, max(p.all), max(p.new), p.one, p.one,
        slopes, 128 if "window" in text else None, p.scale)


@case("paged decode {model} {kind}", model__kind=[("Llama-3-8B", "decode 16 x 4096"), ("Llama-3-8B", "decode 256 x 1024"),
                                                  ("Qwen3-30B-A3B", "decode 64 x 2048")])
def paged(make, model, kind):
    """`kernel_paged_attention_2d` alone."""
    return prefix(make, model, kind, "")


@case("without cache {model} {kind}", model__kind=[("Llama-3-8B", "prefill 2048"), ("Llama-3-8B", "prefill 8192"), ("gpt-oss-20b", "prefill 4096")])
def plain(make, model, kind):
    """`context_attention_fwd` of an encoder or of a first prefill."""
    module = make.module("vllm.v1.attention.ops.triton_prefill_attention")
    p = Paged(make, model, kind)
    return lambda: module.context_attention_fwd(p.q, p.k, p.v, p.out, p.starts[:-1], make.tensor(p.new), max(p.new), True, p.scale)


@case("different widths {kind}", kind=["decode 64 x 4096", "decode 4 x 4096", "prefill 4096"])
def different(make, kind):
    """`unified_attention_diffkv`: values narrower than keys."""
    module = make.module("vllm.v1.attention.ops.triton_unified_attention_diffkv")
    p = Paged(make, "Llama-3-8B", kind)
    keys, values = 192, 128
    q = make.randn(len(p.q), p.heads, keys)
    cache = make.randn(*p.key_cache.shape[:3], keys + values)
    out = make.empty(len(q), p.heads, values)
    rows, segments = min(len(q), 256), 16
    parts = dict(seq_threshold_3D=128 // p.kv_heads, num_par_softmax_segments=segments,
                 softmax_segm_output=make.empty(rows, p.heads, segments, values, dtype=torch.float32),
                 softmax_segm_max=make.empty(rows, p.heads, segments, dtype=torch.float32),
                 softmax_segm_expsum=make.empty(rows, p.heads, segments, dtype=torch.float32))
    return lambda: module.unified_attention_diffkv(
        q=q, k=cache[..., :keys], v=cache[..., keys:], out=out, cu_seqlens_q=p.starts, max_seqlen_q=max(p.new), seqused_k=p.lengths,
        softmax_scale=keys ** -0.5, causal=True, window_size=(-1, -1), block_table=p.table, softcap=0,
        **parts)


@case("int4 cache {kind}", kind=["decode 64 x 4096", "prefill 2048"])
def int4(make, kind):
    """`unified_attention` over a cache of 4 bits with a scale and a zero point for each head."""
    module = make.module("vllm.v1.attention.ops.triton_unified_attention")
    modes = make.module("vllm.v1.kv_cache_interface").KVQuantMode
    p = Paged(make, "Llama-3-8B", kind)
    caches = [make.ints(0, 256, *p.key_cache.shape[:3], p.width // 2, dtype=torch.uint8) for _ in range(2)]
    scales = [make.rand(*p.key_cache.shape[:3], low=0.01, high=0.02) for _ in range(2)]
    rows, segments = min(len(p.q), 256), 16
    parts = dict(seq_threshold_3D=128 // p.kv_heads, num_par_softmax_segments=segments,
                 softmax_segm_output=make.empty(rows, p.heads, segments, p.width, dtype=torch.float32),
                 softmax_segm_max=make.empty(rows, p.heads, segments, dtype=torch.float32),
                 softmax_segm_expsum=make.empty(rows, p.heads, segments, dtype=torch.float32))
    return lambda: module.unified_attention(
        p.q, *caches, p.out, p.starts, max(p.new), p.lengths, max(p.all), p.scale, True, (-1, -1), p.table, 0, None, None, None,
        kv_quant_mode=modes.INT4_PER_TOKEN_HEAD, k_scale_cache=scales[0], v_scale_cache=scales[1], **parts)
