"""Speculative decoding: acceptance of drafts, and the inputs of the drafting model."""

import torch
from case import case

SIZES = [(16, 3, 128256), (64, 3, 128256), (64, 5, 151936)]


@case("rejection {batch} x {drafts} of {vocabulary}{text}", batch__drafts__vocabulary__text=[
    *[(*size, "") for size in SIZES], (64, 3, 128256, ", n-gram drafts"), (64, 3, 128256, ", greedy")])
def rejection(make, batch, drafts, vocabulary, text):
    """`rejection_sample`: greedy, random, recovered tokens."""
    module = make.module("vllm.v1.sample.rejection_sampler")
    batch, vocabulary = make.least(batch, 3), make.least(vocabulary, 2000)
    tokens = batch * drafts
    ids = make.ints(0, vocabulary, tokens)
    probabilities = None if "n-gram" in text else torch.softmax(make.randn(tokens, vocabulary, dtype=torch.float32), -1)
    logits, bonus = make.randn(tokens, vocabulary, dtype=torch.float32), make.ints(0, vocabulary, batch, 1)
    temperature = make.tensor([i % 2 * 0.7 for i in range(batch)], torch.float32)
    greedy = "greedy" in text
    metadata = type("Metadata", (), {"all_greedy": greedy, "all_random": False, "temperature": temperature, "generators": {}})()
    ends = make.starts([drafts] * batch)[1:].contiguous()
    return lambda: module.rejection_sample(ids, [drafts] * batch, drafts, ends, probabilities, logits, bonus, metadata)


@case("expand {batch} x {drafts}", batch__drafts=[(256, 4)])
def expand(make, batch, drafts):
    """`expand_batch_to_tokens`."""
    module = make.module("vllm.v1.sample.rejection_sampler")
    batch = make.least(batch, 3)
    x, ends = make.rand(batch), make.starts([drafts] * batch)[1:].contiguous()
    return lambda: module.expand_batch_to_tokens(x, ends, batch * drafts)


@case("rejection on the GPU {batch} x {drafts} of {vocabulary}{text}", batch__drafts__vocabulary__text=[
    *[(*size, "") for size in SIZES[:2]], (64, 3, 128256, ", by blocks"), (64, 3, 128256, ", no distribution")])
def on_gpu(make, batch, drafts, vocabulary, text):
    """`rejection_sample` of the newer runner."""
    module = make.module("vllm.v1.worker.gpu.spec_decode.rejection_sampler_utils")
    batch, vocabulary, each = make.least(batch, 3), make.least(vocabulary, 2000), drafts + 1
    rows = batch * each
    target = make.randn(rows, vocabulary, dtype=torch.float32)
    draft = None if "no" in text else make.randn(batch, drafts, vocabulary, dtype=torch.float32)
    sampled, starts = make.ints(0, vocabulary, rows, dtype=torch.int64), make.starts([each] * batch)
    mapping = make.permutation(batch)
    expanded, local = mapping.repeat_interleave(each), torch.arange(each, dtype=torch.int32, device=make.device).repeat(batch)
    temperature, seed = make.rand(batch, low=0.5, high=1.0), make.ints(0, 1 << 30, batch, dtype=torch.int64)
    positions = make.ints(5, 900, rows, dtype=torch.int64)
    return lambda: module.rejection_sample(target, draft, sampled, starts, positions, mapping, expanded, local, temperature, seed, drafts,
                                           use_block_verification="blocks" in text)


@case("drafting step {batch}", batch=[64, 256])
def step(make, batch):
    """`eagle_step_update_slot_mapping_and_metadata`."""
    module = make.module("vllm.v1.spec_decode.utils")
    batch = make.least(batch, 4)
    positions, table = make.ints(0, 4000, batch, dtype=torch.int64), make.ints(0, 9000, batch, 512)
    lengths, clamped, slots = make.ints(1, 4000, batch), make.empty(batch, dtype=torch.int64), make.empty(batch, dtype=torch.int64)
    return lambda: module.eagle_step_update_slot_mapping_and_metadata(positions, table, lengths, 16, 8192, clamped, slots)


@case("drafting inputs {batch} x {drafts}", batch__drafts=[(64, 3), (256, 4)])
def inputs(make, batch, drafts):
    """The kernels that prepare a drafting model's inputs."""
    module = make.module("vllm.v1.spec_decode.utils")
    batch, each = make.least(batch, 4), drafts + 1
    ends, valid = make.starts([drafts] * batch)[1:].contiguous(), make.ints(1, each + 1, batch)
    starts = make.starts([each] * batch)
    indices, rejected, following, counts = (make.empty(batch, dtype=torch.int32) for _ in range(4))
    sampled = make.ints(-1, 30000, batch, each)
    skip, backup = make.tensor([i % 7 == 0 for i in range(batch)], torch.bool), make.ints(0, 30000, batch)
    tokens, total = batch * each, batch * (each + 1)
    ids, positions = make.ints(0, 30000, tokens), make.ints(0, 4000, tokens, dtype=torch.int64)
    out_ids, out_positions = make.empty(total, dtype=torch.int32), make.empty(total, dtype=torch.int64)
    masks = [make.empty(total, dtype=torch.bool) for _ in range(2)]
    new, mapping = make.empty(batch * 2, dtype=torch.int32), make.empty(tokens, dtype=torch.int32)
    lasts = starts[1:] - 1
    block = 1 << drafts.bit_length()

    def call():
        module._eagle_prepare_inputs_padded(ends, valid, starts, indices, rejected, batch)
        module._eagle_prepare_next_token_padded(sampled, skip, backup, following, counts, 30000, each, batch, sampled.stride(0),
                                                BLOCK_SIZE_TOKENS=max(block, 8))
        module._copy_and_expand_eagle_inputs(ids, positions, backup, out_ids, out_positions, *masks, new, mapping, starts, lasts, 0, 29999,
                                             tokens, 1, True, BLOCK_SIZE_TOKENS=256, batch_size=batch, num_blocks=1)
    return call
