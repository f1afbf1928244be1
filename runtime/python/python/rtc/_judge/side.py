"""A process that the judge asks: it runs functions of the user's file, and nothing is compared in it."""

import contextlib
import os
import signal
import sys
import time
from typing import Any

from . import graphs, timed, wire
from .. import _arrays, _as_triton, _cases, _flops, _rtc
from .._bench import Clock
from .._contract import Contract, Problem, guarded, load_module, refuses, results
from .._poison import poisoned
from .._record import Recorder, tuned_before, write
from ..runtime.autotuner import Autotuner


def copies(inputs):
    """Copies of the arguments."""
    return [_arrays.copy(v) if _arrays.is_array(v) else v for v in inputs]


def described(values):
    """Arrays for a message: what each is (None for what is none), and their elements."""
    made = [wire.describe(v) if _arrays.is_array(v) else None for v in values]
    return [m and m[0] for m in made], [m[1] for m in made if m]


class Side:
    """The part that both processes share: they read a file."""
    needed: tuple[str, ...] = ()

    def __init__(self, path):
        # Before the user's file can change a clock.
        self.path, self.clock = path, Clock()

    def load(self, head, parts):
        self.contract = Contract(load_module(self.path), self.path, self.needed)
        return {}, []


class Reference(Side):
    """Makes arguments and runs `reference_fn`."""
    needed: tuple[str, ...] = ("reference_fn", "get_inputs")
    alone = ("kernel_fn", "reference_fn", "get_inputs")
    given = None

    def load(self, head, parts):
        self.needed = self.needed if head["has_other"] else self.alone
        super().load(head, parts)
        return {"host_arithmetic": bool(getattr(self.contract.module, "host_arithmetic", False))}, []

    def make(self, head, parts):
        """The arguments of a case."""
        if head["kind"] == "given":
            self.given = self.given if self.given is not None else self.contract.inputs()
            self.inputs = self.given
        elif head["kind"] == "sizes":
            self.given = self.inputs = self.contract.inputs(**head["sizes"])
        else:
            self.inputs = _cases.made(self.given, head, self.contract.inputs)
        if self.inputs is None:
            return {"none": True}, []
        found, data = wire.pack(self.inputs)
        contiguous = all(_arrays.is_contiguous(v) for v in self.inputs if _arrays.is_array(v))
        gpu = any(_arrays.place(v) == "cuda" for v in self.inputs if _arrays.is_array(v))
        return {**found, "contiguous": contiguous, "gpu": gpu}, data

    def begin(self, head, parts):
        """Makes ready to time the reference."""
        self.timed = timed.Timed("reference_fn", self.contract.reference, copies(self.inputs), self.clock)
        self.timed.warm_up(head["times"])
        return {}, []

    def time(self, head, parts):
        return {"ms": self.timed.once()}, []

    def products(self, head, parts):
        return {"operations": _flops.of_reference(self.contract, self.inputs)}, []

    def rates(self, head, parts):
        dtype = next((v.dtype for v in self.inputs if _arrays.is_tensor(v)), None)
        return timed.rates(self.clock, dtype, head["of_products"]), []

    def state(self, head, parts):
        self.clock.prepare(self.inputs)
        return {"state": self.clock.state()}, []

    def expect(self, head, parts):
        """The results of the reference; with `elsewhere`, for arguments that lie elsewhere."""
        theirs = [_arrays.moved(v) if _arrays.is_array(v) else v for v in self.inputs] if head["elsewhere"] else copies(self.inputs)
        with Recorder() as recorder:
            made = guarded("reference_fn", lambda: self.contract.reference(*theirs))
        found, data = described(results(made, "reference_fn"))
        after, more = described(theirs)
        kernels = sorted({launch.kernel.__name__ for launch in recorder.launches})
        return {"results": found, "after": after, "kernels": kernels}, [*data, *more]


