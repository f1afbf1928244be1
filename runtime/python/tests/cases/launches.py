"""Kernels and their launches, on the emulator and the interpreter, with arrays of numpy."""

import os
import subprocess
import sys
import types
import unittest
from collections import namedtuple

import numpy as np

import rtc
import rtc.language as tl
import collected
from collected import scale as scaled
from rtc import cdiv, next_power_of_2
from rtc.language import load, store
from rtc.tools.tensor_descriptor import TensorDescriptor

LIMIT = tl.constexpr(7)
Pair = namedtuple("Pair", ["pointer", "number"])


@rtc.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@rtc.aggregate
class Point:
    x: tl.tensor
    y: tl.tensor

    @rtc.constexpr_function
    def __init__(self, x, y):
        self.x = x
        self.y = y

    @rtc.jit
    def moved(self, by):
        return Point(self.x + by, self.y * LIMIT)


@rtc.jit
def uses_an_aggregate(out, n):
    point = Point(n, n + 1).moved(10)
    tl.store(out, point.x)
    tl.store(out + 1, point.y)


@rtc.jit
def hands_over(data, flag, out, N: tl.constexpr):
    i = tl.arange(0, N)
    if tl.program_id(0) == 0:
        tl.store(data + i, i)
        tl.atomic_store(flag, 1)
    else:
        tl.atomic_poll(flag, 1)
        tl.store(out + i, tl.load(data + i))


@rtc.jit
def relu(x):
    return tl.maximum(x, 0)


@rtc.jit
def apply(x, out, N: tl.constexpr, F: tl.constexpr, DT: tl.constexpr = tl.float32):
    v = tl.load(x + tl.arange(0, N))
    if F is not None:
        v = F(v)
    tl.store(out + tl.arange(0, N), v.to(DT))


@rtc.jit
def counted(out, SHAPE, first):
    length: tl.constexpr = len(SHAPE)
    tl.static_assert(length == 2)
    i = tl.arange(0, SHAPE[0])[:, None] * SHAPE[1] + tl.arange(0, SHAPE[1])[None, :]
    tl.store(out + i, i + first)


@rtc.jit
def uses_others(x, out, N: tl.constexpr):
    v = load(x + tl.arange(0, N))
    v = scaled(v) + collected.scale(v) + collected.OFFSET + LIMIT + collected.half(10)
    store(out + tl.arange(0, N), v)


@rtc.jit
def descriptor(d, out, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + rows, d.load([M, 0]))


@rtc.jit
def uses_cdiv(out, N: tl.constexpr, P: tl.constexpr):
    tl.store(out, 10 * cdiv(N, 4) + next_power_of_2(P))


@rtc.jit
def sums(x, out, N: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, N)), axis=0))


@rtc.jit
def of_tuple(t, out):
    tl.store(out, tl.load(t[0]) + t[1])


@rtc.jit
def of_named(t, out):
    tl.store(out, tl.load(t.pointer) + t.number)


@rtc.jit
def broken(x, out):
    v = tl.load(x + tl.arange(0, 16)) + tl.arange(0, 32)
    tl.store(out, undefined_name)


@rtc.jit
def outside(x):
    tl.store(x + tl.arange(0, 128), 1.0)


@rtc.jit(do_not_specialize=["n"])
def unspecialized(out, n):
    tl.store(out, n)


def scaled_by(factor):
    @rtc.jit
    def kernel(x, out, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out + i, tl.load(x + i) * factor)

    return kernel


