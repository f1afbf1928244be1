"""The kernel language for host code: dtypes, `constexpr`, and the names that kernels use."""

from . import core, extra, math, random, standard, target_info
from .core import (TRITON_MAX_TENSOR_NUMEL, PropagateNan, bfloat16, block_type, const, constexpr, dtype, float16, float32,
                   float64, float8e4b15, float8e4b8, float8e4nv, float8e5, float8e5b16, int1, int16, int32, int64, int8,
                   pi32_t, pointer_type, range, static_range, str_to_ty, tensor, tensor_descriptor, uint16, uint32,
                   uint64, uint8, void)
from .extra import libdevice

__all__ = sorted(set(core.FUNCTIONS["tl"]) | {
    "TRITON_MAX_TENSOR_NUMEL", "PropagateNan", "bfloat16", "block_type", "const", "constexpr", "dtype", "float16", "float32",
    "float64", "float8e4b15", "float8e4b8", "float8e4nv", "float8e5", "float8e5b16", "int1", "int16", "int32", "int64", "int8",
    "math", "extra", "pi32_t", "pointer_type", "range", "static_range", "tensor", "tensor_descriptor", "uint16", "uint32",
    "uint64", "uint8", "void"})


def __getattr__(name):
    if name in core.FUNCTIONS["tl"]:
        return core.FUNCTIONS["tl"][name]
    raise AttributeError(f"rtc has no `triton.language.{name}`")


def __dir__():
    return sorted(set(globals()) | set(__all__))
