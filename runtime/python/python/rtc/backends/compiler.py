"""What kernels are compiled for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GPUTarget:
    """A GPU: `cuda`, its compute capability, the threads of a warp."""
    backend: str
    arch: int
    warp_size: int
