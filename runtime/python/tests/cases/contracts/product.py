"""A product of matrices, a program for each tile of 32 x 32."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, N, K: tl.constexpr, B: tl.constexpr):
    m, n, k = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B), tl.arange(0, K)
    x, y = tl.load(a + m[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y))


def kernel_fn(a, b):
    c = np.empty((a.shape[0], b.shape[1]), np.float32)
    product[(a.shape[0] // 32, b.shape[1] // 32)](a, b, c, b.shape[1], K=a.shape[1], B=32)
    return c


def reference_fn(a, b):
    return a.astype(np.float32) @ b.astype(np.float32)


def get_inputs():
    generator = np.random.default_rng(0)
    return [generator.standard_normal(shape).astype(np.float16) for shape in ((64, 32), (32, 96))]
