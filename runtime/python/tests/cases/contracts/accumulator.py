"""Sums of rows whose accumulator has the type of the elements."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def sums(x, o, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros([BLOCK], dtype=x.dtype.element_ty)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(x + row * n + i, mask=i < n, other=0.0)
    total = tl.sum(acc.to(tl.float32), axis=0)
    tl.store(o + row, total)


def kernel_fn(x):
    x = x.copy()
    o = np.empty(x.shape[0], np.float32)
    sums[(x.shape[0],)](x, o, x.shape[1], BLOCK=16)
    return o


def reference_fn(x):
    return x.astype(np.float64).sum(axis=1).astype(np.float32)


def get_inputs(N=2000):
    return [np.random.default_rng(1).random((4, N)).astype(np.float16)]
