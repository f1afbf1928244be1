"""A reference that is the same everywhere."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def ones(o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, 1.0, mask=i < n)


def kernel_fn(x):
    o = np.empty_like(x)
    ones[(triton.cdiv(x.size, 256),)](o, x.size, BLOCK=256)
    return o


def reference_fn(x):
    return x / x


def get_inputs(N=1000):
    return [1 + np.random.default_rng(1).random(N).astype(np.float32)]
