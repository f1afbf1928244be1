"""What modules of vLLM have to mean to its kernels' wrappers: the platform, Triton, helpers of a line, and in the place of its
compiled operations the same in PyTorch.
"""

import enum
import functools
import logging
import typing

import torch
import torch.nn.functional as F


class Capability(typing.NamedTuple):
    """A compute capability."""
    major: int
    minor: int

    def to_int(self):
        """As 90."""
        return self.major * 10 + self.minor

    def as_version_str(self):
        """As 9.0."""
        return f"{self.major}.{self.minor}"


class Platform:
    """One GPU of NVIDIA."""
    device_type = device_name = dispatch_key = "cuda"
    simple_compile_backend = "inductor"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name.startswith("is_"):
            return lambda *args, **kwargs: name in ("is_cuda", "is_cuda_alike", "is_arch_support_pdl")
        return lambda *args, **kwargs: False

    def get_device_capability(self, *_, **__):
        """Its compute capability."""
        return Capability(*torch.cuda.get_device_capability())

    def has_device_capability(self, capability, *_, **__):
        """Whether it has at least this one."""
        wanted = capability if isinstance(capability, tuple) else divmod(capability, 10)
        return tuple(self.get_device_capability()) >= tuple(wanted)

    def is_device_capability(self, capability, *_, **__):
        """Whether it has just this one."""
        wanted = capability if isinstance(capability, tuple) else divmod(capability, 10)
        return tuple(self.get_device_capability()) == tuple(wanted)

    def is_device_capability_family(self, capability, *_, **__):
        """Whether it is of this generation."""
        return self.get_device_capability().major == capability // 10

    def fp8_dtype(self):
        """The format of fp8."""
        return torch.float8_e4m3fn

    def supports_fp8(self):
        """Hopper does."""
        return True

    def get_device_name(self, *_, **__):
        """The name, by which tuned configurations are found."""
        name = torch.cuda.get_device_name()
        return name if name.startswith("NVIDIA") else "NVIDIA H100 80GB HBM3"

    def num_compute_units(self, *_, **__):
        """The number of SMs."""
        return torch.cuda.get_device_properties(0).multi_processor_count

    def current_device(self):
        """Its number."""
        return 0


def triton_utils():
    """`vllm.triton_utils`."""
    import triton
    import triton.language as tl
    import triton.language.extra.libdevice as tldevice
    from standin import Anything
    try:
        from triton.language.core import _aggregate as aggregate
    except ImportError:
        aggregate = Anything("aggregate")
    return dict(triton=triton, tl=tl, tldevice=tldevice, HAS_TRITON=True, LOG2E=1.4426950408889634, LOGE2=0.6931471805599453,
                gluon=Anything("gluon"), gl=Anything("gl"), aggregate=aggregate, use_tensor_descriptor=lambda *a, **k: False)


class Logger(logging.Logger):
    """A logger with the methods of vLLM's."""

    def info_once(self, *args, **kwargs):
        """Says nothing."""

    debug_once = warning_once = info_once


def align(topk_ids, num_experts, block_size, sorted_token_ids, expert_ids, num_tokens_post_pad, expert_map=None, *_):
    """The entries of topk_ids by expert, those of each padded to blocks."""
    if expert_map is not None and not isinstance(expert_map, torch.Tensor):
        expert_map = None
    flat, numel = topk_ids.flatten().long(), topk_ids.numel()
    counts = torch.bincount(flat, minlength=num_experts)[:num_experts]
    padded = (counts + block_size - 1) // block_size * block_size
    ends = torch.cumsum(padded, 0)
    order = torch.argsort(flat, stable=True)
    experts = flat[order]
    within = torch.arange(numel, device=flat.device) - (torch.cumsum(counts, 0) - counts)[experts]
    sorted_token_ids.fill_(numel)
    sorted_token_ids[(ends - padded)[experts] + within] = order.to(sorted_token_ids.dtype)
    starts = torch.arange(expert_ids.numel(), device=flat.device) * block_size
    found = torch.searchsorted(ends, starts, right=True).clamp(max=num_experts - 1)
    expert_ids.copy_(expert_map[found] if expert_map is not None else found)
    num_tokens_post_pad.fill_(int(ends[-1]))


def silu_and_mul(out, x):
    """A gated activation."""
    gate, up = x.chunk(2, -1)
    out.copy_(F.silu(gate.float()) * up)


