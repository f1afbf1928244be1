
@triton.jit
def gelu(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(o + i, (0.5 * v * (1 + tl.erf(v * 0.7071067811865476))).to(o.dtype.element_ty), mask=i < n)
import triton.language as __tl
import triton.language as tl
import triton as triton
