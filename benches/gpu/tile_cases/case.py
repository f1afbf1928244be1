"""What a case is, and what its arguments, references and results are made of."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

try:
    import numpy as np
except ImportError:     # only references and `--check` need it
    np = None

#: The name in PyTorch and NumPy, and by how much results may differ unless a case says otherwise.
TYPES = {"fp32": ("float32", 1e-4), "fp16": ("float16", 1e-2), "bf16": ("bfloat16", 2e-2), "e4m3": ("float8_e4m3fn", 7e-2),
         "i8": ("int8", 0), "i32": ("int32", 0), "i64": ("int64", 0)}


@dataclass(frozen=True)
class Tensor:
    """An argument: its type, shape and contents, and whether the kernel reads it, writes it, or both."""

    kind: str
    shape: tuple
    contents: str = "zeros"
    #: The spread of normal numbers; the lowest integer, and the one after the highest.
    limits: tuple = ()
    role: str = "in"
    #: What `beside.differ` allows in results, and whether their order is open.
    bound: float = 0.0
    share: float = 0.0
    unordered: bool = False


def normal(kind, *shape, spread=1.0):
    """Normal variables."""
    return Tensor(kind, shape, "normal", (spread,))


def uniform(kind, *shape):
    """From 0 to 1."""
    return Tensor(kind, shape, "uniform")


def integers(kind, *shape, low=0, high):
    """Integers below `high`."""
    return Tensor(kind, shape, "integers", (low, high))


def permutation(kind, count):
    """All integers below `count`, in some order."""
    return Tensor(kind, (count,), "permutation")


def steps(count, step):
    """Starts of segments of `step` numbers, or ascending keys."""
    return Tensor("i32", (count,), "steps", (step,))


def result(kind, *shape, bound=None, share=0.0, unordered=False):
    """What a kernel writes, or adds to; zeros before."""
    return Tensor(kind, shape, role="out", bound=TYPES[kind][1] if bound is None else bound, share=share, unordered=unordered)


def in_place(tensor, bound=None):
    """An input that the kernel overwrites."""
    return replace(tensor, role="both", bound=TYPES[tensor.kind][1] if bound is None else bound)


def scratch(kind, *shape):
    """Zeros that the kernel works with, and that are not compared."""
    return Tensor(kind, shape, role="scratch")


@dataclass(frozen=True)
class Case:
    """A launch of a kernel; the reference gives the results from the inputs, or None for one it leaves out."""

    name: str
    kernel: object
    arguments: tuple
    grid: tuple
    reference: Callable | None = None
    warps: int = 4
    constants: dict = field(default_factory=dict)

    def compared(self):
        """The positions of the arguments that are results."""
        return [index for index, argument in enumerate(self.arguments) if getattr(argument, "role", "") in ("out", "both")]

    def bounds(self):
        """What `beside.differ` allows for each result."""
        return [(self.arguments[index].bound, self.arguments[index].share) for index in self.compared()]


def case(name, kernel, arguments, grid, reference=None, warps=4, **constants):
    """A case; the constants of the kernel are keyword arguments."""
    return Case(name, kernel, tuple(arguments), grid, reference, warps, constants)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def added(index, x, count):
    """Rows added where the indices say."""
    total = np.zeros((count, *x.shape[1:]))
    np.add.at(total, index, x)
    return total


def words(x):
    """Eight rows of 4 bits from each word."""
    return ((x[:, None] >> (4 * np.arange(8))[None, :, None]) & 15).reshape(-1, x.shape[1])
