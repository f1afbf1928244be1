import numpy as np
import triton
import triton.language as tl
from softmax import reference


@triton.jit
def softmax_long_kernel(x_ptr, y_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0) * stride
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + cols, mask=cols < n_cols, other=-float("inf"))
        top = tl.maximum(top, x)
    greatest = tl.max(top, axis=0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + cols, mask=cols < n_cols, other=-float("inf"))
        sums += tl.exp(x - greatest)
    total = tl.sum(sums, axis=0)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + cols, mask=cols < n_cols)
        tl.store(y_ptr + row + cols, tl.exp(x - greatest) / total, mask=cols < n_cols)


x = np.random.default_rng(0).standard_normal((4, 5000)).astype(np.float32)
y = np.empty_like(x)
softmax_long_kernel[(4,)](x, y, 5000, 5000, BLOCK=1024)
print(np.allclose(y, reference(x), rtol=1e-5))
