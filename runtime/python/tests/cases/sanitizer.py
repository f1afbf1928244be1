"""`RTC_SANITIZE`, and options that name what rtc has no use for."""

import os
import subprocess
import sys
import unittest

import numpy as np

import rtc
import rtc.language as tl


@rtc.jit
def racing(x):
    tl.store(x, tl.load(x) + tl.program_id(0))


def launched(**environment):
    code = "import numpy, sanitizer; sanitizer.racing[(3,)](numpy.zeros(1, numpy.int32)); print('done')"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment})


class Sanitizer(unittest.TestCase):
    def test_races_are_found(self):
        self.assertEqual(launched(RTC_SANITIZE="").stdout, "done\n")
        self.assertEqual(launched(RTC_SANITIZE="memory").stdout, "done\n")
        found = launched(RTC_SANITIZE="all")
        self.assertEqual(found.returncode, 1)
        self.assertIn("KernelFault: sanitizer: ", found.stderr)
        self.assertRegex(found.stderr, r"(?s)not ordered with.*sanitizer.py:16")

    def test_mistakes(self):
        self.assertIn("RTC_SANITIZE: `everything` is not a check; checks are", launched(RTC_SANITIZE="everything").stderr)
        self.assertIn("the sanitizer runs on the emulator", launched(RTC_SANITIZE="all", RTC_DEVICE="interpreter").stderr)

    def test_libraries_of_others_are_refused(self):
        x = np.zeros(1, np.int32)
        racing[(1,)](x, extern_libs={"libdevice": "/nowhere/libdevice.10.bc"})
        with self.assertRaisesRegex(TypeError, "`extern_libs`"):
            racing[(1,)](x, extern_libs={"mine": "/nowhere/mine.bc"})


if __name__ == "__main__":
    unittest.main()
