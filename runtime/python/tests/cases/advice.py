"""Advice on host code, and the roofline."""

import contextlib
import io
import os
import tempfile
import unittest
import xml.dom.minidom

import numpy as np

import rtc
import rtc.language as tl
from rtc import _advice, _plot

WRAPPERS = '''
import triton

@triton.jit
def kernel(x):
    x.item()

def waits(x):
    kernel[(1,)](x, seed=x.sum().item())
    return x.tolist()

def host_only(x):
    return x.item()

def by_index(x):
    kernel[(1,)](x, x.item(3))
'''


@rtc.jit
def accumulate(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@rtc.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def tuned(kernel, **options):
    """What is said while it is tuned."""
    def once(call, quantiles):
        call()
        return [1.0] * 3

    configs = [rtc.Config({"BLOCK": size}) for size in (32, 64)]
    x, out, said = np.ones(64, np.float32), np.zeros(64, np.float32), io.StringIO()
    with contextlib.redirect_stderr(said):
        rtc.autotune(configs, key=["n"], do_bench=once, **options)(kernel)[(2,)](x, out, 64)
    return said.getvalue()


class Advice(unittest.TestCase):
    def test_waits_of_the_host(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "wrappers.py")
            with open(path, "w") as file:
                file.write(WRAPPERS)
            self.assertEqual(_advice.host_waits(path), [(9, "item"), (10, "tolist")])
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                _advice.on_file(path)
            self.assertIn(f"warning[host-sync]: {path}:9: `.item()` in a wrapper makes the host wait", said.getvalue())
        self.assertEqual(_advice.host_waits("/nowhere.py"), [])

    def test_what_kernels_say(self):
        text = """
import triton
import triton.language as tl

N = 7

@triton.jit
def kernel(a, b, c, n, B: tl.constexpr):
    blocks = -(-n // B)
    fixed = -(-B // 4) + -N % 3 + n // B + (n - B) // B
    x, y = tl.load(a), tl.load(b)
    z = tl.dot(x, y, input_precision="ieee") + tl.dot(x, y) + tl.dot(x, y, input_precision="tf32x3")
    tl.store(c, tl.dot(x, y, z, allow_tf32=False) + -blocks % 3)

def host(n, b):
    return -(-n // b)
"""
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(text)
            file.flush()
            found = _advice.in_kernels(file.name)
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                _advice.on_file(file.name)
        self.assertEqual([(line, code) for line, code, _ in found],
                         [(9, "negative-division"), (12, "slow-product"), (13, "negative-division"), (13, "slow-product")])
        self.assertIn(f"warning[negative-division]: {file.name}:9: `-n // B` rounds towards zero", said.getvalue())

    def test_trials_that_add_up(self):
        said = tuned(accumulate)
        self.assertIn("warning[reset-to-zero]: kernel `accumulate` reads and writes `out`, and each trial", said)
        for options in ({"reset_to_zero": ["out"]}, {"restore_value": ["out"]}, {"pre_hook": lambda args, reset_only=False: None}):
            self.assertEqual(tuned(accumulate, **options), "")
        self.assertEqual(tuned(copy), "")

    def test_decorators_in_another_order(self):
        """Each says which order there is."""
        function = copy.fn
        order = "`@triton.autotune`, then `@triton.heuristics`, then `@triton.jit`"
        tune = rtc.autotune([rtc.Config({"BLOCK": 64})], key=[])
        for decorator in (tune, rtc.heuristics({"BLOCK": lambda args: 64})):
            with self.assertRaisesRegex(TypeError, order):
                decorator(function)
        with self.assertRaisesRegex(TypeError, "the innermost decorator"):
            rtc.jit(tune(copy))

    def test_roofline(self):
        points = [("kernel", 300.0, 600.0), ("reference", 300.0, 500.0), ("far <below>", 0.5, 0.1)]
        drawn = xml.dom.minidom.parseString(_plot.roofline(points, 4.2, 790.0))
        circles = drawn.getElementsByTagName("circle")
        self.assertEqual(len(circles), 3)
        inside = [(0 < float(c.getAttribute("cx")) < _plot.WIDTH, 0 < float(c.getAttribute("cy")) < _plot.HEIGHT) for c in circles]
        self.assertEqual(set(inside), {(True, True)})
        # Faster is higher.
        self.assertLess(float(circles[0].getAttribute("cy")), float(circles[1].getAttribute("cy")))


if __name__ == "__main__":
    unittest.main()
