#!/usr/bin/env python3
"""Times the Triton kernels of a serving engine, vLLM, through rtc and through Triton, launch by launch on the same inputs.

    python3 benches/gpu/serving/run.py --vllm FOLDER [--only REGEX] [--rounds N] [--seconds S] [--small] [--json FILE]

FOLDER is an unpacked source distribution of vLLM (or what `pack.py` makes of it); nothing of it is installed. Each compiler has
a process of its own (`worker.py`), in which vLLM's wrappers are called on inputs of a seeded generator; every launch is kept with
its arguments. What a launch writes is compared between both, then launches take turns, the second-level cache emptied before
each; short ones are timed in a CUDA graph too. First, several pairs of processes compile everything side by side (--jobs). A case
that raises, hangs (--limit) or loses its process is reported, and the next one runs. Rows go to FILE, one JSON a line, as they
come. --small needs no GPU: small shapes on tensors of the CPU, to try the cases (--peers triton|rtc for one alone).
"""

import argparse
import collections
import json
import os
import re
import statistics
import sys
import tempfile
import threading
import time

import compare
from processes import Failed, Team

HERE = os.path.dirname(os.path.abspath(__file__))
#: Launches that are shorter, in microseconds, are timed in a graph too.
SHORT = 30


def spread(cases):
    """One case of each function, then the second of each, so that all kernels come before the time is over."""
    seen, order = collections.Counter(), []
    for n, case in enumerate(cases):
        order.append((seen[case.function], n, case))
        seen[case.function] += 1
    return [case for _, _, case in sorted(order, key=lambda entry: entry[:2])]


