#!/usr/bin/env python3
"""Times kernels of two- and three-dimensional tiles, gathers, scans, atomics and loops beside Triton.

    python benches/gpu/tiles.py [--only REGEX] [--below RATIO] [--json FILE]
    python -m rtc benches/gpu/tiles.py --check [--only REGEX]
    python benches/gpu/tiles.py --list

The kernels are those of `tile_cases`, at sizes that keep an H200 busy for 20 to 200 microseconds. Both compilers have a
process of their own, which first compiles everything; then they take turns, and of each kernel the shortest of three series
counts. Numbers from all over the results of both are compared, and where they differ, all of them with the reference. Kernels
whose ratio (Triton's time / rtc's) is below RATIO, 1.0 by default, are printed, and those that one of them refuses; then the
geometric mean. The exit status is 1 if results differ, unless only those of Triton are wrong by the reference.
`--check` runs them at small sizes with NumPy, in rtc's emulator, and compares with references. `--list` prints the cases.
"""

import argparse
import sys
import time
import types

import beside

try:
    import triton
except ImportError:     # cases are listed, and both processes started, without a compiler
    triton = None
    sys.modules["triton.language"] = types.SimpleNamespace(constexpr=None)
    sys.modules["triton"] = types.SimpleNamespace(jit=lambda kernel: kernel, language=sys.modules["triton.language"])

from tile_cases import FAMILIES
from tile_cases.case import TYPES, Tensor, np

COMPARED = 1 << 14

#: By this the sizes are divided that `--check` runs.
SMALL = 4096


