"""What kernels are compiled for."""

import types
from dataclasses import dataclass
from typing import Any

from .. import _rtc


@dataclass(frozen=True)
class GPUTarget:
    """A GPU: `cuda`, its compute capability, the threads of a warp. `cpu` is rtc's emulator."""
    backend: str
    arch: int
    warp_size: int


class BaseBackend:
    """What a kind of devices needs of the compiler."""

    binary_ext = "ptx"
    _backend: str | None = None

    def __init__(self, target: GPUTarget) -> None:
        self.target = target

    @property
    def arch(self) -> str:
        """The compiler's name of the target."""
        raise NotImplementedError

    @classmethod
    def supports_target(cls, target: GPUTarget) -> bool:
        """Whether it is for this target."""
        return target.backend == cls._backend

    def hash(self) -> str:
        """What tells targets and compilers apart."""
        return f"rtc-{_rtc.compiler_version}-{_rtc.build_id}-{self.arch}"

    def parse_options(self, options: dict[str, Any]) -> types.SimpleNamespace:
        """All options of launches that are given."""
        unknown = [name for name in options if name not in _rtc.option_names()]
        if unknown:
            raise KeyError(f"Keyword argument {unknown[0]} was specified but unrecognised")
        defaults = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "debug": False, "enable_fp_fusion": True,
                    "allowed_dot_input_precisions": ("tf32", "tf32x3", "ieee"), "default_dot_input_precision": "tf32",
                    "sanitize_overflow": True, "arch": self.arch}
        return types.SimpleNamespace(**{**defaults, **options})

    def pack_metadata(self, metadata: Any) -> tuple[int, ...]:
        """What launches are told of a kernel."""
        return metadata.num_warps, metadata.num_ctas, metadata.shared, *metadata.cluster_dims


class GpuBackend(BaseBackend):
    """GPUs of NVIDIA."""

    _backend = "cuda"

    @property
    def arch(self) -> str:
        """The compiler's name of the target."""
        number = self.target.arch
        return f"sm_{number}{'a' if number >= 90 else ''}"


class CpuBackend(BaseBackend):
    """The emulator, for tensors on the CPU."""

    _backend = "cpu"

    @property
    def arch(self) -> str:
        """The compiler's name of what it emulates."""
        return _rtc.host_arch()