class Suite:
    """All cases that are asked for, and their rows."""

    def __init__(self, options, cases):
        self.options, self.cases, self.rows = options, cases, []
        self.begun = time.time()
        self.out = open(options.json, "a") if options.json else None
        self.slow, self.compiled = {}, {}

    def note(self, row):
        """Keeps a row and writes it."""
        self.rows.append(row)
        if self.out:
            self.out.write(json.dumps(row) + "\n")
            self.out.flush()

    def compile(self, until):
        """Compiles all cases, with several pairs of processes; what is compiled is found again in the caches on the disk."""
        waiting, lock = collections.deque(spread(self.cases)), threading.Lock()

        def work():
            team = Team(self.options)
            while time.time() < until:
                with lock:
                    if not waiting:
                        break
                    case = waiting.popleft()
                for peer, answer in team.both("prepare", self.options.limit, family=case.family, name=case.name).items():
                    key = (peer, case.family, case.name)
                    if isinstance(answer, Failed):
                        self.slow[key] = str(answer)
                    else:
                        self.compiled[key] = [launch["seconds"] for launch in answer["launches"]]
            team.end()
        threads = [threading.Thread(target=work) for _ in range(self.options.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"compiled {len(self.cases) - len(waiting)} of {len(self.cases)} cases in {time.time() - self.begun:.0f} s", flush=True)

    def measure(self, case, team):
        """The rows of one case."""
        options, answers = self.options, {}
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            files = {peer: None if options.compile else os.path.join(folder, peer) for peer in options.peers}
            hung = [peer for peer in options.peers if "longer than" in self.slow.get((peer, case.family, case.name), "")]
            if not hung:
                answers = team.both("prepare", options.limit, family=case.family, name=case.name, each={p: {"save": files[p]} for p in files})
            faults = {peer: self.slow[peer, case.family, case.name] for peer in hung}
            for peer, answer in answers.items():
                if isinstance(answer, Failed):
                    faults[peer] = str(answer)
                elif answer.get("error"):
                    faults[peer] = answer["error"]
            ready = {peer: answer["launches"] for peer, answer in answers.items() if not isinstance(answer, Failed)}
            differences = compare.differences([files[p] for p in ready if files[p] and os.path.exists(files[p])], case.tolerance)
        if faults or not ready:
            self.note({"family": case.family, "case": case.name, "kernel": None, "failed": faults})
            print(f"{case.family} {case.name}: " + "; ".join(f"{p}: {compare.short(f)}" for p, f in faults.items()), flush=True)
        count = max((len(launches) for launches in ready.values()), default=0)
        gone = {peer for peer, answer in answers.items() if isinstance(answer, Failed) or answer.get("fatal")}
        for i in range(count):
            row = {"family": case.family, "case": case.name, "launch": i, "failed": {}, "us": {}, "graph": {}, "compile": {}}
            for peer, launches in ready.items():
                if i < len(launches):
                    row["kernel"] = launches[i]["kernel"]
                    first = self.compiled.get((peer, case.family, case.name), [])
                    row["compile"][peer] = first[i] if i < len(first) else launches[i]["seconds"]
                    if launches[i]["error"]:
                        row["failed"][peer] = launches[i]["error"]
            row.update(differences[i] if i < len(differences) and not row["failed"] else {})
            if len({launches[i]["kernel"] for launches in ready.values() if i < len(launches)}) > 1:
                row.update(agrees=False, where="both launch other kernels")
            good = [p for p in ready if i < len(ready[p]) and p not in row["failed"] and p not in gone]
            if not options.compile and (options.time_small or not options.small):
                self.time(team, row, i, good, gone)
            self.note(row)
            self.show(row)
        for peer in set(ready) - gone:
            team.ask(peer, "drop", 20)

    def time(self, team, row, index, peers, gone):
        """Times one launch of each compiler in turn."""
        times = {peer: [] for peer in peers}
        for turn in range(self.options.rounds):
            order = [p for p in peers if p not in gone]
            at = turn % max(len(order), 1)
            for peer in order[at:] + order[:at]:
                answer = team.ask(peer, "times", 20, index=index)
                if isinstance(answer, Failed):
                    row["failed"][peer] = str(answer)
                    gone.add(peer)
                else:
                    times[peer] += answer["us"]
            if sum(map(sum, times.values())) > self.options.launch_ms * 1e3 and turn >= 2:
                break
        row["us"] = {peer: round(statistics.median(found), 2) for peer, found in times.items() if found and peer not in row["failed"]}
        if row["us"] and min(row["us"].values()) < SHORT:
            for peer in [p for p in peers if p not in gone]:
                answer = team.ask(peer, "graph", 20, index=index)
                if isinstance(answer, Failed):
                    row["graph_failed"] = {**row.get("graph_failed", {}), peer: str(answer)}
                    gone.update({peer} if not team.lives(peer) else ())
                elif answer["us"]:
                    row["graph"][peer] = round(answer["us"], 3)

    def show(self, row):
        """Prints a row."""
        us = lambda peer: f"{row['us'][peer]:9.1f}" if peer in row["us"] else f"{'-':>9}"
        ratio = compare.ratio(row)
        apart = f"{row['difference']:9.2e}" if row.get("difference") is not None else f"{'-':>9}"
        graph = f"  graph {row['graph']['triton']:.2f}/{row['graph']['rtc']:.2f}" if len(row["graph"]) == 2 else ""
        state = "".join(f"  {peer}: {compare.short(fault)}" for peer, fault in row["failed"].items())
        agrees = "" if row.get("agrees", True) else f"  DIFFERS ({row.get('where')})"
        print(f"{row.get('kernel') or '?':<44.44} {row['case']:<46.46} #{row['launch']:<2}{us('triton')}{us('rtc')} {ratio and f'{ratio:6.3f}' or '     -'} "
              f"{apart}{graph}{agrees}{state}"[:400], flush=True)

    def run(self):
        """Compiles and measures within the time; every family has its share of it."""
        options = self.options
        if options.jobs:
            self.compile(self.begun + options.seconds * options.compile_share)
        start, team = time.time(), Team(options)
        left, done = self.begun + options.seconds - start, 0
        families = list(dict.fromkeys(case.family for case in self.cases))
        print(f"{'kernel':<44} {'case':<46} #  {'Triton':>9}{'rtc':>9} {'T/rtc':>6} {'rel.diff':>9}", flush=True)
        for family in families:
            own = spread([case for case in self.cases if case.family == family])
            done += len(own)
            for n, case in enumerate(own):
                if time.time() - start > left * done / len(self.cases):
                    print(f"{family}: {len(own) - n} cases not run: no time was left", flush=True)
                    break
                try:
                    self.measure(case, team)
                except Exception as error:  # of this program; the other cases can still be measured
                    self.note({"family": family, "case": case.name, "kernel": None, "failed": {"run": f"{type(error).__name__}: {error}"}})
                    print(f"{family} {case.name}: {type(error).__name__}: {error}", flush=True)
        facts = team.facts()
        team.end()
        if self.out:
            self.out.write(json.dumps({"facts": facts, "configs": options.configs, "seconds": round(time.time() - self.begun, 1)}) + "\n")
            self.out.close()
        compare.summary(self, facts)


def main():
    """Reads the command line and runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", required=True, metavar="FOLDER", help="vLLM's unpacked source distribution")
    parser.add_argument("--only", help="cases whose family or name matches")
    parser.add_argument("--rounds", type=int, default=6, help="turns of two launches of each compiler")
    parser.add_argument("--seconds", type=float, default=600, help="for everything")
    parser.add_argument("--small", action="store_true", help="small shapes, also without a GPU")
    parser.add_argument("--compile", action="store_true", help="compile and launch nothing; without --small for the full shapes, whose memory stays untouched on a CPU")
    parser.add_argument("--time-small", action="store_true", help="with --small: make the timed launches too")
    parser.add_argument("--json", metavar="FILE", help="where rows go as they come")
    parser.add_argument("--peers", default="triton,rtc", help="these compilers alone")
    parser.add_argument("--jobs", type=int, default=None, help="pairs of processes that compile at first (6; 0 with --small)")
    parser.add_argument("--compile-share", type=float, default=0.45, help="of the time, for compiling at first")
    parser.add_argument("--limit", type=float, default=40, help="seconds for a case before its process is ended")
    parser.add_argument("--launch-ms", type=float, default=150, help="milliseconds of launches after which a row has enough turns")
    parser.add_argument("--configs", type=int, default=1, help="configurations that an autotuner may try")
    parser.add_argument("--list", action="store_true", help="list the cases, and end")
    options = parser.parse_args()
    options.peers = options.peers.split(",")
    options.jobs = options.jobs if options.jobs is not None else 0 if options.small or options.compile else 6
    import case
    cases = [c for c in case.load() if not options.only or re.search(options.only, f"{c.family} {c.name}")]
    if options.list:
        print("\n".join(f"{c.family:<20} {c.name}" for c in cases))
        return 0
    if not os.path.isdir(os.path.join(options.vllm, "vllm")):
        sys.exit(f"run: {options.vllm} has no folder `vllm`; unpack vLLM's source distribution and give its folder")
    suite = Suite(options, cases)
    suite.run()
    return 1 if any("rtc" in row["failed"] or not row.get("agrees", True) for row in suite.rows) else 0


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    sys.exit(main())
