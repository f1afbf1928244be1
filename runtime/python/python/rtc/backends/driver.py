"""The active device, as programs ask for it: `triton.runtime.driver.active`."""

import sys
from collections.abc import Callable
from typing import Any

from .. import _rtc
from .compiler import GPUTarget


def _torch():
    return sys.modules.get("torch")


class Utilities:
    """What the driver tells of devices."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Sizes and rates of a device."""
        torch = _torch()
        if torch is not None and torch.cuda.is_available():
            p = torch.cuda.get_device_properties(device)
            return {"max_shared_mem": getattr(p, "shared_memory_per_block_optin", 232448),
                    "max_num_regs": getattr(p, "regs_per_multiprocessor", 65536),
                    "multiprocessor_count": p.multi_processor_count, "warpSize": getattr(p, "warp_size", 32),
                    "sm_clock_rate": getattr(p, "clock_rate", 0), "mem_clock_rate": getattr(p, "memory_clock_rate", 0),
                    "mem_bus_width": getattr(p, "memory_bus_width", 0)}
        return {"max_shared_mem": 232448, "max_num_regs": 65536, "multiprocessor_count": 2, "warpSize": 32,
                "sm_clock_rate": 0, "mem_clock_rate": 0, "mem_bus_width": 0}

    def __getattr__(self, name):
        raise AttributeError(f"rtc has no `triton.runtime.driver.active.utils.{name}`")


class Driver:
    """The device that kernels run on."""

    def __init__(self):
        self.utils = Utilities()

    @staticmethod
    def is_active() -> bool:
        """Whether there is such a device. A process that was forked cannot ask the driver; PyTorch knows."""
        torch = _torch()
        return torch.cuda.is_available() if torch is not None else _rtc.device_count() > 0

    def get_current_target(self) -> GPUTarget:
        """What kernels are compiled for."""
        capability = int("".join(c for c in _rtc.device_arch() if c.isdigit()))
        return GPUTarget("cuda", capability, 32)

    def get_current_device(self) -> int:
        """The number of the GPU that launches go to."""
        torch = _torch()
        return torch.cuda.current_device() if torch is not None and torch.cuda.is_available() else 0

    def set_current_device(self, device: int) -> None:
        """Has launches go to another GPU."""
        _torch().cuda.set_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        """The handle of the stream that launches go to; 0 is the default stream."""
        torch = _torch()
        if torch is None or not torch.cuda.is_available():
            return 0
        return torch._C._cuda_getCurrentRawStream(self.get_current_device() if device is None else device)

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """The compute capability, such as (9, 0)."""
        capability = self.get_current_target().arch
        return capability // 10, capability % 10

    def get_active_torch_device(self) -> Any:
        """The device as PyTorch names it."""
        import torch
        return torch.device("cuda", self.get_current_device()) if torch.cuda.is_available() else torch.device("cpu")

    def get_device_interface(self) -> Any:
        """PyTorch's module of the device: `torch.cuda`, or what has its functions for the CPU."""
        import torch
        return torch.cuda if torch.cuda.is_available() else _CpuInterface

    def get_benchmarker(self) -> Callable[..., Any]:
        """The function that times launches."""
        from ..testing import do_bench
        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """A tensor larger than the second-level cache; to write it flushes the cache."""
        import torch
        return torch.empty(256 * 1024 * 1024 // 4, dtype=torch.int, device=self.get_active_torch_device())

    def clear_cache(self, cache: Any) -> None:
        """Flushes the second-level cache by writing such a tensor."""
        cache.zero_()

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The type in C of a parameter by its type in a signature."""
        return {"i1": "int8_t", "fp32": "double"}.get(ty, "CUdeviceptr" if ty.startswith("*") else f"{ty}")

    def __getattr__(self, name):
        raise AttributeError(f"rtc has no `triton.runtime.driver.active.{name}`")


class _CpuInterface:
    """Stands for `torch.cuda` where kernels run on the CPU."""

    @staticmethod
    def synchronize():
        pass


class CpuDriver(Driver):
    """The emulator, where a program asks for kernels on the CPU."""

    @staticmethod
    def is_active() -> bool:
        """It is everywhere."""
        return True

    def get_current_target(self) -> GPUTarget:
        """What kernels are compiled for."""
        return GPUTarget("cpu", 0, 32)

    def get_current_device(self) -> int:
        """The number of the GPU that launches go to."""
        return 0

    def get_current_stream(self, device: int | None = None) -> int:
        """The handle of the stream that launches go to; 0 is the default stream."""
        return 0

    def get_device_interface(self) -> Any:
        """PyTorch's module of the device: `torch.cuda`, or what has its functions for the CPU."""
        return _CpuInterface

    def get_active_torch_device(self) -> Any:
        """The device as PyTorch names it."""
        import torch
        return torch.device("cpu")
