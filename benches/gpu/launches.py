"""The launches of the entries of `plan.py`, by the peer in whose process they are. A peer raises NotOffered for what it lacks."""

import math

import torch
import torch.nn.functional as F
import triton
from torch.nn.attention import SDPBackend, sdpa_kernel

import cases
import kernels
from prepared import COMPILERS, NotOffered, Prepared
from row_launches import cross_entropy_backward, long_rows, norm_backward  # noqa: F401 (named by plan.py)


def _of_case(peer, case, others=()):
    """A case of cases.py: for compilers its kernel, for PyTorch its function, for others theirs."""
    others = dict(others)
    want = case.vendor()
    common = dict(want=lambda: want, tolerance=case.tolerance, bytes=case.bytes, flops=case.flops)
    if peer in COMPILERS:
        kernel = triton.jit(getattr(kernels, case.kernel))
        calls = [(str(c), lambda c=c: case.launch(kernel, c)) for c in case.configurations]
        return Prepared(calls, output=case.output, **common)
    if peer == "pytorch":
        return Prepared([("", case.vendor)], **common)
    if peer not in others:
        raise NotOffered("not offered by this library")
    return Prepared([("", others[peer]())], **common)


def add(peer, n):
    return _of_case(peer, cases.add(n))


def rows(peer, kernel, m, n, dtype):
    case = cases.rows(kernel, m, n, getattr(torch, dtype))
    x, w = case.inputs.get("x"), case.inputs.get("w")

    def quack():
        import quack
        if kernel == "softmax":
            return lambda: quack.softmax(x)
        if kernel == "rms_norm":
            return lambda: quack.rmsnorm(x, w, eps=1e-5)
        if kernel == "cross_entropy":
            return lambda: quack.cross_entropy(x, case.inputs["labels"], reduction="none")
        raise NotOffered("not offered by this library")
    return _of_case(peer, case, {"quack": quack})


def matmul(peer, m, n, k, dtype):
    return _of_case(peer, cases.matmul(m, n, k, getattr(torch, dtype)))


def attention(peer, batch, heads, s, d, causal, share):
    # FlashAttention-3 is built for bf16.
    case = cases.attention(batch, heads, s, d, causal, torch.bfloat16, share)

    def cudnn():
        q, k, v = (case.inputs[name] for name in "qkv")
        return lambda: _of_cudnn(q, k, v, d, causal, share > 1)

    def fa3():
        from fa3_fwd_interface import flash_attn_func
        q, k, v = (case.inputs[name].transpose(1, 2).contiguous() for name in "qkv")

        def call():
            out = flash_attn_func(q, k, v, softmax_scale=1 / math.sqrt(d), causal=causal)
            return (out[0] if isinstance(out, (tuple, list)) else out).transpose(1, 2)
        return call
    return _of_case(peer, case, {"cudnn": cudnn, "fa3": fa3})


def _of_cudnn(q, k, v, d, causal, shares=False):
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=1 / math.sqrt(d), enable_gqa=shares)


def backward(peer, batch, heads, s, d, causal):
    q, k, v = (torch.randn(batch, heads, s, d, device=cases.DEVICE, dtype=torch.float16, requires_grad=True) for _ in range(3))
    scale = 1 / math.sqrt(d)
    reference = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
    gradient = torch.randn_like(reference)
    want = _gradients(reference, (q, k, v), gradient)()
    flops = 10 * batch * heads * s * s * d // (2 if causal else 1)
    if peer in COMPILERS:
        return _own_backward(q, k, v, gradient, want, causal, flops)
    if peer == "cudnn":
        out = _of_cudnn(q, k, v, d, causal)
    else:
        out = reference
    return Prepared([("", _gradients(out, (q, k, v), gradient))], lambda: want, (5e-2, 5e-2), flops=flops)


def _gradients(out, inputs, gradient):
    """The backward pass of `out`. The first call, whose result is compared, joins the gradients; those that are timed do not."""
    compared = [False]

    def call():
        found = torch.autograd.grad(out, inputs, gradient, retain_graph=True)
        if compared[0]:
            return found
        compared[0] = True
        return torch.cat([g.flatten() for g in found])
    return call


