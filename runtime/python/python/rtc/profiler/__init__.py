"""A profiler of scopes: the time of the launches and of PyTorch's work in each, on a GPU by its events.

    with proton.scope("matmul", {"flops": 2 * M * N * K}):
        ..
"""

import contextlib
import json
import sys
import time

_session = None


class _Session:
    """What was measured since `start`."""

    def __init__(self, name):
        self.name, self.active, self.open, self.scopes = name, True, [], {}


def _mark():
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
    return time.perf_counter()


def _milliseconds(begin, end):
    if hasattr(begin, "elapsed_time"):
        end.synchronize()
        return begin.elapsed_time(end)
    return (end - begin) * 1e3


def start(name="proton", *, context=None, data=None, backend=None, mode=None, hook=None):
    """Begins a session, whose results `finalize` writes to NAME.hatchet."""
    global _session
    _session = _Session(name)
    return 0


def activate(session=None):
    """Has scopes measured."""
    if _session is not None:
        _session.active = True


def deactivate(session=None, flushing=False):
    """Has scopes not measured."""
    if _session is not None:
        _session.active = False


@contextlib.contextmanager
def scope(name, metrics=None):
    """Measures what is done in it, with numbers such as `flops` and `bytes` beside it."""
    session = _session
    if session is None or not session.active:
        yield
        return
    session.open.append(name)
    begin = _mark()
    try:
        yield
    finally:
        path = tuple(session.open)
        session.open.pop()
        session.scopes.setdefault(path, []).append((begin, _mark(), dict(metrics or {})))


def finalize(session=None, output_format="hatchet"):
    """Ends the session and writes its results."""
    global _session
    done, _session = _session, None
    if done is None:
        return
    rows = []
    for path, runs in done.scopes.items():
        sums = {"time/ms": sum(_milliseconds(begin, end) for begin, end, _ in runs), "count": len(runs)}
        for *_, metrics in runs:
            for name, value in metrics.items():
                sums[name] = sums.get(name, 0) + value
        rows.append({"scope": list(path), "metrics": sums})
    with open(f"{done.name}.hatchet", "w") as file:
        json.dump(rows, file, indent=1)


def __getattr__(name):
    raise AttributeError(f"rtc has no `triton.profiler.{name}`")
