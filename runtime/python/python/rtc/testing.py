"""Timing and comparing: `do_bench`, `perf_report`, `assert_close`."""

import functools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _plot
from .language.core import _unwrap


def _gpu():
    """PyTorch, if it is loaded and has a GPU."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_available() else None


def has_gpu() -> bool:
    """Whether timing is by a GPU's events."""
    return _gpu() is not None


def quantile(values: Iterable[float], q: float) -> float:
    """The value at a share of the sorted values, between two by their distance."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def _summary(times, quantiles, return_mode):
    if quantiles is not None:
        found = [quantile(times, q) for q in quantiles]
        return found[0] if len(found) == 1 else found
    summaries: dict[str, Callable] = {
        "all": lambda t: t, "min": min, "max": max, "mean": statistics.fmean, "median": statistics.median,
    }
    return summaries[return_mode](times)


@overload
def do_bench(fn: Callable[[], object], warmup: float = 25, rep: float = 100, grad_to_none: Iterable[Any] | None = None,
             quantiles: None = None, return_mode: Literal["min", "max", "mean", "median"] = "mean") -> float: ...
@overload
def do_bench(fn: Callable[[], object], warmup: float = 25, rep: float = 100, grad_to_none: Iterable[Any] | None = None, *,
             quantiles: Sequence[float], return_mode: str = "mean") -> Any: ...
@overload
def do_bench(fn: Callable[[], object], warmup: float = 25, rep: float = 100, grad_to_none: Iterable[Any] | None = None,
             quantiles: None = None, *, return_mode: Literal["all"]) -> list[float]: ...
def do_bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
    """The time of a call in milliseconds: the mean of as many calls as fit `rep` milliseconds, after `warmup`
    milliseconds, each with a second-level cache that holds none of its data. On the CPU the clock of the process counts."""
    if return_mode not in ("min", "max", "mean", "median", "all"):
        raise AssertionError(f"return_mode {return_mode!r}")
    torch = _gpu()
    if torch is None:
        return _summary(_on_cpu(fn, warmup, rep), quantiles, return_mode)
    fn()
    torch.cuda.synchronize()
    flush = torch.empty(64 << 20, dtype=torch.int, device="cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(5):
        flush.zero_()
        fn()
    end.record()
    torch.cuda.synchronize()
    estimate = max(begin.elapsed_time(end) / 5, 1e-6)
    repeats = max(1, int(rep / estimate))
    for _ in range(max(1, int(warmup / estimate))):
        fn()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
    for begin, end in events:
        for tensor in grad_to_none or []:
            tensor.grad = None
        flush.zero_()
        begin.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return _summary([begin.elapsed_time(end) for begin, end in events], quantiles, return_mode)


def _on_cpu(fn, warmup, rep):
    def timed():
        began = time.perf_counter()
        fn()
        return (time.perf_counter() - began) * 1e3

    # A call that the system interrupts says nothing of the others.
    estimate = max(min(timed() for _ in range(5)), 1e-6)
    for _ in range(int(warmup / estimate)):
        timed()
    return [timed() for _ in range(max(1, int(rep / estimate)))]


def do_bench_cudagraph(fn: Callable[[], object], rep: float = 20, grad_to_none: Iterable[Any] | None = None,
                       quantiles: Sequence[float] | None = None, return_mode: str = "mean") -> Any:
    """The time of a call in milliseconds, launched by a CUDA graph, without the time that the host takes."""
    torch = _gpu()
    if torch is None:
        raise RuntimeError("do_bench_cudagraph needs a GPU and PyTorch")
    with torch.cuda.stream(torch.cuda.Stream()):
        fn()
        for tensor in grad_to_none or []:
            tensor.detach_().requires_grad_(True)
            tensor.grad = None
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(5):
            fn()
        end.record()
        torch.cuda.synchronize()
        estimate = begin.elapsed_time(end) / 5
        repeats = max(1, int(rep / estimate)) if estimate else 1000
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(repeats):
                for tensor in grad_to_none or []:
                    tensor.grad = None
                fn()
        torch.cuda.synchronize()
        times = []
        for _ in range(10):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / repeats)
    return _summary(times, quantiles, return_mode)


def assert_close(x: Any, y: Any, atol: float | Callable[[Any], float] | None = None,
                 rtol: float | Callable[[Any], float] | None = None, err_msg: str = "") -> None:
    """Raises an AssertionError unless two arrays are as close as `atol` (0.01) and `rtol` (0) say; either may depend on the
    dtype as a function of it."""
    import numpy as np

    def plain(value):
        if hasattr(value, "detach"):
            value = value.detach()
            if str(value.dtype) == "torch.bfloat16":
                value = value.float()
            return value.cpu().numpy()
        return np.asarray(value)

    dtype = getattr(x, "dtype", None)
    x, y = plain(x), plain(y)
    atol = atol(dtype) if callable(atol) else 1e-2 if atol is None else atol
    rtol = rtol(dtype) if callable(rtol) else 0.0 if rtol is None else rtol
    if x.size > 1 or y.size > 1:
        np.testing.assert_allclose(x, y, atol=atol, rtol=rtol, equal_nan=True, err_msg=err_msg)
    elif not np.allclose(x, y, atol=atol, rtol=rtol):
        raise AssertionError(f"{err_msg} {x} is not close to {y} (atol={atol}, rtol={rtol})")


class Benchmark:
    """What `perf_report` measures: the values of the x axis, the lines, and how to name them."""

    def __init__(self, x_names: Sequence[str], x_vals: Sequence[Any], line_arg: str, line_vals: Sequence[Any],
                 line_names: Sequence[str], plot_name: str, args: Mapping[str, Any], xlabel: str = "", ylabel: str = "",
                 x_log: bool = False, y_log: bool = False, styles: Sequence[tuple[str, str]] | None = None) -> None:
        self.x_names, self.x_vals, self.x_log = x_names, x_vals, x_log
        self.line_arg, self.line_vals, self.line_names = line_arg, line_vals, line_names
        self.y_log, self.styles, self.xlabel, self.ylabel = y_log, styles, xlabel, ylabel
        self.plot_name, self.args = plot_name, args


class Mark:
    """A function to measure."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]) -> None:
        self.fn, self.benchmarks = fn, benchmarks

    def _measure(self, bench, **kwargs):
        rows = []
        for x in bench.x_vals:
            values = list(x) if isinstance(x, (list, tuple)) else [x] * len(bench.x_names)
            if len(values) != len(bench.x_names):
                raise ValueError(f"Expected {len(bench.x_names)} values, got {x}")
            row = []
            for line in bench.line_vals:
                measured = self.fn(**dict(zip(bench.x_names, values)), **{bench.line_arg: line}, **bench.args, **kwargs)
                row.append(tuple(measured) if isinstance(measured, (list, tuple)) else (measured, None, None))
            rows.append((values, row))
        return rows

    def run(self, show_plots: bool = False, print_data: bool = False, save_path: str = "", return_df: bool = False,
            **kwargs: Any) -> Any:
        """Measures; prints a table and writes plots (SVG), tables (CSV) and a page, as it is asked to."""
        several = not isinstance(self.benchmarks, Benchmark)
        results = []
        page = []
        for bench in self.benchmarks if several else [self.benchmarks]:
            rows = self._measure(bench, **kwargs)
            if save_path:
                os.makedirs(save_path, exist_ok=True)
                picture = _plot.lines(bench, rows)
                with open(os.path.join(save_path, f"{bench.plot_name}.svg"), "w") as file:
                    file.write(picture)
                with open(os.path.join(save_path, f"{bench.plot_name}.csv"), "w") as file:
                    file.write(_plot.csv(bench, rows))
                page.append(picture)
            if print_data:
                print(f"{bench.plot_name}:\n{_plot.table(bench, rows)}")
            results.append(_frame(bench, rows) if return_df else rows)
        if save_path:
            with open(os.path.join(save_path, "results.html"), "w") as file:
                file.write("<html><body>\n" + "\n".join(page) + "\n</body></html>\n")
        if return_df:
            return results if several else results[0]
        return None


