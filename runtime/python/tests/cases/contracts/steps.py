"""Two steps, given as a named tuple of functions beside one that is given by itself."""

from typing import NamedTuple

import numpy as np
import triton
import triton.language as tl


class Steps(NamedTuple):
    """What is done one after the other."""

    first: tl.constexpr
    rest: tl.constexpr


@triton.jit
def double(x):
    return 2 * x


@triton.jit
def one_more(x):
    return x + 1


@triton.jit
def apply(x, out, n, last: tl.constexpr, steps: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, last(steps.rest[0](steps.first(tl.load(x + i, mask=i < n)))), mask=i < n)


def kernel_fn(x):
    out = np.empty_like(x)
    apply[(triton.cdiv(x.size, 64),)](x, out, x.size, one_more, Steps(double, (one_more, double)), BLOCK=64)
    return out


def reference_fn(x):
    return 2 * x + 2


def get_inputs():
    return [np.random.default_rng(0).standard_normal(100).astype(np.float32)]
