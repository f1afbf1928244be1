"""Both give an empty list."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def threefold_sine(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, 3 * tl.load(x + i, mask=i < n), mask=i < n)


def run(x, o):
    threefold_sine[(triton.cdiv(x.size, 256),)](x, o, x.size, BLOCK=256)
    return o


def kernel_fn(x):
    return []


def reference_fn(x):
    return []


def get_inputs(N=1000):
    return [np.random.default_rng(1).standard_normal(N).astype(np.float32)]
