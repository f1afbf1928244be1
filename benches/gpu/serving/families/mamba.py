"""Mamba 2: the scan in chunks for prefill, the update of states for decoding, the causal convolution, and what copies states."""

import torch
from case import case

#: heads, width of a head, size of a state, groups.
MODELS = {"Mamba2-2.7B": (80, 64, 128, 1), "Codestral-Mamba TP2": (64, 64, 128, 4), "Nemotron-H-8B": (128, 64, 128, 8), "Jamba TP8": (16, 64, 16, 1)}
CHUNK = 256


def model_of(make, model):
    """Fewer heads in a try."""
    heads, width, state, groups = MODELS[model]
    return (groups * 2, width, min(state, 32), groups) if make.small else (heads, width, state, groups)


@case("chunk scan {model} {kind}", model__kind=[("Mamba2-2.7B", "1 x 2048"), ("Mamba2-2.7B", "1 x 8192"), ("Codestral-Mamba TP2", "4 x 2048"),
                                                ("Nemotron-H-8B", "2 x 4096")])
def scan(make, model, kind):
    """`mamba_chunk_scan_combined_varlen`: sum, states of chunks, passing of states, C B, scan."""
    module = make.module("vllm.model_executor.layers.mamba.ops.ssd_combined")
    heads, width, size, groups = model_of(make, model)
    chunk = make.size(CHUNK, 32)
    count, length = map(int, kind.split(" x "))
    lengths = [70, 33] if make.small else [length - 45 * i for i in range(count)]
    t = sum(lengths)
    x, z = make.randn(t, heads, width), make.randn(t, heads, width)
    dt, a = make.randn(t, heads), make.rand(heads, low=-2.0, high=-0.5)
    b, c = make.randn(t, groups, size), make.randn(t, groups, size)
    d, bias = make.rand(heads), make.rand(heads, low=-1.0, high=0.0)
    out = make.empty(t, heads, width)
    parts = [min(chunk, n - at) for n in lengths for at in range(0, n, chunk)]
    owner = make.tensor([i for i, n in enumerate(lengths) for _ in range(0, n, chunk)])
    last = make.tensor([sum(-(-m // chunk) for m in lengths[:i + 1]) - 1 for i in range(len(lengths))])
    initial = make.randn(len(lengths), heads, width, size, dtype=torch.float32, scale=0.1)
    return lambda: module.mamba_chunk_scan_combined_varlen(
        x, dt, a, b, c, chunk, make.starts(lengths), make.starts(parts), last, owner, out, D=d, z=z, dt_bias=bias, initial_states=initial,
        dt_softplus=True, state_dtype=torch.float32)


@case("state update {model} batch {batch}{text}", model__batch__text=[
    *[("Mamba2-2.7B", b, "") for b in (1, 16, 64, 256)], ("Nemotron-H-8B", 64, ""), ("Nemotron-H-8B", 256, ", bf16 states"), ("Jamba TP8", 64, "")])
def update(make, model, batch, text):
    """`selective_state_update`."""
    module = make.module("vllm.model_executor.layers.mamba.ops.mamba_ssm")
    heads, width, size, groups = model_of(make, model)
    batch = make.least(batch, 3)
    state = make.randn(batch + 1, heads, width, size, dtype=torch.bfloat16 if text else torch.float32)
    x, z, out = make.randn(batch, heads, width), make.randn(batch, heads, width), make.empty(batch, heads, width)
    dt = make.randn(batch, heads)[:, :, None].expand(-1, -1, width)
    a = make.rand(heads, low=-2.0, high=-0.5)[:, None, None].expand(-1, width, size)
    b, c = make.randn(batch, groups, size), make.randn(batch, groups, size)
    d, bias = (make.rand(heads)[:, None].expand(-1, width) for _ in range(2))
    slots = make.permutation(batch) + 1
    return lambda: module.selective_state_update(state, x, dt, a, b, c, d, bias, z, True, slots, out=out)


@case("convolution {channels} channels, {kind}", channels__kind=[(8448, "1 x 2048"), (8448, "4 x 2048"), (10240, "1 x 8192"), (8192, "2 x 4096")])
def convolution(make, channels, kind):
    """`causal_conv1d_fn` over sequences one after another."""
    module = make.module("vllm.model_executor.layers.mamba.ops.causal_conv1d")
    count, length = map(int, kind.split(" x "))
    channels, lengths = make.least(channels, 64), [20, 9] if make.small else [length - 13 * i for i in range(count)]
    x = make.randn(sum(lengths), channels).t()
    weight, bias = make.randn(channels, 4), make.randn(channels)
    states = make.randn(len(lengths) + 1, 3, channels).transpose(1, 2)
    slots, initial = make.permutation(len(lengths)) + 1, make.tensor([True] * len(lengths), torch.bool)
    return lambda: module.causal_conv1d_fn(x, weight, bias, states, make.starts(lengths), slots, initial, "silu")


@case("convolution update {channels} channels, batch {batch}", channels__batch=[(8448, 1), (8448, 64), (8448, 256), (10240, 128)])
def convolution_update(make, channels, batch):
    """`causal_conv1d_update`."""
    module = make.module("vllm.model_executor.layers.mamba.ops.causal_conv1d")
    channels, batch = make.least(channels, 64), make.least(batch, 3)
    x, weight, bias = make.randn(batch, channels), make.randn(channels, 4), make.randn(channels)
    states = make.randn(batch + 1, 3, channels).transpose(1, 2)
    slots = make.permutation(batch) + 1
    return lambda: module.causal_conv1d_update(x, states, weight, bias, "silu", slots)


@case("gated norm {width} groups of {group}, {tokens} tokens", width__group__tokens=[(5120, 5120, 64), (8192, 1024, 4096), (5120, 5120, 4096)])
def norm(make, width, group, tokens):
    """`rms_norm_gated`."""
    module = make.module("vllm.model_executor.layers.mamba.ops.layernorm_gated")
    tokens, width = make.least(tokens, 10), make.least(width, 512)
    x, z, weight = make.randn(tokens, width), make.randn(tokens, width), make.randn(width)
    return lambda: module.rms_norm_gated(x, weight, None, z=z, group_size=min(group, width), norm_before_gate=False)


@case("states {what}, {count} of Mamba2-2.7B", what__count=[("gathered", 64), ("scattered", 64)])
def states(make, what, count):
    """`gather_initial_states` and `scatter_states`."""
    heads, width, size, _ = model_of(make, "Mamba2-2.7B")
    count = make.least(count, 3)
    cache = make.randn(count * 2, heads, width, size)
    slots = make.permutation(count * 2)[:count]
    if what == "gathered":
        module = make.module("vllm.model_executor.layers.mamba.ops.gather_initial_states")
        flags = make.tensor([i % 4 != 0 for i in range(count)], torch.bool)
        return lambda: module.gather_initial_states(cache, slots, flags)
    module = make.module("vllm.model_executor.layers.mamba.ops.scatter_states")
    new = make.randn(count, heads, width, size)
    return lambda: module.scatter_states(cache, new, slots)
