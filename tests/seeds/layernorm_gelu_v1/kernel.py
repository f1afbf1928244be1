import triton
import triton.language as tl

@triton.jit
def fused_layernorm_gelu_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr,
    M, N, eps,
    stride_xm, stride_xn,
    BLOCK_N: tl.constexpr,
):
    row_idx = tl.program_id(0)

    # Pointers for this row
    row_start = x_ptr + row_idx * stride_xm
    out_start = y_ptr + row_idx * stride_xm

    # Pass 1: Compute mean
    _mean = tl.zeros([BLOCK_N], dtype=tl.float32)
    for off in range(0, N, BLOCK_N):
        cols = off + tl.arange(0, BLOCK_N)
        mask = cols < N
        x = tl.load(row_start + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
        _mean += x
    mean = tl.sum(_mean, axis=0) / N

    # Pass 2: Compute variance
    _var = tl.zeros([BLOCK_N], dtype=tl.float32)
    for off in range(0, N, BLOCK_N):
        cols = off + tl.arange(0, BLOCK_N)
        mask = cols < N
        x = tl.load(row_start + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
        diff = x - mean
        _var += diff * diff
    var = tl.sum(_var, axis=0) / N
    rstd = 1.0 / tl.sqrt(var + eps)

    # Pass 3: Normalize + GELU
    for off in range(0, N, BLOCK_N):
        cols = off + tl.arange(0, BLOCK_N)
        mask = cols < N
        x = tl.load(row_start + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(weight_ptr + cols, mask=mask, other=1.0).to(tl.float32)
        b = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)

        # LayerNorm
        x_norm = (x - mean) * rstd
        x_ln = x_norm * w + b

        # Approximate GELU
        y = 0.5 * x_ln * (1.0 + tl.math.tanh(0.7978845608 * (x_ln + 0.044715 * x_ln * x_ln * x_ln)))

        tl.store(out_start + cols * stride_xn, y.to(tl.float16), mask=mask)
