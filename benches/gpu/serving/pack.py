#!/usr/bin/env python3
"""Packs the files of vLLM that the cases need, a few megabytes, for a machine that cannot fetch its source distribution.

    python3 benches/gpu/serving/pack.py --vllm FOLDER OUT.tar.xz

They are the modules that the cases name, those that these import and that `standin.py` loads, and the tuned configurations for
H100 and H200. Unpacked, the folder is what `run.py --vllm` takes.
"""

import argparse
import ast
import glob
import os
import re
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))


def imported(path, name):
    """The modules that a file may import."""
    with open(path) as file:
        tree = ast.parse(file.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(name.split(".")[: -node.level] + ([base] if base else []))
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def needed(folder):
    """The files of all modules that are loaded."""
    import standin
    waiting, found = set(), {}
    for path in glob.glob(os.path.join(HERE, "families", "*.py")):
        with open(path) as file:
            text = file.read()
        waiting |= set(re.findall(r'"(vllm\.[\w.]*\w)"', text))
        for prefix in re.findall(r'"(vllm\.[\w.]*)\.\w*(?:"|\{)', text):     # a name that is put together
            inside = os.path.join(folder, *prefix.split("."))
            waiting |= {os.path.relpath(file, folder)[:-3].replace(os.sep, ".") for file in glob.glob(f"{inside}/**/*.py", recursive=True)}
    while waiting:
        name = waiting.pop()
        path = os.path.join(folder, *name.split(".")) + ".py"
        if name not in found and standin.wanted(name) and os.path.exists(path):
            found[name] = path
            waiting |= {other for other in imported(path, name) if other.startswith("vllm.")}
    return sorted(found.values())


def main():
    """Reads the command line and packs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", required=True, metavar="FOLDER", help="vLLM's unpacked source distribution")
    parser.add_argument("out", metavar="OUT.tar.xz")
    options = parser.parse_args()
    folder = os.path.abspath(options.vllm)
    sys.path.insert(0, HERE)
    paths = needed(folder)
    for path in glob.glob(os.path.join(folder, "vllm", "**", "configs", "**", "*.json"), recursive=True):
        if re.search(r"device_name=NVIDIA_H[12]00(_80GB_HBM3)?[,.]", os.path.basename(path)):
            paths.append(path)
    with tarfile.open(options.out, "w:xz") as archive:
        for path in paths:
            archive.add(path, os.path.relpath(path, folder))
    print(f"{len(paths)} files, {os.path.getsize(options.out) / 1e6:.1f} MB in {options.out}")


if __name__ == "__main__":
    main()
