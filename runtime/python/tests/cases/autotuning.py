"""Autotuning, heuristics, timing, reports."""

import os
import tempfile
import unittest
import xml.dom.minidom

import numpy as np

import rtc
import rtc.language as tl

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

    def test_values_are_restored(self):
        kernel = tuned(restore_value=["out"])
        np.testing.assert_array_equal(self.launch(kernel), np.ones(100))

    def test_pruning(self):
        kernel = tuned(reset_to_zero=["out"], prune_configs_by={"perf_model": lambda **a: a["BLOCK"], "top_k": 1})
        self.launch(kernel)
        self.assertEqual(kernel.best_config.kwargs, {"BLOCK": 32})
        kernel = tuned(prune_configs_by={"early_config_prune": lambda configs, args, **kw: []})
        with self.assertRaisesRegex(rtc.runtime.errors.AutotunerError, "at least one config"):
            self.launch(kernel)

    def test_values_of_configurations_cannot_be_passed(self):
        kernel = tuned()
        with self.assertRaisesRegex(ValueError, "Conflicting meta-parameters: BLOCK"):
            kernel[(1,)](np.ones(4, np.float32), np.ones(4, np.float32), 4, BLOCK=32)


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
