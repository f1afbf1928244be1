"""Triton's kernel language, compiled by rtc: `rtc.jit` makes a kernel of a function, `kernel[grid](..)` launches it.

Arrays on a GPU run there; arrays in memory of the CPU (numpy, PyTorch's CPU tensors) run in the PTX emulator, or in the
interpreter where `RTC_DEVICE=interpreter` says so. `python -m rtc program.py` runs a program that imports `triton`.
"""

from typing import TYPE_CHECKING, Any

from . import _rtc, errors, language, knobs, runtime, compiler, testing, tools
from ._rtc import cdiv, set_device
from .compiler import CompilationError, compile
from .compiler.compiler import CompiledKernel
from .errors import TritonError
from .runtime import (Autotuner, Config, Heuristics, InterpreterError, JITFunction, KernelInterface, MockTensor,
                      OutOfResources, TensorWrapper, autotune, heuristics, reinterpret, set_allocator)
from .runtime.errors import KernelFault
from .runtime.jit import ConstexprFunction, constexpr_function, jit
from .tools.tensor_descriptor import TensorDescriptor

__version__ = _rtc.compiler_version
aggregate = language.core._aggregate

_rtc.register(language.constexpr, language.dtype, JITFunction, language.core.KernelFunction, TensorDescriptor)


# TorchInductor imports it by this name where a kernel of a compiled program uses it.
cdiv.__module__ = "triton"


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not less than `n`."""
    return 1 << (n - 1).bit_length() if n > 0 else 0


__all__ = ["Autotuner", "CompilationError", "CompiledKernel", "Config", "Heuristics", "InterpreterError", "JITFunction",
           "KernelFault", "KernelInterface", "MockTensor", "OutOfResources", "TensorDescriptor", "TensorWrapper",
           "TritonError", "aggregate", "autotune", "cdiv", "compile", "compiler", "constexpr_function", "heuristics", "jit", "knobs", "language",
           "next_power_of_2", "reinterpret", "runtime", "set_allocator", "set_device", "testing", "tools"]


if TYPE_CHECKING:
    bfloat16: Any
    float8_e4m3fn: Any
    float8_e5m2: Any
else:

    def __getattr__(name):
        # These types need numpy, the package does not.
        if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
            from . import _narrow
            return _narrow.TYPES[name]
        raise AttributeError(f"rtc has no `rtc.{name}`")
