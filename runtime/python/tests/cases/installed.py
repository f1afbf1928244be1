"""The wheel in a fresh environment that has numpy and nothing else: what a newcomer without a GPU does first."""

import ast
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

SOFTMAX = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../examples/softmax"))
HERE = os.path.dirname(os.path.abspath(__file__))
CONTRACTS = os.path.join(HERE, "contracts")

#: The first four of Triton's tutorials in small, with numpy in PyTorch's place.
TUTORIALS = '''
import numpy as np
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

@triton.jit
def softmax(out, x, rows, columns, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=num_stages):
        i = tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * columns + i, e / tl.sum(e, axis=0), mask=i < columns)

@triton.autotune(configs=[triton.Config({"B": 16}, num_warps=1), triton.Config({"B": 32}, num_warps=2)], key=["M", "N", "K"])
@triton.jit
def matmul(a, b, c, M, N, K, B: tl.constexpr):
    m, n = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    sums = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, K, B):
        k = start + tl.arange(0, B)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        sums = tl.dot(x, y, sums)
    tl.store(c + m[:, None] * N + n[None, :], sums, mask=(m[:, None] < M) & (n[None, :] < N))

@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(keep, tl.load(x + i, mask=i < n) / (1 - p), 0.0), mask=i < n)

random = np.random.default_rng(0)
x, y = (random.standard_normal(98432).astype(np.float32) for _ in range(2))
out = np.empty_like(x)
add[lambda meta: (triton.cdiv(x.size, meta["BLOCK"]),)](x, y, out, x.size, BLOCK=1024)
assert (out == x + y).all()
x = random.standard_normal((37, 781)).astype(np.float32)
out = np.empty_like(x)
softmax[(8,)](out, x, *x.shape, BLOCK=triton.next_power_of_2(x.shape[1]), num_stages=2)
e = np.exp(x - x.max(axis=1, keepdims=True))
triton.testing.assert_close(out, e / e.sum(axis=1, keepdims=True), atol=1e-6)
a, b = random.standard_normal((70, 40)).astype(np.float16), random.standard_normal((40, 50)).astype(np.float16)
c = np.empty((70, 50), np.float32)
matmul[lambda meta: (triton.cdiv(70, meta["B"]), triton.cdiv(50, meta["B"]))](a, b, c, 70, 50, 40)
triton.testing.assert_close(c, a.astype(np.float32) @ b.astype(np.float32), atol=1e-3)
x, kept = np.ones(10000, np.float32), np.empty(10000, np.float32)
dropout[(triton.cdiv(x.size, 512),)](x, kept, x.size, 0.25, 7, BLOCK=512)
assert set(np.unique(kept)) == {0, np.float32(1 / 0.75)} and 0.22 < (kept == 0).mean() < 0.28
print("all right")
'''


def rtc(*arguments):
    return subprocess.run([sys.executable, "-m", "rtc", *arguments], capture_output=True, text=True, cwd=CONTRACTS)


