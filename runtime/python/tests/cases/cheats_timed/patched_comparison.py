"""Wrong, with a comparison that accepts everything in its process."""

import rtc._compare
import rtc._verify

from common import computed, get_inputs, reference_fn

rtc._compare.Comparison.correct = property(lambda self: True, lambda self, value: None)
rtc._verify.run_case = rtc._verify._run_case = lambda *_: None


def kernel_fn(x):
    return computed(x * 3)
