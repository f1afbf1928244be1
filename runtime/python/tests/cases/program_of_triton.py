"""A program as its author wrote it, for Triton."""

import sys

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime import driver
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: F401


@triton.jit
def tanh(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, libdevice.tanh(tl.load(x + i, mask=i < n)), mask=i < n)


if __name__ == "__main__":
    x = np.linspace(-2, 2, 100, dtype=np.float32)
    out = np.empty_like(x)
    tanh[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, out, 100, BLOCK=32)
    triton.testing.assert_close(out, np.tanh(x), atol=1e-6)
    print("target", driver.active.get_current_target().backend, triton.__version__, sys.argv[1:])
