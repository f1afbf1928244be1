#!/usr/bin/env python3
"""Times kernels through rtc beside Triton and libraries, one process for each peer, and makes one page of the results.

    python benches/gpu/suite.py [--plan] [--only REGEX] [--peers NAMES] [--rounds N] [--seconds S] [--json FILE] [--html FILE] [--speed FILE]
    python benches/gpu/suite.py --from FILE [--html FILE] [--speed FILE]

`--plan` lists what would run, on any machine. Each peer computes an entry in a process of its own (`worker.py`), so that none
sees the memory, the caches or the patches of another; their launches take turns, because a chip at its power limit runs at a
higher clock after a lighter kernel. A result is compared with PyTorch's before it is timed. A peer that is not installed, that
fails or whose result is wrong is reported in its row. `--from` renders results that were recorded before. `--speed` updates
the figures of the README and the book (docs/images/speed.json; then `scripts/pictures.py`). The exit status is 1 if a result
of rtc is wrong or fails.
"""

import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import time

import page
import plan

HERE = os.path.dirname(os.path.abspath(__file__))
#: The format of the results.
FORMAT = 1


class Failed(Exception):
    """A peer cannot compute an entry; the message has the reason."""


class Worker:
    """The process of a peer. Requests and answers are JSON, one a line."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request):
        """The answer to a request."""
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except (BrokenPipeError, ValueError):
            line = ""
        if not line:
            raise Failed(f"its process ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer

    def end(self):
        """Ends the process."""
        if self.process.stdin and not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def command_of(name):
    """The command line of a peer's process."""
    return [sys.executable, *plan.PEERS[name].words, os.path.join(HERE, "worker.py"), name]


class Team:
    """The processes of all peers; each starts when it is first needed, and again after it ended."""

    def __init__(self, command_of=command_of, missing=None):
        self.command_of = command_of
        self.missing = missing or {name: peer.missing() for name, peer in plan.PEERS.items()}
        self.workers = {}

    def worker(self, name):
        """The process of a peer."""
        if self.missing.get(name):
            raise Failed("not installed")
        worker = self.workers.get(name)
        if worker is None or worker.process.poll() is not None:
            worker = self.workers[name] = Worker(self.command_of(name))
        return worker

    def measure(self, entry, rounds):
        """The row of an entry."""
        row = {"group": entry.group, "name": entry.name, "us": {}, "quartiles": {}, "status": {}, "configuration": {}}
        ready = {}
        for name in entry.peers:
            try:
                worker = self.worker(name)
                answer = worker.ask(do="prepare", make=entry.make, arguments=entry.arguments)
                ready[name] = worker
                row["configuration"][name] = answer.get("configuration", "")
                row.update({key: answer[key] for key in ("bytes", "flops") if answer.get(key)})
            except Failed as error:
                row["status"][name] = str(error)
        times = {name: [] for name in ready}
        for i in range(rounds):
            order = [name for name in ready if name not in row["status"]]
            at = i % max(len(order), 1)
            for name in order[at:] + order[:at]:
                try:
                    times[name] += ready[name].ask(do="launch")["us"]
                except Failed as error:
                    row["status"][name] = str(error)
        for name, found in times.items():
            if found and name not in row["status"]:
                row["us"][name] = round(statistics.median(found), 3)
                quarters = statistics.quantiles(found, n=4) if len(found) > 1 else [found[0]] * 3
                row["quartiles"][name] = [round(quarters[0], 3), round(quarters[2], 3)]
                row["status"][name] = "timed"
        for name, worker in ready.items():
            try:
                worker.ask(do="drop")
            except Failed:
                pass
        return row

    def facts(self):
        """The GPU and the libraries, by any process that runs."""
        for worker in self.workers.values():
            try:
                return worker.ask(do="facts")
            except Failed:
                continue
        return {}

    def end(self):
        """Ends all processes."""
        for worker in self.workers.values():
            worker.end()


