"""What the scripts that time kernels beside Triton share: a process for each compiler, which take turns; and the report.

A script defines a `Bench`, whose kernels have numbers, and calls `serve` with it in the processes of the compilers, which
`measure` starts: the script itself, under rtc and under Triton, with `--serve`. Both first compile everything and give results,
which are compared; then of each kernel the shortest of three series counts.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys

LAUNCHES, SERIES = 12, 3

#: What runs a script with each compiler.
COMPILERS = {"rtc": [sys.executable, "-m", "rtc"], "triton": [sys.executable]}


class Bench:
    """The kernels in the process of one compiler."""

    def __init__(self):
        import torch
        self.torch = torch

    def launch(self, index):
        """One launch of a kernel."""
        raise NotImplementedError

    def outputs(self, index):
        """After a launch, what of each output is compared: lists of numbers."""
        raise NotImplementedError

    def reset(self, index):
        """Before the launch whose results are compared."""

    def result(self, index):
        """Compiles, and gives numbers of what a kernel stores."""
        self.reset(index)
        self.launch(index)
        self.torch.cuda.synchronize()
        return [[str(number) for number in output] for output in self.outputs(index)]

    def fault(self, index):
        """After `result`, what is wrong by a reference; nothing if there is none."""

    def time(self, index):
        """Microseconds of a launch in a series."""
        torch = self.torch
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(1_000_000)
        start.record()
        for _ in range(LAUNCHES):
            self.launch(index)
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) * 1e3 / LAUNCHES


def serve(bench):
    """Answers the requests of the parent: `result N`, `fault N`, `time N`."""
    for line in sys.stdin:
        what, index = line.split()
        try:
            answer = getattr(bench, what)(int(index))
        except Exception as error:  # whatever a compiler raises is the answer
            answer = {"error": str(error).strip()[-300:]}
        print(json.dumps(answer), flush=True)


class Compiler:
    """The other end of `serve`."""

    def __init__(self, words, script, arguments):
        self.script = script
        self.process = subprocess.Popen([*words, os.path.abspath(script), *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def send(self, what, index):
        self.process.stdin.write(f"{what} {index}\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            name = os.path.splitext(os.path.basename(self.script))[0]
            sys.exit(f"{name}: a process ended; are PyTorch, a GPU and both compilers there?")
        return json.loads(line)


def differ(ours, theirs, bound, share=0.0):
    """Whether more than a share of two lists of numbers differs by more than the bound, of 1 or of the number if that is more."""
    different = 0
    for mine, other in zip(map(float, ours), map(float, theirs), strict=True):
        same = mine == other or (math.isnan(mine) and math.isnan(other)) or abs(mine - other) <= bound * max(1, abs(other))
        different += not same
    return different > share * len(ours)


def measure(script, arguments, names, bounds):
    """For each kernel, the shortest times of both, or why there are none, and whether the results differ; if so, what each has
    wrong by the reference.

    `bounds` has for each kernel a list of what `differ` allows for each output: (bound, share).
    """
    peers = {name: Compiler(words, script, arguments) for name, words in COMPILERS.items()}
    rows = []
    for index, kernel in enumerate(names):
        for peer in peers.values():
            peer.send("result", index)
        results = {name: peer.answer() for name, peer in peers.items()}
        refused = {name: result["error"] for name, result in results.items() if isinstance(result, dict)}
        different = not refused and any(differ(ours, theirs, *allowed) for ours, theirs, allowed
                                        in zip(results["rtc"], results["triton"], bounds[index], strict=True))
        faults = {}
        for name, peer in peers.items() if different else ():
            peer.send("fault", index)
            faults[name] = peer.answer()
        rows.append({"name": kernel, "refused": refused, "differs": different, "faults": faults, "us": {}})
    for _ in range(SERIES):
        for index, row in enumerate(rows):
            for name, peer in peers.items():
                if not row["refused"]:
                    peer.send("time", index)
                    row["us"][name] = min(row["us"].get(name, math.inf), peer.answer())
    for peer in peers.values():
        peer.process.stdin.close()
        peer.process.wait(60)
    return rows


def report(rows, below, what):
    """Prints what is slow, refused or different; gives the exit status."""
    timed = sorted(((row["us"]["triton"] / row["us"]["rtc"], row) for row in rows if row["us"]), key=lambda pair: pair[0])
    for ratio, row in timed:
        if ratio < below:
            print(f"{ratio:.2f} {row['name']:<34} rtc {row['us']['rtc']:.2f}, triton {row['us']['triton']:.2f} us")
    for row in rows:
        for name, why in row["refused"].items():
            print(f"refused by {name}: {row['name']}: {' '.join(why.split())[-120:]}")
    if timed:
        mean = math.exp(sum(math.log(ratio) for ratio, _ in timed) / len(timed))
        print(f"{len(timed)} {what}, geometric mean {mean:.3f}, {sum(ratio < 1 for ratio, _ in timed)} slower than in Triton")
    wrong = 0
    for row in rows:
        if row["differs"]:
            faults = {name: fault for name, fault in row["faults"].items() if fault}
            wrong += list(faults) != ["triton"]
            told = "; ".join(f"{name}: {fault}" for name, fault in faults.items()) or "which is right is not known"
            print(f"results differ: {row['name']}: {told}")
    return 1 if wrong else 0


def finish(rows, options, what):
    """Writes all rows to the file of `--json`, and reports; gives the exit status."""
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    return report(rows, options.below, what)


def matching(cases, only):
    """The cases whose name matches."""
    return [case for case in cases if not only or re.search(only, case.name)]


def command_line(documentation, what, listed):
    """A parser of the options that all have."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="REGEX", help=f"{what} whose name matches")
    parser.add_argument("--below", type=float, default=1.0, metavar="RATIO", help="print those with a lower ratio")
    parser.add_argument("--json", metavar="FILE", help="where all rows go")
    parser.add_argument("--list", action="store_true", help=f"print {listed}, and end")
    return parser
