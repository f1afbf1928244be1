"""Autotuning, heuristics, timing, reports."""

import concurrent.futures
import contextlib
import copy
import os
import tempfile
import threading
import time
import unittest
import unittest.mock as mock
import xml.dom.minidom

import numpy as np

import rtc
import rtc.language as tl
from rtc.tools.tensor_descriptor import TensorDescriptor

CONFIGS = [rtc.Config({"BLOCK": 32}), rtc.Config({"BLOCK": 64}, num_warps=2)]
TIMES = {32: 2.0, 64: 1.0}


def fake_bench(call, quantiles):
    call()
    return [TIMES[launched[-1]]] * 3


launched = []


def noted(args):
    launched.append(args["BLOCK"])


def tuned(**options):
    configs = [rtc.Config(c.kwargs, num_warps=c.num_warps, pre_hook=noted) for c in CONFIGS]

    @rtc.autotune(configs=configs, key=["n"], do_bench=fake_bench, **options)
    @rtc.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    @rtc.jit
    def accumulate(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = i < n
        tl.atomic_add(out + i, tl.load(x + i, mask=mask), mask=mask)

    return accumulate


class Autotuning(unittest.TestCase):

    def launch(self, kernel, n=100):
        x, out = np.ones(n, np.float32), np.zeros(n, np.float32)
        kernel[lambda meta: (rtc.cdiv(n, meta["BLOCK"]),)](x, out, n)
        return out

    def test_the_fastest_is_taken_and_kept(self):
        kernel = tuned(reset_to_zero=["out"])
        launched.clear()
        np.testing.assert_array_equal(self.launch(kernel), np.ones(100))
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 64})
        self.assertEqual(launched, [32, 64, 64])
        self.launch(kernel)
        self.assertEqual(launched, [32, 64, 64, 64])
        self.launch(kernel, 64)
        self.assertEqual(len(launched), 7)

    def test_only_configurations_near_the_fastest_are_timed_at_length(self):
        configs = [rtc.Config({"BLOCK": block}) for block in (16, 32, 64, 128)]
        times, calls = {16: 1.1, 32: 1.0, 64: 1.5, 128: 1.15}, []

        @rtc.autotune(configs=configs, key=[])
        @rtc.jit
        def kernel(x, BLOCK: tl.constexpr):
            tl.store(x + tl.arange(0, BLOCK), 1.0)

        def do_bench(call, quantiles, **limits):
            call()
            block = [16, 32, 64, 128, 16, 32, 128][len(calls)]
            calls.append(bool(limits))
            # At length the one that looked slower is the fastest.
            return [times[block] if limits else {16: 0.9}.get(block, 1.0)] * 3

        with mock.patch.object(rtc.testing, "has_gpu", lambda: True), mock.patch.object(rtc.testing, "do_bench", do_bench):
            kernel[(1,)](np.zeros(128, np.float32))
        self.assertEqual(calls, [True] * 4 + [False] * 3)
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 16})
        self.assertEqual(kernel.configs_timings[configs[2]], [1.5] * 3)

    def test_values_are_restored(self):
        kernel = tuned(restore_value=["out"])
        np.testing.assert_array_equal(self.launch(kernel), np.ones(100))

    def test_pruning(self):
        kernel = tuned(reset_to_zero=["out"], prune_configs_by={"perf_model": lambda **a: a["BLOCK"], "top_k": 1})
        self.launch(kernel)
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 32})
        kernel = tuned(prune_configs_by={"early_config_prune": lambda configs, args, **kw: []})
        with self.assertRaisesRegex(rtc.runtime.errors.AutotunerError, "^Autotuner error: .*at least one config"):
            self.launch(kernel)

    def test_values_of_configurations_cannot_be_passed(self):
        kernel = tuned()
        with self.assertRaisesRegex(ValueError, "Conflicting meta-parameters: BLOCK"):
            kernel[(1,)](np.ones(4, np.float32), np.ones(4, np.float32), 4, BLOCK=32)


