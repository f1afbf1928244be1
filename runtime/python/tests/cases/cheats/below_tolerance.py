"""Zeros where all of the reference is smaller than the absolute tolerance."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def zeros(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, 0.0, mask=i < n)


def kernel_fn(x):
    o = np.empty_like(x)
    zeros[(triton.cdiv(x.size, 256),)](x, o, x.size, BLOCK=256)
    return o


def reference_fn(x):
    return x * np.float32(1e-6)


def get_inputs(N=1000):
    return [np.random.default_rng(1).standard_normal(N).astype(np.float32)]
