"""A sum over all blocks, which each add to it."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def total(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(o, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))


def kernel_fn(x):
    o = np.zeros(1, np.float32)
    total[(triton.cdiv(x.size, 64),)](x, o, x.size, BLOCK=64)
    return o


def reference_fn(x):
    return x.sum(dtype=np.float64).astype(np.float32).reshape(1)


def get_inputs(N=200):
    return [np.random.default_rng(1).random(N).astype(np.float32)]
