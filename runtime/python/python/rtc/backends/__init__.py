"""Back ends, by name: GPUs, and rtc's emulator for tensors on the CPU."""

from dataclasses import dataclass

from .compiler import BaseBackend, CpuBackend, GpuBackend
from .driver import CpuDriver, Driver


@dataclass(frozen=True)
class Backend:
    """A compiler and a driver for one kind of device."""
    compiler: type[BaseBackend]
    driver: type


backends = {"nvidia": Backend(GpuBackend, Driver), "cpu": Backend(CpuBackend, CpuDriver)}
