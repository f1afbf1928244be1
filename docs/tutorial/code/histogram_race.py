import numpy as np
import triton
import triton.language as tl


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    counts = tl.histogram(x, BINS, mask=i < n)
    bins = counts_ptr + tl.arange(0, BINS)
    tl.store(bins, tl.load(bins) + counts)


x = np.random.default_rng(0).integers(0, 16, 1000).astype(np.int32)
counts = np.zeros(16, np.int32)
histogram_kernel[(triton.cdiv(1000, 256),)](x, counts, 1000, BLOCK=256, BINS=16)
print(np.array_equal(counts, np.bincount(x, minlength=16)))
