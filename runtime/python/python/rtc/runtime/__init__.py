"""Kernels, launches, autotuning, devices."""

from typing import TYPE_CHECKING

from . import _allocation, autotuner, cache, errors, jit
from ._allocation import set_allocator
from .autotuner import Autotuner, Config, Heuristics, autotune, heuristics
from .driver import driver
from .errors import InterpreterError, OutOfResources
from .jit import JITFunction, KernelInterface, MockTensor, TensorWrapper, reinterpret

__all__ = ["Autotuner", "Config", "Heuristics", "InterpreterError", "JITFunction", "KernelInterface", "MockTensor",
           "OutOfResources", "TensorWrapper", "autotune", "driver", "heuristics", "reinterpret", "set_allocator"]


if not TYPE_CHECKING:

    def __getattr__(name):
        raise AttributeError(f"rtc has no `triton.runtime.{name}`")