def commit():
    """The commit of this checkout."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def measured(chosen, team, rounds, seconds):
    """The results of all entries."""
    begun, rows = time.time(), []
    for entry in chosen:
        if time.time() - begun > seconds:
            rows.append({"group": entry.group, "name": entry.name, "us": {}, "quartiles": {}, "configuration": {},
                         "status": {name: "not run: no time was left" for name in entry.peers}})
            continue
        row = team.measure(entry, rounds)
        rows.append(row)
        words = [f"{name} {row['us'][name]:.1f}" if name in row["us"] else f"{name}: {row['status'].get(name, '')}" for name in entry.peers]
        print(f"{entry.name:<44} {', '.join(words)}"[:220], flush=True)
    peers = {name: {"title": peer.title, "version": None if team.missing.get(name) else peer.version()}
             for name, peer in plan.PEERS.items()}
    date = datetime.date.today().isoformat()
    return {"format": FORMAT, "date": date, "commit": commit(), **team.facts(), "peers": peers, "rows": rows}


def read(path):
    """Results that were recorded before."""
    try:
        with open(path) as file:
            results = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"suite: cannot read {path}: {error}")
    if not isinstance(results, dict) or results.get("format") != FORMAT:
        sys.exit(f"suite: {path} has not the format {FORMAT} of results of suite.py")
    return results


def speed(results, old):
    """The figures of README and book: rows that both compilers timed; of the other rows each keeps its date and commit."""
    rows = [{"kernel": row["name"], "rtc": round(row["us"]["rtc"], 1), "triton": round(row["us"]["triton"], 1), "unit": "us",
             "source": "benches/gpu/suite.py"} for row in results["rows"] if {"rtc", "triton"} <= row["us"].keys()]
    new = {row["kernel"] for row in rows}
    kept = [{"date": old.get("date"), "commit": old.get("commit"), **row} for row in old.get("rows", []) if row["kernel"] not in new]
    version = lambda name: results["peers"][name]["version"]
    return {"gpu": results.get("gpu"), "date": results["date"], "commit": results["commit"], "triton": version("triton"),
            "torch": version("pytorch"), "rows": rows + kept}


def failures(results):
    """The rows in which rtc fails or computes something else."""
    status = lambda row: row["status"].get("rtc", "timed")
    return [row["name"] for row in results["rows"] if status(row) != "timed" and not status(row).startswith("not ")]


def write(path, text):
    """Writes a file, and its folder."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def main():
    """Reads the command line, measures, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", action="store_true", help="list what would run, and end")
    parser.add_argument("--only", help="entries whose group or name matches")
    parser.add_argument("--peers", help="these peers alone, separated by commas")
    parser.add_argument("--rounds", type=int, default=20, help="turns of each peer")
    parser.add_argument("--seconds", type=float, default=1800, help="no entry begins after so many")
    parser.add_argument("--from", dest="recorded", metavar="FILE", help="render these results instead of measuring")
    parser.add_argument("--json", metavar="FILE", help="where the results go")
    parser.add_argument("--html", metavar="FILE", help="where the page goes")
    parser.add_argument("--speed", metavar="FILE", help="the figures of README and book, which are updated")
    options = parser.parse_args()
    names = options.peers.split(",") if options.peers else list(plan.PEERS)
    unknown = [name for name in names if name not in plan.PEERS]
    if unknown:
        sys.exit(f"suite: there is no peer {', '.join(unknown)}; there are {', '.join(plan.PEERS)}")
    try:
        chosen = [entry for entry in plan.entries() if not options.only or re.search(options.only, f"{entry.group} {entry.name}")]
    except re.error as error:
        sys.exit(f"suite: --only is no regular expression: {error}")
    chosen = [plan.Entry(e.group, e.name, e.make, e.arguments, tuple(p for p in e.peers if p in names)) for e in chosen]
    chosen = [entry for entry in chosen if entry.peers]
    if options.plan:
        print(plan.shown(chosen))
        return 0
    if options.recorded:
        results = read(options.recorded)
    else:
        team = Team()
        if team.missing["pytorch"]:
            sys.exit("suite: PyTorch is not installed, with which all results are compared; --plan lists what would run")
        try:
            results = measured(chosen, team, options.rounds, options.seconds)
        finally:
            team.end()
    if options.json:
        write(options.json, json.dumps(results, indent=1) + "\n")
    if options.html:
        write(options.html, page.page(results))
    if options.speed:
        old = {}
        if os.path.exists(options.speed):
            with open(options.speed) as file:
                old = json.load(file)
        write(options.speed, json.dumps(speed(results, old), indent=1) + "\n")
    wrong = failures(results)
    if wrong:
        print(f"rtc was not timed in {len(wrong)} rows: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
