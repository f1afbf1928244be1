"""`--instrument`: timelines of the launches of a program, whose results stay the same."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = """
import numpy as np
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, K, N: tl.constexpr, BK: tl.constexpr):
    i, k = tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((N, N), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + i[:, None] * K + start + k[None, :])
        right = tl.load(b + (start + k)[:, None] * N + i[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + i[:, None] * N + i[None, :], acc)


@triton.autotune([triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((64, 1), (128, 2))], key=["n"],
                 do_bench=lambda call, quantiles: call() or [1.0 if len(timed.append(0) or timed) == 2 else 2.0] * 3)
@triton.jit
def scale(x, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)


timed = []
rng = np.random.default_rng(1)
a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((32, 128), (128, 32)))
c = np.zeros((32, 32), np.float32)
for _ in range(2):
    matmul[(1,)](a, b, c, 128, N=32, BK=32)
x = np.ones(1000, np.float32)
scale[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, 1000, 3.0)
print(c.tobytes().hex(), x.tobytes().hex())
"""

#: Arguments that are constants are passed, too, and the kernel has no parameters for them.
COMPILED = """
import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def shifted(x, y, n, BLOCK: tl.constexpr, shift):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + shift, mask=i < n)


signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr", "shift": "fp32"}
for block in (64, 32):
    compiled = triton.compile(ASTSource(shifted, signature, {(3,): block}), target=GPUTarget("cpu", 0, 32))
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    for _ in range(2):
        compiled.run(4, 1, 1, 0, compiled.function, compiled.packed_metadata, None, None, None, x, y, 100, block, 0.5)
    np.testing.assert_array_equal(y, x + 0.5)
"""


class Instrumented(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write("program.py", PROGRAM)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def rtc(self, *words, **environment):
        return subprocess.run([sys.executable, "-m", "rtc", *words], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "RTC_DEVICE": "emulator", **environment})

    def trace(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return json.load(file)

    def recorded(self):
        done = self.rtc("--instrument", "traces", "program.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_results_are_the_same_and_each_kernel_has_a_trace(self):
        plain, done = self.rtc("program.py"), self.recorded()
        self.assertEqual((plain.returncode, done.stdout), (0, plain.stdout), plain.stderr)
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "traces"))), ["matmul.perfetto.json", "scale.perfetto.json"])
        self.assertEqual(done.stderr.count("note: timeline of `"), 2, done.stderr)
        trace = self.trace("traces/matmul.perfetto.json")
        own = trace["rtc"]
        self.assertEqual((own["kernel"], own["grid"], own["blocks"], own["lost"]), ("matmul", [1, 1, 1], 1, 0))
        loads = [event for event in trace["traceEvents"] if event["name"] in ("load", "copy") and event["ph"] == "b"]
        self.assertGreaterEqual({event["args"]["iteration"] for event in loads}, {0, 1, 2})

    def test_the_configuration_found_is_recorded_and_no_trial(self):
        self.recorded()
        own = self.trace("traces/scale.perfetto.json")["rtc"]
        constants = {arg["name"]: arg.get("constexpr") for arg in json.loads(own["spec"])["args"]}
        # The second configuration is the fastest: 128 elements and two warps.
        self.assertEqual((constants["BLOCK"], own["warps_per_block"], own["grid"], own["blocks"]), (128, 2, [8, 1, 1], 4))

    def test_kernels_that_were_compiled_before(self):
        self.write("compiled.py", COMPILED)
        done = self.rtc("compiled.py", RTC_INSTRUMENT="traces", RTC_INSTRUMENT_BLOCKS="1")
        self.assertEqual((done.returncode, done.stderr.count("note: timeline of `shifted`")), (0, 2), done.stderr)
        for name, block in [("shifted", 64), ("shifted.2", 32)]:
            own = self.trace(f"traces/{name}.perfetto.json")["rtc"]
            self.assertEqual((own["grid"], own["blocks"], own["instrument"]), ([4, 1, 1], 1, 1))
            self.assertIn({"name": "BLOCK", "constexpr": block}, json.loads(own["spec"])["args"])

    def test_explore_shows_the_trace(self):
        self.recorded()
        shown = self.rtc("explore", "program.py", "--timeline", "traces/matmul.perfetto.json", "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        page = json.loads(shown.stdout)
        timeline = page["launch"]["timeline"]
        self.assertEqual((page["launch"]["executor"], timeline["recording"]["blocks"]), ("program", 1))
        lines = PROGRAM.splitlines()
        bars = [bar for bar in timeline["bars"] if bar["kind"] in ("load", "copy")]
        self.assertGreater(len(bars), 4)
        for bar in bars:
            self.assertIn("tl.load", lines[page["places"][bar["place"]][1] - 1])
            self.assertIn("// record ", page["ptx"][bar["ptx_line"] - 1]["t"])

    def test_a_trace_of_another_kernel_is_refused(self):
        self.recorded()
        self.write("program.py", PROGRAM.replace("acc = tl.dot(left, right, acc)", "tl.store(c, 1.0)\n        acc += tl.sum(left)"))
        for trace, expected in [("traces/matmul.perfetto.json", "error[trace]: line"), ("program.py", "error[trace]: it is no JSON")]:
            refused = self.rtc("explore", "program.py", "--timeline", trace, "--json")
            self.assertEqual((refused.returncode, refused.stdout), (1, ""), refused.stderr)
            self.assertIn(expected, refused.stderr)

    def test_wrong_settings_are_errors(self):
        self.write("a-file", "")
        for words, environment, expected in [
            (("--instrument",), {}, "the folder for the timelines is missing"),
            (("--instrument", "traces"), {}, "the program is missing"),
            (("--instrument=traces", "--instrument-blocks=0", "program.py"), {}, "a number from 1 to 256 is expected"),
            (("program.py",), {"RTC_INSTRUMENT": "a-file"}, "cannot write a-file/matmul.perfetto.json"),
            (("--instrument", "traces", "program.py"), {"RTC_DEVICE": "interpreter"}, "the interpreter has no time to record"),
        ]:
            with self.subTest(words=words):
                refused = self.rtc(*words, **environment)
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn(expected, refused.stderr)


if __name__ == "__main__":
    unittest.main()
