"""`run --sanitize`: keeps the launches of the collections (launches.py), then has the emulator's sanitizer look at each.

WORK/launches/<collection>/<kernel>-<source>-<launch>/ holds a launch as files. Each is run by `rtc run --sanitize`, for each
of the targets. WORK/findings.json has what was found, WORK/findings.txt the same with the source under it. A launch of more
instructions than --budget, or that takes longer than --seconds, is counted as too long.
known.txt beside this file lists what is known of published kernels; anything else makes the exit status 1.
"""

import collections
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def known():
    """(collection, function, code) of findings that are explained in docs/correctness/found.md."""
    with open(os.path.join(HERE, "known.txt")) as f:
        lines = [line.split("#")[0].split() for line in f]
    return {tuple(line) for line in lines if line}


def diagnostics(text):
    """What `--message-format json` says, by lines."""
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                yield json.loads(line)
            except ValueError:
                continue


def judge(options, folder, arch, checks):
    """-> (state, findings) of a launch; the state is clean, found, too long, refused or failed"""
    files = [os.path.join(folder, name) for name in ("rtc_m0.py", "LAUNCH.json")]
    command = [*shlex.split(options.rtc), "run", files[0], "--launch", files[1], "--arch", arch, "--sanitize", checks]
    command += ["--instructions", str(options.budget), "--message-format", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds)
    except subprocess.TimeoutExpired:
        return "too long", []
    said = list(diagnostics(done.stdout + done.stderr))
    found = [one for one in said if one.get("sanitizer")]
    if any("more than" in one["message"] and one.get("code") == "endless-loop" for one in found):
        return "too long", [one for one in found if one.get("code") != "endless-loop"]
    if done.returncode == 0:
        return "clean", []
    if found:
        return "found", found
    errors = [f"{one.get('code')}: {one.get('message')}" for one in said if one.get("level", one.get("severity")) == "error"]
    return "failed", errors or [(done.stderr or done.stdout).strip()[:600] or f"exit {done.returncode}"]


def launches(options, name):
    """The launches of a collection, with their origins; with `sample`, at most so many of each kernel."""
    folder = os.path.join(options.work, "launches", name)
    groups = collections.defaultdict(list)
    for entry in sorted(os.listdir(folder)):
        path = os.path.join(folder, entry)
        if os.path.exists(os.path.join(path, "origin.json")):
            with open(os.path.join(path, "origin.json")) as f:
                groups[entry.rpartition("-")[0]].append((path, json.load(f)))
    for group in groups.values():
        yield from group[: options.sample or None]


def lines_of(found, origin):
    """Where in the collection's files a finding and its other side are."""
    places = []
    for side in (found["sanitizer"]["at"], found["sanitizer"]["other"]):
        if side and side["file"]:
            module = os.path.basename(side["file"]).removesuffix(".py")
            places.append(f"{os.path.basename(origin['modules'].get(module, side['file']))}:{side['line']}")
    return places


def sanitize(options, names, collect):
    """Keeps launches where there are none yet, judges all; the exit status."""
    expected, rows, reports = known(), [], []
    for name in names:
        folder = os.path.join(options.work, "launches", name)
        if options.again or not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            collect(name, options, folder)
        if options.record_only:
            print(f"{name}: {len(list(launches(options, name)))} launches", flush=True)
            continue
        todo = [(*launch, arch) for launch in launches(options, name) for arch in options.arch.split(",")]
        states, functions, began = collections.Counter(), collections.defaultdict(set), time.time()
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = pool.map(lambda item: judge(options, item[0], item[2], options.checks), todo)
            for (path, origin, arch), (state, found) in zip(todo, results):
                states[state] += 1
                functions[state].add((origin["file"], origin["function"], os.path.basename(path).split("-")[-2]))
                for one in found:
                    report = {"collection": name, "launch": path, "arch": arch, "state": state, **origin}
                    if isinstance(one, dict):
                        report |= {"code": one["code"], "message": one["message"], "lines": lines_of(one, origin)}
                        report |= {"finding": one, "known": (name, origin["kernel"], one["code"]) in expected}
                    else:
                        report |= {"code": state, "message": one, "lines": [], "known": False}
                    reports.append(report)
        judged = functions["clean"] | functions["found"]
        rows.append((name, len(judged), len(judged - functions["found"]), len(todo), *(states[s] for s in STATES)))
        print(f"{name}: {len(todo)} launches in {time.time() - began:.0f} s", flush=True)
    if options.record_only:
        return 0
    show(rows, reports)
    with open(os.path.join(options.work, "findings.json"), "w") as f:
        json.dump(reports, f, indent=1)
    return int(any(not report["known"] for report in reports if report["state"] != "too long" or report["code"] != "too long"))


STATES = ("clean", "found", "too long", "failed")


def show(rows, reports):
    """Prints the table, and what was found: each line of a kernel once, with the number of launches."""
    heads = ("collection", "kernels", "of them clean", "launches", *STATES)
    for row in [heads, *rows, ("in all", *(sum(row[i] for row in rows) for i in range(1, len(heads))))]:
        print("".join(f"{str(x):>16}" for x in row))
    groups = collections.defaultdict(list)
    for report in reports:
        message = re.sub(r"0x[0-9a-f]+|\d+", "N", report["message"])[:160]
        groups[report["collection"], report["kernel"], report["code"], tuple(report["lines"]), message].append(report)
    for (name, kernel, code, lines, _), group in sorted(groups.items(), key=lambda item: (item[0][0], item[0][2], item[0][1])):
        first = group[0]
        mark = "known " if first["known"] else ""
        print(f"{mark}{name} {kernel} [{code}] {' and '.join(lines)}: {len(group)} launches: {first['message'][:300]}")
        print(f"    {first['launch']} {first['arch']}")
