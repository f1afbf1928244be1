"""Parts of a tuning on the machines of a Ray cluster: a worker per GPU, or per machine where the emulator's counters are the
clock. A part is one run of `rtc tune --shard` in a process of its own. A worker that dies, with its machine or alone, or whose
process takes too long costs its part another try elsewhere."""

import ctypes
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any

#: Seconds in which a worker must have started.
START = 90.0
#: Seconds that a worker is given beyond the limit of its process, before it counts as hung.
GRACE = 20.0
#: How often a part is tried, and how many workers a machine loses before it is left out.
TRIES = 3
#: Settings that the machines take over from the one that starts the tuning.
SHARED = ("RTC_CACHE_REMOTE", "RTC_CACHE_REMOTE_TIMEOUT")
#: Errors that another machine may not have; all others are of the kernel or the launch.
OF_MACHINE = re.compile(r"error\[(cuda|no-device|io|runtime|cache)\]")
#: The label of a machine that names the target for the emulator's counters.
LABEL = "rtc-arch"


class ClusterError(Exception):
    """There is no cluster to tune on, or it cannot."""


@dataclass
class Part:
    """What one process does: its words after `rtc tune`, and files that it needs beside it."""
    name: str
    words: list[str]
    #: The kind of device that it is for; None for any machine.
    kind: tuple[str, str] | None = None
    files: Any = None
    own_files: dict[str, bytes] = field(default_factory=dict)
    tries: int = 0


@dataclass
class Result:
    """What a process said. `results` is the text of its file."""
    status: int | None
    said: str
    results: str | None


@dataclass
class Worker:
    """An actor on a machine, and what its device is."""
    actor: Any
    node: str
    address: str
    gpus: int
    kind: tuple[str, str] | None = None


