"""Top-k and top-p on logits."""

import torch
from case import case


@case("{kind} {batch} x {vocabulary}", kind__batch__vocabulary=[
    (kind, *size) for size in ((16, 128256), (64, 128256), (256, 151936)) for kind in ("top-k", "top-p", "both")])
def filtered(make, kind, batch, vocabulary):
    """`apply_top_k_top_p_triton`."""
    module = make.module("vllm.v1.sample.ops.topk_topp_triton")
    batch, vocabulary = make.least(batch, 4), make.least(vocabulary, 3000)
    logits = make.randn(batch, vocabulary, dtype=torch.float32, scale=2.0)
    k = make.ints(5, 60, batch) if kind != "top-p" else None
    p = make.rand(batch, low=0.5, high=0.95) if kind != "top-k" else None
    return lambda: module.apply_top_k_top_p_triton(logits, k, p)
