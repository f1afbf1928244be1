"""Writes the PTX of all variants into a folder. It needs LLVM 22's `opt` and `llc`, and no GPU.

    python3 -m hopper.build FOLDER      # in benches/gpu; LLVM: the folder of opt and llc
"""

import os
import pathlib
import subprocess
import sys

from . import variants

LLVM = os.environ.get("LLVM", "/usr/lib/llvm-22/bin")
TARGET = ["-O3", "-mtriple=nvptx64-nvidia-cuda", "-mcpu=sm_90a", "-mattr=+ptx83"]


def _pipe(program, options, text):
    done = subprocess.run([f"{LLVM}/{program}", *TARGET, *options, "-o", "-", "-"], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{program}: {done.stderr[:2000]}")
    return done.stdout


def main():
    """Builds every variant."""
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for variant in variants.ALL:
        optimized = _pipe("opt", ["-S"], variant.generate())
        (folder / f"{variant.name}.ptx").write_text(_pipe("llc", ["-nvptx-short-ptr"], optimized))


if __name__ == "__main__":
    main()
