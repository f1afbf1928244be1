#!/usr/bin/env python3
"""Runs Triton's tutorials as they are, once by `python -m rtc` and once by Triton, and prints the figures of both.

    python benches/gpu/programs.py [FILE.py | FOLDER ..] [--timeout SECONDS] [--json FILE]

A FOLDER stands for the tutorials in it that are measured: 03 (matrix multiplication), 06 (attention) and 09 (persistent
matrix multiplication). Without one, `$TRITON_TUTORIALS` names the folder, or it is found beside an editable installation of
Triton. Figures are read from what a program prints: the tables of `triton.testing.perf_report`, and the tree of the profiler.
Each program runs in an empty folder of its own. The exit status is 1 if a program fails by `python -m rtc`, 2 if there is
nothing to run. Triton's column is empty where Triton, or what its plots need (pandas, matplotlib, hatchet), is missing.
"""

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile

TUTORIALS = ("03", "06", "09")
WAYS = {"rtc": ["-m", "rtc"], "triton": []}
ANSI = re.compile(r"\x1b\[[0-9;]*m")
#: A line of the profiler's tree: its first metric, perhaps others, and a name with sizes in brackets.
SCOPE = re.compile(r"^\W*(\d+\.\d+)\s+(?:\d+\.\d+\s+)*(\S.*\[.*=.*\])\s*$")


def tutorials_folder():
    """The folder with Triton's tutorials, if there is one."""
    if "TRITON_TUTORIALS" in os.environ:
        return os.environ["TRITON_TUTORIALS"]
    try:
        found = importlib.util.find_spec("triton")
    except (ImportError, ValueError):
        found = None
    if found is None or not found.origin:
        return None
    package = os.path.dirname(os.path.abspath(found.origin))
    near = [os.path.join(package, *up, "tutorials") for up in ([".."], ["..", "..", "python"])]
    return next((os.path.normpath(folder) for folder in near if os.path.isdir(folder)), None)


def programs(paths):
    """The files to run."""
    found = []
    for path in paths or filter(None, [tutorials_folder()]):
        if os.path.isdir(path):
            found += [os.path.join(path, name) for name in sorted(os.listdir(path))
                      if name.startswith(TUTORIALS) and name.endswith(".py")]
        else:
            found.append(path)
    return [os.path.abspath(path) for path in found]


def is_whole(text):
    """Whether a cell of a table is a size and not a figure."""
    try:
        return float(text).is_integer()
    except ValueError:
        return False


def cells(line):
    """The cells of a line of a table, which are at least two spaces apart."""
    return re.split(r"\s{2,}", line.strip())


def figures(text):
    """What a program printed: pairs of what was measured (the table, the sizes, the column) and the figure."""
    lines = [ANSI.sub("", line.split("\r")[-1]) for line in text.split("\n")]
    found = []
    for at, line in enumerate(lines):
        scope = SCOPE.match(line)
        if scope:
            found.append((("profile", "", scope.group(2)), float(scope.group(1))))
        if not line.endswith(":") or at + 2 >= len(lines) or not lines[at + 2].strip():
            continue
        heads, rows = cells(lines[at + 1]), []
        for row in lines[at + 2:]:
            row = cells(row)
            # The first cell is the number of the row.
            if len(row) != len(heads) + 1 or row[0] != str(len(rows)):
                break
            rows.append(row[1:])
        sizes = 0
        while rows and sizes < len(heads) and all(is_whole(row[sizes]) for row in rows):
            sizes += 1
        for row in rows:
            case = ", ".join(f"{name}={float(value):.0f}" for name, value in zip(heads[:sizes], row))
            for name, value in zip(heads[sizes:], row[sizes:]):
                name = re.sub(r" \([^()]*\)$", "", name)
                try:
                    found.append(((line[:-1], case, name), float(value)))
                except ValueError:
                    pass
    return found


def run(path, way, timeout):
    """The figures of one program, and why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *WAYS[way], path]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout,
                                  env={**os.environ, "MPLBACKEND": "Agg"})
        except subprocess.TimeoutExpired:
            return [], f"not finished after {timeout:g} s"
    if done.returncode:
        last = done.stderr.strip().split("\n")[-1]
        return figures(done.stdout), f"exit status {done.returncode}: {last}"
    found = figures(done.stdout)
    return found, None if found else "it printed no figures"


def main():
    """Reads the command line, runs, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="FILE.py | FOLDER")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds that one run of a program may take")
    parser.add_argument("--json", help="where the figures go")
    options = parser.parse_args()
    files = programs(options.paths)
    if not files:
        print("there are no tutorials to run: name their folder, or set TRITON_TUTORIALS "
              "(python/tutorials in Triton's repository)", file=sys.stderr)
        return 2
    report, failed = [], False
    for path in files:
        name, by, problems = os.path.basename(path), {}, {}
        for way in WAYS:
            by[way], problems[way] = run(path, way, options.timeout)
        failed |= problems["rtc"] is not None
        print(f"{name}\n{'':4s}{'rtc':>10s}{'triton':>10s}{'rtc/triton':>12s}")
        own, other = dict(by["rtc"]), dict(by["triton"])
        for key in dict.fromkeys([*own, *other]):
            ratio = own[key] / other[key] if key in own and other.get(key) else None
            shown = [f"{value:10.1f}" if value is not None else f"{'-':>10s}" for value in (own.get(key), other.get(key))]
            print(f"{'':4s}{''.join(shown)}{f'{ratio:12.3f}' if ratio is not None else f'{chr(45):>12s}'}  "
                  f"{' '.join(filter(None, key))}")
            report.append({"program": name, "table": key[0], "case": key[1], "column": key[2], "rtc": own.get(key),
                           "triton": other.get(key)})
        for way, problem in problems.items():
            if problem:
                print(f"    {way}: {problem}"[:300])
        sys.stdout.flush()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
