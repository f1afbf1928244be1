import math

import numpy as np
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):
    head = tl.program_id(1) * n * D
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, D)
    q_ptrs = q_ptr + head + rows[:, None] * D + cols[None, :]
    q = tl.load(q_ptrs, mask=rows[:, None] < n, other=0.0)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, n, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k_ptrs = k_ptr + head + keys[None, :] * D + cols[:, None]
        k = tl.load(k_ptrs, mask=keys[None, :] < n, other=0.0)
        scores = tl.where(keys[None, :] < n, tl.dot(q, k) * scale, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp2(scores - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(p, axis=1)
        v_ptrs = v_ptr + head + keys[:, None] * D + cols[None, :]
        v = tl.load(v_ptrs, mask=keys[:, None] < n, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        top = new_top
    out = out_ptr + head + rows[:, None] * D + cols[None, :]
    tl.store(out, (acc / total[:, None]).to(q.dtype), mask=rows[:, None] < n)


def attention(q, k, v):
    heads, n, D = q.shape
    out = np.empty_like(q)
    scale = math.log2(math.e) / math.sqrt(D)
    attention_kernel[(triton.cdiv(n, 64), heads)](q, k, v, out, scale, n, BLOCK_M=64, BLOCK_N=64, D=D)
    return out


def reference(q, k, v):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[2])
    p = np.exp(scores - scores.max(axis=2, keepdims=True))
    return p @ v / p.sum(axis=2, keepdims=True)


if __name__ == "__main__":
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((2, 200, 64)).astype(np.float16) for _ in range(3))
    print("equal to numpy within 0.001:", np.allclose(attention(q, k, v), reference(q, k, v), rtol=1e-3, atol=1e-3))
