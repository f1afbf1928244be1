"""DLPack's managed tensors, made without a library."""

import ctypes

# What was exported: a launch on a GPU may give it back after the caller has forgotten it.
EXPORTED = []


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int * 2), ("ndim", ctypes.c_int), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


def capsule(tensor):
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(ctypes.addressof(tensor), b"dltensor", None)


class Dlpack:
    """An array of 64 floats by `__dlpack__`, which counts how often it is given back."""

    def __init__(self, address, device):
        self.address, self.device, self.asked, self.freed = address, device, [], 0
        self.shape = (ctypes.c_int64 * 1)(64)
        self.deleter = Tensor._fields_[-1][1](self.free)

    def free(self, _):
        self.freed += 1

    def fill(self, tensor):
        tensor.data, tensor.device, tensor.deleter = self.address, self.device, self.deleter
        tensor.ndim, tensor.code, tensor.bits, tensor.lanes = 1, 2, 32, 1
        tensor.shape, tensor.strides, tensor.offset, tensor.context = ctypes.addressof(self.shape), None, 0, None
        return tensor

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, **options):
        self.asked.append(stream)
        self.tensor = self.fill(Tensor())
        EXPORTED.append(self)
        return capsule(self.tensor)
