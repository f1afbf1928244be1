"""Sampling in the runner on the GPU: temperatures, Gumbel noise, penalties, biases, logarithms of probabilities, watermarks."""

import torch
from case import case

SAMPLE = "vllm.v1.worker.gpu.sample."
SIZES = [(16, 128256), (64, 128256), (256, 151936)]


class Requests:
    """Logits and the state of requests."""

    def __init__(self, make, batch, vocabulary, dtype=torch.float32):
        self.batch, self.vocabulary, self.most = make.least(batch, 4), make.least(vocabulary, 1500), make.size(2048, 64)
        batch = self.batch
        self.logits = make.randn(batch, self.vocabulary, dtype=dtype)
        self.mapping = make.permutation(batch)
        self.positions, self.local = make.ints(10, 1000, batch, dtype=torch.int64), make.empty(batch, dtype=torch.int32)
        self.tokens = make.ints(0, self.vocabulary, batch, self.most)
        self.prompt, self.total = make.ints(5, self.most // 2, batch), make.ints(self.most // 2, self.most, batch)
        self.input_ids = make.ints(0, self.vocabulary, batch)
        self.temperature, self.seed = make.rand(batch, low=0.5, high=1.5), make.ints(0, 1 << 30, batch, dtype=torch.int64)


@case("temperature {batch} x {vocabulary}", batch__vocabulary=SIZES)
def temperature(make, batch, vocabulary):
    """`apply_temperature`."""
    module, r = make.module(SAMPLE + "gumbel"), Requests(make, batch, vocabulary)
    return lambda: module.apply_temperature(r.logits, r.mapping, r.temperature)


@case("gumbel {batch} x {vocabulary}", batch__vocabulary=SIZES)
def gumbel(make, batch, vocabulary):
    """`gumbel_sample`."""
    module, r = make.module(SAMPLE + "gumbel"), Requests(make, batch, vocabulary)
    return lambda: module.gumbel_sample(r.logits, r.mapping, r.temperature, r.seed, r.positions, True, False)


@case("min p {batch} x {vocabulary}", batch__vocabulary=SIZES)
def min_p(make, batch, vocabulary):
    """`apply_min_p`."""
    module, r = make.module(SAMPLE + "min_p"), Requests(make, batch, vocabulary)
    least = make.rand(r.batch, low=0.01, high=0.2)
    return lambda: module.apply_min_p(r.logits, r.mapping, least)


@case("penalties {batch} x {vocabulary}", batch__vocabulary=SIZES)
def penalties(make, batch, vocabulary):
    """`apply_penalties` and `bincount`."""
    module, r = make.module(SAMPLE + "penalties"), Requests(make, batch, vocabulary)
    repetition, frequency, presence = (make.rand(r.batch, low=low, high=low + 0.5) for low in (1.0, 0.1, 0.1))
    mask = make.empty(r.batch, -(-r.vocabulary // 32), dtype=torch.int32)
    counts = make.empty(r.batch, r.vocabulary, dtype=torch.int32)

    def call():
        module.bincount(r.mapping, r.tokens, r.prompt, r.total, mask, counts, r.most)
        module.apply_penalties(r.logits, r.mapping, r.input_ids, r.local, repetition, frequency, presence, mask, counts)
    return call


@case("bias {batch} x {vocabulary}", batch__vocabulary=SIZES[1:])
def bias(make, batch, vocabulary):
    """`apply_logit_bias`."""
    module, r = make.module(SAMPLE + "logit_bias"), Requests(make, batch, vocabulary)
    n = r.batch
    allowed, biased, stops = (make.ints(0, r.vocabulary, n, count) for count in (64, 128, 16))
    counts = [make.ints(0, 8, n) for _ in range(3)]
    values, least = make.randn(n, 128, dtype=torch.float32), make.ints(0, 2000, n)
    restore = make.empty(n, dtype=torch.bool)
    return lambda: module.apply_logit_bias(r.logits, r.mapping, r.positions, counts[0], allowed, counts[1], biased, values, least, counts[2],
                                           restore, stops)


@case("log probabilities {batch} x {vocabulary}", batch__vocabulary=SIZES)
def log_probabilities(make, batch, vocabulary):
    """`compute_token_logprobs` and `compute_topk_scores`."""
    module, r = make.module(SAMPLE + "logprob"), Requests(make, batch, vocabulary)
    sampled = make.ints(0, r.vocabulary, r.batch, dtype=torch.int64)

    def call():
        module.compute_token_logprobs(r.logits, sampled[:, None])
        module.compute_topk_scores(r.logits, 5, sampled)
    return call


@case("bad words {batch} x {vocabulary}", batch__vocabulary=SIZES[1:])
def bad_words(make, batch, vocabulary):
    """`apply_bad_words`."""
    module, r = make.module(SAMPLE + "bad_words"), Requests(make, batch, vocabulary)
    words = make.ints(0, r.vocabulary, r.batch, 256)
    offsets = torch.arange(0, 257 * 2, 2, dtype=torch.int32, device=make.device)[:129].expand(r.batch, -1).contiguous()
    count = make.ints(1, 100, r.batch)
    return lambda: module.apply_bad_words(r.logits, r.mapping, words, offsets, count, r.tokens, r.prompt, r.total, r.input_ids, r.local, 128)


@case("prompt tokens {batch} x {tokens}", batch__tokens=[(8, 1024)])
def prompt(make, batch, tokens):
    """`get_prompt_logprobs_token_ids`."""
    module, r = make.module(SAMPLE + "prompt_logprob"), Requests(make, batch, 1000)
    each = make.least(tokens, 20)
    done = make.empty(r.batch, dtype=torch.int32)
    starts = make.starts([each] * r.batch)
    return lambda: module.get_prompt_logprobs_token_ids(each * r.batch, starts, r.mapping, done, r.tokens)


@case("NaN {batch} x {vocabulary}", batch__vocabulary=SIZES[1:])
def nans(make, batch, vocabulary):
    """`get_num_nans`."""
    module, r = make.module("vllm.v1.worker.gpu.metrics.logits"), Requests(make, batch, vocabulary)
    return lambda: module.get_num_nans(r.logits)


@case("watermark {batch} x {vocabulary}", batch__vocabulary=SIZES[1:])
def watermark(make, batch, vocabulary):
    """`philox_gumbel_sample` and `repeated_context_mask`."""
    module, r = make.module(SAMPLE + "watermark"), Requests(make, batch, vocabulary)
    contexts = make.ints(0, r.vocabulary, r.batch, 4, dtype=torch.int64)

    def call():
        module.philox_gumbel_sample(r.logits, contexts, 12345)
        module.repeated_context_mask(r.tokens, r.mapping, r.prompt, r.total, contexts)
    return call


@case("thinking budget {batch} x {vocabulary}", batch__vocabulary=SIZES[1:2])
def thinking(make, batch, vocabulary):
    """`apply_thinking_budget`."""
    module, r = make.module(SAMPLE + "thinking_budget"), Requests(make, batch, vocabulary)
    budget, ids = make.ints(10, 500, r.batch), torch.arange(r.batch, dtype=torch.int32, device=make.device)
    cached = [torch.full((r.batch,), -1, dtype=torch.int32, device=make.device) for _ in range(2)]
    scanned = make.empty(r.batch, dtype=torch.int32)
    start, natural, end = (make.tensor([n]) for n in (7, 8, 9))
    return lambda: module.apply_thinking_budget(r.logits, ids, r.mapping, budget, r.tokens, r.total, r.input_ids, r.local, *cached, scanned,
                                                start, natural, end)


@case("grammar {batch} x {vocabulary}", batch__vocabulary=SIZES[1:])
def grammar(make, batch, vocabulary):
    """`_apply_grammar_bitmask_kernel` with its wrapper's constants."""
    module, r = make.module("vllm.v1.worker.gpu.structured_outputs"), Requests(make, batch, vocabulary)
    mask = make.ints(-(1 << 31), (1 << 31) - 1, r.batch, -(-r.vocabulary // 32))
    rows, starts, block = make.permutation(r.batch), make.starts([1] * r.batch), module.GRAMMAR_BITMASK_BLOCK_SIZE
    return lambda: module._apply_grammar_bitmask_kernel[r.batch, -(-r.vocabulary // block)](
        r.logits, r.logits.stride(0), rows, starts, mask, mask.stride(0), r.vocabulary, MASK_STRIDE=1, BLOCK_SIZE=block)