class Candidate(Side):
    """Runs `kernel_fn`."""
    needed = ("kernel_fn",)

    def load(self, head, parts):
        _rtc.journal_open(head["journal"])
        self.recorder, self.ran = None, False
        tune = Autotuner._tune

        def quiet(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            # The trials of a search are no launches of the wrapper.
            _rtc.journal_trials(True)
            try:
                return tune(tuner, *args, **kwargs)
            finally:
                _rtc.journal_trials(False)

        tuners: Any = Autotuner
        tuners._tune = quiet
        graphs.refuse_when_loaded()
        return super().load(head, parts)

    def run(self, head, parts):
        """Runs the wrapper on a case."""
        # A stand-in for PyTorch has no module whose import could be seen.
        graphs.refuse()
        mine = wire.unpack(head, parts, self.contract.inputs)
        recorder: Any = Recorder(keep=True) if head["keep"] else contextlib.nullcontext()
        tuned: Any = tuned_before() if self.ran else contextlib.nullcontext({})
        began = time.perf_counter()
        with recorder, tuned as kept, poisoned():
            made = guarded("kernel_fn", lambda: self.contract.kernel(*mine))
            if any(_arrays.is_tensor(v) and v.is_cuda for v in mine):
                _arrays.torch().cuda.synchronize()
        seconds = time.perf_counter() - began
        self.ran = True
        self.made = results(made, "kernel_fn")
        if head["keep"]:
            self.recorder, self.recorded = recorder, self.made or [v for v in mine if _arrays.is_array(v)]
        found, data = described(self.made)
        after, more = described(mine)
        return {"results": found, "after": after, "seconds": seconds, "tuned": kept}, [*data, *more]

    def begin(self, head, parts):
        """Makes ready to time the wrapper."""
        mine = wire.unpack(head, parts, self.contract.inputs)
        self.timed = timed.Timed("kernel_fn", self.contract.kernel, mine, self.clock)
        with timed.quiet():
            return timed.begun(self.timed, head["times"]), []

    def time(self, head, parts):
        with timed.quiet():
            return {"ms": self.timed.once()}, []

    def settle(self, head, parts):
        """A call like the timed ones, which the journal records."""
        self.timed.call()
        self.clock.synchronize()
        return {}, []

    def check(self, head, parts):
        """A call like the timed ones on other values, for the judge."""
        self.timed.refill(wire.unpack(head, parts, self.contract.inputs))
        began = time.perf_counter()
        with poisoned():
            made = self.timed.call()
            self.clock.synchronize()
        seconds = time.perf_counter() - began
        found, data = described(results(made, "kernel_fn"))
        after, more = described(self.timed.inputs)
        return {"results": found, "after": after, "seconds": seconds}, [*data, *more]

    def threads(self, head, parts):
        with timed.quiet():
            return {"operations": _flops.of_kernel(self.contract, self.timed.inputs)}, []

    def record(self, head, parts):
        """Writes the launches of the first case, with the results of the reference."""
        expected = [wire.rebuild(of, data) for of, data in zip(head["expected"], parts)]
        pairs = list(zip(self.recorded, expected))
        try:
            checked = write(head["folder"], self.recorder.launches, pairs, head["bounds"])
        except ValueError as error:
            raise Problem("record", str(error)) from None
        return {"launches": len(self.recorder.launches), "checked": checked}, []


def answer(side, head, parts):
    """The answer to a command, or its problem."""
    from ..runtime.errors import KernelFault
    try:
        return getattr(side, head["do"])(head, parts)
    except Problem as problem:
        cause = problem.__cause__
        found = {"code": problem.code, "message": str(problem), "status": problem.status,
                 "refuses": cause is not None and not isinstance(cause, KernelFault) and refuses(cause),
                 "fault": isinstance(cause, KernelFault), "kind": type(cause).__name__,
                 "reason": f"{type(cause).__name__}: {str(cause).strip()}" if cause is not None else str(problem)}
        return {"problem": found}, []
    except OSError as error:
        found = {"code": "io", "message": f"{error.filename or 'a file'}: {error.strerror or error}", "status": 1, "refuses": False}
        return {"problem": found}, []


def main(role, path, device, commands, answers):
    # The judge ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given, told = os.fdopen(int(commands), "rb"), os.fdopen(int(answers), "wb")
    for file in (given, told):
        os.set_inheritable(file.fileno(), False)
    _as_triton.install()
    if device:
        try:
            _rtc.set_device(device)
        except ValueError as error:
            wire.send(told, {"problem": {"code": "usage", "message": str(error), "status": 2, "refuses": False}})
            return
    side = {"candidate": Candidate, "reference": Reference}[role](path)
    while (message := wire.receive(given)) is not None:
        wire.send(told, *answer(side, *message))


if __name__ == "__main__":
    main(*sys.argv[1:])
