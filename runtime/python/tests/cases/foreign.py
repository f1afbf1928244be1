"""Memory of other libraries: how long it lives, what comes back to it, what may not be written."""

import gc
import threading
import unittest

import numpy as np
from protocols import Interface

import rtc
import rtc.language as tl
from rtc.backends.compiler import GPUTarget
from rtc.compiler import ASTSource


@rtc.jit
def add_one(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@rtc.jit
def spin(out, n, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(out + i, mask=i < n)
    for _ in range(ROUNDS):
        total = total * 0.5 + 1
    tl.store(out + i, total, mask=i < n)


@rtc.jit
def add_one_strided(x, stride, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * stride, mask=i < n) + 1, mask=i < n)


@rtc.jit
def add_pair(pair, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(pair[1] + i, tl.load(pair[0] + i, mask=i < n) + 1, mask=i < n)


class Copying:
    """Its `__dlpack__` exports a copy, which dies with the tensor."""

    def __init__(self, array):
        self.array, self.asked = array, []

    def __dlpack__(self, **options):
        self.asked.append(options)
        return self.array.copy().__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Old(Copying):
    """Of the time before `max_version`."""

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


class Viewing(Copying):
    """Exports its own memory."""

    def __dlpack__(self, **options):
        self.asked.append(options)
        return self.array.__dlpack__(**options)


N = 1 << 20


class Lifetime(unittest.TestCase):
    def test_a_copy_lives_as_long_as_the_launch(self):
        x = np.arange(N, dtype=np.float32)
        for _ in range(3):
            out = np.zeros(N, np.float32)
            producer = Copying(x)
            add_one[(N // 1024,)](producer, out, N, BLOCK=1024)
            np.testing.assert_array_equal(out, x + 1)
        self.assertIn("max_version", producer.asked[0])

    def test_a_copy_lives_in_a_tuple(self):
        x, out = np.arange(N, dtype=np.float32), np.zeros(8, np.float32)
        add_pair[(1,)]((Copying(x), out), 8, BLOCK=8)
        np.testing.assert_array_equal(out, x[:8] + 1)

    def test_a_copy_lives_while_configurations_are_tried(self):
        def bench(call, quantiles):
            call()
            return [1.0] * 3

        configs = [rtc.Config({"BLOCK": block}) for block in (512, 1024)]
        tuned = rtc.autotune(configs=configs, key=["n"], do_bench=bench)(add_one)
        x, out = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
        tuned[lambda meta: (N // meta["BLOCK"],)](Copying(x), out, N)
        np.testing.assert_array_equal(out, x + 1)

    def test_a_copy_lives_while_a_compiled_kernel_runs(self):
        kinds = {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
        compiled = rtc.compile(ASTSource(add_one, kinds, {"BLOCK": 1024}), target=GPUTarget("cpu", 0, 32))
        x, out = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
        compiled.run(N // 1024, 1, 1, 0, compiled.function, compiled.packed_metadata, None, None, None, Copying(x), out, N, 1024)
        np.testing.assert_array_equal(out, x + 1)

    def test_the_results_in_a_copy_are_lost_and_nothing_else(self):
        out = np.zeros(1 << 20, np.float32)
        add_one[(1,)](np.ones(8, np.float32), Copying(out), 8, BLOCK=8)
        self.assertEqual(np.count_nonzero(out), 0)

    def test_tensors_are_given_back_after_the_launch(self):
        class Counted(np.ndarray):
            pass

        import weakref

        x = np.arange(64, dtype=np.float32).view(Counted)
        gone = weakref.ref(x)
        out = np.zeros(64, np.float32)
        add_one[(1,)](Viewing(x), out, 64, BLOCK=64)
        del x
        gc.collect()
        self.assertIsNone(gone())

    def test_producers_without_keywords(self):
        x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
        add_one[(1,)](Old(x), Old(out), 64, BLOCK=64)
        np.testing.assert_array_equal(out, x + 1)


class Results(unittest.TestCase):
    def test_what_another_thread_writes_beside_the_output_stays(self):
        base, n, lost = np.zeros(4097, np.float32), 4096, []
        started, stop = threading.Event(), threading.Event()
        spin[(4,)](base[:n], n, ROUNDS=200, BLOCK=1024)

        def write():
            count = 0
            while not stop.is_set():
                if base[-1] != count:
                    lost.append((count, base[-1]))
                count += 1
                base[-1] = count
                started.set()

        thread = threading.Thread(target=write)
        thread.start()
        started.wait()
        try:
            for _ in range(3):
                spin[(4,)](base[:n], n, ROUNDS=200, BLOCK=1024)
        finally:
            stop.set()
            thread.join()
        self.assertEqual(lost, [])
        np.testing.assert_allclose(base[:n], 2, rtol=1e-6)

    def test_kernels_of_two_threads_write_halves_of_an_array(self):
        base = np.zeros(8192, np.float32)
        ones = np.ones(4096, np.float32)
        halves = [base[:4096], base[4096:]]
        add_one[(4,)](ones, np.zeros(4096, np.float32), 4096, BLOCK=1024)
        for _ in range(5):
            base[:] = 0
            threads = [
                threading.Thread(target=lambda half=half: add_one[(4,)](ones, half, 4096, BLOCK=1024)) for half in halves
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            np.testing.assert_array_equal(base, 2)

    def test_writes_outside_of_the_view_arrive_as_on_a_gpu(self):
        base = np.zeros(64, np.float32)
        add_one[(1,)](np.ones(64, np.float32), base[:32], 64, BLOCK=64)
        np.testing.assert_array_equal(base, 2)

    def test_reversed_and_strided_views(self):
        base = np.zeros(64, np.float32)
        add_one[(1,)](np.ones(1, np.float32), base[::-1], 1, BLOCK=1)
        self.assertEqual((base[-1], np.count_nonzero(base)), (2, 1))


class Extent(unittest.TestCase):
    """Arrays over buffers, whose memory is not `nbytes` from the first element on."""

    def check(self, x, stride):
        out = np.zeros(8, np.float32)
        add_one_strided[(1,)](x, stride, out, 8, BLOCK=8)
        np.testing.assert_array_equal(out, x[:8] + 1)

    def test_gaps_between_elements(self):
        x = np.ndarray((8,), np.float32, buffer=bytearray(8 * 256), strides=(256,))
        x[:] = np.arange(8)
        self.check(x, 64)

    def test_reversed(self):
        buffer = bytearray(32)
        x = np.ndarray((8,), np.float32, buffer=buffer, offset=28, strides=(-4,))
        x[:] = np.arange(8)
        self.check(x, -1)
        add_one_strided[(1,)](np.ones(8, np.float32), 1, x, 1, BLOCK=8)
        np.testing.assert_array_equal(x, [2, *range(1, 8)])

    def test_all_elements_in_one_place(self):
        # 4 GB of elements in 4 bytes.
        self.check(np.ndarray((1 << 30,), np.float32, buffer=bytearray(4), strides=(0,)), 0)


class ReadOnly(unittest.TestCase):
    def refused(self, out, kernel=add_one, args=None, name="out"):
        args = args or (np.ones(8, np.float32), out, 8)
        with self.assertRaisesRegex(ValueError, f"argument `{name}`.*read-only"):
            kernel[(1,)](*args, BLOCK=8)

    def test_arrays_of_numpy(self):
        out = np.zeros(8, np.float32)
        out.flags.writeable = False
        self.refused(out)
        np.testing.assert_array_equal(out, 0)
        self.refused(np.frombuffer(bytes(32), np.float32))
        self.refused(Interface(out))

    def test_a_view_that_is_read_only_of_an_array_that_is_not(self):
        base = np.zeros(8, np.float32)
        view = base[:]
        view.flags.writeable = False
        self.refused(view)
        # The same memory by another argument may be written.
        add_one[(1,)](view, base, 8, BLOCK=8)
        np.testing.assert_array_equal(base, 1)

    def test_dlpack(self):
        out = np.zeros(8, np.float32)
        out.flags.writeable = False
        self.refused(Viewing(out))

    def test_in_a_tuple(self):
        x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
        x.flags.writeable = False
        add_pair[(1,)]((x, out), 8, BLOCK=8)
        np.testing.assert_array_equal(out, 2)
        self.refused(out, add_pair, ((out, x), 8), r"pair\.1")

    def test_reading_is_allowed(self):
        x, out = np.frombuffer(bytes(32), np.float32), np.zeros(8, np.float32)
        add_one[(1,)](x, out, 8, BLOCK=8)
        add_one[(1,)](np.broadcast_to(np.float32(1), 8), np.zeros(8, np.float32), 1, BLOCK=8)
        np.testing.assert_array_equal(out, 1)


class Numbers(unittest.TestCase):
    def test_the_class_of_an_error_is_not_found_in_its_words(self):
        with self.assertRaises(OverflowError):
            typed[(1,)](np.zeros(1, np.int32), 1 << 40)


@rtc.jit
def typed(out, n: tl.int32):
    tl.store(out, n)


if __name__ == "__main__":
    unittest.main()
