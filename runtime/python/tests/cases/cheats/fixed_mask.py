"""A mask that holds for up to 1100 columns."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def halves(x, o, n, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    kept = (c < n) & (c < 1100)
    tl.store(o + row * n + c, tl.load(x + row * n + c, mask=kept) / 2, mask=kept)


def kernel_fn(x):
    x = np.ascontiguousarray(x)
    o = np.zeros(x.shape, np.float32)
    halves[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return o


def reference_fn(x):
    return x / np.float32(2)


def get_inputs(M=4, N=1000):
    return [np.random.default_rng(1).standard_normal((M, N)).astype(np.float32)]
