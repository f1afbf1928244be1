"""Compiled kernels and the compiler's errors."""

from typing import TYPE_CHECKING

from . import errors
from .compiler import ASTSource, CompiledKernel, compile, make_backend
from .errors import CompilationError

__all__ = ["ASTSource", "CompilationError", "CompiledKernel", "compile", "errors", "make_backend"]


if not TYPE_CHECKING:

    def __getattr__(name):
        raise AttributeError(f"rtc has no `triton.compiler.{name}`")
