"""The absolute value, of any dtype."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def absolute(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.abs(tl.load(x + i, mask=i < n)), mask=i < n)


def kernel_fn(x):
    x = x.copy()
    out = np.empty_like(x)
    absolute[(triton.cdiv(x.size, 64),)](x, out, x.size, BLOCK=64)
    return out


def reference_fn(x):
    return np.abs(x)


def get_inputs():
    return [np.random.default_rng(0).standard_normal((4, 50)).astype(np.float32)]
