"""The launches of rows that no program holds at once, and of the backward passes of row kernels."""

import torch
import torch.nn.functional as F
import triton

import cases
import kernels
from prepared import COMPILERS, NotOffered, Prepared


def _calls(launch, configurations):
    return [(str(c), lambda c=c: launch(c)) for c in configurations]


def long_rows(peer, m, n, dtype):
    """Softmax of m rows of n elements."""
    x = torch.randn(m, n, device=cases.DEVICE, dtype=getattr(torch, dtype))
    out = torch.empty_like(x)
    common = dict(want=lambda: torch.softmax(x, -1), tolerance=(2e-2, 1e-6), bytes=2 * x.numel() * x.element_size())
    if peer == "pytorch":
        return Prepared([("", lambda: torch.softmax(x, -1))], **common)
    if peer == "quack":
        import quack
        return Prepared([("", lambda: quack.softmax(x))], **common)
    kernel = triton.jit(kernels.softmax_split)
    parts = torch.empty(m, 2 * -(-n // 4096), device=cases.DEVICE)
    counts = torch.zeros(m, 2, device=cases.DEVICE, dtype=torch.int32)
    tiles = [dict(SPLIT=-(-n // b), BLOCK=b, num_warps=w) for b, w in ((4096, 4), (8192, 4), (8192, 8), (16384, 8), (16384, 16), (32768, 16))]
    launch = lambda c: kernel[(m * c["SPLIT"],)](x, out, parts, counts, n, n, **c)
    return Prepared(_calls(launch, tiles), output=out, **common)


def cross_entropy_backward(peer, m, n, dtype):
    x = torch.randn(m, n, device=cases.DEVICE, dtype=getattr(torch, dtype))
    labels = torch.randint(0, n, (m,), device=cases.DEVICE)
    lse, grad = torch.logsumexp(x.float(), -1), torch.rand(m, device=cases.DEVICE)
    out = torch.empty_like(x)

    def want():
        dx = torch.softmax(x.float(), -1)
        dx[torch.arange(m, device=cases.DEVICE), labels] -= 1
        return dx * grad[:, None]
    common = dict(want=want, tolerance=(2e-2, 1e-6), bytes=2 * x.numel() * x.element_size())
    if peer == "quack":
        from quack.cross_entropy import cross_entropy_bwd
        return Prepared([("", lambda: cross_entropy_bwd(x, labels, grad, lse))], **common)
    if peer not in COMPILERS:
        raise NotOffered("not offered apart from the forward pass")
    kernel = triton.jit(kernels.cross_entropy_backward)
    launch = lambda c: kernel[(-(-n // c["BLOCK"]), m)](x, labels, grad, lse, out, n, n, **c)
    return Prepared(_calls(launch, [dict(BLOCK=b, num_warps=w) for b, w in ((2048, 4), (4096, 8), (8192, 8))]), output=out, **common)


def norm_backward(peer, kind, m, n, dtype):
    """Gradients of the input, the weight and, for a layer norm, the bias, joined in one row."""
    layer, type_, eps = kind == "layer_norm", getattr(torch, dtype), 1e-5
    x, dy = (torch.randn(m, n, device=cases.DEVICE, dtype=type_) for _ in range(2))
    w, b = (torch.randn(n, device=cases.DEVICE) for _ in range(2))
    mean = x.float().mean(1) if layer else torch.zeros(m, device=cases.DEVICE)
    rstd = ((x.float() - mean[:, None]).square().mean(1) + eps).rsqrt()

    def reference(*leaves):
        return F.layer_norm(leaves[0], (n,), *leaves[1:], eps) if layer else F.rms_norm(leaves[0], (n,), leaves[1], eps)

    def gradients(*leaves):
        leaves = [leaf.detach().requires_grad_() for leaf in leaves[:3 if layer else 2]]
        out = reference(*leaves)
        return lambda: torch.autograd.grad(out, leaves, dy.to(out.dtype), retain_graph=True)
    join = lambda parts: torch.cat([part.float().flatten() for part in parts])
    # The gradient of the weight is a sum over all rows.
    common = dict(want=lambda: join(gradients(x.float(), w, b)()), tolerance=(3e-2, 2e-2 * m ** 0.5 / 8), bytes=3 * x.numel() * x.element_size())
    checked = [False]

    def once(call):
        """Joins the gradients for the comparison alone."""
        def run():
            parts = call()
            if not checked[0]:
                checked[0] = True
                return join(parts)
        return run
    if peer == "pytorch":
        return Prepared([("", once(gradients(x, w.to(type_), b.to(type_))))], **common)
    if peer == "quack":
        from quack.rmsnorm import layernorm_bwd, rmsnorm_bwd
        call = (lambda: layernorm_bwd(x, w, dy, rstd, mean)[:3]) if layer else (lambda: rmsnorm_bwd(x, w, dy, rstd)[:2])
        return Prepared([("", once(call))], **common)
    rows, sums = triton.jit(getattr(kernels, f"{kind}_backward")), triton.jit(kernels.column_sums)
    out = torch.empty(x.numel() + (2 if layer else 1) * n, device=cases.DEVICE)
    dx, dw, db = torch.empty_like(x), torch.empty(n, device=cases.DEVICE), torch.empty(n, device=cases.DEVICE)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    parts = 3 if layer and n % 3 == 0 else 1
    sizes = dict(BLOCK=1 << (n // parts - 1).bit_length(), **(dict(PARTS=parts) if layer else {}))

    def configuration(programs, warps):
        partial = [torch.empty(programs, n, device=cases.DEVICE) for _ in range(2 if layer else 1)]
        results = [dw, db][:len(partial)]
        statistics = (mean, rstd) if layer else (rstd,)
        seen = [False]

        def run():
            rows[(programs,)](x, w, dy, *statistics, dx, *partial, m, n, n, **sizes, num_warps=warps)
            for part, result in zip(partial, results):
                sums[(-(-n // 32),)](part, result, programs, n, ROWS=64, BLOCK=32, num_warps=8)
            if not seen[0]:
                seen[0] = True
                out.copy_(join([dx, *results]))
        return f"{programs} programs, {warps} warps", run
    return Prepared([configuration(sms * per, warps) for per, warps in ((1, 8), (1, 16), (2, 8), (2, 16), (4, 4))], output=out, **common)
