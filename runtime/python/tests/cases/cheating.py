"""Kernels in `cheats/` and `cheats_timed/` that are wrong and look right: `rtc verify` and `rtc bench` find each, and give the reason."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

CHEATS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cheats")
#: Wrappers that do something else when `rtc bench` times them.
TIMED = CHEATS + "_timed"

#: The file, the code of the error or None for a verdict, a part of the reason.
TABLE = [
    ("below_tolerance", None, "outside rtol"),
    ("below_tolerance_fp8", None, "outside rtol"),
    ("cached_reference", None, "no launch wrote what it holds"),
    ("constant", "no-verdict", "is 1 everywhere"),
    ("copied", None, "already holds the result"),
    ("filled_before", None, "no launch changed"),
    ("fixed_by_the_reference", None, "the reference accepts only size 256"),
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

TIMED_TABLE = [
    ("earlier_result", "outside rtol"),
    ("first_calls", "the kernel is wrong when it is timed"),
    ("host_when_timed", "no launch wrote what it holds"),
    ("patched_comparison", "so it is not timed"),
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

    def test_each_is_found_by_bench(self):
        """Those that are wrong for the arguments of get_inputs, and those that are wrong when they are timed."""
        judged = {name: (code, reason) for name, code, reason in TABLE}
        named = ["below_tolerance", "cached_reference", "constant", "filled_before", "host_arithmetic", "patched_comparison", "result_discarded"]
        table = [(CHEATS, name, *judged[name]) for name in named]
        table += [(TIMED, name, "wrong-result", reason) for name, reason in TIMED_TABLE]
        for folder, name, code, reason in table:
            with self.subTest(name=name):
                done = bench(folder, f"{name}.py")
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                found = json.loads(done.stdout)
                self.assertNotIn("kernel_time_ms", found)
                self.assertEqual(found["error"]["code"], code or "wrong-result", done.stdout)
                self.assertIn(reason, found["error"]["message"])

    def test_clocks_of_the_candidate_do_not_count(self):
        done = bench(TIMED, "patched_clock.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(json.loads(done.stdout)["kernel_time_ms"], 20)

    def test_a_reference_of_another_file(self):
        """The reference of the candidate's own file is not called."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "slow.py")
            with open(path, "w") as file:
                file.write(f"import sys\nsys.path.insert(0, {TIMED!r})\nfrom common import computed as kernel_fn, get_inputs\n\n"
                           "def reference_fn(x):\n    raise SystemExit\n")
            done = bench(TIMED, path, "--reference", "common.py")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(bench(TIMED, path).returncode, 1)


def bench(folder, *words):
    return subprocess.run([sys.executable, "-m", "rtc", "bench", *words, "--iterations", "4"], capture_output=True, text=True, cwd=folder,
                          timeout=120)


if __name__ == "__main__":
    unittest.main()
