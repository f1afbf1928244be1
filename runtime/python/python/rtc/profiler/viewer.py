"""Shows what the profiler wrote."""

import json

_TIMES = {"time/s": 1e-3, "time/ms": 1.0, "time/us": 1e3, "time/ns": 1e6}
_RATES = {"tflop/s": 1e12, "gflop/s": 1e9, "tbyte/s": 1e12, "gbyte/s": 1e9}


def _value(metrics, name):
    if name in _TIMES:
        return metrics["time/ms"] * _TIMES[name]
    if name in _RATES:
        kind = "flops" if "flop" in name else "bytes"
        amounts = [value for key, value in metrics.items() if key.startswith(kind)]
        return sum(amounts) / (metrics["time/ms"] * 1e-3) / _RATES[name] if amounts and metrics["time/ms"] else None
    if name.startswith("avg_time/"):
        return _value(metrics, name[4:]) / metrics["count"]
    return metrics.get(name)


def parse(metrics, filename, *args, **kwargs):
    """The scopes of a file with the metrics that are asked for, and the metrics."""
    with open(filename) as file:
        rows = json.load(file)
    return [(row["scope"], [_value(row["metrics"], name) for name in metrics]) for row in rows], list(metrics)


def print_tree(tree, metrics, *args, **kwargs):
    """Prints the scopes with the first metric."""
    print(f"{metrics[0]}:")
    for path, values in sorted(tree):
        shown = "" if values[0] is None else f"{values[0]:.3f}"
        print(f"{'  ' * len(path)}{shown} {path[-1]}")
