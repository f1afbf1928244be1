"""`python -m rtc`."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def rtc(*arguments, **variables):
    command = [sys.executable, "-m", "rtc", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=HERE, env={**os.environ, **variables})


class AsTriton(unittest.TestCase):

    def test_a_program(self):
        done = rtc("program_of_triton.py", "--flag", "x")
        self.assertEqual((done.stdout, done.stderr), ("target cuda 3.6.0 ['--flag', 'x']\n", ""))

    def test_a_module_and_a_text(self):
        self.assertIn("target cuda", rtc("-m", "program_of_triton").stdout)
        self.assertEqual(rtc("-c", "import triton.language as tl; print(tl.float16)").stdout, "fp16\n")

    def test_processes_that_it_starts(self):
        code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import triton; print(triton.jit.__module__)'])"
        self.assertEqual(rtc("-c", code).stdout, "rtc.runtime.jit\n")
        # As TorchInductor starts its compile processes.
        path = "env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)}"
        code = "import os, " + code.removeprefix("import ").removesuffix(")") + f", {path})"
        self.assertEqual(rtc("-c", code).stdout, "rtc.runtime.jit\n")

    def test_warnings_are_shown_on_request(self):
        kernel = textwrap.dedent("""
            import numpy as np, triton, triton.language as tl

            @triton.jit
            def copy(x, y, n, BLOCK: tl.constexpr):
                at = tl.arange(0, BLOCK)
                tl.store(y + at, tl.load(x + at), mask=at < n)

            copy[(1,)](np.zeros(32, np.float32), np.zeros(32, np.float32), 32, BLOCK=32)
        """)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w") as file:
                file.write(kernel)
            for value, shown in [("", 0), ("0", 0), ("1", 1)]:
                done = rtc(path, RTC_WARNINGS=value, RTC_CACHE_DIR=folder)
                self.assertEqual((done.returncode, done.stderr.count("warning[missing-mask]")), (0, shown), done.stderr)

    def test_what_is_missing_is_named(self):
        for code, text in [("import triton.backends.amd", "rtc provides no module `triton.backends.amd`"),
                           ("from triton.experimental import gluon", "rtc provides no module `triton.experimental`"),
                           ("from triton import jitt", "cannot import name 'jitt' from 'triton'"),
                           ("import triton; triton.foo", "rtc has no `triton.foo`"),
                           ("import triton; triton.runtime.driver.active.launcher_cls", "rtc has no `triton.runtime.driver.active.launcher_cls`")]:
            done = rtc("-c", code)
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)

    def test_the_command_line(self):
        self.assertEqual(rtc().returncode, 2)
        self.assertEqual(rtc("nowhere.py").returncode, 2)
        self.assertIn("no file nowhere.py", rtc("nowhere.py").stderr)
        self.assertEqual(rtc("--help").returncode, 0)
        self.assertEqual(rtc("-c", "import sys; sys.exit(5)").returncode, 5)
