import math

import numpy as np
import triton
import triton.language as tl


@triton.jit
def gelu(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(o + i, (0.5 * v * (1 + tl.erf(v * 0.7071067811865476))).to(o.dtype.element_ty), mask=i < n)


def kernel_fn(x):
    o = np.empty_like(x)
    gelu[(triton.cdiv(x.size, 256),)](x, o, x.size, BLOCK=256)
    return o


def reference_fn(x):
    return (0.5 * x * (1 + np.vectorize(math.erf)(x * 0.7071067811865476))).astype(x.dtype)


def get_inputs(N=1000):
    return [np.random.default_rng(1).standard_normal(N).astype(np.float32)]
