"""Tensors of PyTorch in the formats of microscaling: elements of four bits (e2m1), scales of eight (e8m0)."""

from collections.abc import Sequence
from typing import Any

import torch

#: The magnitudes of e2m1, by their bits.
_VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


class MXFP4Tensor:
    """Numbers of four bits: a sign and one of eight magnitudes, each in a byte of its own."""

    def __init__(self, data=None, size=None, device=None):
        self.device = device
        self.data: Any = None
        if data is not None:
            self.data, self.device = self._rounded(data), data.device
        self.size = tuple(data.shape) if data is not None else size

    def random(self) -> "MXFP4Tensor":
        """Random numbers of the format."""
        self.data = torch.randint(0, 16, self.size, dtype=torch.uint8, device=self.device)
        return self

    @staticmethod
    def _rounded(values):
        """The nearest number of the format; of two that are as near the one with an even last bit."""
        known = torch.tensor(_VALUES, device=values.device, dtype=torch.float32)
        distance = (values.float().abs().clamp(max=6.0).unsqueeze(-1) - known).abs()
        # An even number wins where both are as near.
        bits = (distance + torch.tensor([0, 1e-9] * 4, device=values.device)).argmin(-1).to(torch.uint8)
        return bits | (torch.signbit(values.float()).to(torch.uint8) << 3)

    def to(self, dtype: torch.dtype) -> torch.Tensor:
        """The numbers as float32."""
        if dtype != torch.float32:
            raise TypeError("MXFP4Tensor.to gives float32 only")
        known = torch.tensor(_VALUES, device=self.data.device, dtype=torch.float32)
        magnitude = known[(self.data & 7).long()]
        return torch.where((self.data & 8) != 0, -magnitude, magnitude)

    def to_packed_tensor(self, dim: int) -> torch.Tensor:
        """Two numbers in a byte along a dimension, the first in the low bits."""
        data = self.data.movedim(dim, -1)
        if data.shape[-1] % 2:
            data = torch.nn.functional.pad(data, (0, 1))
        return (data[..., ::2] | (data[..., 1::2] << 4)).movedim(-1, dim).contiguous()

    def unpack_packed_tensor(self, packed: torch.Tensor, dim: int, shape: Sequence[int]) -> torch.Tensor:
        """The bytes of one number each of a packed tensor."""
        packed = packed.movedim(dim, -1)
        both = torch.stack((packed & 15, packed >> 4), dim=-1).flatten(-2)
        return both[..., :shape[dim]].movedim(-1, dim).contiguous()


class MXScaleTensor:
    """Powers of two by their exponents; 255 is NaN."""

    def __init__(self, data=None, size=None, device=None):
        self.device, self.data = device, None
        if data is not None:
            values = data.float()
            exponent = torch.floor(torch.log2(values)) + 127
            wrong = ~torch.isfinite(values) | (values <= 0)
            self.data = torch.where(wrong, torch.full_like(exponent, 255), exponent.clamp(0, 254)).to(torch.uint8)
            self.device = data.device
        self.size = tuple(data.shape) if data is not None else size

    def random(self, low: float | None = None, high: float | None = None) -> "MXScaleTensor":
        """Random powers of two between two numbers."""
        first = 0 if low is None else max(0, int(torch.log2(torch.tensor(float(low)))) + 127)
        last = 254 if high is None else min(254, int(torch.log2(torch.tensor(float(high)))) + 127)
        self.data = torch.randint(first, last + 1, self.size, dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype: torch.dtype) -> torch.Tensor:
        """The numbers as float32."""
        if dtype != torch.float32:
            raise TypeError("MXScaleTensor.to gives float32 only")
        values = torch.exp2(self.data.float() - 127)
        return torch.where(self.data == 255, torch.full_like(values, float("nan")), values)
