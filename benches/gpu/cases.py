"""What is timed: for each case its inputs, its launches by configuration, what PyTorch gives, and what it moves and computes."""

import math
from dataclasses import dataclass, field
from typing import Callable

import torch
import torch.nn.functional as F

DEVICE = "cuda"


@dataclass
class Case:
    """One kernel at one size."""

    name: str
    kernel: str                         # of kernels.py
    configurations: list                # keyword arguments of the launch
    launch: Callable                    # (kernel, configuration) -> None
    output: torch.Tensor
    vendor: Callable                    # -> what the output should be
    tolerance: tuple                    # relative, absolute
    bytes: int = 0
    flops: int = 0
    rate: str = field(default="copy")   # the limit that it is measured against
    by_hand: Callable = lambda found: {}    # hopper.launches.ByHand -> calls by name
    inputs: dict = field(default_factory=dict)      # for libraries, by name


def _warps(block):
    return [dict(BLOCK=block, num_warps=w) for w in (4, 8, 16)]


def add(n):
    x, y = torch.randn(n, device=DEVICE), torch.randn(n, device=DEVICE)
    out = torch.empty_like(x)
    launch = lambda kernel, c: kernel[(-(-n // c["BLOCK"]),)](x, y, out, n, **c)
    configurations = [dict(BLOCK=1024, num_warps=4), dict(BLOCK=2048, num_warps=8), dict(BLOCK=4096, num_warps=8)]
    return Case(f"add {n}", "add", configurations, launch, out, lambda: x + y, (0, 0), bytes=12 * n)


def rows(kernel, m, n, dtype):
    x = torch.randn(m, n, device=DEVICE, dtype=dtype)
    w, b = torch.randn(n, device=DEVICE, dtype=dtype), torch.randn(n, device=DEVICE, dtype=dtype)
    out = torch.empty_like(x)
    block = 1 << (n - 1).bit_length()
    moved = 2 * x.numel() * x.element_size()
    tolerance = (2e-2, 2e-2) if dtype != torch.float32 else (1e-4, 1e-4)
    name = f"{kernel.replace('_', ' ')} {m}x{n} {str(dtype)[6:]}"
    if kernel == "softmax":
        launch = lambda k, c: k[(m,)](x, out, x.stride(0), n, **c)
        return Case(name, kernel, _warps(block), launch, out, lambda: torch.softmax(x, -1), tolerance, bytes=moved,
                    inputs={"x": x})
    if kernel == "rms_norm":
        launch = lambda k, c: k[(m,)](x, w, out, x.stride(0), n, 1e-5, **c)
        return Case(name, kernel, _warps(block), launch, out, lambda: F.rms_norm(x, (n,), w, 1e-5), tolerance, bytes=moved,
                    inputs={"x": x, "w": w})
    if kernel == "layer_norm":
        launch = lambda k, c: k[(m,)](x, w, b, out, x.stride(0), n, 1e-5, **c)
        configurations = [dict(BLOCK=1024, num_warps=4), dict(BLOCK=2048, num_warps=8), dict(BLOCK=4096, num_warps=8)]
        vendor = lambda: F.layer_norm(x, (n,), w, b, 1e-5)
        return Case(name, kernel, configurations, launch, out, vendor, tolerance, bytes=moved)
    labels = torch.randint(0, n, (m,), device=DEVICE)
    loss = torch.empty(m, device=DEVICE)
    launch = lambda k, c: k[(m,)](x, labels, loss, x.stride(0), n, **c)
    configurations = [dict(BLOCK=b, num_warps=w) for b, w in ((2048, 8), (4096, 8), (8192, 16))]
    vendor = lambda: F.cross_entropy(x, labels, reduction="none").float()
    return Case(name, kernel, configurations, launch, loss, vendor, tolerance, bytes=moved // 2,
                inputs={"x": x, "labels": labels})


TILES = [(128, 256, 64, 8, 3), (128, 128, 64, 4, 3), (128, 128, 64, 8, 4), (256, 128, 64, 8, 3), (64, 256, 32, 4, 4), (128, 64, 64, 4, 4)]


def matmul(m, n, k, dtype):
    a, b = (torch.randn(s, device=DEVICE).to(dtype) for s in ((m, k), (k, n)))
    out = torch.empty(m, n, device=DEVICE, dtype=dtype)
    launch = lambda kernel, c: kernel[(-(-m // c["BM"]) * -(-n // c["BN"]),)](
        a, b, out, m, n, k, a.stride(0), b.stride(0), out.stride(0), **c)
    half = 2 if dtype == torch.float32 else 1
    configurations = [dict(BM=x, BN=y, BK=z // half, GROUP=8, num_warps=w, num_stages=s) for x, y, z, w, s in TILES]
    rate = {torch.float32: "tf32"}.get(dtype, "fp16")
    moved = (m * k + k * n + m * n) * a.element_size()
    tolerance = (2e-2, 2e-2 * math.sqrt(k))
    return Case(f"matmul {m}x{n}x{k} {str(dtype)[6:]}", "matmul", configurations, launch, out, lambda: a @ b, tolerance,
                bytes=moved, flops=2 * m * n * k, rate=rate, by_hand=lambda found: found.products(a, b, out))


def attention(batch, heads, s, d, causal, dtype=torch.float16, share=1):
    q = torch.randn(batch, heads, s, d, device=DEVICE, dtype=dtype)
    k, v = (torch.randn(batch, heads // share, s, d, device=DEVICE, dtype=dtype) for _ in range(2))
    out = torch.empty_like(q)
    launch = lambda kernel, c: kernel[(s // c["BM"], batch * heads)](
        q, k, v, out, 1 / math.sqrt(d), q.stride(1), s, D=d, CAUSAL=causal, SHARE=share, **c)
    tiles = [(128, 128, 8, 3), (128, 64, 4, 3), (128, 64, 8, 3), (64, 64, 4, 3), (64, 128, 4, 3)]
    if d > 128:
        tiles = [(128, 64, 8, 2), (128, 32, 8, 3), (64, 64, 4, 2), (128, 64, 8, 3)]
    configurations = [dict(BM=x, BN=y, num_warps=w, num_stages=t) for x, y, w, t in tiles]
    flops = 4 * batch * heads * s * s * d // (2 if causal else 1)
    name = f"attention {'causal' if causal else 'full'} {batch}x{heads}x{s}x{d}"
    vendor = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=share > 1)
    return Case(name, "attention", configurations, launch, out, vendor, (2e-2, 2e-2), bytes=8 * q.numel(), flops=flops, rate="fp16",
                by_hand=lambda found: found.attention(q, k, v, out, causal), inputs={"q": q, "k": k, "v": v})


def makers():
    """Names of the cases, and what makes each; memory is taken when one is made."""
    half, full = torch.float16, torch.float32
    made = [lambda: add(1 << 28)]
    for m, n in ((16384, 1024), (16384, 4096), (8192, 32768)):
        made += [lambda m=m, n=n, t=t: rows("softmax", m, n, t) for t in (half, full)]
    made += [lambda: rows("rms_norm", 16384, 4096, half), lambda: rows("rms_norm", 16384, 8192, half)]
    made += [lambda: rows("layer_norm", 16384, 4096, half), lambda: rows("layer_norm", 16384, 12288, half)]
    made += [lambda: rows("cross_entropy", 4096, 32000, half), lambda: rows("cross_entropy", 4096, 128256, half)]
    for size in ((4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 1024), (4096, 11008, 4096)):
        made.append(lambda size=size: matmul(*size, half))
    made += [lambda: matmul(4096, 4096, 4096, torch.bfloat16), lambda: matmul(4096, 4096, 4096, full)]
    for d in (64, 128):
        made += [lambda d=d, c=c: attention(4, 16, 4096, d, c) for c in (False, True)]
    return made
