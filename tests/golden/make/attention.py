"""Attention: forward, backward, and of single queries over pages."""
import math
import torch
from core import Const, case, cases, cdiv, generator, poison, random

# Name, batch, heads, heads of keys, length, causal, window, dtype, blocks, target.
SHAPES = (("1", 1, 1, 1, 1, True, 0, torch.float16, (32, 32), "sm_80"), ("63_causal", 1, 2, 1, 63, True, 0, torch.float16, (32, 32), "sm_80"), ("64", 1, 1, 1, 64, False, 0, torch.float16, (64, 32), "sm_80"),
          ("65_causal_bf16", 1, 1, 1, 65, True, 0, torch.bfloat16, (32, 32), "sm_80"), ("70_window", 1, 1, 1, 70, True, 20, torch.float16, (32, 32), "sm_80"), ("81_shared_sm90", 1, 2, 1, 81, True, 0, torch.float16, (64, 64), "sm_90a"),
          ("80_sm90", 1, 1, 1, 80, False, 0, torch.float16, (64, 64), "sm_90a"), ("65_window_sm90", 1, 2, 1, 65, True, 33, torch.bfloat16, (64, 64), "sm_90a"))


def inputs(name, batch, heads, kv_heads, length, causal, window, dtype):
    """q, k, v, the gradient of the output; the output, logarithms of sums and gradients in fp64."""
    g = generator("attention" + name)
    q, k, v, do = (random(g, (batch, h, length, 64), dtype) for h in (heads, kv_heads, kv_heads, heads))
    wide = [t.double().requires_grad_() for t in (q, k, v)]
    repeated = [t.repeat_interleave(heads // kv_heads, 1) for t in wide[1:]]
    s = wide[0] @ repeated[0].transpose(2, 3) / 8
    m, n = torch.arange(length)[:, None], torch.arange(length)[None, :]
    hidden = torch.zeros(length, length, dtype=torch.bool)
    if causal: hidden |= n > m
    if window: hidden |= n <= m - window
    s = s.masked_fill(hidden, -math.inf)
    o = torch.softmax(s, 3) @ repeated[1]
    o.backward(do.double())
    return (q, k, v, do), o.detach(), s.detach().logsumexp(3), [t.grad for t in wide]


def with_rows(values, dtype):
    """All rows of a result, and a poisoned row."""
    values = values.reshape(-1, values.shape[-1]).to(dtype)
    y = poison((values.shape[0] + 1, values.shape[1]), dtype)
    return y, torch.cat((values, y[-1:]))


def with_numbers(values):
    y = poison((values.numel() + 4,), torch.float32)
    return y, torch.cat((values.flatten().float(), y[-4:]))


@cases
def make_attention():
    for name, batch, heads, kv_heads, length, causal, window, dtype, (bm, bn), arch in SHAPES:
        (q, k, v, _), o, lse, _ = inputs(name, batch, heads, kv_heads, length, causal, window, dtype)
        y, want = with_rows(o, dtype)
        sums, want_lse = with_numbers(lse)
        # Probabilities are rounded to the type of the values, each by half an ulp of itself; they sum to one and values are at most 4,
        # so that is 4 * 2**-11 (2**-9 for bf16) at most and mostly cancels; the result is rounded once more, which may give the neighbour.
        case("attention", name, "attention_kernel", [cdiv(length, bm), batch * heads],
             dict(q_ptr="q", k_ptr="k", v_ptr="v", o_ptr="o", lse_ptr="lse", scale=0.125, heads=heads, shared=heads // kv_heads, length=length, CAUSAL=Const(causal), WINDOW=Const(window), D=Const(64), BLOCK_M=Const(bm), BLOCK_N=Const(bn)),
             dict(q=q, k=k, v=v, o=y, lse=sums), dict(o=want, lse=want_lse), dict(o={"bound": 1.2e-3 if dtype == torch.float16 else 1e-2}, lse={"bound": 4e-7}), arch=arch)


@cases
def make_attention_backward():
    for name, batch, heads, kv_heads, length, causal, window, dtype, (bm, bn), arch in SHAPES:
        if name == "64": continue
        (q, k, v, do), o, lse, (dq, dk, dv) = inputs(name, batch, heads, kv_heads, length, causal, window, dtype)
        o = o.to(dtype)
        delta = (o.double() * do.double()).sum(3)
        lse, delta_in = lse.float(), delta.float()
        arguments = dict(scale=0.125, heads=heads, shared=heads // kv_heads, length=length, CAUSAL=Const(causal), WINDOW=Const(window), D=Const(64), BLOCK_M=Const(bm), BLOCK_N=Const(bn))
        pointers = dict(q_ptr="q", k_ptr="k", v_ptr="v", do_ptr="do", lse_ptr="lse", delta_ptr="delta")
        tensors = dict(q=q, k=k, v=v, do=do, lse=lse, delta=delta_in)
        # p and ds are rounded to 16 bits before they are multiplied, by half an ulp each: sums of their errors with factors of
        # about 1 stay below an ulp of the largest gradients, which are about 8; so does the rounding of o, by way of delta.
        bound = {"bound": 1.6e-3 if dtype == torch.float16 else 1.4e-2}
        y, want = with_rows(dq, dtype)
        case("attention_backward", f"queries_{name}", "queries_kernel", [cdiv(length, bm), batch * heads], pointers | dict(dq_ptr="dq") | arguments, tensors | dict(dq=y), dict(dq=want), bound, arch=arch)
        (y, want), (z, want_z) = with_rows(dk, dtype), with_rows(dv, dtype)
        case("attention_backward", f"keys_{name}", "keys_kernel", [cdiv(length, bn), batch * kv_heads], pointers | dict(dk_ptr="dk", dv_ptr="dv") | arguments, tensors | dict(dk=y, dv=z), dict(dk=want, dv=want_z), bound, arch=arch)
        if length < 70 and arch == "sm_80":
            sums, want = with_numbers(delta)
            rows = batch * heads * length
            # 64 products of at most 16, summed as a tree: 8 roundings.
            case("attention_backward", f"delta_{name}", "delta_kernel", [cdiv(rows, 32)], dict(o_ptr="o", do_ptr="do", delta_ptr="delta", rows=rows, D=Const(64), BLOCK=Const(32)), dict(o=o, do=do, delta=sums), dict(delta=want), {"bound": 7e-7})


@cases
def make_paged_attention():
    for name, lengths, kv_heads, group, page, dtype in (("one", [1], 1, 1, 16, torch.float32), ("pages", [15, 16, 17], 1, 4, 16, torch.float16), ("empty", [0, 33, 5], 2, 2, 16, torch.float16), ("bf16", [40, 8], 1, 8, 8, torch.bfloat16)):
        g = generator("paged" + name)
        pages = max(cdiv(max(lengths), page), 1)
        used = sum(cdiv(n, page) for n in lengths)
        order = torch.randperm(used + 2, generator=g)
        table = torch.full((len(lengths), pages), -1, dtype=torch.int32)
        k, v = random(g, (used + 2, page, kv_heads, 64), dtype), random(g, (used + 2, page, kv_heads, 64), dtype)
        q = random(g, (len(lengths), kv_heads, group, 64), dtype)
        want = torch.zeros(len(lengths), kv_heads, group, 64, dtype=torch.float64)
        taken = 0
        for i, n in enumerate(lengths):
            count = cdiv(n, page)
            mine = order[taken:taken + count]
            taken += count
            table[i, :count] = mine.int()
            if n == 0: continue
            keys, values = (t[mine].flatten(0, 1)[:n].double().transpose(0, 1) for t in (k, v))
            want[i] = torch.softmax(q[i].double() @ keys.transpose(1, 2) / 8, 2) @ values
        y, expected = with_rows(want, dtype)
        # All in fp32: `exp` of arguments down to -10 within 10 ulp.
        bound = {torch.float32: 4e-7, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]
        case("paged_attention", name, "paged_attention_kernel", [len(lengths), kv_heads],
             dict(q_ptr="q", k_ptr="k", v_ptr="v", table_ptr="table", length_ptr="length", o_ptr="o", scale=0.125, kv_heads=kv_heads, pages=pages, GROUP=Const(group), PAGE=Const(page), D=Const(64)),
             dict(q=q, k=k, v=v, table=table, length=torch.tensor(lengths, dtype=torch.int32), o=y), dict(o=expected), {"bound": bound})
