"""The time limit of `verify`, `bench` and `precision`: what they say of what ran."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

CONTRACTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "contracts")
ENDLESS = "    while {where}:\n        {what}\n"
#: Waits without noticing signals, as for a GPU.
DEAF = """    import ctypes
    if {where}:
        mutex, lock = ctypes.create_string_buffer(256), ctypes.CDLL(None).pthread_mutex_lock
        lock(mutex), lock(mutex)
"""


def limited(command, seconds, body, *words, function="kernel_fn(x)", name="gelu.py"):
    """Runs a command with a time limit on a contract, one of whose functions begins so; gives the process and its JSON."""
    with open(os.path.join(CONTRACTS, name)) as file:
        text = file.read()
    assert f"def {function}:\n" in text
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(text.replace(f"def {function}:\n", f"def {function}:\n{body}", 1))
        file.flush()
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-m", "rtc", command, file.name, "--json", "--time-limit", str(seconds), *words],
                              capture_output=True, text=True, timeout=120)
        done.seconds = time.monotonic() - began
    return done, json.loads(done.stdout)


class TimeLimits(unittest.TestCase):
    def check(self, done, found, at):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(found["error"]["code"], "time-limit")
        self.assertRegex(found["running"], at)
        self.assertIn(found["running"], found["error"]["message"])
        self.assertIn("error[time-limit]: the command took longer than", done.stderr)
        for step in found["ran"]:
            self.assertIn(step["step"], found["error"]["message"])

    def test_verify(self):
        # `except Exception` of the file does not keep the command from ending.
        what = "try:\n            sum(range(100))\n        except Exception:\n            pass"
        done, found = limited("verify", 6, ENDLESS.format(where="x.size != 1000", what=what))
        self.check(done, found, r"^size 1000 -> \d+: kernel_fn$")
        self.assertEqual([(step["step"], step["correct"]) for step in found["ran"]], [("get_inputs()", True)])
        self.assertGreater(found["ran"][0]["seconds"], 0)
        done, found = limited("verify", 3, "    while True:\n        pass\n", function="get_inputs(N=1000)")
        self.check(done, found, "^get_inputs$")
        self.assertEqual(found["ran"], [])

    def test_kernels_on_the_emulator(self):
        done, found = limited("verify", 4, "    gelu[(1 << 30,)](x, x, 0, BLOCK=256)\n", "--device", "emulator")
        self.check(done, found, "^get_inputs.*: kernel_fn$")
        self.assertLess(done.seconds, 30)

    def test_a_process_that_does_not_notice(self):
        done, found = limited("bench", 6, DEAF.format(where="x.size != 1000"), "--sweep", "N=500..500", "--iterations", "1")
        self.check(done, found, "N=500.*: kernel_fn")
        self.assertEqual([step["step"] for step in found["ran"]], ["get_inputs()", "timing"])
        self.assertGreater(found["ran"][1]["kernel_time_ms"], 0)

    def test_precision(self):
        done, found = limited("precision", 8, ENDLESS.format(where='"float32" in str(x.dtype)', what="pass"), "--no-second-oracle")
        self.check(done, found, r"^float32 \[1000\]: kernel_fn$")
        self.assertIn(("float16 [1000]", True), [(step["step"], step.get("passed")) for step in found["ran"]])

    def test_no_limit(self):
        done, found = limited("verify", 0, "", "--no-boundary", "--no-sanitize")
        self.assertEqual((done.returncode, found["correct"]), (0, True), done.stderr)
        done = subprocess.run([sys.executable, "-m", "rtc", "verify", "gelu.py", "--time-limit", "-1"], capture_output=True, text=True,
                              cwd=CONTRACTS)
        self.assertEqual((done.returncode, json.loads(done.stdout)["error"]["code"]), (2, "usage"))


if __name__ == "__main__":
    unittest.main()
