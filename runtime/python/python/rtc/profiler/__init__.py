"""A profiler of scopes: the time of the launches and of PyTorch's work in each, on a GPU by its events.

    with proton.scope("matmul", {"flops": 2 * M * N * K}):
        ..

With `start(hook="triton")` each launch is a scope, too, named and measured by what `launch_metadata` of the kernel gives.
"""

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Mapping

from .. import knobs

_session: "_Session | None" = None


class _Session:
    """What was measured since `start`."""

    def __init__(self, name, with_launches):
        self.name, self.with_launches, self.open, self.scopes = name, with_launches, [], {}
        self.active = False

    def activate(self, active):
        self.active = active
        if self.with_launches:
            for chain, hook in ((knobs.runtime.launch_enter_hook, self._launched), (knobs.runtime.launch_exit_hook, self._ended)):
                (chain.add if active else chain.remove)(hook)

    def _launched(self, metadata):
        told = dict(metadata.get())
        self.enter(told.pop("name"), {n: v for n, v in told.items() if n.startswith(("flops", "bytes"))})

    def _ended(self, _):
        self.leave()

    def enter(self, name, metrics):
        self.open.append((name, metrics, _mark()))

    def leave(self):
        path = tuple(name for name, *_ in self.open)
        _, metrics, begin = self.open.pop()
        self.scopes.setdefault(path, []).append((begin, _mark(), metrics))


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


def start(name: str = "proton", *, context: str | None = None, data: str | None = None, backend: str | None = None,
          mode: str | None = None, hook: str | None = None) -> int:
    """Begins a session, whose results `finalize` writes to NAME.hatchet."""
    global _session
    if hook not in (None, "triton"):
        raise ValueError(f"rtc's profiler has the hook `triton`, not {hook!r}")
    if _session is not None:
        _session.activate(False)
    _session = _Session(name, hook == "triton")
    _session.activate(True)
    return 0


def activate(session: int | None = None) -> None:
    """Has scopes measured."""
    if _session is not None:
        _session.activate(True)


def deactivate(session: int | None = None, flushing: bool = False) -> None:
    """Has scopes not measured."""
    if _session is not None:
        _session.activate(False)


@contextlib.contextmanager
def scope(name: str, metrics: Mapping[str, float] | None = None) -> Iterator[None]:
    """Measures what is done in it, with numbers such as `flops` and `bytes` beside it."""
    session = _session
    if session is None or not session.active:
        yield
        return
    session.enter(name, dict(metrics or {}))
    try:
        yield
    finally:
        session.leave()


def finalize(session: int | None = None, output_format: str = "hatchet") -> None:
    """Ends the session and writes its results."""
    global _session
    done, _session = _session, None
    if done is None:
        return
    done.activate(False)
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
