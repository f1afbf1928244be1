"""`rtc tune --cluster`: shards of the configurations to the GPUs of a Ray cluster, their results merged."""

import argparse
import os
import subprocess
import sys
import tempfile

from . import _cluster

#: Parts for each worker: the more, the less is lost with one, and the more evenly the work is shared.
PARTS = 4


def main(words):
    parser = argparse.ArgumentParser(prog="rtc tune --cluster")
    parser.add_argument("--address", required=True)
    parser.add_argument("--configurations", type=int, required=True)
    parser.add_argument("--file", action="append", default=[])
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--part-limit", type=float, default=600.0)
    parser.add_argument("--output")
    parser.add_argument("--counters", action="store_true")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    given = parser.parse_args(words)
    rest = given.rest[1:] if given.rest[:1] == ["--"] else given.rest
    address = None if given.address == "local" else given.address
    try:
        with _cluster.Cluster(address, given.counters, given.arch, given.file) as cluster:
            if os.environ.get("RTC_CACHE_REMOTE"):
                _compile(cluster, rest, given)
            results = _timed(cluster, rest, given)
    except _cluster.ClusterError as error:
        print(f"error[cluster]: {error}", file=sys.stderr)
        return 1
    return _merged(results, rest, given)


def _shards(kind, workers, rest, given, options=()):
    """The parts for the workers of one kind."""
    count = max(1, min(given.configurations, PARTS * workers))
    for number in range(1, count + 1):
        words = [*rest, *options, "--shard", f"{number}/{count}"]
        if kind and given.counters:
            words += ["--arch", kind[1]]
        yield _cluster.Part(f"part {number}/{count} of {_cluster.shown(kind)}", words, kind)


def _compile(cluster, rest, given):
    """Compiles on all machines, also on those without a GPU; the store that they share has the results."""
    parts = []
    for _, arch in cluster.kinds():
        here = _shards(None, len(cluster.workers), rest, given, ["--compile-only", "--arch", arch])
        for part in here:
            part.name = f"compiling {part.name} ({arch})"
            parts.append(part)
    cluster.run(parts, given.part_limit)


def _timed(cluster, rest, given):
    """Times all parts, for each kind of device by itself; gives the results of the kinds that have all."""
    kinds, parts = cluster.kinds(), []
    for kind, workers in kinds.items():
        parts += _shards(kind, workers, rest, given)
        print(f"tuning on {workers} x {_cluster.shown(kind)}", flush=True)
    results = cluster.run(parts, given.part_limit)
    complete = []
    for kind in kinds:
        own = [part for part in parts if part.kind == kind]
        missing = [part for part in own if part.name not in results]
        if missing:
            cluster.warn(f"{_cluster.shown(kind)} is left out: {len(missing)} of its {len(own)} parts have no results")
        else:
            complete += [results[part.name].results for part in own]
    if not complete:
        raise _cluster.ClusterError("no kind of device has timed all parts")
    return complete


def _merged(results, rest, given):
    with tempfile.TemporaryDirectory(prefix="rtc-shards-") as folder:
        paths = []
        for number, text in enumerate(results):
            paths.append(os.path.join(folder, f"{number}.json"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(text)
        output = ["-o", given.output] if given.output else []
        kept = [word for word in rest if word == "--no-cache"]
        return subprocess.run([sys.executable, "-m", "rtc", "tune", *output, *kept, "--merge", *paths]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
