"""Writing keys and values to the cache of pages, in every format, and packing of sequences."""

import torch
from case import case

FLASH = "vllm.v1.attention.ops.triton_reshape_and_cache_flash"


def inputs(make, tokens, heads, width):
    """Keys, values, and the slot of each token."""
    tokens, heads = make.least(tokens, 20), make.least(heads, 2)
    pages = max(2 * tokens // 16, 4)
    return make.randn(tokens, heads, width), make.randn(tokens, heads, width), pages, make.permutation(pages * 16, torch.int64)[:tokens]


@case("{kind} {tokens} tokens of {heads} x {width}", kind__tokens__heads__width=[
    *[("auto", n, 8, 128) for n in (1, 64, 256, 4096)], ("fp8", 64, 8, 128), ("fp8", 4096, 8, 128), ("auto", 8192, 1, 128), ("auto", 2048, 8, 64)])
def flash(make, kind, tokens, heads, width):
    """`triton_reshape_and_cache_flash`."""
    module = make.module(FLASH)
    k, v, pages, slots = inputs(make, tokens, heads, width)
    dtype = torch.float8_e4m3fn if kind == "fp8" else torch.bfloat16
    kc, vc = (make.empty(pages, 16, k.shape[1], width, dtype=dtype) for _ in range(2))
    one = make.tensor([1.0], torch.float32)
    return lambda: module.triton_reshape_and_cache_flash(k, v, kc, vc, slots, kind, one, one)


@case("{kind} by head, {tokens} tokens", kind__tokens=[("INT8", 64), ("INT8", 4096), ("FP8", 4096), ("INT4", 64), ("INT4", 4096)])
def by_head(make, kind, tokens):
    """A scale for each token and head; for 4 bits after a Hadamard transform."""
    module = make.module(FLASH)
    modes = make.module("vllm.v1.kv_cache_interface").KVQuantMode
    k, v, pages, slots = inputs(make, tokens, 8, 128)
    dtype, width = {"INT8": (torch.int8, 128), "FP8": (torch.float8_e4m3fn, 128), "INT4": (torch.uint8, 64)}[kind]
    kc, vc = (make.empty(pages, 16, k.shape[1], width, dtype=dtype) for _ in range(2))
    ks, vs = (make.empty(pages, 16, k.shape[1], dtype=torch.float32) for _ in range(2))
    mode = getattr(modes, f"{kind}_PER_TOKEN_HEAD")
    return lambda: module.triton_reshape_and_cache_flash_per_token_head_quant(k, v, kc, vc, ks, vs, slots, mode)


@case("different widths, {tokens} tokens", tokens=[64, 4096])
def different(make, tokens):
    """`triton_reshape_and_cache_flash_diffkv`."""
    module = make.module(FLASH)
    k, v, pages, slots = inputs(make, tokens, 8, 128)
    k = make.randn(*k.shape[:2], 192)
    cache, one = make.empty(pages, 16, k.shape[1], 320), make.tensor([1.0], torch.float32)
    return lambda: module.triton_reshape_and_cache_flash_diffkv(k, v, cache, slots, "auto", one, one)


@case("pack and unpack {count} sequences of {width}", count__width=[(16, 8192), (64, 2048)])
def packed(make, count, width):
    """`pack_seq_triton` and `unpack_seq_triton`."""
    module = make.module("vllm.v1.attention.ops.common")
    lengths = [4 + i % 5 for i in range(make.least(count, 3))]
    x, n = make.randn(sum(lengths), make.least(width, 128)), make.tensor(lengths)

    def call():
        module.unpack_seq_triton(module.pack_seq_triton(x, n), n)
    return call


@case("turboquant {what}, {count}", what__count=[("store fp8", 1024), ("store", 1024), ("decode", 16)])
def turboquant(make, what, count):
    """Keys rotated and quantized to 3 bits or fp8, values to 4."""
    heads, width, page = make.size(8, 2), 128, 16
    count = make.least(count, 3)
    fp8 = "fp8" in what
    bits, key_bytes = 3, 128 if fp8 else 128 * 3 // 8 + 2
    slot = -(-(key_bytes + 64 + 4) // 16) * 16
    rotation = torch.linalg.qr(make.randn(width, width, dtype=torch.float32))[0].contiguous()
    if what.startswith("store"):
        module = make.module("vllm.v1.attention.ops.triton_turboquant_store")
        k, v, pages, slots = inputs(make, count, heads, width)
        cache = make.empty(pages, page, heads, slot, dtype=torch.uint8)
        middles = torch.linspace(-2, 2, 2 ** bits - 1, device=make.device)
        return lambda: module.triton_turboquant_store(k, v, cache, slots, rotation, middles, bits, key_bytes, 4, fp8)
    module = make.module("vllm.v1.attention.ops.triton_turboquant_decode")
    pages = make.size(64, 2)
    cache = make.ints(0, 60, count * pages, page, heads, slot, dtype=torch.uint8)
    table, lengths = make.permutation(count * pages).view(count, pages), make.tensor([pages * page - 3 * (i % 4) for i in range(count)])
    q, levels = make.randn(count, heads * 4, width), torch.linspace(-2, 2, 2 ** bits, device=make.device)
    return lambda: module.triton_turboquant_decode_attention(q, cache, table, lengths, rotation, levels, width ** -0.5, bits, key_bytes, 4)