class Installed(unittest.TestCase):

    def test_it_is_the_wheel_with_numpy_alone(self):
        import rtc
        self.assertTrue(os.path.realpath(rtc.__file__).startswith(os.path.realpath(sys.prefix)), rtc.__file__)
        self.assertEqual(importlib.metadata.version("rtc-triton"), rtc.__version__)
        for name in ("torch", "triton", "matplotlib", "pandas"):
            self.assertIsNone(importlib.util.find_spec(name))

    def test_the_console_script(self):
        # Its path alone: neither a Python nor an `rtc` is found on PATH.
        def script(*words):
            environment = {**os.environ, "PATH": ""}
            environment.pop("VIRTUAL_ENV", None)
            return subprocess.run([os.path.join(sys.prefix, "bin", "rtc"), *words], capture_output=True, text=True, cwd=CONTRACTS,
                                  env=environment)

        done = script("--version")
        self.assertEqual((done.returncode, done.stdout), (0, f"rtc {importlib.metadata.version('rtc-triton')}\n"), done.stderr)
        kernel = [os.path.join(SOFTMAX, "softmax.rt"), "--signature", "*fp32:16, *fp32:16, i32, i32, i32, i32, 1024, 2"]
        for call in (script, rtc):
            with tempfile.TemporaryDirectory() as folder:
                done = call("build", *kernel, "--arch", "sm_90a", "-o", folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(os.path.join(folder, "softmax_kernel.ptx")) as file:
                    self.assertIn(".entry softmax_kernel", file.read())
        done = script("run", kernel[0], "--launch", os.path.join(SOFTMAX, "launch.json"), "--device", "emulator",
                      "--check", os.path.join(SOFTMAX, "expected.safetensors"), "--tolerance", "1e-6")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("check      y: 49984 elements", done.stdout)
        # This Python runs what needs one.
        done = script("verify", "gelu.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["correct"])
        done = script("doctor")
        self.assertRegex(done.stdout, re.escape(os.path.join(sys.prefix, "bin", "python")) + "[0-9.]* has the package `rtc`")
        # Mistakes have the statuses of the executable.
        done = script("build", "nowhere.rt", "--signature", "i32")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("error[io]", done.stderr)
        self.assertEqual(script("biuld").returncode, 2)
        self.assertEqual(rtc("run").returncode, 2)

    def test_the_first_program(self):
        done = subprocess.run([sys.executable, os.path.join(SOFTMAX, "../first.py")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "the first elements: [1. 2. 3. 4.]\n"), done.stderr)

    def test_the_stub_of_the_module_has_its_names(self):
        import rtc
        from rtc import _rtc

        with open(os.path.join(os.path.dirname(rtc.__file__), "_rtc.pyi")) as file:
            stub = ast.parse(file.read())
        stated = {}
        for node in stub.body:
            if isinstance(node, ast.FunctionDef):
                stated[node.name] = None
            elif isinstance(node, ast.AnnAssign):
                stated[node.target.id] = None
            elif isinstance(node, ast.ClassDef):
                stated[node.name] = {one.name for one in node.body}
        there = {name for name in dir(_rtc) if not name.startswith("__")}
        self.assertEqual(set(stated), there)
        for name, methods in stated.items():
            if methods is not None:
                own = {one for one in vars(getattr(_rtc, name)) if one in ("__new__", "__getitem__") or not one.startswith("__")}
                self.assertEqual(methods | {"__new__"}, own | {"__new__"}, name)

    def test_programs_like_the_tutorials(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "tutorials.py")
            with open(program, "w") as file:
                file.write(TUTORIALS)
            done = rtc(program)
        self.assertEqual((done.returncode, done.stdout), (0, "all right\n"), done.stderr)

    def test_recorded_results(self):
        with tempfile.TemporaryDirectory() as folder:
            done = rtc("verify", "gelu.py", "--record", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = rtc("verify", "--golden", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("golden     1 of 1 launches have expected results; all are right", done.stdout)

    def test_the_absolute_value_of_all_dtypes(self):
        done = rtc("precision", "abs.py")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        # Those that the report with PyTorch has.
        self.assertIn("  float16: True\n  bfloat16: True\n  float32: True\n  Overall: True", done.stdout)
        for dtype in ("float8_e4m3fn", "float8_e5m2"):
            done = rtc("precision", "abs.py", "--dtype", dtype)
            self.assertIn(f"  {dtype}: True\n  Overall: True", done.stdout, done.stderr)
        with open(os.path.join(CONTRACTS, "abs.py")) as file:
            text = file.read()
        for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "abs.py")
                with open(path, "w") as file:
                    most = 2 if dtype == "bool" else 100
                    file.write(text.replace("standard_normal((4, 50)).astype(np.float32)",
                                            f"integers(0, {most}, (4, 50)).astype(np.{dtype if dtype != 'bool' else 'bool_'})"))
                done = rtc("precision", path)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(f"  {dtype}: True\n  Overall: True", done.stdout)

    def test_floats_that_numpy_lacks(self):
        with tempfile.TemporaryDirectory() as folder:
            done = rtc("verify", "quantized.py", "--record", folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("400 elements of float8_e4m3fn [4, 100] within rtol 0.13", done.stdout)
            done = rtc("verify", "--golden", folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_sum_in_fp16_is_named(self):
        done = rtc("precision", "softmax_fp16.py", "--json", "--dtype", "float32")
        self.assertEqual(done.returncode, 1, done.stderr)
        worst = json.loads(done.stdout)["second_oracle"]["float32"]["worst_line"]
        self.assertEqual((worst["line"], worst["text"]), (11, "s = tl.sum(h, axis=0)"))


if __name__ == "__main__":
    unittest.main()
