"""Arrays of other libraries: by DLPack, by the array interfaces."""

import types
import unittest

import numpy as np

import rtc
import rtc.language as tl


@rtc.jit
def double(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


class Exported:
    """An array that is known by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Sometimes(Exported):
    """Of a class some of whose arrays have `__cuda_array_interface__`, as JAX's do."""

    def __init__(self, array, interface=None):
        super().__init__(array)
        self.interface = interface

    @property
    def __cuda_array_interface__(self):
        if self.interface is None:
            raise AttributeError("not of this array")
        return self.interface


class Never(Sometimes):
    """The same, of which such an array comes first."""


class Interface:
    """An array that is known by `__array_interface__`."""

    def __init__(self, array):
        self.array, self.dtype, self.nbytes = array, array.dtype, array.nbytes

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class Meta:
    """A tensor as PyTorch has them on the device `meta`."""
    is_cuda, device = False, types.SimpleNamespace(type="meta")
    dtype, untyped_storage = "torch.float32", None

    def data_ptr(self):
        return 0


class Protocols(unittest.TestCase):

    def check(self, wrap, dtype=np.float32):
        x, out = np.arange(100).astype(dtype), np.zeros(100, dtype)
        double[(4,)](wrap(x), wrap(out), 100, BLOCK=32)
        np.testing.assert_array_equal(out, x * 2)

    def test_dlpack(self):
        for dtype in (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
            with self.subTest(dtype=dtype):
                self.check(Exported, dtype)

    def test_a_part_by_dlpack(self):
        whole, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
        double[(1,)](Exported(whole[50:60]), Exported(out[3:]), 10, BLOCK=32)
        np.testing.assert_array_equal(out[3:13], whole[50:60] * 2)
        self.assertEqual(np.count_nonzero(out), 10)

    def test_tensors_without_memory(self):
        for x, out, name in ((Meta(), np.zeros(4, np.float32), "x"), (Meta(), Meta(), "x"), (np.zeros(4, np.float32), Meta(), "out")):
            with self.assertRaisesRegex(ValueError, f"`double`, argument `{name}`: the tensor is on the device `meta`.*warmup"):
                double[(1,)](x, out, 4, BLOCK=32)
        self.assertIn(".entry double", double.warmup(Meta(), Meta(), 4, BLOCK=32, grid=(1,)).asm["ptx"])

    def test_array_interface(self):
        self.check(Interface)

    def test_dlpack_stands_in_where_an_array_has_no_interface(self):
        with self.assertRaises(Exception):
            # That this class has arrays on a GPU is known from here on; nothing lies at this address.
            double[(1,)](Sometimes(np.zeros(1), {"data": "none"}), np.zeros(1), 1, BLOCK=32)
        self.check(Sometimes)
        self.check(Never)

    def test_an_array_with_neither_keeps_its_error(self):
        class Broken(Sometimes):
            __dlpack__ = __dlpack_device__ = property(lambda self: self.nothing)

        with self.assertRaises(Exception):
            double[(1,)](Broken(np.zeros(1), {"data": "none"}), np.zeros(1), 1, BLOCK=32)
        with self.assertRaisesRegex(AttributeError, "not of this array"):
            double[(1,)](Broken(np.zeros(1)), np.zeros(1), 1, BLOCK=32)