class Runner:
    """Runs on a machine of the cluster."""

    def describe(self, files, counters, arch):
        """The build of rtc, the files as this machine has them, and the device: its name and its target."""
        from . import _rtc
        os.environ.setdefault("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        device = ("emulator", arch) if counters else _device()
        return _rtc.build_id, [digest(path) for path in files], device

    def run(self, part, files, shared, limit):
        """Runs a part; its process is stopped at the limit."""
        folder = tempfile.mkdtemp(prefix="rtc-part-")
        try:
            for name, content in {**(files or {}), **part.own_files}.items():
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(content)
            output = os.path.join(folder, "results.json")
            words = [sys.executable, "-m", "rtc", "tune", *part.words, "-o", output]
            process = subprocess.Popen(words, cwd=folder, env={**os.environ, **shared}, text=True, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=_end_with_parent,
                                       start_new_session=True)
            try:
                said, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                said, _ = process.communicate()
                return Result(None, said, None)
            results = None
            if os.path.exists(output):
                with open(output, encoding="utf-8") as file:
                    results = file.read()
            return Result(process.returncode, said, results)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _end_with_parent():
    """A worker that is killed takes its process along, which may hold a GPU."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _device():
    """The GPU, asked by another process: this one shall hold no memory of it."""
    ask = "from rtc import _rtc; print(_rtc.device_name(), _rtc.device_arch(), sep='\\t')"
    found = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    name, arch = found.stdout.strip().split("\t")
    return named(name), arch


def named(device):
    """The model of a device, without its number."""
    found = re.search(r"\((.*)\)$", device)
    return found.group(1) if found else device


def digest(path):
    """A hash of a file; None where it is not there."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def _reach(address):
    """Fails at once where nothing listens at an address; Ray tries for minutes."""
    host, _, port = (address or "").rpartition(":")
    if port.isdigit() and "://" not in address:
        socket.create_connection((host, int(port)), timeout=10.0).close()


def _warn(text):
    print(f"warning[cluster]: {text}", file=sys.stderr, flush=True)


class Cluster:
    """The machines, and the workers on them."""

    def __init__(self, address, counters, arch, files=(), warn=_warn):
        try:
            import ray
        except ImportError as error:
            raise ClusterError(f"the package `ray` is missing ({error}); install it with `pip install ray` here and on the machines "
                               "of the cluster") from error
        self.ray, self.counters, self.arch, self.files, self.warn = ray, counters, arch, list(files), warn
        self._ends = not ray.is_initialized()
        if self._ends:
            try:
                _reach(address)
                ray.init(address=address, logging_level="ERROR", log_to_driver=False, configure_logging=False)
            except (OSError, ValueError, RuntimeError) as error:
                raise ClusterError(f"there is no cluster at `{address}`: {error}") from error
        self._runner = ray.remote(max_restarts=0, max_task_retries=0)(Runner)
        self._losses: dict[str, int] = {}
        self.workers: list[Worker] = []
        self._starting: dict[Any, tuple[Worker, float]] = {}

    def __enter__(self):
        try:
            self._hire()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception):
        for worker in [*self.workers, *(worker for worker, _ in self._starting.values())]:
            self._dismiss(worker)
        if self._ends:
            self.ray.shutdown()

    # ---- workers

    def _nodes(self):
        return [node for node in self.ray.nodes() if node["Alive"]]

    def _start(self, node, gpus):
        """Starts a worker on a machine and asks it what its device is; `_arrived` takes the answer."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
        here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        actor = self._runner.options(num_cpus=0, num_gpus=gpus, scheduling_strategy=here).remote()
        arch = (node.get("Labels") or {}).get(LABEL, self.arch)
        promise = actor.describe.remote(self.files, self.counters or gpus == 0, arch)
        self._starting[promise] = Worker(actor, node["NodeID"], node["NodeManagerAddress"], gpus), time.monotonic() + START

    def _dismiss(self, worker):
        try:
            self.ray.kill(worker.actor)
        except Exception:       # it is dead already
            pass

    def _hire(self):
        for node in self._nodes():
            gpus = 0 if self.counters else int(node["Resources"].get("GPU", 0))
            for _ in range(max(1, gpus)):
                self._start(node, min(gpus, 1))
        while self._starting:
            self._arrived(self.ray.wait(list(self._starting), timeout=1.0)[0])
        if not self.kinds():
            hint = "" if self.counters else "; without GPUs there is --clock counters"
            raise ClusterError(f"no machine of the cluster can time kernels{hint}")

    def _arrived(self, ready):
        """Takes on the workers that have started; those that have not in time are left out."""
        for promise, (worker, end) in list(self._starting.items()):
            if promise in ready:
                why = self._unfit(worker, promise)
            elif time.monotonic() > end:
                why = f"it has not started within {START:g} seconds"
            else:
                continue
            del self._starting[promise]
            if why is None:
                self.workers.append(worker)
            else:
                self._dismiss(worker)
                self.warn(f"a worker on {worker.address} is left out: {why}")

    def _unfit(self, worker, promise):
        """Why a worker cannot be used; None where it can."""
        from . import _rtc
        try:
            build, files, device = self.ray.get(promise)
        except self.ray.exceptions.RayTaskError as error:
            return _last_line(error)
        except self.ray.exceptions.RayError:
            return "its machine is lost"
        if build != _rtc.build_id:
            return "it has another build of rtc"
        differ = [path for path, own in zip(self.files, files) if own != digest(path)]
        if differ:
            return f"it has another {differ[0]}, or none"
        if self.counters or worker.gpus:
            worker.kind = tuple(device)
        return None

    def kinds(self):
        """The kinds of devices, each with the number of workers."""
        counts: dict[tuple[str, str], int] = {}
        for worker in self.workers:
            if worker.kind:
                counts[worker.kind] = counts.get(worker.kind, 0) + 1
        return counts

    def _lost(self, worker):
        """Starts another worker where one is lost. Where its machine is lost, too, that one never starts."""
        self._dismiss(worker)
        self.workers.remove(worker)
        self._losses[worker.node] = self._losses.get(worker.node, 0) + 1
        if self._losses[worker.node] < TRIES:
            for node in self._nodes():
                if node["NodeID"] == worker.node:
                    self._start(node, worker.gpus)

    # ---- parts

    def run(self, parts, limit):
        """Runs parts, each on a worker of its kind; gives the results by name. Those that no worker is left for are missing."""
        shared = {name: os.environ[name] for name in SHARED if os.environ.get(name)}
        waiting, running, results = list(parts), {}, {}
        while waiting or running:
            busy = [worker for worker, _, _ in running.values()]
            for worker in [w for w in self.workers if not any(w is b for b in busy)]:
                part = next((part for part in waiting if part.kind in (None, worker.kind)), None)
                if part is not None:
                    waiting.remove(part)
                    part.tries += 1
                    promise = worker.actor.run.remote(_without_files(part), part.files, shared, limit)
                    running[promise] = worker, part, time.monotonic() + limit + GRACE
            if not running and not self._starting:
                break
            ready, _ = self.ray.wait([*running, *self._starting], num_returns=1, timeout=1.0)
            self._arrived(ready)
            for promise in [p for p in running if p in ready or running[p][2] < time.monotonic()]:
                worker, part, _ = running.pop(promise)
                why = self._ended(promise if promise in ready else None, worker, part, results, limit)
                if why is None:
                    continue
                if part.tries < TRIES:
                    self.warn(f"{part.name} is tried again: {why}")
                    waiting.append(part)
                else:
                    self.warn(f"{part.name} is given up after {TRIES} tries: {why}")
        for part in waiting:
            self.warn(f"{part.name} is left out: all workers with {shown(part.kind)} are lost")
        return results

    def _ended(self, promise, worker, part, results, limit):
        """Takes the result of a part; gives the reason where it has none."""
        if promise is None:
            self._lost(worker)
            return f"its worker on {worker.address} does not answer"
        try:
            result = self.ray.get(promise)
        except self.ray.exceptions.RayTaskError as error:
            return f"on {worker.address}: {_last_line(error)}"
        except self.ray.exceptions.RayError:
            self._lost(worker)
            return f"its worker on {worker.address} is lost"
        if result.status is None:
            return f"it took longer than {limit:g} seconds on {worker.address}"
        if result.status < 0 or result.status > 2 or result.status and OF_MACHINE.search(result.said):
            return f"its process on {worker.address} ended with status {result.status}: {_last_line(result.said)}"
        if result.status:
            raise ClusterError(f"{part.name} failed:\n{result.said.strip()}")
        results[part.name] = result
        return None


def _without_files(part):
    return Part(part.name, part.words, part.kind, None, part.own_files)


def shown(kind):
    """A kind of device, as messages name it."""
    return f"{kind[0]} ({kind[1]})" if kind else "any device"


def _last_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


def first_milliseconds(results):
    """The time in the file of a part that has one configuration; None where it cannot run."""
    records = json.loads(results)["entry"]["records"] if results else []
    return records[0]["milliseconds"] if records else None
