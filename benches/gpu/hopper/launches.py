"""Launches of the kernels on PyTorch's tensors."""

import math
import pathlib

import torch

from . import variants
from .driver import Kernel, TensorMap

TYPES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "tf32"}


class ByHand:
    """The variants whose PTX a folder holds; none where there is no Hopper GPU."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        hopper = torch.cuda.get_device_capability() == (9, 0)
        self.found = [v for v in variants.ALL if hopper and (folder / f"{v.name}.ptx").exists()]
        self.folder, self.loaded = folder, {}

    def _kernel(self, variant):
        if variant.name not in self.loaded:
            text = (self.folder / f"{variant.name}.ptx").read_text()
            self.loaded[variant.name] = Kernel(text, variant.name, variant.smem)
        return self.loaded[variant.name]

    def products(self, a, b, out):
        """Calls of out = a @ b by name."""
        (m, k), n = a.shape, b.shape[1]
        calls = {}
        for v in self.found:
            if getattr(v, "dtype", None) != TYPES[a.dtype] or not hasattr(v, "bk"):
                continue
            maps = _maps(v, {"a": a, "b": b, "c": out}, {"M": m, "N": n, "K": k})
            blocks = -(-m // v.bm) * -(-n // v.bn)
            if v.persistent:
                most = min(blocks, torch.cuda.get_device_properties(0).multi_processor_count * v.minctas)
                blocks = -(-blocks // -(-blocks // most)) if getattr(v, "even", False) else most
            calls[v.name] = self._kernel(v).call(blocks, v.threads, *maps, a, b, out, m, n, k)
        return calls

    def attention(self, q, k, v, out, causal):
        """Calls of attention forward by name; tensors of [batch, heads, rows, columns] in fp16."""
        batch, heads, rows, columns = q.shape
        calls = {}
        for variant in self.found:
            if (getattr(variant, "d", None), getattr(variant, "causal", None)) != (columns, causal):
                continue
            maps = _maps(variant, {"q": q, "k": k, "v": v}, {"R": batch * heads * rows, "D": columns})
            blocks = -(-rows // variant.bm) * batch * heads
            arguments = (*maps, out, rows, batch * heads, 1.44269504 / math.sqrt(columns))
            calls[variant.name] = self._kernel(variant).call(blocks, variant.threads, *arguments)
        return calls


def _maps(variant, tensors, sizes):
    """A size is a name, a number, or a name and what it is divided by; a stride a name or number times bytes."""
    def size(x):
        return sizes[x] if isinstance(x, str) else sizes[x[0]] // x[1] if isinstance(x, tuple) else x

    def stride(x):
        return (sizes[x[0]] if isinstance(x[0], str) else x[0]) * x[1]
    return [TensorMap(tensors[t].data_ptr(), kind, [size(d) for d in dims], [stride(s) for s in strides], box, swizzle)
            for t, kind, dims, strides, box, swizzle in variant.maps()]
