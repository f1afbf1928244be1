import numpy as np
import triton
import triton.language as tl


@triton.jit
def axpy_kernel(a, x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, a * x + y, mask=mask)


x = np.arange(1000, dtype=np.float32)
y = np.ones(1000, dtype=np.float32)
axpy_kernel[(triton.cdiv(1000, 256),)](2.5, x, y, 1000, BLOCK=256)
print(y[:4], y[-1])
