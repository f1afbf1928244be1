import numpy as np
import triton
import triton.language as tl


@triton.jit
def add_loop_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + y, mask=mask)


for programs in (1, 3, 8):
    x = np.arange(1000, dtype=np.float32)
    out = np.empty_like(x)
    add_loop_kernel[(programs,)](x, x, out, x.size, BLOCK=128)
    print(programs, "programs:", np.array_equal(out, 2 * x))
