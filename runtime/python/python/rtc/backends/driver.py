"""The active device, as programs ask for it: `triton.runtime.driver.active`."""

import sys

from .. import _rtc
from .compiler import GPUTarget


def _torch():
    return sys.modules.get("torch")


class Utilities:
    """What the driver tells of devices."""

    def get_device_properties(self, device):
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
    def is_active():
        """Whether there is such a device. A process that was forked cannot ask the driver; PyTorch knows."""
        torch = _torch()
        return torch.cuda.is_available() if torch is not None else _rtc.device_count() > 0

    def get_current_target(self):
        """What kernels are compiled for."""
        capability = int("".join(c for c in _rtc.device_arch() if c.isdigit()))
        return GPUTarget("cuda", capability, 32)

    def get_current_device(self):
        torch = _torch()
        return torch.cuda.current_device() if torch is not None and torch.cuda.is_available() else 0

    def set_current_device(self, device):
        _torch().cuda.set_device(device)

    def get_current_stream(self, device=None):
        torch = _torch()
        if torch is None or not torch.cuda.is_available():
            return 0
        return torch._C._cuda_getCurrentRawStream(self.get_current_device() if device is None else device)

    def get_device_capability(self, device=None):
        capability = self.get_current_target().arch
        return capability // 10, capability % 10

    def get_active_torch_device(self):
        import torch
        return torch.device("cuda", self.get_current_device()) if torch.cuda.is_available() else torch.device("cpu")

    def get_device_interface(self):
        import torch
        return torch.cuda if torch.cuda.is_available() else _CpuInterface

    def get_benchmarker(self):
        from ..testing import do_bench
        return do_bench

    def get_empty_cache_for_benchmark(self):
        import torch
        return torch.empty(256 * 1024 * 1024 // 4, dtype=torch.int, device=self.get_active_torch_device())

    def clear_cache(self, cache):
        cache.zero_()

    def map_python_to_cpp_type(self, ty):
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
    def is_active():
        """It is everywhere."""
        return True

    def get_current_target(self):
        """What kernels are compiled for."""
        return GPUTarget("cpu", 0, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def get_device_interface(self):
        return _CpuInterface

    def get_active_torch_device(self):
        import torch
        return torch.device("cpu")
