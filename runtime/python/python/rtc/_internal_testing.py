"""What Triton's own tests take from `triton._internal_testing`: names of dtypes, questions about the target, arrays of
random numbers. It needs numpy, PyTorch and pytest."""

import numpy as np
import pytest
import torch

from . import knobs, language as tl
from .runtime.driver import driver
from .runtime.jit import TensorWrapper, reinterpret

int_dtypes = ["int8", "int16", "int32", "int64"]
uint_dtypes = ["uint8", "uint16", "uint32", "uint64"]
integral_dtypes = int_dtypes + uint_dtypes
float_dtypes = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16 = float_dtypes + ["bfloat16"]
dtypes = integral_dtypes + float_dtypes
dtypes_with_bfloat16 = dtypes + ["bfloat16"]
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool", *int_dtypes, "uint8", *float_dtypes, "bfloat16"]
tma_dtypes = sorted(set(dtypes_with_bfloat16) - {"int64", "uint64", "float64"})


def is_interpreter():
    """Whether kernels run as Python: rtc's interpreter compiles, so they never do."""
    return False


def get_current_target():
    """What kernels are compiled for."""
    return driver.active.get_current_target()


def is_cuda():
    return True


def is_ampere_or_newer():
    return get_current_target().arch >= 80


def is_hopper_or_newer():
    return get_current_target().arch >= 90


def is_hopper():
    return get_current_target().arch // 10 == 9


def is_blackwell():
    return get_current_target().arch // 10 == 10


def is_sm12x():
    return get_current_target().arch // 10 == 12


def _never():
    return False


is_hip = is_hip_cdna = is_hip_cdna2 = is_hip_cdna3 = is_hip_cdna4 = is_hip_gfx11 = is_hip_gfx12 = is_hip_gfx1250 = is_xpu = _never


def get_arch():
    """The target as text."""
    return str(get_current_target().arch)


def numpy_random(shape, dtype_str, rs=None, low=None, high=None):
    """Random numbers of a dtype; none of the integers is 0."""
    if isinstance(shape, int):
        shape = (shape, )
    rs = np.random.RandomState(seed=17) if rs is None else rs
    if dtype_str in integral_dtypes:
        info = np.iinfo(getattr(np, dtype_str))
        low = info.min if low is None else max(low, info.min)
        high = info.max if high is None else min(high, info.max)
        x = rs.randint(low, high, shape, dtype=getattr(np, dtype_str))
        x[x == 0] = 1
        return x
    if dtype_str and "float8" in dtype_str:
        return rs.randint(20, 40, shape, dtype=np.int8)
    if dtype_str in float_dtypes:
        return rs.normal(0, 1, shape).astype(dtype_str)
    if dtype_str == "bfloat16":
        x = rs.normal(0, 1, shape).astype("float32")
        return (x.view("uint32") & np.uint32(0xffff0000)).view("float32")
    if dtype_str in ("bool", "int1", "bool_"):
        return rs.normal(0, 1, shape) > 0.0
    raise RuntimeError(f"there are no random numbers of {dtype_str}")


def to_triton(x, device, dst_type=None):
    """An array as a tensor on a device, of another dtype if one is named."""
    name = x.dtype.name
    if name in uint_dtypes:
        signed = x.astype(getattr(np, name.lstrip("u")))
        return reinterpret(torch.tensor(signed, device=device), getattr(tl, name))
    if dst_type and "float8" in dst_type:
        return reinterpret(torch.tensor(x, device=device), getattr(tl, dst_type))
    if name == "float32" and dst_type == "bfloat16":
        return torch.tensor(x, device=device).bfloat16()
    return torch.tensor(x, device=device)


def str_to_triton_dtype(name):
    """The dtype of a signature's name."""
    return tl.str_to_ty({"bool": "int1"}.get(name, name), None)


def torch_dtype_name(dtype):
    """The name of a dtype of PyTorch or of the kernel language, as PyTorch has it."""
    if isinstance(dtype, tl.dtype):
        return {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "int1": "bool"}.get(dtype.name, dtype.name)
    if isinstance(dtype, torch.dtype):
        return str(dtype).rsplit(".", 1)[1]
    raise TypeError(f"not a dtype of PyTorch or Triton: {dtype!r}")


def to_numpy(x):
    """A tensor as an array; bfloat16 as float32."""
    if isinstance(x, TensorWrapper):
        return x.base.cpu().numpy().astype(getattr(np, torch_dtype_name(x.dtype)))
    if isinstance(x, torch.Tensor):
        return x.cpu().float().numpy() if x.dtype is torch.bfloat16 else x.cpu().numpy()
    raise ValueError(f"not a tensor: {x!r}")


def unwrap_tensor(t):
    """The tensor behind a wrapper."""
    return t.base if isinstance(t, TensorWrapper) else t


def supports_tma(byval_only=False):
    return is_hopper_or_newer()


def supports_ws():
    return is_hopper_or_newer()


def tma_skip_msg(byval_only=False):
    return "Requires TMA, on targets from sm_90 on"


requires_tma = pytest.mark.skipif(not supports_tma(), reason=tma_skip_msg())


def default_alloc_fn(size, align, stream):
    """Scratch memory by PyTorch."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


def _fresh_knobs_impl(skipped_attr=None):
    groups = [group for name, group in vars(knobs).items()
              if isinstance(group, knobs._Group) and name not in (skipped_attr or ())]
    scopes = [group.scope() for group in groups]

    def fresh():
        for scope in scopes:
            scope.__enter__()
        return knobs

    def reset():
        for scope in reversed(scopes):
            scope.__exit__(None, None, None)

    return fresh, reset