def _frame(bench, rows):
    import pandas
    names = [*bench.x_names, *[f"{name} ({bench.ylabel})" if bench.ylabel else name for name in bench.line_names]]
    return pandas.DataFrame([[*x, *[line[0] for line in row]] for x, row in rows], columns=names)


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Makes a function into a report of its times, for each value of an axis and each line."""
    return lambda fn: Mark(fn, benchmarks)


def nvsmi(attributes: Sequence[str]) -> list[int]:
    """Numbers that nvidia-smi tells."""
    text = subprocess.check_output(["nvidia-smi", "-i", "0", "--query-gpu=" + ",".join(attributes), "--format=csv,noheader,nounits"])
    return [int(value) for value in text.decode(sys.stdout.encoding).split(",")]


def get_dram_gbps(device: int | None = None) -> float:
    """The rate of the device's memory in GB/s, by its clock and width."""
    from .runtime.driver import driver
    p = driver.active.utils.get_device_properties(driver.active.get_current_device() if device is None else device)
    return p["mem_clock_rate"] * p["mem_bus_width"] * 2 / 1e6 / 8


def get_max_tensorcore_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """The peak of the tensor cores in TFLOP/s at a clock in kHz."""
    from .runtime.driver import driver
    p = driver.active.utils.get_device_properties(driver.active.get_current_device() if device is None else device)
    capability = driver.active.get_device_capability()[0]
    bits = _unwrap(dtype).primitive_bitwidth if hasattr(dtype, "primitive_bitwidth") else dtype.itemsize * 8
    per_clock = {32: 256, 16: 512, 8: 1024} if capability < 9 else {32: 512, 16: 1024, 8: 2048}
    return p["multiprocessor_count"] * 4 * per_clock[bits] * clock_rate * 1e-9


def get_max_simd_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """The peak of the ordinary arithmetic in TFLOP/s at a clock in kHz."""
    from .runtime.driver import driver
    p = driver.active.utils.get_device_properties(driver.active.get_current_device() if device is None else device)
    bits = _unwrap(dtype).primitive_bitwidth if hasattr(dtype, "primitive_bitwidth") else dtype.itemsize * 8
    return p["multiprocessor_count"] * 4 * {32: 64, 16: 128}[bits] * clock_rate * 1e-9


def cuda_memcheck(**target_kwargs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Leaves a test as it is: rtc's emulator checks accesses."""

    def decorator(test):

        @functools.wraps(test)
        def wrapper(*args, **kwargs):
            return test(*args, **kwargs)

        return wrapper

    return decorator


if not TYPE_CHECKING:

    def __getattr__(name):
        raise AttributeError(f"rtc has no `triton.testing.{name}`")
