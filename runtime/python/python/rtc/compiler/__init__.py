"""Compiled kernels and the compiler's errors."""

from . import errors
from .compiler import CompiledKernel
from .errors import CompilationError

__all__ = ["CompilationError", "CompiledKernel", "errors"]


def __getattr__(name):
    raise AttributeError(f"rtc has no `triton.compiler.{name}`")
