"""As much of the CUDA driver as the kernels need, by ctypes: loading PTX, tensor maps, launches on PyTorch's stream."""

import ctypes

import torch

TYPES = {"e4m3": 0, "f16": 6, "f32": 7, "bf16": 9, "tf32": 11}      # tf32: the copies round f32 on their way
SWIZZLE = {0: 0, 32: 1, 64: 2, 128: 3}
PROMOTE_TO_256_BYTES = 2
ERROR_LOG, ERROR_LOG_SIZE = 5, 6
MOST_DYNAMIC_SHARED_BYTES = 8


def _driver():
    if not hasattr(_driver, "library"):
        _driver.library = ctypes.CDLL("libcuda.so.1")
    return _driver.library


def _check(status, what):
    if status:
        name = ctypes.c_char_p()
        _driver().cuGetErrorName(status, ctypes.byref(name))
        raise RuntimeError(f"{what}: {name.value.decode() if name.value else status}")


class TensorMap:
    """The map of a tensor for copies by TMA. Sizes and the box with the innermost first; strides in bytes, without the innermost."""

    def __init__(self, address, kind, sizes, strides, box, swizzle):
        rank = len(sizes)
        self.storage = ctypes.create_string_buffer(128 + 64)
        self.address = (ctypes.addressof(self.storage) + 63) & ~63
        status = _driver().cuTensorMapEncodeTiled(
            ctypes.c_void_p(self.address), TYPES[kind], rank, ctypes.c_void_p(address), (ctypes.c_uint64 * rank)(*sizes),
            (ctypes.c_uint64 * (rank - 1))(*strides), (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*([1] * rank)),
            0, SWIZZLE[swizzle], PROMOTE_TO_256_BYTES, 0)
        _check(status, f"tensor map of {sizes}")


class Kernel:
    """A loaded kernel."""

    def __init__(self, ptx, name, shared):
        torch.zeros(1, device="cuda")       # PyTorch's context is the current one from here on
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(8192)
        options, values = (ctypes.c_int * 2)(ERROR_LOG, ERROR_LOG_SIZE), (ctypes.c_void_p * 2)(ctypes.addressof(log), 8192)
        status = _driver().cuModuleLoadDataEx(ctypes.byref(module), ptx.encode() + b"\0", 2, options, values)
        _check(status, f"{name}: {log.value.decode()[:1000]}")
        self.function, self.shared = ctypes.c_void_p(), shared
        _check(_driver().cuModuleGetFunction(ctypes.byref(self.function), module, name.encode()), name)
        _check(_driver().cuFuncSetAttribute(self.function, MOST_DYNAMIC_SHARED_BYTES, shared), name)

    def call(self, blocks, threads, *arguments):
        """A launch with these arguments, as a function; it keeps alive what they point to."""
        kept, pointers = [], []
        for value in arguments:
            if isinstance(value, TensorMap):
                kept.append(value)
                pointers.append(value.address)
                continue
            kind = ctypes.c_uint64 if isinstance(value, torch.Tensor) else ctypes.c_float if isinstance(value, float) else ctypes.c_int32
            number = kind(value.data_ptr() if isinstance(value, torch.Tensor) else value)
            kept.append((value, number))
            pointers.append(ctypes.addressof(number))
        array = (ctypes.c_void_p * len(pointers))(*pointers)

        def launch(kept=kept):
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            status = _driver().cuLaunchKernel(self.function, blocks, 1, 1, threads, 1, 1, self.shared, stream, array, None)
            _check(status, "launch")
        return launch