def _own_backward(q, k, v, gradient, want, causal, flops):
    """The backward pass of kernels.py: rows, gradients and the last step of dQ."""
    batch, heads, s, d = q.shape
    scale = 1 / math.sqrt(d)
    with torch.no_grad():
        o, lse = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, scale=scale)[:2]
        o = o.contiguous()
    dq, out = torch.empty_like(q, dtype=torch.float32), torch.empty(3 * q.numel(), device=q.device, dtype=q.dtype)
    delta, (out_q, out_k, out_v) = torch.empty_like(lse), out.chunk(3)
    rows, main, last = (triton.jit(f) for f in (kernels.attention_backward_rows, kernels.attention_backward, kernels.scaled))
    # Descriptors that a kernel makes lie in memory which the host allocates.
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device=q.device, dtype=torch.int8))

    def launch(c):
        rows[(batch * heads * s // 32,)](o, gradient, delta, dq, D=d, ROWS=32)
        main[(s // c["BN"], batch * heads)](q, k, v, gradient, lse, delta, dq, out_k, out_v, scale, s, D=d, CAUSAL=causal, **c)
        last[(q.numel() // 2048,)](dq, out_q, scale, BLOCK=2048)
    tiles = [(64, 128, 8, 2), (64, 64, 4, 2), (128, 128, 8, 2)]
    calls = [dict(BM=m, BN=n, num_warps=w, num_stages=t) for m, n, w, t in tiles]
    return Prepared([(str(c), lambda c=c: launch(c)) for c in calls], lambda: want, (5e-2, 5e-2), output=out, flops=flops)


def block_fp8(peer, m, n, k):
    block = 128
    a, b = torch.randn(m, k, device=cases.DEVICE), torch.randn(n, k, device=cases.DEVICE)
    sa = a.view(m, k // block, block).abs().amax(2) / 448
    sb = b.view(n // block, block, k // block, block).abs().amax((1, 3)) / 448
    qa = (a.view(m, k // block, block) / sa[:, :, None]).view(m, k).to(torch.float8_e4m3fn)
    wide = sb.repeat_interleave(block, 0).repeat_interleave(block, 1)
    qb = (b / wide).to(torch.float8_e4m3fn)
    exact = (qa.float().view(m, k // block, block) * sa[:, :, None]).view(m, k) @ (qb.float() * wide).T
    # Tensor cores of Hopper keep 14 bits of the accumulator of fp8 between promotions.
    common = dict(want=lambda: exact, tolerance=(2e-2, 2e-2 * math.sqrt(k)), bytes=m * k + n * k + 2 * m * n, flops=2 * m * n * k)
    out = torch.empty(m, n, device=cases.DEVICE, dtype=torch.bfloat16)
    if peer == "deepgemm":
        import deep_gemm
        scales = deep_gemm.get_mn_major_tma_aligned_tensor(sa)
        return Prepared([("", lambda: deep_gemm.fp8_gemm_nt((qa, scales), (qb, sb), out))], output=out, **common)
    kernel, columns = triton.jit(kernels.block_fp8), sa.T.contiguous()
    tiles = [(128, 128, 4, 4), (128, 128, 8, 4), (64, 128, 4, 4), (64, 64, 4, 6), (64, 64, 4, 8), (64, 32, 4, 8), (16, 128, 4, 5)]
    launch = lambda c: kernel[(-(-m // c["BM"]) * (n // c["BN"]),)](qa, qb, out, columns, sb, m, n, k, BK=block, GROUP=8, **c)
    calls = [dict(BM=x, BN=y, num_warps=w, num_stages=s) for x, y, w, s in tiles]
    return Prepared([(str(c), lambda c=c: launch(c)) for c in calls], output=out, **common)


#: The keys that a query sees, by the name of the mask; `documents` of 683 tokens.
MASKS = {
    "causal": lambda b, h, i, j: i >= j,
    "window": lambda b, h, i, j: (i >= j) & (i - j < 1024),
    "documents": lambda b, h, i, j: (i >= j) & (i // 683 == j // 683),
}


def _flex(batch, heads, s, d, mask, dtype, grad):
    """Inputs, the mask of blocks, the mask of elements and how many of these are true."""
    from torch.nn.attention.flex_attention import create_block_mask
    # After a number of masks PyTorch would not compile any more.
    torch._dynamo.reset()
    q, k, v = (torch.randn(batch, heads, s, d, device=cases.DEVICE, dtype=dtype, requires_grad=grad) for _ in range(3))
    blocks = create_block_mask(MASKS[mask], None, None, s, s, device=cases.DEVICE) if mask in MASKS else None
    row, column = torch.arange(s, device=cases.DEVICE)[:, None], torch.arange(s, device=cases.DEVICE)[None, :]
    dense = MASKS[mask](0, 0, row, column) if mask in MASKS else None
    return (q, k, v), blocks, dense, int(dense.sum()) if dense is not None else s * s


def flex(peer, batch, heads, s, d, mask):
    from torch.nn.attention.flex_attention import flex_attention
    inputs, blocks, dense, pairs = _flex(batch, heads, s, d, mask, torch.float16, False)
    want = F.scaled_dot_product_attention(*inputs, attn_mask=dense)
    compiled = torch.compile(flex_attention)
    return Prepared([("", lambda: compiled(*inputs, block_mask=blocks))], lambda: want, (2e-2, 2e-2), flops=4 * batch * heads * pairs * d)


def flex_backward(peer, batch, heads, s, d, mask):
    from torch.nn.attention.flex_attention import flex_attention
    inputs, blocks, dense, pairs = _flex(batch, heads, s, d, mask, torch.bfloat16, True)
    exact = F.scaled_dot_product_attention(*inputs, attn_mask=dense)
    gradient = torch.randn_like(exact)
    want = _gradients(exact, inputs, gradient)()
    out = torch.compile(flex_attention)(*inputs, block_mask=blocks)
    call = _gradients(out, inputs, gradient)
    return Prepared([("", call)], lambda: want, (5e-2, 5e-2), flops=10 * batch * heads * pairs * d)


def moe(peer, tokens, experts, top, hidden, size):
    x = torch.randn(tokens, hidden, device=cases.DEVICE, dtype=torch.bfloat16)
    w = torch.randn(experts, size, hidden, device=cases.DEVICE, dtype=torch.bfloat16) / math.sqrt(hidden)
    chosen = torch.rand(tokens, experts, device=cases.DEVICE).topk(top, 1).indices.flatten()
    out = torch.empty(tokens * top, size, device=cases.DEVICE, dtype=torch.bfloat16)
    want = torch.empty_like(out)
    for expert in range(experts):
        at = (chosen == expert).nonzero().flatten()
        want[at] = x[at // top] @ w[expert].T
    kernel, order = triton.jit(kernels.moe), chosen.argsort(stable=True)
    counts = torch.bincount(chosen, minlength=experts).tolist()

    def blocks(size_m):
        """Rows by expert, each expert's padded to whole blocks, and the expert of each block."""
        ids, of, at = [], [], 0
        for expert, count in enumerate(counts):
            padding = -count % size_m
            ids += [order[at:at + count], torch.full((padding,), tokens * top, device=cases.DEVICE)]
            of += [expert] * ((count + padding) // size_m)
            at += count
        return torch.cat(ids).to(torch.int32), torch.tensor(of, dtype=torch.int32, device=cases.DEVICE)
    tiles = [(16, 64, 64, 4, 4), (16, 128, 64, 4, 4), (64, 128, 64, 4, 3), (64, 256, 64, 8, 3), (128, 128, 64, 8, 3), (128, 256, 64, 8, 3)]
    calls = []
    for bm, bn, bk, warps, stages in tiles:
        ids, of = blocks(bm)
        grid = (len(of) * (size // bn),)
        launch = lambda grid=grid, ids=ids, of=of, bm=bm, bn=bn, bk=bk, warps=warps, stages=stages: kernel[grid](
            x, w, out, ids, of, tokens * top, size, hidden, TOP=top, BM=bm, BN=bn, BK=bk, num_warps=warps, num_stages=stages)
        calls.append((f"{bm}x{bn}x{bk}, {warps} warps, {stages} stages", launch))
    moved = 2 * (len(set(chosen.tolist())) * size * hidden + tokens * hidden + tokens * top * size)
    return Prepared(calls, lambda: want, (2e-2, 5e-2), output=out, bytes=moved, flops=2 * tokens * top * size * hidden)


def mla_decode(peer, batch, length):
    heads, latent, rope, page = 128, 512, 64, 64
    q = torch.randn(batch, 1, heads, latent + rope, device=cases.DEVICE, dtype=torch.bfloat16)
    cache = torch.randn(batch * length // page, page, 1, latent + rope, device=cases.DEVICE, dtype=torch.bfloat16)
    keys = cache.view(batch, length, latent + rope)
    scale = 1 / math.sqrt(192)
    scores = torch.einsum("bhd,bkd->bhk", q[:, 0].float(), keys.float()) * scale
    want = torch.einsum("bhk,bkd->bhd", scores.softmax(-1), keys[:, :, :latent].float())
    del scores
    common = dict(want=lambda: want, tolerance=(2e-2, 2e-2), bytes=2 * keys.numel(), flops=2 * batch * heads * length * (2 * latent + rope))
    if peer == "flashmla":
        import flash_mla
        table = torch.arange(batch * length // page, device=cases.DEVICE, dtype=torch.int32).view(batch, -1)
        lengths = torch.full((batch,), length, device=cases.DEVICE, dtype=torch.int32)
        metadata, splits = flash_mla.get_mla_metadata(lengths, heads, 1)
        # Builds for several targets keep the dense kernels of Hopper apart.
        dense = {"use_legacy": True} if hasattr(flash_mla.flash_mla_interface, "get_mla_decoding_metadata") else {}
        call = lambda: flash_mla.flash_mla_with_kvcache(q, cache, table, lengths, latent, metadata, splits, softmax_scale=scale, **dense)[0][:, 0]
        return Prepared([("", call)], **common)
    kernel, out = triton.jit(kernels.mla_decode), torch.empty(batch, heads, latent, device=cases.DEVICE, dtype=torch.bfloat16)
    tiles = [(64, 64, 8, 2), (64, 32, 8, 2), (16, 64, 4, 2), (16, 32, 4, 2)]
    launch = lambda c: kernel[(heads // c["BH"], batch)](q, keys, out, scale, length, HEADS=heads, L=latent, R=rope, **c)
    calls = [dict(BH=h, BN=n, num_warps=w, num_stages=s) for h, n, w, s in tiles]
    return Prepared([(str(c), lambda c=c: launch(c)) for c in calls], output=out, **common)


def int4(peer, m, n, k):
    """Weights of 4 bits with 8 as zero and a scale for each 128 of a row; fp16 otherwise."""
    group, zero = 128, 8
    x = torch.randn(m, k, device=cases.DEVICE, dtype=torch.float16)
    w = torch.randn(n, k, device=cases.DEVICE)
    tolerance = (2e-2, 2e-2 * math.sqrt(k))
    common = dict(tolerance=tolerance, bytes=n * k // 2 + 2 * (m * k + m * n + n * k // group), flops=2 * m * n * k)
    if peer == "humming":
        from humming.layer import HummingLayer
        from humming.schema.humming import HummingWeightSchema
        schema = HummingWeightSchema(b_dtype="uint4", weight_scale_group_size=group)
        layer = HummingLayer(shape_n=n, shape_k=k, weight_config=schema, torch_dtype=torch.float16).to(cases.DEVICE)
        tensors = HummingWeightSchema.quant_tensor(w, schema, torch.float16)
        wide = schema.dequant_tensors(tensors).float()
        layer.load_from_tensors(tensors)
        layer.transform()
        return Prepared([("", lambda: layer(x))], lambda: x.float() @ wide.T, **common)
    scale = (w.view(n, k // group, group).abs().amax(2) / 7).half()
    q = (w.view(n, k // group, group) / scale[:, :, None]).round().add(zero).clamp(0, 15).to(torch.uint8)
    wide = ((q.float() - zero) * scale[:, :, None]).view(n, k)
    half = group // 2
    packed, columns = (q[:, :, :half] | q[:, :, half:] << 4).reshape(n, k // 2), scale.T.contiguous()
    out = torch.empty(m, n, device=cases.DEVICE, dtype=torch.float16)
    parts = torch.empty(8, m, n, device=cases.DEVICE) if m <= 64 else None
    counts = torch.zeros(n, dtype=torch.int32, device=cases.DEVICE)

    def launch(kernel, c, *strides):
        grid = (-(-m // c["BM"]) * (n // c["BN"]), c["SPLIT"])
        kernel[grid](x, packed, columns, out, parts, counts, m, n, k, *strides, SIZE=group, GROUP=8, **c)

    def all_calls(kernel, tiles, name, *strides):
        # Few rows are few tiles, so that K is divided among programs, too.
        splits = [1, 2, 4, 8] if m <= 64 else [1]
        chosen = [(split, *tile) for tile in tiles if tile[0] <= max(16, 2 * m) for split in splits]
        return [(name.format(a, b) + f", {w} warps" + (f", K in {split}" if split > 1 else ""),
                 lambda c=dict(SPLIT=split, BM=a, BN=b, num_warps=w, num_stages=s): launch(kernel, c, *strides))
                for split, a, b, w, s in chosen]

    tiles = [(16, 64, 4, 4), (16, 128, 4, 4), (32, 128, 4, 4), (64, 64, 4, 4), (64, 128, 4, 4), (128, 128, 8, 4), (128, 256, 8, 3), (256, 128, 8, 3)]
    calls = all_calls(triton.jit(kernels.int4_matmul), tiles, "{0}x{1}")
    # The same with the weights as the left operand, whose rows are 64 at least.
    tiles = [(16, 64, 4, 4), (16, 128, 4, 4), (32, 128, 4, 4), (64, 128, 4, 4), (64, 128, 8, 4), (128, 128, 8, 4), (256, 128, 8, 4)]
    calls += all_calls(triton.jit(kernels.int4_rows), tiles, "{1}x{0} transposed", k // 2)
    return Prepared(calls, lambda: x.float() @ wide.T, output=out, **common)
