"""Lightning attention of MiniMax: blocks for prefill, one step for decoding."""

import torch
from case import case


@case("prefill {heads} heads x {length}", heads__length=[(8, 2048), (8, 8192), (64, 2048)])
def prefill(make, heads, length):
    """`lightning_attention`."""
    module = make.module("vllm.model_executor.layers.lightning_attn")
    heads, length, width = make.least(heads, 2), make.least(length, 300), make.size(128, 64)
    q, k, v = (make.randn(1, heads, length, width, dtype=torch.float32, scale=0.3) for _ in range(3))
    decay = make.rand(heads, low=0.01, high=0.1)
    history = make.empty(1, heads, width, width, dtype=torch.float32)
    return lambda: module.lightning_attention(q, k, v, decay, 256, history)


@case("decode {heads} heads, batch {batch}", heads__batch=[(8, 16), (8, 128), (64, 64)])
def decode(make, heads, batch):
    """`linear_decode_forward_triton`."""
    module = make.module("vllm.model_executor.layers.lightning_attn")
    heads, batch, width = make.least(heads, 2), make.least(batch, 3), make.size(128, 64)
    q, k, v = (make.randn(batch, heads, 1, width) for _ in range(3))
    cache = make.randn(batch + 1, heads, width, width, dtype=torch.float32)
    slopes, slots = make.rand(heads, low=0.01, high=0.1), make.permutation(batch)
    return lambda: module.linear_decode_forward_triton(q, k, v, cache, slopes, slots)
