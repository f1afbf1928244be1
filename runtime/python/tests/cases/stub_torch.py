"""What launches need of PyTorch, without PyTorch: tensors on a GPU that is none. The test makes the libraries."""

import ctypes
import os
import struct
import sys
import types

FOLDER = os.environ["RTC_STUBS"]
LIBRARIES = [ctypes.CDLL(os.path.join(FOLDER, f"libtorch_{part}.so")) for part in ("cpu", "cuda")]
DRIVER = ctypes.CDLL(os.path.join(FOLDER, "libcuda.so.1"))
asked = []


class dtype:
    def __init__(self, name, code):
        self.name, self.code = name, code

    def __str__(self):
        return f"torch.{self.name}"


float16, float32 = dtype("float16", 5), dtype("float32", 6)


class Tensor:
    """Its first slot, that of the first name, is where PyTorch's tensors have theirs."""
    __slots__ = ("A", "address", "type")

    def __init__(self, address, type=float32, device=1):
        self.address, self.type = address, type
        self.A = struct.pack("Qii", address, type.code, device)

    _cdata = property(lambda self: id(self.A))
    is_cuda = property(lambda self: True)
    untyped_storage = None

    @property
    def dtype(self):
        asked.append(self)
        return self.type

    def data_ptr(self):
        return self.address


class Parameter(Tensor):
    __slots__ = ()


class Other(Tensor):
    __slots__ = ()


def install():
    """Has `import torch` give this."""
    torch = types.ModuleType("torch")
    torch.Tensor, torch.nn = Tensor, types.SimpleNamespace(Parameter=Parameter)
    number = lambda name, kind=ctypes.c_int32: kind.in_dll(LIBRARIES[0], name).value
    torch._C = types.SimpleNamespace(
        _cuda_getDevice=lambda: number("current_device"),
        _cuda_getCurrentRawStream=lambda device: number("current_stream", ctypes.c_uint64) + device)
    torch.cuda = types.SimpleNamespace(is_available=lambda: False)
    sys.modules["torch"] = torch


def launched():
    """The parameters, the grid and the stream of the last launch, and how many there were."""
    size = ctypes.c_size_t.in_dll(DRIVER, "launched_size").value
    params = bytes((ctypes.c_ubyte * 256).in_dll(DRIVER, "launched_params"))[:size]
    grid = tuple((ctypes.c_uint * 3).in_dll(DRIVER, "launched_grid"))
    return params, grid, ctypes.c_uint64.in_dll(DRIVER, "launched_stream").value, ctypes.c_ulong.in_dll(DRIVER, "launches").value


def set_current(device=0, stream=0):
    """Makes a GPU and a stream the current ones."""
    for library in LIBRARIES:
        ctypes.c_int32.in_dll(library, "current_device").value = device
        ctypes.c_uint64.in_dll(library, "current_stream").value = stream