def numbers(n, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(n).astype(dtype)


class HostFunctions(unittest.TestCase):

    def test_an_aggregate(self):
        out = np.zeros(2, np.int32)
        uses_an_aggregate[(1,)](out, 4)
        self.assertEqual(list(out), [14, 35])

    def test_blocks_hand_data_over_by_atomics(self):
        data, flag, out = (np.zeros(n, np.int32) for n in (512, 1, 512))
        hands_over[(2,)](data, flag, out, 512)
        self.assertTrue((out == np.arange(512)).all() and flag[0] == 1)

    def test_cdiv(self):
        for x, y, wanted in [(0, 3, 0), (1, 3, 1), (3, 3, 1), (4, 3, 2), (-4, 3, -1), (2**70, 3, 2**70 // 3 + 1), (np.int64(9), 2, 5)]:
            self.assertEqual(rtc.cdiv(x, y), wanted)
        for x, y in [(tl.constexpr(9), 2), (9, tl.constexpr(2)), (tl.constexpr(9), tl.constexpr(2))]:
            self.assertEqual((rtc.cdiv(x=x, y=y), type(rtc.cdiv(x, y))), (5, int))
        with self.assertRaises(ZeroDivisionError):
            rtc.cdiv(1, 0)

    def test_a_kernel_that_imports_it(self):
        out = np.zeros(1, np.int32)
        uses_cdiv[(1,)](out, 17, 5)
        self.assertEqual(out[0], 10 * rtc.cdiv(17, 4) + rtc.next_power_of_2(5))

    def test_functions_with_constexprs(self):
        pair = rtc.constexpr_function(lambda x, y: [tl.constexpr(x), y])
        self.assertEqual(pair(1, 2), [1, 2])
        self.assertEqual(pair(tl.constexpr(1), y=2), [1, 2])


class Launches(unittest.TestCase):

    def test_add(self):
        x, y = numbers(1000), numbers(1000)
        for grid in [(8,), [8, 1], lambda meta: (rtc.cdiv(meta["n"], meta["BLOCK"]),)]:
            out = np.zeros_like(x)
            add[grid](x, y, out, 1000, BLOCK=128)
            np.testing.assert_array_equal(out, x + y)
        out = np.zeros_like(x)
        add.run(x, y, out, 1000, 128, grid=(8,), warmup=False, num_warps=2)
        np.testing.assert_array_equal(out, x + y)

    def test_the_order_of_sums(self):
        """That of Triton 3.6: a thread adds what it holds in turn, then lanes and warps those of the farthest partner first."""
        for size, warps in [(128, 1), (2048, 1), (2048, 2), (2048, 4), (8192, 8), (8192, 16)]:
            x, out = numbers(size), np.zeros(1, np.float32)
            sums[(1,)](x, out, size, num_warps=warps)
            held = x.reshape(-1, warps, 32, 4).transpose(1, 2, 0, 3).reshape(warps, 32, -1)
            total = held[..., 0]
            for at in range(1, held.shape[-1]):
                total = total + held[..., at]
            for distance in (16, 8, 4, 2, 1):
                total = total + total[:, np.arange(32) ^ distance]
            total, distance = total[:, 0], warps // 2
            while distance:
                total, distance = total + total[np.arange(warps) ^ distance], distance // 2
            self.assertEqual(out[0], total[0], (size, warps))

    def test_an_empty_grid_launches_nothing(self):
        x = np.zeros(4, np.float32)
        outside[(0,)](x)
        self.assertEqual(x.sum(), 0)

    def test_views_of_one_array(self):
        x = np.zeros(64, np.float32)
        add[(1,)](x[:16], x[16:32], x[32:], 16, BLOCK=16)
        x[:32] = 1
        add[(1,)](x[:16], x[16:32], x[8:], 16, BLOCK=16)
        np.testing.assert_array_equal(x[8:24], np.full(16, 2))
        self.assertEqual(x[31], 1)

    def test_constexprs_of_every_kind(self):
        x, out = numbers(64), np.zeros(64, np.float32)
        apply[(1,)](x, out, 64, None)
        np.testing.assert_array_equal(out, x)
        apply[(1,)](x, out, N=tl.constexpr(64), F=relu)
        np.testing.assert_array_equal(out, np.maximum(x, 0))
        for function, wanted in [(tl.abs, np.abs(x)), (tl.math.exp, np.exp(x)), (tl.extra.libdevice.tanh, np.tanh(x))]:
            apply[(1,)](x, out, 64, function)
            np.testing.assert_allclose(out, wanted, rtol=1e-5)
        halves = np.zeros(64, np.float16)
        apply[(1,)](x, halves, 64, None, tl.float16)
        np.testing.assert_array_equal(halves, x.astype(np.float16))

    def test_constexprs_where_the_parameter_is_none(self):
        for shape in (2, 8), (4, 4):
            out = np.zeros(shape, np.int32)
            counted[(1,)](out, tuple(map(tl.constexpr, shape)), tl.constexpr(5))
            np.testing.assert_array_equal(out.ravel(), np.arange(16) + 5)

    def test_a_global_that_the_kernel_hides_may_change(self):
        global length
        for length in 1, 7:
            out = np.zeros((2, 2), np.int32)
            counted[(1,)](out, (tl.constexpr(2), tl.constexpr(2)), 0)
            np.testing.assert_array_equal(out.ravel(), np.arange(4))

    def test_other_files_globals_and_closures(self):
        x, out = numbers(16), np.zeros(16, np.float32)
        uses_others[(1,)](x, out, 16)
        np.testing.assert_allclose(out, 2 * (3 * x + 2) + 2 + 7 + 5, rtol=1e-6)
        for factor in (2, 0.5):
            scaled_by(factor)[(1,)](x, out, 16)
            np.testing.assert_array_equal(out, x * np.float32(factor))

    def test_descriptors_and_tuples(self):
        x, out = numbers(32 * 32).reshape(32, 32), np.zeros((16, 32), np.float32)
        descriptor[(1,)](TensorDescriptor.from_tensor(x, [16, 32]), out, 16, 32)
        np.testing.assert_array_equal(out, x[16:])
        one = np.zeros(1, np.float32)
        of_tuple[(1,)]((x, 3.0, None), one)
        self.assertEqual(one[0], x[0, 0] + np.float32(3))
        of_named[(1,)](Pair(x, 5), one)
        self.assertEqual(one[0], x[0, 0] + np.float32(5))

    def test_dtypes_of_numpy(self):
        for dtype in [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.float16, np.float64]:
            x = np.arange(1, 17).astype(dtype)
            out = np.zeros_like(x)
            add[(1,)](x, x, out, 16, BLOCK=16)
            np.testing.assert_array_equal(out, x + x)
        with self.assertRaisesRegex(TypeError, "argument `x`.*complex64"):
            add[(1,)](np.zeros(4, np.complex64), x, x, 4, BLOCK=4)

    def test_numbers_of_numpy(self):
        x, out = numbers(16), np.zeros(16, np.float32)
        add[(np.int64(1),)](x, x, out, np.int32(16), BLOCK=np.int64(16))
        np.testing.assert_array_equal(out, x + x)

    def test_specialization(self):
        out = np.zeros(1, np.int64)
        before = [unspecialized[(1,)](out, n) for n in (1, 16, 17)]
        self.assertEqual(len({kernel.hash for kernel in before}), 1)
        after = [unspecialized[(1,)](out, n) for n in (2 ** 40, 3)]
        self.assertNotEqual(after[0].hash, after[1].hash)
        self.assertEqual(out[0], 3)


class Compiled(unittest.TestCase):

    def test_what_a_launch_gives(self):
        x, out = numbers(128), np.zeros(128, np.float32)
        kernel = add[(1,)](x, x, out, 128, BLOCK=128, num_warps=2)
        self.assertEqual((kernel.metadata.num_warps, kernel.metadata.name, kernel.metadata.num_ctas), (2, "add", 1))
        self.assertIn(".visible .entry add", kernel.asm["ptx"])
        self.assertIn("define", kernel.asm["llir"])
        with self.assertRaisesRegex(KeyError, "a stage of Triton's compiler"):
            kernel.asm["ttgir"]
        self.assertIs(kernel, add[(1,)](x, x, out, 128, BLOCK=128, num_warps=2))
        out[:] = 0
        kernel[(1,)](x, x, out, 128, 128)
        np.testing.assert_array_equal(out, x + x)

    def test_names_by_a_function(self):
        @rtc.jit(repr=lambda of: f"named_{of.signature['n']}_{'_'.join(of.constants)}")
        def kernel(n, one):
            pass

        self.assertEqual(kernel[(1,)](2 ** 40, 1).name, "named_i64_one")

    def test_warmup_launches_nothing(self):
        x = np.zeros(4, np.float32)
        kernel = outside.warmup(x, grid=(1,))
        self.assertEqual(kernel.metadata.shared, 0)

    def test_cache_key_follows_what_a_kernel_uses(self):
        self.assertEqual(scaled_by(2).cache_key, scaled_by(2).cache_key)
        self.assertNotEqual(scaled_by(2).cache_key, scaled_by(3).cache_key)

    def test_hooks(self):
        seen = []
        hook = lambda data: seen.append(data.get()["name"])
        rtc.knobs.runtime.launch_enter_hook.add(hook)
        out = np.zeros(1, np.int64)
        unspecialized[(1,)](out, 5)
        rtc.knobs.runtime.launch_enter_hook.remove(hook)
        unspecialized[(1,)](out, 5)
        self.assertEqual(seen, ["unspecialized"])


class Errors(unittest.TestCase):

    def refused(self, kind, text, call):
        with self.assertRaisesRegex(kind, text):
            call()

    def test_calls_that_do_not_fit(self):
        x = np.zeros(4, np.float32)
        go = add[(1,)]
        self.refused(TypeError, "takes 5 positional arguments but 6", lambda: go(x, x, x, 4, 4, 4))
        self.refused(TypeError, "missing a required argument: 'n'", lambda: go(x, x, x))
        self.refused(TypeError, "multiple values for argument 'x'", lambda: go(x, x, x, 4, 4, x=x))
        self.refused(KeyError, "num_wraps.*did you mean `num_warps`", lambda: go(x, x, x, 4, 4, num_wraps=4))
        self.refused(TypeError, "argument `out`.*annotate", lambda: go(x, x, "text", 4, 4))
        self.refused(TypeError, "argument `out`.*set", lambda: go(x, x, {1}, 4, 4))
        self.refused(OverflowError, "fits no integer type", lambda: go(x, x, x, 2 ** 70, 4))
        self.refused(TypeError, "grid must be a tuple", lambda: add[4](x, x, x, 4, 4))
        self.refused(TypeError, "must return a tuple", lambda: add[lambda meta: 4](x, x, x, 4, 4))
        self.refused(ValueError, "-1 programs", lambda: add[(-1,)](x, x, x, 4, 4))
        self.refused(ValueError, "5000000000 programs along axis 0, GPUs take at most 2147483647",
                     lambda: add[(5 * 10 ** 9,)](x, x, x, 4, 4))
        self.refused(rtc.runtime.errors.OutOfResources, "grid size x .blocks.: needed 2147483648, available 2147483647",
                     lambda: add[(2 ** 31,)](x, x, x, 4, 4))
        self.refused(rtc.runtime.errors.OutOfResources, "grid size y .blocks.: needed 65536, available 65535",
                     lambda: add[lambda meta: (1, 65536)](x, x, x, 4, 4))
        self.refused(RuntimeError, "outside of the scope of a kernel", lambda: add(x))

    def test_diagnostics_name_the_line(self):
        x = np.zeros(64, np.float32)
        with self.assertRaises(rtc.CompilationError) as caught:
            broken[(1,)](x, x)
        text = str(caught.exception)
        line = broken.fn.__code__.co_firstlineno + 2
        self.assertIn("shape-mismatch", text)
        self.assertIn("undefined-name", text)
        self.assertIn(f"launches.py:{line}:", text)
        self.assertIsInstance(caught.exception, rtc.TritonError)

    def test_a_global_that_changed(self):
        scope = {"tl": tl, "rtc": rtc, "FACTOR": tl.constexpr(2)}
        path = os.path.join(os.path.dirname(__file__), "changing.py")
        with open(path) as file:
            exec(compile(file.read(), path, "exec"), scope)
        x = np.ones(16, np.float32)
        scope["times"][(1,)](x, 16)
        self.assertEqual(x[0], 2)
        scope["FACTOR"] = tl.constexpr(3)
        self.refused(RuntimeError, "Global variable FACTOR has changed", lambda: scope["times"][(1,)](x, 16))

    def test_constants_that_are_changed_in_place(self):
        scope = {"tl": tl, "rtc": rtc, "FACTORS": [2.0, 4.0], "settings": types.ModuleType("settings")}
        scope["settings"].FACTOR = 2.0
        path = os.path.join(os.path.dirname(__file__), "changing.py")
        with open(path) as file:
            exec(compile(file.read(), path, "exec"), scope)
        of_closure, factors = scope["of_closure"]()

        def changes_module():
            scope["settings"].FACTOR = 3.0

        cases = [
            (scope["times_of_list"], "FACTORS", lambda: scope["FACTORS"].__setitem__(0, 3.0)),
            (scope["times_of_module"], "FACTOR", changes_module),
            (of_closure, "factors", lambda: factors.append(3.0)),
        ]
        for kernel, name, change in cases:
            x = np.ones(16, np.float32)
            for _ in range(3):
                kernel[(1,)](x, 16)
            self.assertEqual(x[0], 8)
            change()
            self.refused(RuntimeError, f"Global variable {name} has changed", lambda kernel=kernel, x=x: kernel[(1,)](x, 16))

    def test_faults_of_the_emulator(self):
        self.refused(rtc.KernelFault, "out-of-bounds write.*end of `x` .*launches.py", lambda: outside[(1,)](np.zeros(100, np.float32)))
        both = np.zeros(200, np.float32)
        self.refused(rtc.KernelFault, "end of `x, out` ", lambda: add[(1,)](both[:100], np.zeros(300, np.float32), both[50:], 300, BLOCK=512))

    def test_a_kernel_without_a_file(self):
        text = "import rtc, rtc.language as tl\n@rtc.jit\ndef one(out):\n    tl.store(out, 1.0)\n"
        self.refused(ValueError, "`one` was defined by `python -c` or `exec`.*write it to a file", lambda: exec(text, {}))
        launch = "import numpy as np\nout = np.zeros(1, np.float32)\none[(1,)](out)\nprint(out[0])\n"
        for arguments, text_in, place in ((["-c", text], "", "by `python -c`"), (["-"], text, "from standard input")):
            done = subprocess.run([sys.executable, *arguments], input=text_in, capture_output=True, text=True)
            self.assertIn(f"@jit functions should be defined in a Python file: `one` was defined {place}",
                          done.stderr.replace("at the prompt or ", ""))
        # What the message says of programs that make kernels.
        text += launch
        keep = "import linecache\nname = '<made>'\nlinecache.cache[name] = (len(text), None, text.splitlines(True), name)\n"
        keep += "exec(compile(text, name, 'exec'), {})\n"
        done = subprocess.run([sys.executable, "-c", f"text = {text!r}\n{keep}"], capture_output=True, text=True)
        self.assertEqual(done.stdout, "1.0\n", done.stderr)

    def test_a_host_function_without_a_file(self):
        # It is no part of the kernel unless that calls it, and then the name is reported.
        scope = {}
        exec("def plain(x):\n    return x + 1\n", scope)
        path = os.path.join(os.path.dirname(__file__), "changing.py")
        with open(path) as file:
            own = {"tl": tl, "rtc": rtc, "FACTOR": scope["plain"]}
            exec(compile(file.read(), path, "exec"), own)
        self.refused(rtc.CompilationError, "FACTOR", lambda: own["times"][(1,)](np.ones(16, np.float32), 16))

    def test_a_kernel_is_no_function(self):
        self.refused(RuntimeError, r"`kernel\[grid\]", lambda: add())


class Devices(unittest.TestCase):

    def test_the_interpreter(self):
        code = ("import sys, unittest, launches\n"
                "suite = unittest.TestSuite([launches.Launches(n) for n in ('test_add', 'test_views_of_one_array', "
                "'test_descriptors_and_tuples')])\n"
                "sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())")
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "RTC_DEVICE": "interpreter"}, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_unknown_device(self):
        done = subprocess.run([sys.executable, "-c", "import launches; launches.Launches('test_add').debug()"],
                              env={**os.environ, "RTC_DEVICE": "gpu"}, capture_output=True, text=True)
        self.assertIn("`gpu` is not a device", done.stderr)
