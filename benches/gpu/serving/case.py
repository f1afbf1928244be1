"""The cases: each is a function of a folder of `families` that takes `make` and gives a call without arguments, in which the
library launches its kernels. The launches and what they write are found by `record.py`.
"""

import importlib
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

#: Heaviest first.
FAMILIES = ("moe", "moe_quantized", "scaled_mm", "attention", "decode_attention", "delta_rule", "kda", "mamba", "lightning", "lora", "moe_helpers",
            "quantization", "batch_invariant", "cache", "norms", "rotary", "sampling", "top_k", "runner", "spec_decode", "sparse_mla", "models")

registered = []


@dataclass
class Case:
    """A function and its arguments."""
    family: str
    name: str
    function: Callable
    arguments: dict
    tolerance: float


def case(name, tolerance=2e-2, **lists):
    """Registers a function, once for each combination of the values in `lists`; a list of tuples under `a_b` sets a and b."""
    def decorator(function):
        family = function.__module__.split(".")[-1]
        for values in itertools.product(*lists.values()):
            arguments = {}
            for key, value in zip(lists, values):
                arguments.update(zip(key.split("__"), value) if isinstance(value, tuple) else {key: value})
            registered.append(Case(family, name.format(**arguments), function, arguments, tolerance))
        return function
    return decorator


def load():
    """All cases, heaviest family first."""
    if not registered:
        for family in FAMILIES:
            try:
                importlib.import_module(f"families.{family}")
            except ModuleNotFoundError as error:
                if error.name != f"families.{family}":
                    raise
    return registered


class Make:
    """Inputs from a seeded generator, the same in every process."""

    def __init__(self, small, untouched=False):
        import torch
        self.untouched, self.torch, self.small, self.device = untouched, torch, small, "cuda" if torch.cuda.is_available() else "cpu"
        self.on_cpu = not torch.cuda.is_available() or torch.empty(1, device=self.device).device.type == "cpu"
        self.generator = torch.Generator(device="cpu" if self.on_cpu else "cuda")
        self.generator.manual_seed(1)
        #: Tensors that kernels write without having them as arguments, by name.
        self.also = {}

    def size(self, full, small):
        """A size by whether this is a try on small shapes."""
        return small if self.small else full

    def least(self, value, most):
        """A size, in a try at most `most`."""
        return min(value, most) if self.small else value

    def large(self, shape):
        """Whether the content of such a tensor does not matter, as nothing is launched."""
        return self.untouched and math.prod(shape) > 1 << 20

    def randn(self, *shape, dtype=None, scale=1.0):
        """Normal numbers; through float32 in parts, so that a large tensor of a short type needs no large one of float32."""
        torch = self.torch
        dtype = dtype or torch.bfloat16
        if self.large(shape):
            return torch.empty(*shape, dtype=dtype)
        if dtype in (torch.float32, torch.bfloat16, torch.float16):
            found = torch.empty(*shape, dtype=dtype, device=self.device).normal_(generator=self.generator)
            return found.mul_(scale) if scale != 1.0 else found
        found = torch.empty(*shape, dtype=dtype, device=self.device)
        flat = found.view(-1)
        for at in range(0, flat.numel(), 1 << 26):
            part = flat[at:at + (1 << 26)]
            part.copy_(torch.empty(part.numel(), device=self.device).normal_(generator=self.generator).mul_(scale))
        return found

    def fp8(self, *shape):
        """Numbers of fp8."""
        return self.randn(*shape, dtype=self.torch.float8_e4m3fn)

    def rand(self, *shape, low=0.0, high=1.0, dtype=None):
        """Numbers between two."""
        if self.large(shape):
            return self.torch.empty(*shape, dtype=dtype or self.torch.float32)
        found = self.torch.empty(*shape, dtype=self.torch.float32, device=self.device).uniform_(low, high, generator=self.generator)
        return found.to(dtype) if dtype else found

    def ints(self, low, high, *shape, dtype=None):
        """Integers of [low, high)."""
        if self.large(shape):
            return self.torch.zeros(*shape, dtype=dtype or self.torch.int32)
        return self.torch.empty(*shape, dtype=dtype or self.torch.int32, device=self.device).random_(low, high, generator=self.generator)

    def permutation(self, n, dtype=None):
        """The numbers up to n in another order."""
        return self.torch.argsort(self.rand(n), stable=True).to(dtype or self.torch.int32)

    def empty(self, *shape, dtype=None):
        """Memory for a result; zeros, so that what a kernel leaves is the same everywhere."""
        make = self.torch.empty if self.large(shape) else self.torch.zeros
        return make(*shape, dtype=dtype or self.torch.bfloat16, device=self.device)

    def tensor(self, values, dtype=None):
        """A tensor of these values."""
        return self.torch.tensor(values, dtype=dtype or self.torch.int32, device=self.device)

    def starts(self, lengths, dtype=None):
        """Where sequences of these lengths begin, and where the last ends."""
        return self.tensor([0, *itertools.accumulate(lengths)], dtype)

    def module(self, name):
        """A module of the folder."""
        return importlib.import_module(name)