def scaled_fp8_quant(x, scale=None, num_token_padding=None, scale_ub=None, use_per_token_if_dynamic=False, output=None, **_):
    """fp8 with one scale, or one for each row."""
    if scale is None:
        most = x.abs().amax(-1, keepdim=True) if use_per_token_if_dynamic else x.abs().amax().reshape(1)
        scale = most.float().clamp(min=1e-6) / 448
    return (x.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn), scale


def custom_ops():
    """`vllm._custom_ops`."""
    return dict(moe_align_block_size=align, silu_and_mul=silu_and_mul, scaled_fp8_quant=scaled_fp8_quant,
                moe_sum=lambda x, out: out.copy_(x.sum(1)))


def activation(kind, output, x, *_, **__):
    """`apply_moe_activation`."""
    silu_and_mul(output, x)
    return output


class Operations:
    """`torch.ops.vllm` and the like: what was registered, and nothing that fails for the rest."""

    def __getattr__(self, name):
        from standin import Anything
        if name.startswith("__") or name == "hadacore_transform":   # there is a kernel in its place
            raise AttributeError(name)
        return Anything(name)


def register(op_name=None, op_func=None, *_, **__):
    """`direct_register_custom_op`."""
    setattr(torch.ops.vllm, op_name, op_func)


def torch_utils():
    """`vllm.utils.torch_utils`."""
    is_contiguous = lambda t: t.is_contiguous()
    sizes = {"half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32, "fp8": torch.uint8, "fp8_e4m3": torch.uint8}
    return dict(direct_register_custom_op=register, is_torch_equal_or_newer=lambda *_: True, STR_DTYPE_TO_TORCH_DTYPE=sizes,
                is_strictly_contiguous=is_contiguous, current_stream=lambda: torch.cuda.current_stream(),
                async_tensor_h2d=lambda data, dtype=None, device="cuda", *a, **k: torch.tensor(data, dtype=dtype, device=device),
                is_quantized_kv_cache=lambda name: str(name).startswith(("fp8", "int8", "int4", "nvfp4")),
                get_accelerator_view_from_cpu_tensor=lambda t: t.cuda(),
                canonicalize_singleton_dim_strides=lambda t: t, nvfp4_kv_cache_full_dim=lambda d: d // 2 + d // 16)


def group_quant_fp8(x, q, scales, group, eps, least, most, *_):
    """`_C.per_token_group_fp8_quant`, without the variants of scales."""
    parts = x.float().reshape(*x.shape[:-1], -1, group)
    scale = parts.abs().amax(-1).clamp(min=eps) / most
    scales.copy_(scale)
    q.copy_((parts / scale[..., None]).clamp(least, most).reshape(x.shape).to(q.dtype))


def install_operations():
    """Gives PyTorch the operations that vLLM's extensions would register."""
    for name in ("vllm", "_C", "_moe_C", "_C_cache_ops"):
        setattr(torch.ops, name, Operations())
    torch.ops._C.per_token_group_fp8_quant = group_quant_fp8
    torch.ops._C.silu_and_mul = silu_and_mul


class ScaleFormat(enum.Enum):
    """`DeepGemmQuantScaleFMT`."""
    FLOAT32 = 0
    FLOAT32_CEIL_UE8M0 = 1
    UE8M0 = 2


class Experts:
    """`FusedMoEExpertsModular`, as far as functions outside of it use it."""

    @staticmethod
    def adjust_N_for_activation(n, activation):
        """A gated activation halves it."""
        return n // 2


MODULES = {
    "vllm.model_executor.layers.fused_moe.modular_kernel": lambda: dict(FusedMoEExpertsModular=Experts),
    "vllm.platforms": lambda: dict(current_platform=Platform(), vllm_version_matches_substr=lambda *_: False),
    "vllm.triton_utils": triton_utils,
    "vllm.logger": lambda: dict(init_logger=lambda name: Logger(name)),
    "vllm._custom_ops": custom_ops,
    "vllm.utils.torch_utils": torch_utils,
    "vllm.utils.functools": lambda: dict(cache=functools.cache),
    "vllm.utils.import_utils": lambda: dict(has_triton_kernels=lambda: False, has_deep_gemm=lambda: False),
    "vllm.utils.deep_gemm": lambda: dict(DeepGemmQuantScaleFMT=ScaleFormat, is_deep_gemm_e8m0_used=lambda: False, is_deep_gemm_supported=lambda: False,
                                         get_col_major_tma_aligned_tensor=lambda x: x,
                                         get_tma_aligned_size=lambda n, size: -(-n // (16 // size)) * (16 // size)),
}
