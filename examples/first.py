"""A first kernel in Python: adds two vectors. Needs numpy and the package rtc-triton; without a GPU it runs in the emulator."""

import numpy as np

import rtc
import rtc.language as tl


@rtc.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


n = 1000
x, y, out = np.ones(n, np.float32), np.arange(n, dtype=np.float32), np.empty(n, np.float32)
add[(rtc.cdiv(n, 128),)](x, y, out, n, BLOCK=128)
assert (out == x + y).all()
print("the first elements:", out[:4])
