"""Runs `kernel_fn` under the sanitizer on the emulator, in a process of its own: what is checked is chosen once per process."""

import json
import os
import subprocess
import sys
import tempfile
import threading

from . import _arrays

#: Seconds that the sanitized cases may take.
LIMIT = 60.0


class Sanitizer:
    """Runs a file's kernel under the sanitizer, beside other work; with `everywhere`, also for sizes at the edges of blocks."""

    def __init__(self, path, reference, checks, everywhere, seed, limit):
        self._checks, self._limit, self._is_late = checks, limit, False
        self._folder = tempfile.TemporaryDirectory()
        self._result, self._told = (os.path.join(self._folder.name, name) for name in ("result.jsonl", "told"))
        environment = {**os.environ, "RTC_SANITIZE": checks, "RTC_DEVICE": "emulator"}
        words = [sys.executable, "-m", "rtc._sanitized", path, reference, self._result, "all" if everywhere else "one", str(seed)]
        with open(self._told, "w") as told:
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=told, stderr=told, env=environment)
        self._watch = threading.Timer(limit, self._late)
        self._watch.daemon = True
        self._watch.start()

    def _late(self):
        if self._process.poll() is None:
            self._is_late = True
            self._process.kill()

    def finish(self):
        """What JSON has of it: `findings`, and `skipped`, which says why something was not checked."""
        found = {"checks": self._checks, "cases": 0, "findings": [], "skipped": None}
        status, ended = self._process.wait(), None
        if self._is_late:
            ended = f"it took longer than {self._limit:g} seconds; give it more by --sanitize-limit, or smaller inputs"
        else:
            with open(self._told) as file:
                ended = f"the process ended with the status {status}{_last_line(file.read())}" if status else None
        if os.path.exists(self._result):
            with open(self._result) as file:
                for line in file.read().splitlines():
                    _add(found, json.loads(line))
        found["skipped"] = found["skipped"] or ended
        return found

    def close(self):
        """Ends the process, if it has not ended."""
        self._watch.cancel()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


def _last_line(text):
    lines = text.strip().splitlines()
    return f": {lines[-1]}" if lines else ""


def _add(found, case):
    """Adds what the other process says of a case."""
    if case["skipped"] is not None:
        found["skipped"] = found["skipped"] or case["skipped"]
        return
    found["cases"] += 1
    if case["finding"] is not None:
        found["findings"].append({"case": case["name"], "text": case["finding"]})


def _case(contract, name, inputs):
    """One case: what was found, the launches, and whether its exception says that the wrapper refuses the inputs."""
    from ._contract import Problem, guarded, refuses
    from ._record import Recorder, tuned_before
    from .runtime.errors import KernelFault
    told, is_refused = {"name": name, "finding": None, "skipped": None}, False
    with Recorder() as recorder, tuned_before(searches=False):
        try:
            guarded("kernel_fn", lambda: contract.kernel(*[_on_cpu(v) for v in inputs]))
            if not recorder.launches:
                told["skipped"] = "no kernel was launched"
        except Problem as problem:
            is_fault = isinstance(problem.__cause__, KernelFault)
            told["finding" if is_fault else "skipped"] = str(problem)
            is_refused = not is_fault and refuses(problem.__cause__)
    return told, recorder, is_refused


def _on_cpu(value):
    """A copy of an argument in memory of the CPU."""
    if not _arrays.is_array(value):
        return value
    return value.detach().cpu().clone() if _arrays.is_tensor(value) else _arrays.copy(value)


def main(path, reference, result, which, seed):
    """Runs the cases; a line of JSON for each is added to a file once it is known. `reference`: the file with `get_inputs`."""
    from . import _as_triton
    from ._contract import Contract, Problem, load_module
    from ._cases import boundary_inputs
    _as_triton.install()
    with open(result, "a", buffering=1) as file:
        try:
            made = contract = Contract(load_module(path), path, ("kernel_fn",) if reference != path else ("kernel_fn", "get_inputs"))
            if reference != path:
                made = Contract(load_module(reference), reference, ("get_inputs",))
            inputs = made.inputs()
        except Problem as problem:
            print(json.dumps({"name": "get_inputs()", "finding": None, "skipped": str(problem)}), file=file)
            return
        told, recorder, _ = _case(contract, "get_inputs()", inputs)
        print(json.dumps(told), file=file)
        if which == "all" and told["finding"] is None and told["skipped"] is None:
            for name, made in boundary_inputs(inputs, recorder.blocks(), int(seed)):
                told, _, is_refused = _case(contract, name, made)
                if not is_refused:
                    print(json.dumps(told), file=file)


if __name__ == "__main__":
    main(*sys.argv[1:])