def cases(only, scale):
    """All that match, with sizes divided by `scale`."""
    def of(size, least=1):
        return size if scale == 1 else max(size // scale, least)
    return beside.matching((found for family in FAMILIES for found in family(of)), only)


class Bench(beside.Bench):
    """The process of one compiler."""

    def __init__(self, chosen):
        super().__init__()
        self.chosen, self.made = chosen, {}

    def numbers(self, tensor, seed):
        """A tensor on the GPU: the same in both processes."""
        torch, dtype = self.torch, getattr(self.torch, TYPES[tensor.kind][0])
        torch.manual_seed(seed)
        if tensor.contents == "normal":
            return (torch.randn(tensor.shape, device="cuda") * tensor.limits[0]).to(dtype)
        if tensor.contents == "uniform":
            return torch.rand(tensor.shape, device="cuda").to(dtype)
        if tensor.contents == "integers":
            return torch.randint(*tensor.limits, tensor.shape, device="cuda").to(dtype)
        if tensor.contents == "permutation":
            return torch.randperm(tensor.shape[0], device="cuda").to(dtype)
        if tensor.contents == "steps":
            return torch.arange(tensor.shape[0], device="cuda", dtype=dtype) * tensor.limits[0]
        return torch.zeros(tensor.shape, device="cuda", dtype=dtype)

    def reset(self, index):
        """Makes the arguments."""
        self.made[index] = [self.numbers(argument, position) if isinstance(argument, Tensor) else argument
                            for position, argument in enumerate(self.chosen[index].arguments)]

    def fault(self, index):
        """What is wrong by the reference, which computes with the same numbers."""
        launched = self.chosen[index]
        if launched.reference is None:
            return ""

        def on_host():
            return [(values.double() if values.is_floating_point() else values.long()).cpu().numpy()
                    if isinstance(argument, Tensor) else values
                    for argument, values in zip(launched.arguments, self.made[index], strict=True)]
        stored = on_host()
        self.reset(index)
        read = [values for argument, values in zip(launched.arguments, on_host(), strict=True)
                if getattr(argument, "role", "") in ("in", "both")]
        return fault_of(launched, read, stored)

    def launch(self, index):
        """One launch of a kernel."""
        launched = self.chosen[index]
        launched.kernel[launched.grid](*self.made[index], **launched.constants, num_warps=launched.warps)

    def outputs(self, index):
        """Numbers from all over the results, at odd distances."""
        launched = self.chosen[index]
        for position in launched.compared():
            numbers = self.made[index][position].flatten()
            if launched.arguments[position].unordered:
                numbers = numbers.sort().values
            yield numbers[::numbers.numel() // COMPARED | 1].double().tolist()


def host_array(tensor, seed):
    """A tensor as an array for the emulator."""
    import rtc
    random = np.random.default_rng(seed)
    values = {"normal": lambda: random.standard_normal(tensor.shape) * tensor.limits[0],
              "uniform": lambda: random.random(tensor.shape),
              "integers": lambda: random.integers(*tensor.limits, tensor.shape),
              "permutation": lambda: random.permutation(tensor.shape[0]),
              "steps": lambda: np.arange(tensor.shape[0]) * tensor.limits[0],
              "zeros": lambda: np.zeros(tensor.shape)}[tensor.contents]()
    name = TYPES[tensor.kind][0]
    return getattr(rtc, name)(values.astype(np.float32)) if tensor.kind in ("bf16", "e4m3") else values.astype(name)


def wide(array, kind):
    """As numbers that NumPy computes with."""
    return array.astype(np.int64) if kind[0] == "i" else array.astype(np.float32).astype(np.float64)


def fault_of(launched, read, stored):
    """What is wrong with what a launch stored, by the reference of what it read; nothing if all is right."""
    expected = launched.reference(*read)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for position, right in zip(launched.compared(), expected, strict=True):
        argument = launched.arguments[position]
        if right is None:
            continue
        got, right = stored[position].ravel(), np.asarray(right, dtype=np.float64).ravel()
        if argument.unordered:
            got, right = np.sort(got), np.sort(right)
        if got.shape != right.shape or beside.differ(got, right, argument.bound, argument.share):
            same_shape = got.shape == right.shape
            what = f"differs by {abs(got - right).max():.3}" if same_shape else f"has shapes {got.shape}, {right.shape}"
            return f"argument {position} {what}"
    return ""


def checked(launched):
    """Runs a case in the emulator; says what is wrong, or nothing."""
    arrays = [host_array(argument, position) if isinstance(argument, Tensor) else argument
              for position, argument in enumerate(launched.arguments)]
    read = [wide(array, argument.kind) for array, argument in zip(arrays, launched.arguments, strict=True)
            if getattr(argument, "role", "") in ("in", "both")]
    launched.kernel[launched.grid](*arrays, **launched.constants, num_warps=launched.warps)
    if launched.reference is None:
        return ""
    return fault_of(launched, read, [wide(array, argument.kind) if isinstance(argument, Tensor) else array
                                     for array, argument in zip(arrays, launched.arguments, strict=True)])


def check(chosen):
    """Runs all cases in the emulator; gives the exit status."""
    wrong = 0
    for launched in chosen:
        try:
            fault = checked(launched)
        except Exception as error:  # whatever the compiler or the emulator raises
            fault = " ".join(str(error).split())[-300:]
        wrong += bool(fault)
        if fault:
            print(f"{launched.name}: {fault}", flush=True)
    print(f"{len(chosen)} cases, {sum(launched.reference is None for launched in chosen)} without a reference, {wrong} wrong")
    return 1 if wrong else 0


def describe(launched):
    """A line about a case."""
    arguments = [f"{argument.kind}{list(argument.shape)}" if isinstance(argument, Tensor) else str(argument)
                 for argument in launched.arguments]
    constants = [f"{name}={value}" for name, value in launched.constants.items()]
    return f"{launched.name}: {launched.kernel.__name__}[{launched.grid}]({', '.join(arguments + constants)}), {launched.warps} warps"


def main():
    """Reads the command line, measures, prints."""
    parser = beside.command_line(__doc__, "kernels", "the cases")
    parser.add_argument("--check", action="store_true", help="without a GPU: run small sizes in the emulator, under `python -m rtc`")
    parser.add_argument("--scale", type=int, metavar="N", help=f"divide sizes by N, a power of two ({SMALL} for --check)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    scale = options.scale or (SMALL if options.check else 1)
    if scale & (scale - 1):
        parser.error("--scale wants a power of two, so that tiles still fit the sizes")
    if triton is None and (options.serve or options.check):
        parser.error("there is no compiler: neither Triton nor `python -m rtc`")
    chosen = cases(options.only, scale)
    if options.serve:
        beside.serve(Bench(chosen))
        return 0
    if options.list:
        print(*map(describe, chosen), sep="\n")
        return 0
    if options.check:
        return check(chosen)
    began = time.monotonic()
    arguments = ["--serve", "--scale", str(scale), "--only", options.only or ""]
    rows = beside.measure(__file__, arguments, [launched.name for launched in chosen], [launched.bounds() for launched in chosen])
    status = beside.finish(rows, options, "kernels")
    print(f"{time.monotonic() - began:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
