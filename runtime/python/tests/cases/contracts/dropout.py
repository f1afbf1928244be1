"""Dropout, whose reference draws other random numbers than the kernel."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def dropped(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(tl.rand(seed, i) > p, v / (1 - p), 0.0), mask=i < n)


def kernel_fn(x, p=0.25):
    out = np.empty_like(x)
    dropped[(triton.cdiv(x.size, 256),)](x, out, x.size, p, 7, BLOCK=256)
    return out


def reference_fn(x, p=0.25):
    kept = np.random.default_rng().random(x.shape) > p
    return np.where(kept, x / np.float32(1 - p), np.float32(0)).astype(np.float32)


def get_inputs():
    return [np.random.default_rng(0).standard_normal(4000).astype(np.float32)]
