"""Memory of other libraries on two GPUs, by a driver that does nothing; PyTorch is not loaded."""

import ctypes
import os
import unittest

import managed_tensor

import rtc
import rtc.language as tl

DRIVER = ctypes.CDLL(os.path.join(os.environ["RTC_STUBS"], "libcuda.so.1"))
STREAM = 0x5000


def read(name, kind=ctypes.c_int):
    return kind.in_dll(DRIVER, name).value


@rtc.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


class Cuda:
    """An array by `__cuda_array_interface__`; the stub says that memory of GPU N begins at N << 40."""

    def __init__(self, gpu, stream=None, read_only=False):
        self.__cuda_array_interface__ = {
            "shape": (64,), "typestr": "<f4", "data": ((gpu << 40) + 4096, read_only), "version": 3, "stream": stream,
        }


class Dlpack(managed_tensor.Dlpack):
    def __init__(self, gpu):
        super().__init__((gpu << 40) + 4096, (2, gpu))


class Old(Dlpack):
    """Of the time before DLPack 1.0."""

    def __dlpack__(self, stream=None):
        return super().__dlpack__(stream=stream)


class Gpus(unittest.TestCase):
    def launch(self, x, y):
        kernel[(1,)](x, y, 64, BLOCK=64)
        return read("launched_device")

    def test_the_launch_is_where_the_array_is(self):
        for make in (Cuda, Dlpack):
            for gpu in (1, 0, 1):
                with self.subTest(make=make, gpu=gpu):
                    self.assertEqual(self.launch(make(gpu), make(gpu)), gpu)

    def test_arrays_on_two_gpus_are_an_error(self):
        for make in (Cuda, Dlpack):
            with self.assertRaisesRegex(ValueError, "GPU 1.*GPU 0"):
                self.launch(make(0), make(1))

    def test_the_device_that_was_asked_for_has_to_be_that_of_the_array(self):
        rtc.set_device("cuda:0")
        try:
            self.assertEqual(self.launch(Cuda(0), Cuda(0)), 0)
            with self.assertRaisesRegex(ValueError, "asks for GPU 0, but an argument lies on GPU 1"):
                self.launch(Cuda(1), Cuda(1))
        finally:
            rtc.set_device("auto")

    def test_the_launch_waits_for_the_stream_of_the_interface(self):
        waited_for = ctypes.c_void_p.in_dll(DRIVER, "waited_for")
        for stream in (STREAM, 2):
            waited_for.value = None
            self.launch(Cuda(1, stream), Cuda(1))
            self.assertEqual(waited_for.value, stream)
        # The default stream, which the launch is on, too.
        for stream in (None, 1):
            waited_for.value = None
            self.launch(Cuda(1, stream), Cuda(1))
            self.assertIsNone(waited_for.value)
        with self.assertRaisesRegex(ValueError, "stream 0"):
            self.launch(Cuda(1, 0), Cuda(1))

    def test_the_stream_of_the_launch_is_told_by_dlpack(self):
        for x in (Dlpack(1), Old(1)):
            self.launch(x, Dlpack(1))
            # The protocol's number of the default stream.
            self.assertEqual(x.asked, [1])

    def test_tensors_are_given_back_when_the_launch_is_done(self):
        status = ctypes.c_int.in_dll(DRIVER, "event_status")
        x, y = Dlpack(0), Cuda(0)
        status.value = 600
        try:
            self.launch(x, y)
            self.launch(Dlpack(0), y)
            self.assertEqual(x.freed, 0)
        finally:
            status.value = 0
        self.launch(Dlpack(0), y)
        self.assertEqual(x.freed, 1)

    def test_read_only_arrays(self):
        self.launch(Cuda(0, read_only=True), Cuda(0))
        before = read("launches", ctypes.c_ulong)
        with self.assertRaisesRegex(ValueError, "argument `y`.*read-only"):
            self.launch(Cuda(0), Cuda(0, read_only=True))
        self.assertEqual(read("launches", ctypes.c_ulong), before)


if __name__ == "__main__":
    unittest.main()
