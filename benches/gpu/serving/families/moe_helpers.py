"""What surrounds the products of a mixture of experts: activation with quantization, counting, scattering, gathering, sums, routing."""

import torch
from case import case
from families.moe import routing


def tokens_of(make, tokens):
    """Few in a try."""
    return make.least(tokens, 20)


@case("masked silu and fp8 {experts} experts x {tokens} of {width}", experts__tokens__width=[(32, 128, 2048), (8, 1024, 2048), (32, 64, 7168)])
def masked_silu(make, experts, tokens, width):
    """`persistent_masked_m_silu_mul_quant`, the kernel for GPUs without the compiled one."""
    module = make.module("vllm.model_executor.layers.fused_moe.experts.batched_deep_gemm_moe")
    experts, tokens, width = make.least(experts, 3), tokens_of(make, tokens), make.least(width, 256)
    y, counts = make.randn(experts, tokens, 2 * width), make.ints(0, tokens + 1, experts)
    module.current_platform = Old(module.current_platform)
    return lambda: module.persistent_masked_m_silu_mul_quant(y, counts)


class Old:
    """A GPU for which a library chooses its Triton kernel."""

    def __init__(self, platform):
        self.platform = platform

    def __getattr__(self, name):
        if name in ("has_device_capability", "is_cuda_alike"):
            return lambda *a, **k: False
        return getattr(self.platform, name)


@case("silu and fp8, columns first {tokens} x {width}", tokens__width=[(4096, 2048), (1024, 7168)])
def silu_columns(make, tokens, width):
    """`silu_mul_per_token_group_quant_fp8_colmajor`."""
    module = make.module("vllm.model_executor.layers.quantization.utils.fp8_utils")
    x = make.randn(make.size(tokens, 128), 2 * make.least(width, 256))
    return lambda: module.silu_mul_per_token_group_quant_fp8_colmajor(x)


@case("silu and fp8, packed scales {tokens} x {width}", tokens__width=[(4096, 2048), (256, 2048)])
def silu_packed(make, tokens, width):
    """`silu_mul_quant_fp8_packed_triton`."""
    module = make.module("vllm.model_executor.layers.quantization.utils.fp8_utils")
    x = make.randn(make.size(tokens, 16), 2 * make.least(width, 512))
    return lambda: module.silu_mul_quant_fp8_packed_triton(x)


@case("tokens of experts, {tokens} x 8 of {experts}", tokens__experts=[(4096, 128), (64, 256)])
def counted(make, tokens, experts):
    """`count_expert_num_tokens` and `remap_topk_to_local`."""
    module = make.module("vllm.model_executor.layers.fused_moe.utils")
    _, ids = routing(make, tokens_of(make, tokens), experts, 8)
    local = torch.full((experts,), -1, dtype=torch.int32, device=make.device)
    local[: experts // 2] = torch.arange(experts // 2, dtype=torch.int32, device=make.device)

    def call():
        module.count_expert_num_tokens(ids, experts // 2, local)
        module.remap_topk_to_local(ids, local)
    return call


# The order of an expert's tokens is that of atomic additions: nothing is compared.
@case("scatter and gather {tokens} x {hidden}, 8 of 32", tolerance=float("inf"), tokens__hidden=[(1024, 7168), (128, 4096)])
def scattered(make, tokens, hidden):
    """`ep_scatter` and `ep_gather` around a grouped product."""
    module = make.module("vllm.model_executor.layers.fused_moe.deep_gemm_utils")
    tokens, hidden, experts, chosen = tokens_of(make, tokens), make.least(hidden, 512), 32, 8
    weights, ids = routing(make, tokens, experts, chosen)
    counts = torch.bincount(ids.flatten().long(), minlength=experts)
    padded = ((counts + 127) // 128 * 128).to(torch.int32)
    total = int(padded.sum())
    x, scale = make.fp8(tokens, hidden), make.rand(tokens, hidden // 128)
    out, out_scale = make.empty(total, hidden, dtype=torch.float8_e4m3fn), make.empty(total, hidden // 128, dtype=torch.float32)
    starts, owners, index = make.empty(experts, dtype=torch.int32), make.empty(total, dtype=torch.int32), torch.empty_like(ids)
    result = make.randn(total, hidden)
    gathered = make.empty(tokens, hidden)
    ordered = (torch.argsort(torch.argsort(ids.flatten(), stable=True))).to(torch.int32).view(ids.shape)

    def call():
        module.ep_scatter(x, scale, ids, padded, None, starts, out, out_scale, owners, index)
        module.ep_gather(result, ids, weights, ordered, None, gathered)
    return call


@case("weighted sum {tokens} x {chosen} x {hidden}", tokens__chosen__hidden=[(4096, 8, 2048), (256, 8, 7168), (64, 2, 4096)])
def summed(make, tokens, chosen, hidden):
    """`moe_fused_mul_sum`."""
    module = make.module("vllm.model_executor.layers.fused_moe.moe_fused_mul_sum")
    tokens = tokens_of(make, tokens)
    x, weights = make.randn(tokens, chosen, make.least(hidden, 256)), make.rand(tokens, chosen)
    return lambda: module.moe_fused_mul_sum(x, weights)


@case("masked sum {tokens} x 4 x 2880", tokens=[2048, 64])
def masked_sum(make, tokens):
    """`masked_moe_sum` of gpt-oss."""
    module = make.module("vllm.model_executor.layers.fused_moe.experts.gpt_oss_triton_kernels_moe")
    tokens, hidden = tokens_of(make, tokens), make.size(2880, 256)
    x, ids, out = make.randn(tokens, 4, hidden), make.ints(-1, 16, tokens, 4), make.empty(tokens, hidden)
    return lambda: module.masked_moe_sum(x, ids, out)


@case("identity experts {tokens} x {hidden}", tokens__hidden=[(2048, 6144)])
def identity(make, tokens, hidden):
    """`zero_experts_compute_triton` of LongCat."""
    module = make.module("vllm.model_executor.layers.fused_moe.fused_moe")
    tokens, hidden = tokens_of(make, tokens), make.least(hidden, 512)
    weights, ids = routing(make, tokens, 64, 8)
    x = make.randn(tokens, hidden)
    return lambda: module.zero_experts_compute_triton(ids, weights, 48, "identity", x)


@case("router of DeepSeek-V4, {tokens} tokens", tokens=[64, 4096])
def router(make, tokens):
    """`dsv4_topk`."""
    module = make.module("vllm.model_executor.layers.fused_moe.router.dsv4_topk")
    scores, bias = make.randn(tokens_of(make, tokens), 256, dtype=torch.float32), make.randn(256, dtype=torch.float32)
    return lambda: module.dsv4_topk(scores, bias, torch.int32, 1.5)


@case("swiglu with a limit {tokens} x {width}", tokens__width=[(2048, 2880)])
def swiglu(make, tokens, width):
    """`_swiglu_limit_pad_aware` and `swiglustep_and_mul_triton`."""
    module = make.module("vllm.model_executor.layers.fused_moe.utils")
    other = make.module("vllm.model_executor.layers.activation")
    tokens, width = tokens_of(make, tokens), make.least(width, 256)
    x, out, ids = make.randn(tokens * 4, 2 * width), make.empty(tokens * 4, width), make.ints(-1, 16, tokens, 4)

    def call():
        module._swiglu_limit_pad_aware(out, x, ids, 7.0)
        other.swiglustep_and_mul_triton(out, x, 7.0)
    return call
