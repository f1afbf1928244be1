"""NVIDIA's assembler."""

import functools
import re
import subprocess
from dataclasses import dataclass

from ...compiler.compiler import _assembler


@dataclass(frozen=True)
class NvidiaTool:
    """A tool of the CUDA toolkit: its file, and the version of CUDA, such as `13.0`."""
    path: str
    version: str


@functools.lru_cache
def get_ptxas(arch: int) -> NvidiaTool:
    """The `ptxas` for a compute capability times ten (90: H100): the one that `RTC_PTXAS` or `TRITON_PTXAS_PATH` names, or one that
    is found. `RuntimeError` if there is none."""
    try:
        path = str(_assembler(f"sm_{arch}{'a' if arch >= 90 else ''}"))
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(f"Cannot find ptxas: {error}") from error
    version = re.search(r"release (\d+\.\d+)", said)
    if version is None:
        raise RuntimeError(f"Cannot find ptxas: {path} does not say its version")
    return NvidiaTool(path, version.group(1))
