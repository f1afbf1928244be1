"""A launch with an array whose producer has freed memory too early: `scripts/asan` checks that it is reported.

    python use_after_free.py elements|capsule|interface

freed are the elements of a DLPack tensor, the tensor itself, or the elements of an array by `__array_interface__`. Where nothing
looks, it ends normally.
"""

import ctypes
import sys
import types

import numpy as np
from foreign import add_one
from managed_tensor import Dlpack, Tensor, capsule

LIBC = ctypes.CDLL(None)
LIBC.malloc.restype, LIBC.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
LIBC.free.restype, LIBC.free.argtypes = None, [ctypes.c_void_p]
CPU = (1, 0)


class Freed(Dlpack):
    """The tensor is freed before its capsule is opened."""

    def __dlpack__(self, **options):
        address = LIBC.malloc(ctypes.sizeof(Tensor))
        made = capsule(self.fill(Tensor.from_address(address)))
        LIBC.free(address)
        return made


elements = LIBC.malloc(256)
match sys.argv[1]:
    case "elements":
        x = Dlpack(elements, CPU)
        LIBC.free(elements)
    case "capsule":
        x = Freed(elements, CPU)
    case "interface":
        interface = {"shape": (64,), "typestr": "<f4", "data": (elements, False), "version": 3}
        x = types.SimpleNamespace(__array_interface__=interface, dtype=np.dtype(np.float32), nbytes=256)
        LIBC.free(elements)
    case other:
        sys.exit(f"use_after_free: no mistake {other}")
add_one[(1,)](x, np.zeros(64, np.float32), 64, BLOCK=64)
