#!/usr/bin/env python3
"""Times each kernel of kernels.py as Triton compiles it, as rtc does, and as PyTorch's library does the same, in one process
on the same buffers; on Hopper also the kernels of hopper/, which are written by hand for the same products and attention.

    python benches/gpu/run.py [--only REGEX] [--rounds N] [--seconds S] [--by-hand FOLDER] [--json FILE] [--svg FILE]

It needs a GPU, PyTorch and the package rtc-triton (`make wheel`); Triton where it is installed; for the kernels by hand
their PTX (`hopper/build.py`, which `make bench-gpu` runs where LLVM is). Every result is compared with
PyTorch's before anything is timed; a wrong one is not timed, and the exit status is 1. Launches take turns, one of each
compiler and configuration, the second-level cache emptied before each, because a chip at its power limit runs at a
higher clock after a lighter kernel. Printed: the median of the best configuration of each, ratios, and the share of
the limit: the rate of a copy, or of the tensor cores as the library reaches it on its largest product in the same run.
"""

import argparse
import json
import re
import sys
import time

import torch

import cases
import kernels
import roofline
import rtc
from hopper.launches import ByHand

try:
    import triton
except ImportError:
    triton = None

POISON = {"float32": float("nan"), "float16": float("nan"), "bfloat16": float("nan")}


class Clock:
    """Medians of launches that take turns."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.flush = torch.empty(256 << 20, dtype=torch.uint8, device=cases.DEVICE)

    def medians(self, calls):
        """Milliseconds of each call, by name."""
        events = {name: [] for name in calls}
        names = list(calls)
        for i in range(self.rounds + 2):
            at = i % len(names)
            for name in names[at:] + names[:at]:
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                torch.cuda._sleep(200_000)      # the host gets ahead, so that no launch waits for it
                self.flush.zero_()
                start.record()
                calls[name]()
                end.record()
                events[name].append((start, end))
            torch.cuda.synchronize()
        times = {name: sorted(a.elapsed_time(b) for a, b in list_[2:]) for name, list_ in events.items()}
        return {name: list_[len(list_) // 2] for name, list_ in times.items()}


def compilers():
    """What makes a kernel of a function, by name."""
    made = {"rtc": rtc.jit}
    if triton is not None:
        made["triton"] = triton.jit
    return made


def right(case, call, want):
    """Whether a launch writes what PyTorch gives."""
    case.output.fill_(POISON[str(case.output.dtype)[6:]])
    call()
    torch.cuda.synchronize()
    relative, absolute = case.tolerance
    return torch.allclose(case.output.float(), want.float(), rtol=relative, atol=absolute)


def measure(case, jits, by_hand, clock):
    """The times of one case and what failed."""
    want, calls, failed = case.vendor(), {"library": case.vendor}, []
    for who, make in jits.items():
        kernel = make(getattr(kernels, case.kernel))
        for configuration in case.configurations:
            call = lambda kernel=kernel, c=configuration: case.launch(kernel, c)
            try:
                if right(case, call, want):
                    calls[who, str(configuration)] = call
                else:
                    failed.append((who, configuration, "differs from PyTorch"))
            except Exception as error:
                failed.append((who, configuration, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"))
    for name, call in case.by_hand(by_hand).items():
        if right(case, call, want):
            calls["by hand", name] = call
        else:
            failed.append(("by hand", name, "differs from PyTorch"))
    times = clock.medians(calls)
    best = {"library": (times.pop("library"), "")}
    for (who, configuration), ms in times.items():
        best[who] = min(best.get(who, (ms, configuration)), (ms, configuration))
    return best, failed


def main():
    """Reads the command line, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="cases whose names match")
    parser.add_argument("--rounds", type=int, default=20, help="launches of each")
    parser.add_argument("--seconds", type=float, default=600, help="no case begins after so many")
    parser.add_argument("--by-hand", default="out/hopper", help="the folder with the PTX of hopper/")
    parser.add_argument("--json", help="where the figures go")
    parser.add_argument("--svg", help="where the roofline goes")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("there is no GPU that PyTorch can use")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(0)
    begun, clock, jits, found, wrong = time.time(), Clock(options.rounds), compilers(), [], 0
    by_hand = ByHand(options.by_hand)
    source = torch.empty(1 << 28, dtype=torch.float32, device=cases.DEVICE)
    target = torch.empty_like(source)
    limits = {"copy": 8 * source.numel() / clock.medians({"copy": lambda: target.copy_(source)})["copy"] * 1e3}
    del source, target
    print(f"{torch.cuda.get_device_name()}, copy {limits['copy'] / 1e12:.2f} TB/s")
    print(f"{'case':36s}{'library':>10s}{'by hand':>10s}{'triton':>10s}{'rtc':>10s}{'triton/rtc':>12s}{'library/rtc':>13s}{'by hand/rtc':>13s}")
    for make in cases.makers():
        if time.time() - begun > options.seconds:
            break
        case = make()
        if options.only and not re.search(options.only, case.name):
            continue
        best, failed = measure(case, jits, by_hand, clock)
        us = lambda who: f"{best[who][0] * 1e3:10.1f}" if who in best else f"{'-':>10s}"
        ratio = lambda who: best[who][0] / best["rtc"][0] if who in best and "rtc" in best else float("nan")
        print(f"{case.name:36s}{us('library')}{us('by hand')}{us('triton')}{us('rtc')}"
              f"{ratio('triton'):12.3f}{ratio('library'):13.3f}{ratio('by hand'):13.3f}", flush=True)
        for who, configuration, message in failed:
            wrong += who == "rtc" and "differs" in message
            print(f"    {who} {configuration}: {message}"[:200], flush=True)
        if case.flops:
            reached = case.flops / best["library"][0] * 1e3
            limits[case.rate] = max(limits.get(case.rate, 0), reached) if case.kernel == "matmul" else limits.get(case.rate, reached)
        found.append(dict(name=case.name, bytes=case.bytes, flops=case.flops, rate=case.rate,
                          ms={who: ms for who, (ms, _) in best.items()},
                          configuration={who: c for who, (_, c) in best.items()}, wrong=len(failed)))
        del case, make
        torch.cuda.empty_cache()
    for row in found:
        ms = row["ms"].get("rtc")
        if ms:
            amount = row["flops"] or row["bytes"]
            row["share"] = amount / ms * 1e3 / limits[row["rate"]]
    print("\nshare of the limit: " + ", ".join(f"{row['name']} {row['share']:.2f}" for row in found if "share" in row))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "limits": limits, "cases": found}, file, indent=1)
    if options.svg:
        with open(options.svg, "w") as file:
            file.write(roofline.svg(found, limits, torch.cuda.get_device_name()))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
