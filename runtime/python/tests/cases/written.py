"""`rtc verify`: which results are those of a kernel, and where the reference comes from."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

from commands import CONTRACTS, rtc


class Written(unittest.TestCase):
    """Results of wrappers: those that are what a launch wrote, and those that are not."""
    START = "    o = np.empty_like(x)\n"

    def verdict(self, changes, *words):
        with open(os.path.join(CONTRACTS, "gelu.py")) as file:
            text = file.read()
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(text)
            file.flush()
            done = rtc("verify", file.name, "--no-sanitize", *words)
        return done, json.loads(done.stdout)

    def test_parts_copies_and_casts_are_results(self):
        end = "    return o\n"
        for changes in [
            [(self.START, "    o = np.empty(x.size + 24, x.dtype)\n"), (end, "    return o[:x.size]\n")],
            [(self.START, "    o = np.empty(x.size + 24, x.dtype)\n"), (end, "    return o[:x.size].copy()\n")],
            [(end, "    return o.copy()\n")],
            [(end, "    return o.reshape(1, -1)\n"), ("astype(x.dtype)", "astype(x.dtype).reshape(1, -1)")],
            [(end, "    return o[::-1].copy()\n"), ("astype(x.dtype)", "astype(x.dtype)[::-1]")],
            [(self.START, "    o = np.empty(x.shape, np.float64)\n"), (end, "    return o.astype(np.float32)\n")],
            [(self.START, "    o = np.full(x.shape, 3, x.dtype)\n")],
            # In place: neither gives a result.
            [(self.START, "    o = x\n"), (end, ""), ("    return (0.5", "    x[...] = (0.5")],
            # An argument that is given back beside the result.
            [(end, "    return x, o\n"), ("    return (0.5", "    return x, (0.5")],
            # A temporary of an earlier launch, whose memory is used again.
            [(self.START, "    gelu[(1,)](x, np.empty_like(x), x.size, BLOCK=64)\n" + self.START)],
        ]:
            done, found = self.verdict(changes)
            self.assertEqual((done.returncode, found.get("correct")), (0, True), (changes, done.stderr))

    def test_arithmetic_of_the_host_is_declared(self):
        half = [("    return o\n", "    return o[:x.size // 2] + o[-(x.size // 2):]\n"), ("    return (0.5", "    y = (0.5"),
                (".astype(x.dtype)\n", ".astype(x.dtype)\n    return y[:x.size // 2] + y[-(x.size // 2):]\n")]
        done, found = self.verdict(half)
        self.assertEqual((found["correct"], found["host_arithmetic"]), (False, False), done.stderr)
        self.assertIn("no launch wrote what it holds", found["details"])
        done, found = self.verdict([*half, ("def kernel_fn", "host_arithmetic = True\n\n\ndef kernel_fn")])
        self.assertEqual((found["correct"], found["host_arithmetic"]), (True, True), done.stderr)
        self.assertIn("the file declares `host_arithmetic`", found["details"])

    def test_a_reference_of_its_own(self):
        reference = os.path.join(CONTRACTS, "gelu.py")
        for factor, is_right in [("0.5 * v", True), ("0.6 * v", False)]:
            done, found = self.verdict([("0.5 * v", factor), ("(0.5 * x", "(0.6 * x"), ("def get_inputs", "def nothing")], "--reference", reference)
            self.assertEqual(found.get("correct"), is_right, done.stderr)

    def test_draws_are_those_of_the_seed(self):
        names = [[case["name"] for case in self.verdict([], *words)[1]["cases"]] for words in (("--seed", "7"), ("--seed", "7"), ())]
        self.assertEqual(names[0], names[1])
        self.assertNotEqual(names[0], names[2])

    def test_the_reference_launches_the_kernel_itself(self):
        _, found = self.verdict([("    return (0.5", "    return kernel_fn(x)\n    return (0.5")])
        self.assertEqual(found["error"]["code"], "no-verdict")

    def test_without_numpy(self):
        """Results are compared by numpy; recorded ones need it for nothing."""
        hidden = ("import sys\nsys.modules['numpy'] = None\nfrom rtc import __main__\nsys.argv = ['rtc', *sys.argv[1:]]\n"
                  "sys.exit(__main__.main())\n")
        for words, status, text in [(("gelu.py",), 1, "error[import]"), (("--golden", "nowhere"), 1, "error[golden]")]:
            done = subprocess.run([sys.executable, "-c", hidden, "verify", *words], capture_output=True, text=True, cwd=CONTRACTS)
            self.assertTrue(done.returncode == status and text in done.stderr and "Traceback" not in done.stderr, done.stderr)

    def test_a_small_kernel_takes_less_than_five_seconds(self):
        began = time.monotonic()
        self.verdict([])
        self.assertLess(time.monotonic() - began, 5)


if __name__ == "__main__":
    unittest.main()
