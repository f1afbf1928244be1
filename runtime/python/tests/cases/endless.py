"""Kernels that never end on the devices of the CPU: Ctrl-C, and `RTC_STEPS`."""

import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import rtc
import rtc.language as tl


@rtc.jit
def endless(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, i + 1)
    if tl.program_id(0) == tl.num_programs(0) - 1:
        done = 0
        while done < n:
            done = tl.load(x) * 0


@rtc.jit
def long(x, n):
    done = 0
    for i in range(n):
        done += tl.load(x, volatile=True)
    tl.store(x, done)


PROGRAM = """
import numpy, endless
x = numpy.zeros(256, numpy.int32)
endless.endless.warmup(x, 1, BLOCK=32, grid=(8,))
{before}
print("starts", flush=True)
try:
    endless.endless[({grid},)](x, 1, BLOCK=32)
except KeyboardInterrupt:
    print("interrupted", int(x[:32].sum()), flush=True)
endless.long[(1,)](x, 10)
print("again", int(x[0]))
"""

#: One handler raises nothing.
HANDLED = "import signal; signal.signal(signal.SIGUSR1, lambda *_: print('handled', flush=True))"


def start(device, code, **environment):
    environment = {**os.environ, "RTC_DEVICE": device, **environment}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment)
    # The reader of its output must not wait forever.
    timer = threading.Timer(100, process.kill)
    timer.daemon = True
    timer.start()
    return process


class Endless(unittest.TestCase):
    def test_ctrl_c_ends_a_launch_and_the_device_can_be_used_again(self):
        for device in "emulator", "interpreter":
            for grid in 1, 8:
                with self.subTest(device=device, grid=grid):
                    process = start(device, PROGRAM.format(before=HANDLED, grid=grid))
                    self.addCleanup(process.kill)
                    self.assertEqual(process.stdout.readline(), "starts\n")
                    time.sleep(1)
                    process.send_signal(signal.SIGUSR1)
                    self.assertEqual(process.stdout.readline(), "handled\n")
                    self.assertIsNone(process.poll())
                    process.send_signal(signal.SIGINT)
                    # Long enough for a machine with much else to do; the launch itself would take minutes more.
                    out, err = process.communicate(timeout=20)
                    # What was stored before is in the array.
                    self.assertEqual(out, "interrupted 528\nagain 10\n", err)
                    self.assertEqual(process.returncode, 0, err)

    def test_an_exception_that_nobody_catches_ends_the_process(self):
        process = start("emulator", "import numpy, endless; print('starts', flush=True); "
                                    "endless.endless[(1,)](numpy.zeros(32, numpy.int32), 1, BLOCK=32)")
        self.addCleanup(process.kill)
        process.stdout.readline()
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, -signal.SIGINT, err)
        self.assertIn("KeyboardInterrupt", err)

    def test_more_steps_than_allowed_are_a_fault(self):
        code = "import numpy, endless; x = numpy.ones(1, numpy.int32); endless.{}; print(int(x[0]))"
        for device, words in ("emulator", "warp instructions"), ("interpreter", "operations"):
            with self.subTest(device=device):
                never = code.format("endless[(1,)](x, 1, BLOCK=1)")
                _, err = start(device, never, RTC_STEPS="5000").communicate()
                self.assertIn(f"executed more than 5000 {words}", err)
                self.assertIn("KernelFault", err)
                self.assertIn("RTC_STEPS=N", err)
                if device == "emulator":
                    self.assertIn("endless.py:", err)
                # Each program has as many steps.
                many = code.format("long[(100,)](x * 0, 50)")
                self.assertEqual(start(device, many, RTC_STEPS="5000").communicate()[0], "1\n")
                once = code.format("long[(1,)](x, 5000)")
                self.assertIn("executed more than 5000", start(device, once, RTC_STEPS="5000").communicate()[1])
                for steps in "1000000", "0", "":
                    self.assertEqual(start(device, once, RTC_STEPS=steps).communicate()[0], "5000\n")

    def test_steps_that_are_no_number_are_an_error(self):
        code = "import numpy, endless; endless.long[(1,)](numpy.ones(1, numpy.int32), 5)"
        for device in "emulator", "interpreter":
            err = start(device, code, RTC_STEPS="many").communicate()[1]
            self.assertIn("RTC_STEPS: `many` is not a number of steps", err)


if __name__ == "__main__":
    unittest.main()
