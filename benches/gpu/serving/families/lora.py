"""Products with low-rank adapters of several requests at once: shrink, expand, and those of experts."""

import torch
from case import case
from families.moe import routing


class Requests:
    """Which adapter each token uses, in the form that the kernels take."""

    def __init__(self, make, tokens, adapters):
        owner = torch.sort(make.ints(0, adapters, tokens)).values if tokens > adapters else make.ints(0, adapters, tokens)
        counts = torch.bincount(owner.long(), minlength=adapters).to(torch.int32)
        zero = make.tensor([0])
        self.mapping, self.order = owner, torch.argsort(owner, stable=True).to(torch.int32)
        self.counts = torch.cat([counts, zero])
        self.starts = torch.cat([zero, torch.cumsum(counts, 0).to(torch.int32), make.tensor([tokens])])
        self.ids = torch.cat([torch.arange(adapters, dtype=torch.int32, device=make.device), make.tensor([-1])])
        self.none, self.active = torch.tensor([False], device="cpu"), torch.tensor([adapters], dtype=torch.int32, device="cpu")

    def arguments(self):
        """In the order of the wrappers."""
        return self.mapping, self.order, self.counts, self.starts, self.ids, self.none, self.active


@case("{kind} {hidden}, rank {rank}, {slices} slices, {tokens} tokens of {adapters}", kind__hidden__rank__slices__tokens__adapters=[
    *[("shrink", 4096, 16, 3, n, 4) for n in (1, 16, 256, 4096)], ("shrink", 14336, 64, 1, 256, 8), ("shrink", 8192, 32, 1, 2048, 4),
    *[("expand", 4096, 16, 3, n, 4) for n in (1, 16, 256, 4096)], ("expand", 14336, 64, 2, 256, 8), ("expand", 8192, 32, 1, 2048, 4)])
def dense(make, kind, hidden, rank, slices, tokens, adapters):
    """`_lora_shrink` and `_lora_expand`."""
    module = make.module(f"vllm.lora.ops.triton_ops.lora_{kind}_op")
    hidden, tokens, slices = make.least(hidden, 256), make.least(tokens, 20), make.least(slices, 1)
    requests = Requests(make, tokens, adapters)
    if kind == "shrink":
        x, weights = make.randn(tokens, hidden), [make.randn(adapters, 1, rank, hidden) for _ in range(slices)]
        out = make.empty(slices, tokens, rank, dtype=torch.float32)
        return lambda: module._lora_shrink(x, weights, out, *requests.arguments(), 0.5)
    x, weights = make.randn(slices, tokens, rank, dtype=torch.float32), [make.randn(adapters, 1, hidden, rank) for _ in range(slices)]
    out = make.randn(tokens, hidden * slices)
    return lambda: module._lora_expand(x, weights, out, *requests.arguments(), add_inputs=True)


@case("shrink fp8 4096, rank 32, {tokens} tokens", tokens=[16, 1024])
def shrink_fp8(make, tokens):
    """`_lora_shrink_fp8` with scales of tokens and channels."""
    module = make.module("vllm.lora.ops.triton_ops.lora_shrink_fp8_op")
    hidden, tokens, rank, adapters = make.size(4096, 256), make.least(tokens, 20), 32, 4
    requests = Requests(make, tokens, adapters)
    x, weights = make.fp8(tokens, hidden), [make.fp8(adapters, 1, rank, hidden)]
    out = make.empty(1, tokens, rank, dtype=torch.float32)
    scale, scales = make.rand(tokens, 1, low=0.01, high=0.02), [make.rand(adapters, rank, 1, low=0.01, high=0.02)]
    return lambda: module._lora_shrink_fp8(x, weights, out, *requests.arguments()[:-1], adapters, 0.5, scales, scale, use_fp8_w8a8=True,
                                           per_channel_quant=True)


@case("experts, rank {rank}, {tokens} tokens", rank__tokens=[(16, 64), (16, 1024)])
def experts(make, rank, tokens):
    """`_fused_moe_lora`: shrink and expand of adapters of experts."""
    module = make.module("vllm.lora.ops.triton_ops.fused_moe_lora_op")
    align = make.module("vllm._custom_ops").moe_align_block_size
    count, chosen, hidden, width, adapters, block = make.size(64, 4), make.size(8, 2), make.size(2048, 128), make.size(768, 128), 2, 64
    tokens = make.least(tokens, 20)
    weights, ids = routing(make, tokens, count, chosen)
    owner = torch.sort(make.ints(0, adapters, tokens)).values
    most = ids.numel() + count * (block - 1)
    blocks = -(-most // block)
    order, owners = make.empty(adapters, most, dtype=torch.int32), make.empty(adapters, blocks, dtype=torch.int32)
    padded = make.empty(adapters, dtype=torch.int32)
    for i in range(adapters):
        own = (owner == i).nonzero().flatten()
        align(ids[own], count, block, order[i], owners[i], padded[i:i + 1])
        entries = (own[:, None] * chosen + torch.arange(chosen, device=own.device)).flatten()
        # One entry more, for what only fills a block.
        order[i] = torch.cat([entries, entries.new_tensor([ids.numel()])])[order[i].long()].to(order.dtype)
    x, out = make.randn(tokens, hidden), make.empty(tokens, chosen, width)
    a, b = [make.randn(adapters, count, rank, hidden)], [make.randn(adapters, count, width, rank)]
    names, enabled = torch.arange(adapters + 1, dtype=torch.int32, device=make.device), make.tensor([1] * (adapters + 1))
    active = torch.tensor([adapters], dtype=torch.int32, device="cpu")
    names[-1] = -1
    return lambda: module._fused_moe_lora(out, x, a, b, weights, order, owners, padded, owner, rank, chosen, names, active, enabled,
                                          block, 16, 64, 8, 4, 3, 1, block, 64, 16, 8, 4, 3, 1)
