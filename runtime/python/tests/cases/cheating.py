"""Kernels in `cheats/` that are wrong and look right: `rtc verify` finds each, and gives the reason."""

import json
import os
import subprocess
import sys
import unittest

CHEATS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cheats")

#: The file, the code of the error or None for a verdict, a part of the reason.
TABLE = [
    ("below_tolerance", None, "outside rtol"),
    ("below_tolerance_fp8", None, "outside rtol"),
    ("cached_reference", None, "no launch wrote what it holds"),
    ("constant", "no-verdict", "is 1 everywhere"),
    ("copied", None, "already holds the result"),
    ("filled_before", None, "no launch changed"),
    ("fixed_by_the_reference", None, "size 256 is the only one"),
    ("fixed_inner_size", None, "refused: AssertionError: unsupported K"),
    ("fixed_mask", None, "outside rtol"),
    ("host_arithmetic", None, "no launch wrote what it holds"),
    ("ignored_strides", None, "rows with a stride"),
    ("input_recognized", None, "refused: NotImplementedError: unsupported input"),
    ("leaves_early", "call", "ended with the status 0 before"),
    ("nan_everywhere", "no-verdict", "is NaN"),
    ("none", "no-verdict", "no results"),
    ("nothing", "no-verdict", "no results"),
    ("overwritten", None, "changed the memory after the launch"),
    ("patched_comparison", None, "outside rtol"),
    ("reference_alone", None, "no launch wrote what it holds"),
    ("result_discarded", None, "no launch wrote what it holds"),
    ("scaled", None, "already holds the result"),
    ("size_recognized", None, "refused: AssertionError: unsupported size"),
    ("tail_on_the_host", None, "no launch changed"),
]


class Cheats(unittest.TestCase):

    def test_each_is_found(self):
        for name, code, reason in TABLE:
            with self.subTest(name=name):
                done = subprocess.run([sys.executable, "-m", "rtc", "verify", f"{name}.py", "--no-sanitize"], capture_output=True, text=True,
                                      cwd=CHEATS, timeout=120)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                found = json.loads(done.stdout)
                self.assertIsNot(found.get("correct"), True)
                self.assertEqual(found.get("error", {}).get("code"), code, done.stdout)
                self.assertIn(reason, found["error"]["message"] if code else found["details"])

    def test_each_is_in_the_table(self):
        files = sorted(name[:-3] for name in os.listdir(CHEATS) if name.endswith(".py"))
        self.assertEqual(files, [name for name, *_ in TABLE])


if __name__ == "__main__":
    unittest.main()
