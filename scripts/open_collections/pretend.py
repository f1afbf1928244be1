"""Has a program for a GPU run on the CPU: `cuda` means the CPU, PyTorch says that there is one GPU of compute capability 9.0.

Memory that is allocated without content is filled with a pattern that no computation gives (a NaN in every format of floats),
so that `undefined` finds it again, also in what was copied from it.
"""

import types

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

PATTERN = 0x7FF1

# While a kernel is launched, tensors are where they are.
launching = False


def device_of(value):
    """The CPU for a GPU; other values as they are."""
    if isinstance(value, str) and value.startswith("cuda"):
        return "cpu"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return value


def storage_bytes(tensor):
    """The bytes of the memory that a tensor lies in, as an array that shares it."""
    storage = tensor.untyped_storage()
    flat = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
    return flat.detach().numpy()


def fill(tensor):
    """Fills the memory of a tensor with the pattern."""
    if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu":
        raw = storage_bytes(tensor)
        even = raw[: len(raw) // 2 * 2]
        even.view(np.uint16)[...] = PATTERN


def undefined(raw, element):
    """The ranges [first, end] of an array of bytes not written since `fill`; elements of `element` bytes."""
    if len(raw) < 4:
        return []
    is_pattern = raw[: len(raw) // 2 * 2].view(np.uint16) == PATTERN
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_pattern, [False])).astype(np.int8)))
    ranges = [[int(first) * 2, int(end) * 2] for first, end in zip(edges[::2], edges[1::2])]
    # A few bytes may have the pattern by chance.
    least = 4 if element >= 4 or len(raw) <= 8 else 8
    whole = [[-(-first // element) * element, end // element * element] for first, end in ranges]
    return [[first, end] for first, end in whole if end - first >= least]


class OnCpu(TorchFunctionMode):
    """Calls of PyTorch with the CPU in the place of a GPU."""

    EMPTY = {torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted, torch.Tensor.new_empty}
    IS_CUDA = torch.Tensor.is_cuda.__get__

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = {name: device_of(value) for name, value in (kwargs or {}).items()}
        if func == torch.Tensor.cuda:
            return args[0].clone()
        if func == self.IS_CUDA:
            return not launching
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        result = func(*[device_of(value) for value in args], **kwargs)
        if func in self.EMPTY:
            fill(result)
        return result


class Nothing:
    """A stream, an event, a context: all that it does is nothing."""

    idx = 0
    cuda_stream = 0

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: 0


def start():
    """Begins to pretend; gives the mode, which must be kept."""
    cuda = torch.cuda
    for name, value in {"is_available": True, "device_count": 1, "current_device": 0, "get_device_capability": (9, 0)}.items():
        setattr(cuda, name, lambda *args, value=value, **kwargs: value)
    for name in ("synchronize", "empty_cache", "manual_seed", "manual_seed_all", "set_device"):
        setattr(cuda, name, lambda *args, **kwargs: None)
    for name in ("device", "Event", "Stream", "stream"):
        setattr(cuda, name, Nothing)
    cuda.current_stream = lambda *args, **kwargs: Nothing()
    cuda.get_device_name = lambda *args: "a GPU that is not there"
    # Few SMs: kernels with one program for each are small, and still have several.
    properties = types.SimpleNamespace(multi_processor_count=6, name="none", major=9, minor=0, total_memory=1 << 37,
                                       warp_size=32, shared_memory_per_block_optin=232448, L2_cache_size=1 << 25)
    cuda.get_device_properties = lambda *args, **kwargs: properties
    torch.backends.cuda.matmul.allow_tf32 = False
    mode = OnCpu()
    mode.__enter__()
    return mode
