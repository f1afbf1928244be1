#!/usr/bin/env python3
"""Times single operations beside Triton: the functions of libdevice, casts, integer arithmetic, reductions of a block.

    python benches/gpu/functions.py [--only REGEX] [--below RATIO] [--json FILE]
    python benches/gpu/functions.py --list

Each is a kernel that loads a block of 1,024 numbers, computes, and stores; 8 Mi numbers, 4 warps. Both compilers have a process
of their own, which first compiles everything; then they take turns, and of each operation the shortest of three series counts.
The results of both are compared. Operations whose ratio (Triton's time / rtc's) is below RATIO, 1.0 by default, are printed,
and those that one of them refuses; then the geometric mean. The exit status is 1 if results differ. `--list` prints the kernels,
without a GPU or PyTorch.
"""

import argparse
import importlib.util
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass

import beside

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(HERE, "..", "..", "stdlib", "libdevice.txt")
BLOCK, NUMBERS, COMPARED = 1024, 1 << 23, 1 << 14

#: The name in PyTorch and in the kernel language.
TYPES = {"fp32": ("float32", "tl.float32"), "fp64": ("float64", "tl.float64"), "fp16": ("float16", "tl.float16"),
         "bf16": ("bfloat16", "tl.bfloat16"), "e4m3": ("float8_e4m3fn", "tl.float8e4nv"), "e5m2": ("float8_e5m2", "tl.float8e5"),
         "i8": ("int8", "tl.int8"), "u8": ("uint8", "tl.uint8"), "i16": ("int16", "tl.int16"), "i32": ("int32", "tl.int32"),
         "i64": ("int64", "tl.int64")}
EIGHT_BITS = ("e4m3", "e5m2")
WHOLE = [name for name in TYPES if name[0] in "iu"]

#: By how much results of functions of both libraries may differ, as `beside.differ` says; 0.01 for all other types.
BOUNDS = {"fp64": 1e-12, "fp32": 2e-5}
#: An instruction that approximates: the hardware's result has about 20 bits.
APPROXIMATE = {"libdevice.rcp64h fp64": 4e-6}


@dataclass(frozen=True)
class Case:
    """An operation: its name, the types of its arguments `v0`, `v1` .. and of `r`, and lines that compute `r`."""

    name: str
    arguments: tuple
    result: str
    lines: str


def library():
    """The functions of libdevice of floats."""
    with open(LIBRARY) as file:
        lines = [line.split("->") for line in file if line.strip() and not line.startswith("#")]
    for left, right in lines:
        name, *types = left.split()
        types = [kind.replace("f", "fp") for kind in types]
        result = right.split()[0].replace("f", "fp")
        floats = all(kind in ("fp32", "fp64") for kind in [*types, result])
        # One instruction each: directed rounding.
        if types and floats and not re.search(r"_r[nduz]$", name):
            arguments = ", ".join(f"v{index}" for index in range(len(types)))
            yield Case(f"libdevice.{name} {types[0]}", tuple(types), result, f"r = libdevice.{name}({arguments})")


def casts():
    """From each type to each other, but for what Triton has no cast for."""
    for old in TYPES:
        for new in TYPES:
            pair = {old, new}
            if old != new and not (pair & set(EIGHT_BITS) and pair & {*WHOLE, "fp64"}) and not pair <= set(EIGHT_BITS):
                yield Case(f"cast {old} {new}", (old,), new, f"r = v0.to({TYPES[new][1]})")


def arithmetic():
    """Integers, quotients of floats, random numbers."""
    for kind in ("i16", "i32", "i64"):
        for name, sign in (("quotient", "//"), ("remainder", "%"), ("product", "*"), ("shift", ">>")):
            yield Case(f"{name} {kind}", (kind, kind), kind, f"r = v0 {sign} v1")
        yield Case(f"quotient by 7 {kind}", (kind,), kind, "r = v0 // 7")
        yield Case(f"remainder by 48 {kind}", (kind,), kind, "r = v0 % 48")
    for kind in ("fp32", "fp64", "fp16", "bf16"):
        yield Case(f"quotient {kind}", (kind, kind), kind, "r = v0 / v1")
        yield Case(f"remainder {kind}", (kind, kind), kind, "r = v0 % v1")
    for name in ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "sigmoid"):
        yield Case(f"tl.{name} fp32", ("fp32",), "fp32", f"r = tl.{name}(v0)")
    yield Case("rotation bf16", ("bf16", "fp32"), "bf16", "f = v0.to(tl.float32)\n    r = (f * tl.cos(v1) - f * tl.sin(v1)).to(tl.bfloat16)")
    for name in ("rand", "randn", "randint"):
        yield Case(f"tl.{name}", ("i32",), "i32" if name == "randint" else "fp32", f"r = tl.{name}(17, i)")
    yield Case("popc i64", ("i64",), "i32", "r = libdevice.popc(v0)")
    yield Case("clz i32", ("i32",), "i32", "r = libdevice.clz(v0)")