class Threads(unittest.TestCase):
    """Threads that launch one kernel do not see each other's arguments, and tune each key once."""

    def test_launches_of_several_threads(self):
        trials = []

        def slow(call, quantiles):
            trials.append(threading.get_ident())
            call()
            time.sleep(0.01)
            return [1.0] * 3

        @rtc.autotune(configs=CONFIGS, key=["n"], do_bench=slow, restore_value=["out"])
        @rtc.jit
        def add(x, out, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(out + i, mask=i < n), mask=i < n)

        def launch(n):
            together.wait()
            x, out = np.full(n, n, np.float32), np.ones(n, np.float32)
            add[lambda meta: (rtc.cdiv(n, meta["BLOCK"]),)](x, out, n)
            return (out == n + 1).all()

        sizes = [100, 70, 33] * 3
        together = threading.Barrier(len(sizes))
        with concurrent.futures.ThreadPoolExecutor(len(sizes)) as pool:
            self.assertTrue(all(pool.map(launch, sizes)))
        self.assertEqual(len(trials), 3 * len(CONFIGS))
        self.assertEqual(len(add.cache), 3)

    def test_a_deep_copy_is_the_same_kernel(self):
        kernel = tuned()
        self.assertIs(copy.deepcopy({"kernel": kernel})["kernel"], kernel)


class Events:
    """What happens, in order: what the compiler prints, and what hooks note."""

    def __init__(self):
        self.all = []

    def write(self, text):
        self.all.append(text.strip())

    def flush(self):
        pass


def printing(sizes, events):
    """A kernel whose configurations say that they are compiled and that they are tried."""
    configs = [rtc.Config({"BLOCK": size}, pre_hook=lambda args: events.write(f"trial {args['BLOCK']}")) for size in sizes]

    def bench(call, quantiles):
        call()
        return [1.0] * 3

    @rtc.autotune(configs=configs, key=["n"], do_bench=bench)
    @rtc.heuristics({"TWICE": lambda args: 2 * args["BLOCK"]})
    @rtc.jit
    def counts(out, n, FAILS: tl.constexpr, BLOCK: tl.constexpr, TWICE: tl.constexpr):
        tl.static_print("compiled", BLOCK)
        tl.static_assert(BLOCK != FAILS)
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, TWICE, mask=i < n)

    return counts


