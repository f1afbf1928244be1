"""Errors of the compiler."""

from ..runtime.errors import (CompilationError, CompileTimeAssertionFailure, MLIRCompilationError,  # noqa: F401
                              UnsupportedLanguageConstruct)
