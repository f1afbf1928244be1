"""Matrix products with scales: fp8 by blocks of 128 x 128, fp8 and int8 by token and channel; AWQ; weights of 4 bits."""

import torch
from case import case

#: name, N, K of a linear layer.
LAYERS = {"Llama-3-8B qkv": (6144, 4096), "Llama-3-8B down": (4096, 14336), "Llama-3-70B TP8 up": (7168, 8192),
          "DeepSeek-V3 q_b TP8": (3072, 1536), "DeepSeek-V3 kv_b TP8": (4096, 512), "DeepSeek-V3 o TP8": (7168, 2048),
          "Qwen3-30B qkv": (5120, 2048)}


def layer_of(make, name):
    """N and K, small ones in a try."""
    return (256, 256) if make.small else LAYERS[name]


@case("fp8 by blocks {layer} {tokens} tokens", layer__tokens=[
    *[(layer, n) for layer in ("Llama-3-8B qkv", "DeepSeek-V3 o TP8") for n in (1, 16, 64, 256, 4096)],
    *[(layer, n) for layer in ("DeepSeek-V3 q_b TP8", "DeepSeek-V3 kv_b TP8", "Llama-3-70B TP8 up") for n in (64, 4096)]])
def fp8_blocks(make, layer, tokens):
    """`w8a8_triton_block_scaled_mm`."""
    n, k = layer_of(make, layer)
    m = make.least(tokens, 40)
    module = make.module("vllm.model_executor.layers.quantization.utils.fp8_utils")
    a, b = make.fp8(m, k), make.fp8(n, k)
    sa, sb = make.rand(m, k // 128, low=0.01, high=0.02), make.rand(n // 128, k // 128, low=0.01, high=0.02)
    return lambda: module.w8a8_triton_block_scaled_mm(a, b, sa, sb, [128, 128], torch.bfloat16)


@case("{kind} scaled {layer} {tokens} tokens", kind__layer__tokens=[
    *[("int8", "Llama-3-8B qkv", n) for n in (1, 16, 64, 256, 4096)], *[("fp8", "Llama-3-8B down", n) for n in (16, 128, 4096)],
    ("int8", "Llama-3-70B TP8 up", 2048), ("fp8", "Qwen3-30B qkv", 64)])
def scaled(make, kind, layer, tokens):
    """`triton_scaled_mm`: scales of tokens and channels, with a bias."""
    n, k = layer_of(make, layer)
    m = make.least(tokens, 40)
    module = make.module("vllm.model_executor.layers.quantization.compressed_tensors.triton_scaled_mm")
    if kind == "int8":
        a, b = make.ints(-127, 128, m, k, dtype=torch.int8), make.ints(-127, 128, n, k, dtype=torch.int8).t()
    else:
        a, b = make.fp8(m, k), make.fp8(n, k).t()
    sa, sb = make.rand(m, 1, low=0.01, high=0.02), make.rand(n, 1, low=0.01, high=0.02)
    bias = make.randn(n)
    return lambda: module.triton_scaled_mm(a, b, sa, sb, torch.bfloat16, bias)


@case("awq {layer} {tokens} tokens", layer__tokens=[("Llama-3-8B qkv", 1), ("Llama-3-8B qkv", 16), ("Llama-3-8B qkv", 256), ("Llama-3-8B down", 64)])
def awq(make, layer, tokens):
    """`awq_gemm_triton` with 8 parts of K."""
    n, k = layer_of(make, layer)
    m = make.least(tokens, 40)
    module = make.module("vllm.model_executor.layers.quantization.awq_triton")
    x = make.randn(m, k, dtype=torch.float16)
    q = make.ints(-(1 << 31), (1 << 31) - 1, k, n // 8)
    zeros = make.ints(-(1 << 31), (1 << 31) - 1, k // 128, n // 8)
    scales = make.rand(k // 128, n, low=0.001, high=0.002, dtype=torch.float16)
    return lambda: module.awq_gemm_triton(x, q, scales, zeros, 8)


@case("awq dequantize {layer}", layer=["Llama-3-8B qkv", "Llama-3-8B down"])
def awq_dequantize(make, layer):
    """`awq_dequantize_triton`."""
    n, k = layer_of(make, layer)
    module = make.module("vllm.model_executor.layers.quantization.awq_triton")
    q = make.ints(-(1 << 31), (1 << 31) - 1, k, n // 8)
    zeros = make.ints(-(1 << 31), (1 << 31) - 1, k // 128, n // 8)
    scales = make.rand(k // 128, n, low=0.001, high=0.002, dtype=torch.float16)
    return lambda: module.awq_dequantize_triton(q, scales, zeros)
