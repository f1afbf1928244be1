"""Kernels that are compiled for what is said of their arguments, as TorchInductor has it done."""

import os
import pickle
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import rtc
import rtc.language as tl
from rtc._changes import changed_arguments
from rtc.backends.compiler import GPUTarget
from rtc.compiler import ASTSource

CPU = GPUTarget("cpu", 0, 32)


def never_to_be_read(**kwargs):
    """Stands above kernels; what it uses is no part of them."""
    assert kwargs["path"] is sys.path
    return lambda kernel: kernel


@rtc.jit
def double(x):
    return 2 * x


@never_to_be_read(path=sys.path)
@rtc.jit
def kernel(x, y, n, F: tl.constexpr, BLOCK: tl.constexpr, shift):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, F(tl.load(x + i, mask=i < n)) + shift, mask=i < n)


SIGNATURE = {"x": "*fp32", "y": "*fp32", "n": "i32", "F": "constexpr", "BLOCK": "constexpr", "shift": "fp32"}


def source(fn=kernel, **changes):
    return ASTSource(fn, {**SIGNATURE, **changes}, {"F": double, (4,): 64}, {(0,): [["tt.divisibility", 16]]})


def run(compiled, n=100):
    x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    compiled.run(2, 1, 1, 0, compiled.function, compiled.packed_metadata, None, None, None, x, y, n, double, 64, 0.5)
    np.testing.assert_array_equal(y, 2 * x + 0.5)


class Ahead(unittest.TestCase):
    def test_compile_and_run(self):
        compiled = rtc.compile(source(), target=CPU, options={"num_warps": 2, "num_stages": 1, "debug": True})
        self.assertEqual((compiled.metadata.num_warps, compiled.src.fn, compiled.metadata.target), (2, kernel, CPU))
        run(compiled)
        self.assertIn("visible .entry", compiled.asm["ptx"])
        with self.assertRaisesRegex(TypeError, "6 parameters, 2 arguments"):
            compiled.run(1, 1, 1, 0, None, None, None, None, None, np.zeros(4, np.float32), 3)

    def test_arrays_of_another_type_are_refused(self):
        compiled = rtc.compile(source(), target=CPU)
        x, y = np.zeros(4, np.int32), np.zeros(4, np.float32)
        with self.assertRaisesRegex(TypeError, r"`kernel`, argument `x` \(\*fp32\): .* i32 was given"):
            compiled.run(1, 1, 1, 0, None, None, None, None, None, x, y, 4, double, 64, 0.5)

    def test_hooks_are_told(self):
        told = []
        compiled = rtc.compile(source(), target=CPU)
        x = np.zeros(4, np.float32)
        compiled.run(1, 1, 1, 0, None, None, "data", told.append, lambda data: told.append(data * 2), x, x, 4, double, 64, 0.5)
        self.assertEqual(told, ["data", "datadata"])

    def test_for_a_gpu_that_is_not_here(self):
        compiled = rtc.compile(source(), target=GPUTarget("cuda", 90, 32))
        self.assertEqual((compiled.metadata.arch, compiled.metadata.target.arch), ("sm_90a", 90))

    def test_another_process_runs_it(self):
        text = pickle.dumps(rtc.compile(source(), target=CPU)).hex()
        code = f"import pickle, ahead; ahead.run(pickle.loads(bytes.fromhex('{text}')))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_kernels_can_be_pickled_and_copied(self):
        import copy
        self.assertIs(copy.deepcopy([kernel])[0], kernel)
        again = pickle.loads(pickle.dumps(double))
        self.assertEqual((again.arg_names, again.__name__, again.params[0].is_constexpr), (["x"], "double", False))
        with self.assertRaisesRegex(RuntimeError, "the kernel has no function"):
            again[(1,)](np.zeros(4, np.float32))

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "the constant `BLOCK` has no value"):
            rtc.compile(ASTSource(kernel, SIGNATURE, {"F": double}), target=CPU)
        with self.assertRaisesRegex(rtc.CompilationError, r"(?s)error\[.*ahead.py:"):
            rtc.compile(source(x="i32"), target=CPU)
        with self.assertRaisesRegex(RuntimeError, "no back end for"):
            rtc.compile(source(), target=GPUTarget("hip", 942, 64))
        with self.assertRaisesRegex(ValueError, "unknown option `num_wraps`.*num_warps"):
            rtc.compile(source(), target=CPU, options={"num_wraps": 3})
        with self.assertRaisesRegex(TypeError, "Triton's IR is no input"):
            rtc.compile("kernel.ttir", target=CPU)

    def test_one_object_under_both_names(self):
        code = ("import triton, triton.runtime.driver, triton.compiler.compiler as c; from triton.runtime import driver\n"
                "assert triton.runtime.driver.active is driver.active and triton.runtime.driver is driver\n"
                "assert triton.compile is c.compile and set(triton.backends.backends) == {'nvidia', 'cpu'}\n"
                "driver.set_active(triton.backends.backends['cpu'].driver())\n"
                "print(driver.active.get_current_target().backend, c.make_backend(driver.active.get_current_target()).arch[:3])")
        done = subprocess.run([sys.executable, "-m", "rtc", "-c", code], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("cpu sm_\n", ""))


@rtc.jit
def changes(x, y, out, sums, n, pick, unused, d, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
    tl.store(out if pick > 2 else y, tl.sum(value, 0))
    tl.atomic_add(sums, tl.sum(value, 0))
    d.store([0, 0], d.load([0, 0]) * 2)


class Changes(unittest.TestCase):
    """Which arguments a kernel changes, as `torch.compile` asks."""

    def test_what_is_written(self):
        new = lambda: np.zeros((64, 64), np.float32)
        given = dict(x=new(), y=new(), out=new(), sums=new(), n=77, pick=3, unused=new(), d=new(), BLOCK=64)
        descriptors = {"d": ("stable", ([64, 64],))}
        self.assertEqual(changed_arguments(changes, given, descriptors), ["y", "out", "sums", "d"])
        with self.assertRaises(TypeError):
            changed_arguments(changes, given, {"d": ("experimental", ([64, 64], [64, 64], 4))})
        tuned = rtc.autotune([rtc.Config({"BLOCK": 64}), rtc.Config({"BLOCK": 32})], key=["n"])(kernel)
        given = dict(x=new(), y=new(), n=1, F=double, shift=0.5)
        self.assertEqual(changed_arguments(tuned, given), ["y"])

    def test_pytorch_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(folder, "torch", "_higher_order_ops")
            os.makedirs(place)
            for name in (os.path.join(folder, "torch"), place):
                open(os.path.join(name, "__init__.py"), "w").close()
            with open(os.path.join(place, "triton_kernel_wrap.py"), "w") as file:
                file.write("def identify_mutated_tensors(kernel, kwargs, descriptors):\n    return ['all']\n")
            program = os.path.join(folder, "program.py")
            with open(program, "w") as file:
                file.write("import triton, triton.language as tl, numpy as np\n"
                           "from torch._higher_order_ops import triton_kernel_wrap as wrap\n"
                           "@triton.jit\ndef k(x, y):\n    tl.store(y, tl.load(x))\n"
                           "@triton.jit\ndef wrong(x, y):\n    tl.store(y, nothing)\n"
                           "x = np.zeros(4, np.float32)\n"
                           "print(*(wrap.identify_mutated_tensors(f, dict(x=x, y=x), {}) for f in (k, wrong)))\n")
            done = subprocess.run([sys.executable, "-m", "rtc", program], capture_output=True, text=True)
            self.assertEqual(done.stdout, "['y'] ['all']\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
