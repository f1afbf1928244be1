import numpy as np
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, x + y)


def add(x, y):
    out = np.empty_like(x)
    grid = (triton.cdiv(x.size, 256),)
    add_kernel[grid](x, y, out, x.size, BLOCK=256)
    return out


if __name__ == "__main__":
    x = np.arange(1000, dtype=np.float32)
    y = np.full(1000, 0.5, dtype=np.float32)
    out = add(x, y)
    print(out[:4], out[-1])
    print("equal to numpy:", np.array_equal(out, x + y))