class Compiling(unittest.TestCase):
    """All configurations are compiled at the same time, before the first is tried."""

    def setUp(self):
        self.events, self.out = Events(), np.zeros(100, np.int32)

    def run_kernel(self, kernel, fails=0):
        with contextlib.redirect_stdout(self.events):
            kernel[lambda meta: (rtc.cdiv(100, meta["BLOCK"]),)](self.out, 100, fails)
        return self.events.all

    def test_in_the_order_of_the_configurations(self):
        sizes = [256, 16, 128, 32, 64]
        found = self.run_kernel(printing(sizes, self.events))
        said = [f"compiled {size}" for size in sizes]
        trials = [f"trial {size}" for size in sizes] + ["trial 256"]
        self.assertEqual(found, said + trials)
        self.assertTrue((self.out == 512).all())

    def test_one_that_fails_keeps_its_error(self):
        kernel = printing([32, 64, 16], self.events)
        found = self.run_kernel(kernel, fails=32)
        self.assertEqual([event for event in found if event != "compiled 32"],
                         ["compiled 64", "compiled 16", "trial 32", "trial 64", "trial 16", "trial 64"])
        self.assertEqual([times[0] for times in kernel.configs_timings.values()], [float("inf"), 1.0, 1.0])
        self.assertTrue((self.out == 128).all())

    def test_one_with_too_many_threads_is_passed_over(self):
        @rtc.autotune(configs=[rtc.Config({}, num_warps=128), rtc.Config({}, num_warps=2)], key=[],
                      do_bench=lambda call, quantiles: (call(), [1.0] * 3)[1])
        @rtc.jit
        def ones(out, N: tl.constexpr):
            tl.store(out + tl.arange(0, N), 1)

        ones[(1,)](self.out, 64)
        self.assertEqual((ones.best_config.num_warps, self.out.sum()), (2, 64))
        with self.assertRaises(rtc.OutOfResources) as raised:
            ones.fn[(1,)](self.out, 64, num_warps=128)
        self.assertEqual((raised.exception.required, raised.exception.limit, raised.exception.name), (4096, 1024, "threads"))

    def test_one_that_is_no_kernel_raises(self):
        kernel = printing([64, 48], self.events)
        with self.assertRaisesRegex(rtc.CompilationError, "power of"):
            self.run_kernel(kernel)

    def test_heuristics_that_fail_raise_at_the_trial(self):
        kernel = printing([64, 32], self.events)
        kernel.fn.values["TWICE"] = lambda args: 1 // (args["BLOCK"] - 32)
        with self.assertRaises(ZeroDivisionError):
            self.run_kernel(kernel)
        self.assertEqual(self.events.all, ["compiled 64", "trial 64", "trial 32"])

    def test_warmup(self):
        kernel = printing([64, 32], self.events)
        with contextlib.redirect_stdout(self.events):
            made = kernel.warmup(self.out, 100, 0, grid=(1,))
        self.assertEqual([one.metadata.num_warps for one in made], [4, 4])
        self.assertEqual(self.events.all, ["compiled 64", "compiled 32"])

    def test_hooks_set_the_blocks_of_descriptors(self):
        def sized(args):
            args["source"].block_shape = [args["N"], 16]
            self.events.write(f"block {args['N']}")

        @rtc.autotune(configs=[rtc.Config({"N": n}, pre_hook=sized) for n in (8, 16)], key=["M"], do_bench=lambda call, quantiles: (call(), [1.0] * 3)[1])
        @rtc.jit
        def first(source, out, M, N: tl.constexpr):
            tl.static_print("compiled", N)
            tl.store(out + tl.arange(0, N)[:, None] * 16 + tl.arange(0, 16)[None, :], source.load([0, 0]))

        x, out = np.arange(256, dtype=np.float32).reshape(16, 16), np.zeros((16, 16), np.float32)
        with contextlib.redirect_stdout(self.events):
            first[(1,)](TensorDescriptor.from_tensor(x, [1, 16]), out, 16)
        self.assertEqual(self.events.all, ["block 8", "block 16", "compiled 8", "compiled 16", "block 8", "block 16", "block 8"])
        np.testing.assert_array_equal(out, x)


class Timing(unittest.TestCase):

    def test_do_bench(self):
        calls = []
        low, mid, high = rtc.testing.do_bench(lambda: calls.append(sum(range(1000))), warmup=1, rep=3, quantiles=[0.2, 0.5, 0.8])
        self.assertTrue(0 < low <= mid <= high and len(calls) > 3)
        every = rtc.testing.do_bench(lambda: sum(range(1000)), warmup=1, rep=2, return_mode="all")
        self.assertIsInstance(every, list)

    def test_reports(self):
        bench = rtc.testing.Benchmark(x_names=["N"], x_vals=[2 ** i for i in range(4, 10)], line_arg="who", line_vals=["a", "b"],
                                      line_names=["rtc", "<other>"], plot_name="times", args={}, ylabel="ms", x_log=True)

        @rtc.testing.perf_report(bench)
        def report(N, who):
            return (N * 1.5, N * 1.0, N * 2.0) if who == "a" else N * 2.5

        with tempfile.TemporaryDirectory() as folder:
            report.run(save_path=folder)
            self.assertEqual(sorted(os.listdir(folder)), ["results.html", "times.csv", "times.svg"])
            with open(os.path.join(folder, "times.csv")) as file:
                self.assertEqual(file.readline(), "N,rtc (ms),<other> (ms)\n")
            picture = xml.dom.minidom.parse(os.path.join(folder, "times.svg"))
            self.assertGreater(len(picture.getElementsByTagName("circle")), 11)

    def test_assert_close(self):
        rtc.testing.assert_close(np.ones(4), np.ones(4) + 1e-3)
        with self.assertRaises(AssertionError):
            rtc.testing.assert_close(np.ones(4), np.ones(4) + 1e-3, atol=1e-4)