def blocks():
    """What moves numbers between threads."""
    square = "tl.reshape(v0, (32, 32))"
    for kind in ("fp32", "fp16", "i32", "i64"):
        yield Case(f"sort {kind}", (kind,), kind, "r = tl.sort(v0)")
        yield Case(f"transposition {kind}", (kind,), kind, f"r = tl.reshape(tl.trans({square}), ({BLOCK},))")
    for kind in ("fp32", "i64"):
        yield Case(f"cumulative sum {kind}", (kind,), kind, "r = tl.cumsum(v0)")
        yield Case(f"sum {kind}", (kind,), kind, "r = v0 - tl.sum(v0)")
        for axis, back in ((0, "[None, :]"), (1, "[:, None]")):
            lines = f"w = {square}\n    r = tl.reshape(w - tl.sum(w, {axis}){back}, ({BLOCK},))"
            yield Case(f"sum along axis {axis} {kind}", (kind,), kind, lines)
    yield Case("maximum fp16", ("fp16",), "fp16", "r = v0 - tl.max(v0)")
    yield Case("softmax fp32", ("fp32",), "fp32", "r = tl.softmax(v0)")
    yield Case("argmax fp32", ("fp32",), "i32", "r = i - tl.argmax(v0, 0)")
    yield Case("gather fp32", ("fp32", "i32"), "fp32", f"r = tl.gather(v0, v1 & {BLOCK - 1}, 0)")
    yield Case("histogram i32", ("i32",), "i32", f"r = tl.histogram(v0 & {BLOCK - 1}, {BLOCK})")


def cases(only):
    """All that match."""
    return beside.matching((case for part in (library, casts, arithmetic, blocks) for case in part()), only)


def source(chosen):
    """The kernels, in Triton's language."""
    text = "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"
    for index, case in enumerate(chosen):
        numbers = range(len(case.arguments))
        pointers = ", ".join([f"x{number}" for number in numbers] + ["y"])
        text += f"\n\n# {case.name}\n@triton.jit\ndef kernel_{index}({pointers}, BLOCK: tl.constexpr):\n"
        text += "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        text += "".join(f"    v{number} = tl.load(x{number} + i)\n" for number in numbers)
        text += f"    {case.lines}\n    tl.store(y + i, r)\n"
    return text


class Bench(beside.Bench):
    """The process of one compiler."""

    def __init__(self, chosen, path):
        super().__init__()
        spec = importlib.util.spec_from_file_location("kernels_of_functions", path)
        self.kernels = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.kernels)
        self.chosen = chosen
        torch = self.torch
        torch.manual_seed(1)
        self.inputs = {kind: [self.numbers(kind) for _ in range(4 if kind in ("fp32", "fp64") else 2)] for kind in TYPES}
        self.stored = {kind: torch.empty(NUMBERS, device="cuda", dtype=getattr(torch, name)) for kind, (name, _) in TYPES.items()}

    def numbers(self, kind):
        """Small positive integers, or normal variables."""
        torch, dtype = self.torch, getattr(self.torch, TYPES[kind][0])
        if kind in WHOLE:
            return torch.randint(1, 100, (NUMBERS,), device="cuda").to(dtype)
        return (torch.randn(NUMBERS, device="cuda", dtype=torch.float64) * 2).to(dtype)

    def launch(self, index):
        """One launch of a kernel."""
        case = self.chosen[index]
        arguments = [self.inputs[kind][number] for number, kind in enumerate(case.arguments)]
        getattr(self.kernels, f"kernel_{index}")[(NUMBERS // BLOCK,)](*arguments, self.stored[case.result], BLOCK)

    def outputs(self, index):
        """The first numbers that a kernel stored."""
        return [self.stored[self.chosen[index].result][:COMPARED].double().tolist()]


def main():
    """Reads the command line, measures, prints."""
    parser = beside.command_line(__doc__, "operations", "the kernels")
    parser.add_argument("--serve", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    chosen = cases(options.only)
    if options.serve:
        beside.serve(Bench(chosen, options.serve))
        return 0
    if options.list:
        print(source(chosen), end="")
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernels.py")
        with open(path, "w") as file:
            file.write(source(chosen))
        arguments = ["--serve", path, "--only", options.only or ""]
        bounds = [[(APPROXIMATE.get(case.name, BOUNDS.get(case.result, 1e-2)),)] for case in chosen]
        rows = beside.measure(__file__, arguments, [case.name for case in chosen], bounds)
    status = beside.finish(rows, options, "operations")
    print(f"{time.monotonic() - began:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
