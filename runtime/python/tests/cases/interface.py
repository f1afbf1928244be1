"""What programs use of Triton's interface beside launches: hooks, compiling ahead, errors, threads, reports, the profiler."""

import contextlib
import io
import os
import sys
import tempfile
import threading
import unittest

import numpy as np

import rtc
import rtc.language as tl
import rtc.profiler as proton
import rtc.profiler.viewer as viewer

runtime = rtc.knobs.runtime


@rtc.jit
def twice(x):
    return 2 * x


@rtc.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, twice(tl.load(x + i, mask=i < n)), mask=i < n)


@rtc.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x"])
def unspecialized(x, out, n):
    tl.store(out, tl.load(x) + n)


@rtc.jit
def too_large(a, out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    v = tl.load(a + i * N + j)
    tl.store(out + i * N + j, tl.dot(v, v))


def fresh():
    """The kernel, of which nothing is known yet."""
    return rtc.jit(kernel.fn)


def arrays(n=100):
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


class Hooks(unittest.TestCase):

    def test_of_compilations(self):
        x, out = arrays()
        told = []
        with runtime.scope():
            runtime.jit_cache_hook = lambda **data: told.append(("cache", data)) and None
            runtime.jit_post_compile_hook = lambda **data: told.append(("done", data)) and None
            made = fresh()
            made.warmup(x, out, 100, BLOCK=128, grid=(1,), num_warps=2)
            for _ in range(2):
                made[(1,)](x, out, 100, BLOCK=64)
        self.assertEqual([name for name, _ in told], ["cache", "done"] * 2)
        first, second = told[0][1], told[2][1]
        self.assertEqual((first["is_manual_warmup"], second["is_manual_warmup"]), (True, False))
        self.assertEqual((first["fn"].module, first["fn"].name, first["fn"].jit_function), (__name__, "kernel", made))
        self.assertEqual((first["compile"]["num_warps"], first["compile"]["constants"]), (2, {(3,): 128}))
        self.assertEqual(first["compile"]["signature"]["n"], "i32")
        self.assertIn("kernel[num_warps=2, ", first["repr"])
        self.assertNotEqual(first["key"], second["key"])

    def test_a_hook_that_keeps_kernels_from_running(self):
        x, out = arrays()
        with runtime.scope():
            runtime.jit_cache_hook = lambda **data: True
            made = fresh()
            self.assertIsNone(made[(1,)](x, out, 100, BLOCK=128))
            self.assertEqual(out.sum(), 0)
        self.assertIsNotNone(made[(1,)](x, out, 100, BLOCK=128))
        np.testing.assert_array_equal(out, 2 * x)

    def test_of_launches_see_what_launch_metadata_gives(self):
        x, out = arrays()
        told = []
        made = rtc.jit(kernel.fn, launch_metadata=lambda grid, metadata, args: {"name": f"kernel of {args['n']}", "flops": 2 * grid[0]})
        enter, leave = (lambda data: told.append(("enter", data.get()))), (lambda data: told.append(("exit", data.get())))
        runtime.launch_enter_hook.add(enter)
        runtime.launch_exit_hook.add(leave)
        try:
            made[(2,)](x, out, 100, BLOCK=64)
        finally:
            runtime.launch_enter_hook.remove(enter)
            runtime.launch_exit_hook.remove(leave)
        made[(2,)](x, out, 100, BLOCK=64)
        self.assertEqual([(when, data["name"], data["flops"]) for when, data in told], [("enter", "kernel of 100", 4), ("exit", "kernel of 100", 4)])

    def test_before_runs_and_loads(self):
        x, out = arrays()
        told = []
        load = lambda *data: told.append(data[2])
        runtime.kernel_load_end_hook.add(load)
        made = fresh()
        made.add_pre_run_hook(lambda *args, **kwargs: told.append((len(args), kwargs)))
        try:
            made[(1,)](x, out, 100, BLOCK=128)
        finally:
            runtime.kernel_load_end_hook.remove(load)
        self.assertEqual(told, [(3, {"BLOCK": 128}), "kernel"])


class Compiling(unittest.TestCase):

    def test_warmup_launches_nothing(self):
        x, out = arrays()
        compiled = kernel.warmup(x, out, 100, BLOCK=128, grid=(1,))
        self.assertEqual((out.sum(), compiled.metadata.num_warps, compiled.metadata.shared), (0, 4, 0))
        self.assertEqual((type(compiled.n_regs), compiled.n_spills), (int, 0))
        self.assertIs(kernel[(1,)](x, out, 100, BLOCK=128), compiled)

    def test_the_cache_key_tells_of_all_that_is_used(self):
        self.assertEqual(kernel.cache_key, fresh().cache_key)
        changed = fresh()
        changed._unsafe_update_src(changed.src.replace("mask=i < n)", "mask=i < n, other=1)"))
        self.assertNotEqual(changed.cache_key, kernel.cache_key)

    def test_what_is_not_specialized(self):
        x, out = arrays()
        compiled = unspecialized[(1,)](x, out, 1)
        self.assertEqual(compiled._ready.signature(), [("x", "*fp32"), ("out", "*fp32:16"), ("n", "i32")])
        self.assertIs(unspecialized[(1,)](x, out, 16), compiled)
        self.assertEqual(out[0], x[0] + 16)

    def test_out_of_resources(self):
        a = np.zeros((512, 512), np.float16)
        with self.assertRaises(rtc.OutOfResources) as caught:
            too_large[(1,)](a, np.zeros((512, 512), np.float32), 512)
        error = caught.exception
        self.assertTrue(error.required > error.limit and error.name == "shared memory")
        self.assertIn("use smaller blocks, or fewer stages", str(error))


class Threads(unittest.TestCase):

    def test_many_at_once(self):
        wrong, made = [], fresh()

        def work(number):
            try:
                for block in (64, 128, 256):
                    x, out = np.full(200, number, np.float32), np.zeros(200, np.float32)
                    made[lambda meta: (rtc.cdiv(200, meta["BLOCK"]),)](x, out, 200, BLOCK=block)
                    if not (out == 2 * number).all():
                        wrong.append((number, block))
            except Exception as error:
                wrong.append((number, error))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Reports(unittest.TestCase):

    def test_plots_need_no_matplotlib(self):
        report = rtc.testing.Benchmark(["n"], [1, 2, 4], "provider", ["a", "b"], ["A", "B"], "times", {"more": 1}, ylabel="ms", x_log=True)
        mark = rtc.testing.perf_report(report)(lambda n, provider, more: n * more if provider == "a" else (2 * n, n, 3 * n))
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
            mark.run(print_data=True, show_plots=True, save_path=folder)
            self.assertEqual(sorted(os.listdir(folder)), ["results.html", "times.csv", "times.svg"])
            with open(os.path.join(folder, "times.csv")) as file:
                self.assertEqual(file.read().splitlines()[:2], ["n,A (ms),B (ms)", "1,1,2"])
        self.assertIn("A (ms)", out.getvalue())
        self.assertNotIn("matplotlib", sys.modules)


class Profiler(unittest.TestCase):

    def test_launches_and_scopes(self):
        x, out = arrays()
        made = rtc.jit(kernel.fn, launch_metadata=lambda grid, metadata, args: {"name": f"twice [n={args['n']}]", "flops16": 1e9, "bytes": 800})
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                proton.start("run", hook="triton")
                proton.deactivate()
                made[(1,)](x, out, 100, BLOCK=128)
                proton.activate(0)
                with proton.scope("outer", {"flops16": 4e9}):
                    for _ in range(2):
                        made[(1,)](x, out, 100, BLOCK=128)
                proton.finalize()
                made[(1,)](x, out, 100, BLOCK=128)
                tree, metrics = viewer.parse(["tflop16/s", "time/ms", "count", "tflop8/s"], "run.hatchet")
            finally:
                os.chdir(before)
        self.assertEqual([(path, values[2], values[3]) for path, values in tree],
                         [(["outer", "twice [n=100]"], 2, None), (["outer"], 1, None)])
        for (_, (rate, time, *_)), flops in zip(tree, (2e9, 4e9)):
            self.assertAlmostEqual(rate, flops / (time * 1e-3) / 1e12)
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            viewer.print_tree(tree, metrics)
        self.assertIn("twice [n=100]", shown.getvalue())
        with self.assertRaises(ValueError):
            proton.start(hook="other")


if __name__ == "__main__":
    unittest.main()
