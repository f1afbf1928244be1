"""Where the numbers of a program lie."""

import triton
import triton.language as tl


@triton.jit
def span(AXIS: tl.constexpr, SIZE: tl.constexpr):
    """The indices that this program has along an axis of the grid."""
    return tl.program_id(AXIS) * SIZE + tl.arange(0, SIZE)


@triton.jit
def cube(A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    """Where the numbers of this program's A x B x C block lie."""
    a, b, c = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    return tl.program_id(0) * (A * B * C) + (a * B + b) * C + c


@triton.jit
def plane(A: tl.constexpr, B: tl.constexpr):
    """Where the numbers of this program's A x B block lie."""
    return tl.program_id(0) * (A * B) + tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
