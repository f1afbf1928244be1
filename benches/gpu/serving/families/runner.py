"""The runner's own kernels: inputs of a step, tables of pages, slots, positions, what is kept after a step."""

import torch
from case import case

GPU = "vllm.v1.worker.gpu."


class Step:
    """A step of a batch: `decode 256`, `prefill 8 x 1024`, `drafts 64 x 4`."""

    def __init__(self, make, kind):
        words = kind.split()
        self.each = 1 if words[0] == "decode" else int(words[3]) + (words[0] == "drafts")
        self.batch, self.each = make.least(int(words[1]), 4), make.least(self.each, 20)
        self.most, n = make.size(8192, 128), self.batch
        self.tokens = n * self.each
        self.mapping = make.permutation(n)
        self.starts = make.starts([self.each] * n)
        self.all = make.ints(0, 30000, n, self.most)
        self.computed = make.ints(5, self.most // 2, n)
        self.prefill = make.ints(self.most // 2, self.most - 30, n) if words[0] == "prefill" else torch.ones_like(self.computed)
        self.ids = make.empty(self.tokens, dtype=torch.int32)
        self.positions = make.empty(self.tokens, dtype=torch.int64)
        self.lengths = make.empty(n + 8, dtype=torch.int32)
        self.last = make.ints(0, 30000, n, 1, dtype=torch.int64)


KINDS = ["decode 256", "prefill 8 x 1024"]


@case("inputs {kind}", kind=KINDS)
def inputs(make, kind):
    """`prepare_prefill_inputs` and `prepare_pos_seq_lens`."""
    module, s = make.module(GPU + "input_batch"), Step(make, kind)
    ahead = make.empty(1, s.batch, dtype=torch.int32)

    def call():
        module.prepare_prefill_inputs(s.ids, ahead, s.mapping, s.starts, s.all, s.prefill, s.computed)
        module.prepare_pos_seq_lens(s.mapping, s.starts, s.computed, s.positions, s.lengths)
    return call


@case("drafts {kind}", kind=["drafts 64 x 4", "drafts 256 x 3"])
def drafts(make, kind):
    """`combine_sampled_and_draft_tokens`, `expand_idx_mapping`, `get_num_sampled_and_rejected`, `gather_draft_sampled`."""
    module, s = make.module(GPU + "input_batch"), Step(make, kind)
    other = make.module(GPU + "spec_decode.rejection_sampler")
    drafted, sampled = make.ints(0, 30000, s.batch, s.each - 1, dtype=torch.int64), make.ints(1, s.each + 1, s.batch)
    lengths = s.computed + s.each

    def call():
        indices = module.combine_sampled_and_draft_tokens(s.ids, s.mapping, s.last, s.starts, lengths, s.prefill, drafted, s.starts, s.tokens)
        expanded = module.expand_idx_mapping(s.mapping, s.tokens, s.starts, s.each)
        module.get_num_sampled_and_rejected(sampled, lengths, s.starts, s.mapping, s.prefill)
        if isinstance(expanded, tuple):
            other.gather_draft_sampled(s.ids, s.positions, indices, *expanded, s.prefill)
    return call


@case("after a step {kind}", kind=["decode 256", "drafts 64 x 4"])
def after(make, kind):
    """`post_update` and `post_update_num_computed_tokens`."""
    module, s = make.module(GPU + "input_batch"), Step(make, kind)
    sampled, counts = make.ints(0, 30000, s.batch, s.each, dtype=torch.int64), make.ints(1, s.each + 1, s.batch)
    total, bins = s.computed + 2, make.empty(s.batch, 30000, dtype=torch.int32)
    rejected = s.each - counts

    def call():
        module.post_update(s.mapping, s.computed, s.last, bins, sampled, counts, rejected, s.starts, s.all, total)
        module.post_update_num_computed_tokens(s.mapping, s.computed, s.starts)
    return call


@case("tables and slots {kind}", kind=KINDS)
def tables(make, kind):
    """`gather_block_tables` and `compute_slot_mappings` of two groups of layers."""
    module, s = make.module(GPU + "block_table"), Step(make, kind)
    pages = s.most // 16
    found = module.BlockTables.__new__(module.BlockTables)
    found.__dict__.update(block_sizes=[16, 16], max_num_reqs=s.batch, max_num_batched_tokens=s.tokens, device=torch.device(make.device),
                          num_kv_cache_groups=2, cp_size=1, cp_rank=0, cp_interleave=1, _slot_mapping_enabled=[True] * 2,
                          _sliding_window_reach=[0, 0], has_sliding_window_groups=False, redirect_writes_to_null_block=False)
    found.dcp_sharded = make.tensor([True] * 2, torch.bool)
    found.block_tables = [type("Table", (), {"gpu": make.ints(0, 5000, s.batch, pages)})() for _ in range(2)]
    counts = make.ints(1, pages, 2, s.batch)
    found.num_blocks = type("Counts", (), {"gpu": counts, "uva": lambda self: counts})()
    found.input_block_tables = [torch.zeros_like(b.gpu) for b in found.block_tables]
    found.slot_mappings, found._num_dirty_rows = make.empty(2, s.tokens, dtype=torch.int64), 0
    found.init_block_table_layout_tensors()
    make.also = {f"table {i}": table for i, table in enumerate(found.input_block_tables)}

    def call():
        found.gather_block_tables(s.mapping, s.batch)
        found.compute_slot_mappings(s.mapping, s.starts, s.positions, s.tokens)
    return call


@case("slots of the older runner {kind}", kind=KINDS)
def slots(make, kind):
    """`ComputeSlotMappingKernel`."""
    module, s = make.module("vllm.v1.worker.block_table"), Step(make, kind)
    table, out = make.ints(0, 5000, s.batch, s.most // 16), make.empty(s.tokens, dtype=torch.int64)
    positions = make.ints(0, s.most, s.tokens, dtype=torch.int64)
    return lambda: module._COMPUTE_SLOT_MAPPING_KERNEL(s.batch, s.tokens, s.tokens, s.starts, positions, table, table.stride(0), out, 16, 1, 0, 1)


@case("lengths of {count} sequences on 4 GPUs", count=[256])
def lengths(make, count):
    """`prepare_dcp_local_seq_lens`."""
    module = make.module(GPU + "cp_utils")
    n = make.least(count, 10)
    out, given = make.empty(n, dtype=torch.int32), make.ints(1, 8000, n)
    return lambda: module.prepare_dcp_local_seq_lens(out, given, n, 4, 1, 16)


@case("rotary positions {kind}", kind=KINDS)
def rope(make, kind):
    """`_prepare_rope_positions_kernel` with its wrapper's constants."""
    module, s = make.module(GPU + "mm.rope"), Step(make, kind)
    given, delta = make.ints(0, 9000, s.batch * 3, s.most), make.ints(-50, 50, s.batch)
    out = make.empty(3, s.tokens + 1, dtype=torch.int64)
    return lambda: module._prepare_rope_positions_kernel[s.batch,](
        out, out.stride(0), given, 3 * given.stride(0), given.stride(0), delta, s.mapping, s.starts, s.prefill, s.computed, BLOCK_SIZE=1024,
        NUM_DIMS=3)


@case("requests of tokens {kind}", kind=KINDS)
def owners(make, kind):
    """`compute_token_to_req_indices`."""
    module, s = make.module("vllm.v1.attention.ops.metadata"), Step(make, kind)
    out = make.empty(s.tokens, dtype=torch.int32)
    return lambda: module.compute_token_to_req_indices(s.starts, out, s.tokens, s.tokens)


@case("parts of GPUs {tokens} x {heads} x {width}", tokens__heads__width=[(64, 16, 512), (2048, 16, 128)])
def parallel(make, tokens, heads, width):
    """`correct_attn_out`, `_dcp_a2a_pack_send` and `_dcp_a2a_unpack_combine` of decode parallelism."""
    module = make.module("vllm.v1.attention.ops.dcp")
    tokens, world = make.least(tokens, 5), 4
    out, lse = make.randn(tokens, heads, width), make.randn(tokens, heads, dtype=torch.float32)
    lses = make.randn(world, tokens, heads, dtype=torch.float32)
    extra = module._dcp_a2a_lse_pack_dim(out.dtype)
    sent = make.empty(world, tokens, heads // world, width + extra)
    context = module.CPTritonContext()

    def call():
        module.correct_attn_out(out, lses, 1, context)
        module._dcp_a2a_pack_send(out, lse, sent, world, heads // world, width, extra)
        module._dcp_a2a_unpack_combine(sent, width, extra, True, True)
    return call
