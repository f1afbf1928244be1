"""Shows what the profiler wrote."""

import json
import re
from collections.abc import Sequence
from typing import Any

_TIMES = {"time/s": 1e-3, "time/ms": 1.0, "time/us": 1e3, "time/ns": 1e6}
#: `tflop/s`, or of operations of so many bits `tflop16/s`; `gbyte/s`.
_RATE = re.compile(r"([tg])(flop|byte)(\d*)/s")


def _value(metrics, name):
    if name in _TIMES:
        return metrics["time/ms"] * _TIMES[name]
    rate = _RATE.fullmatch(name)
    if rate:
        scale, kind, bits = rate.groups()
        amounts = [value for key, value in metrics.items() if key.startswith(f"{kind}s{bits}")]
        unit = {"t": 1e12, "g": 1e9}[scale]
        return sum(amounts) / (metrics["time/ms"] * 1e-3) / unit if amounts and metrics["time/ms"] else None
    if name.startswith("avg_time/"):
        return _value(metrics, name[4:]) / metrics["count"]
    return metrics.get(name)


def parse(metrics: Sequence[str], filename: str, *args: Any, **kwargs: Any) -> tuple[list[Any], list[str]]:
    """The scopes of a file with the metrics that are asked for, and the metrics."""
    with open(filename) as file:
        rows = json.load(file)
    return [(row["scope"], [_value(row["metrics"], name) for name in metrics]) for row in rows], list(metrics)


def print_tree(tree: list[Any], metrics: Sequence[str], *args: Any, **kwargs: Any) -> None:
    """Prints the scopes with the first metric."""
    print(f"{metrics[0]}:")
    for path, values in sorted(tree):
        shown = "" if values[0] is None else f"{values[0]:.3f}"
        print(f"{'  ' * len(path)}{shown} {path[-1]}")
