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


@rtc.jit
def fill(x, n):
    for i in range(n):
        tl.store(x + i, 1.0)


VIEWS = """
import numpy, sanitizer
base = numpy.zeros({size}, numpy.float32)
sanitizer.fill[(1,)]({view}, {count})
print(int(base.sum()))
"""


class Sanitizer(unittest.TestCase):
    def views(self, view, count, size=40, **environment):
        code = VIEWS.format(view=view, count=count, size=size)
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment})

    def test_a_view_has_its_own_bounds(self):
        # Without the sanitizer the memory behind a view is there to be written, as on a GPU.
        self.assertEqual(self.views("base[:20]", 40, RTC_SANITIZE="").stdout, "40\n")
        for view, place in [
            ("base[:20]", "0 bytes past the last of its 20 elements"),
            ("base[10:30]", "0 bytes past the last of its 20 elements"),
        ]:
            with self.subTest(view=view):
                found = self.views(view, 40 if view == "base[:20]" else 25, RTC_SANITIZE="memory")
                self.assertEqual(found.returncode, 1)
                self.assertRegex(found.stderr, r"sanitizer\.py:\d+.*`x` \(160 bytes\).*" + place)
        for view, count in [("base[:20]", 20), ("base[10:30]", 20), ("base", 40), ("base[::-1]", 1)]:
            with self.subTest(view=view):
                self.assertEqual(self.views(view, count, RTC_SANITIZE="memory").returncode, 0)

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
