"""Functions and values that kernels of other files use."""

import rtc as triton
import rtc.language as tl

SCALE = tl.constexpr(3)
OFFSET = 2


@triton.jit
def inner(x):
    return x * SCALE


@triton.jit
def scale(x):
    return inner(x) + OFFSET


@triton.constexpr_function
def half(n):
    return n // 2
