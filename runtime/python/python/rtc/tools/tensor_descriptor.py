"""Tensor descriptors made on the host."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class TensorDescriptor:
    """A tensor whose blocks kernels load and store."""
    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        rank = len(self.shape)
        if not len(self.strides) == rank == len(self.block_shape):
            raise AssertionError(f"rank mismatch: {self.shape}, {self.strides}, {self.block_shape}")
        if rank == 0 or rank > 5:
            raise AssertionError(f"a tensor descriptor has 1 to 5 dimensions, not {rank}")
        address = self.base.data_ptr() if hasattr(self.base, "data_ptr") else self.base.__array_interface__["data"][0]
        if address % 16 != 0:
            raise AssertionError("base must be 16-byte aligned")
        size = _element_bytes(self.base)
        for stride in self.strides[:-1]:
            if (stride * size) % 16 != 0:
                raise AssertionError("strides must be 16-byte aligned")
        for length in self.block_shape:
            if length & (length - 1) != 0 or length < 1:
                raise AssertionError(f"the sizes of a block are powers of two: {self.block_shape}")
        if self.strides[-1] != 1:
            raise AssertionError("Last dimension must be contiguous")
        if self.padding not in ("zero", "nan"):
            raise AssertionError("Illegal value for padding")

    @staticmethod
    def from_tensor(tensor: Any, block_shape: Sequence[int], padding: str = "zero",
                    round_f32_to_tf32: bool = False) -> "TensorDescriptor":
        """The descriptor of a tensor as it lies."""
        if hasattr(tensor, "stride"):
            strides = tensor.stride()
        else:
            strides = tuple(s // tensor.itemsize for s in tensor.strides)
        return TensorDescriptor(tensor, tensor.shape, strides, block_shape, padding, round_f32_to_tf32)


def _element_bytes(tensor):
    if hasattr(tensor.dtype, "itemsize"):
        return tensor.dtype.itemsize
    return tensor.element_size()
