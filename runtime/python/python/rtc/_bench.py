"""`rtc bench FILE.py`: times `kernel_fn` beside `reference_fn`, once the results are right."""

import json
import os
import statistics
import subprocess
import sys
import typing

from . import _advice, _arrays, _plot
from ._contract import Problem, run_command
from ._limit import STEPS
from ._verify import check_tolerances, parser
from .testing import quantile

WARMUP, ITERATIONS = 10, 40


class Clock:
    """Times calls by events of the GPU with a flushed second-level cache; on the CPU it has no times. It is made before a file of the
    user is read, which might change what it is made of."""

    def __init__(self):
        self.torch = self.flush = None
        self._event: typing.Any = None
        self._elapsed: typing.Any = None
        self._keep(_arrays.torch())

    def _keep(self, torch):
        if torch is not None and self._event is None and hasattr(torch, "cuda"):
            self._event, self._elapsed = torch.cuda.Event, torch.cuda.Event.elapsed_time

    def prepare(self, inputs):
        """For calls with these arguments."""
        torch = _arrays.torch() if any(_arrays.is_tensor(v) and v.is_cuda for v in inputs) else None
        if torch is not None and self.torch is None:
            self.torch, self.flush = torch, torch.empty(64 << 20, dtype=torch.int32, device="cuda")
            self._keep(torch)

    def synchronize(self):
        """Waits for the work of the device."""
        if self.torch is not None:
            self.torch.cuda.synchronize()

    def once(self, call):
        """Milliseconds of one call."""
        begin, end = (self._event(enable_timing=True) for _ in range(2))
        self.flush.zero_()
        # So that the events follow each other on the device, whatever the host takes.
        self.torch.cuda._sleep(200_000)
        begin.record()
        call()
        end.record()
        end.synchronize()
        return self._elapsed(begin, end)

    def rate(self):
        """Bytes per second that a copy moves on this device; None on the CPU."""
        if self.torch is None:
            return None
        a, b = (self.torch.empty(1 << 28, dtype=self.torch.int32, device="cuda") for _ in range(2))
        for _ in range(3):
            b.copy_(a)
        best = statistics.median(self.once(lambda: b.copy_(a)) for _ in range(10))
        return 2 * (1 << 30) / (best * 1e-3)

    def peak(self, dtype):
        """Operations per second of a large product of matrices of that dtype."""
        if self.torch is None:
            return None
        a, b = (self.torch.randn(8192, 8192, device="cuda").to(dtype) for _ in range(2))
        try:
            for _ in range(3):
                a @ b
            best = statistics.median(self.once(lambda: a @ b) for _ in range(8))
        except RuntimeError:
            return None
        return 2 * 8192 ** 3 / (best * 1e-3)

    def thread_peak(self):
        """Operations per second of all lanes for fp32, a multiplication and an addition at once, at the greatest clock rate."""
        clock = self._asked("clocks.max.sm")
        if clock is None:
            return None
        device = self.torch.cuda.get_device_properties(self.torch.cuda.current_device())
        lanes = 64 if (device.major, device.minor) == (8, 0) else 128
        return device.multi_processor_count * lanes * 2 * clock[0] * 1e6

    def _asked(self, names):
        """Numbers that nvidia-smi tells, if it does."""
        if self.torch is None:
            return None
        try:
            text = subprocess.run(["nvidia-smi", f"--query-gpu={names}", "--format=csv,noheader,nounits"],
                                  capture_output=True, text=True, timeout=5).stdout
            return [float(v) for v in text.splitlines()[0].split(",")]
        except (OSError, ValueError, IndexError, subprocess.SubprocessError):
            return None

    def state(self):
        """The clock rate and the power of the device, where nvidia-smi tells."""
        found = self._asked("clocks.sm,power.draw,temperature.gpu")
        return found and dict(zip(("sm_mhz", "watts", "celsius"), found))


def spread(times):
    """The median and the values at 20 % and 80 %."""
    middle, low, high = (quantile(times, q) for q in (0.5, 0.2, 0.8))
    return middle, low, high


def moved(inputs, outputs):
    """The bytes of all tensors, each memory once."""
    seen = {}
    for value in [*inputs, *outputs]:
        if _arrays.is_array(value):
            seen[_arrays.address(value)] = _arrays.size(value) * _arrays.item_bytes(value)
    return sum(seen.values())


def against_triton(path, iterations):
    """The time of the same wrapper with Triton's own compiler, in a process of its own, and None; or None, and why."""
    code = ("import importlib.util, json, sys, statistics, torch, triton\n"
            "s = importlib.util.spec_from_file_location('kernel_file', sys.argv[1]); m = importlib.util.module_from_spec(s)\n"
            "s.loader.exec_module(m); x = m.get_inputs(); flush = torch.empty(64 << 20, dtype=torch.int32, device='cuda'); t = []\n"
            "for _ in range(10): m.kernel_fn(*x)\n"
            "for _ in range(int(sys.argv[2])):\n"
            "    a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2)); flush.zero_(); torch.cuda._sleep(200_000)\n"
            "    a.record(); m.kernel_fn(*x); b.record(); b.synchronize(); t.append(a.elapsed_time(b))\n"
            "print(json.dumps(statistics.median(t)))\n")
    environment = {k: v for k, v in os.environ.items() if k != "RTC_AS_TRITON"}
    done = subprocess.run([sys.executable, "-c", code, path, str(iterations)], capture_output=True, text=True, env=environment)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return None, lines[-1]
    return json.loads(done.stdout.strip().splitlines()[-1]), None


def sweep_values(text):
    """`N=2**10..2**24`: the name and the powers of two, or `N=100..1000:100` in steps."""
    try:
        name, span = text.split("=", 1)
        span, _, step = span.partition(":")
        low, high = (_power(part) for part in span.split(".."))
        if not name.isidentifier() or low < 1 or high < low:
            raise ValueError
        if step:
            return name, list(range(low, high + 1, _power(step)))
        values = []
        while low <= high:
            values.append(low)
            low *= 2
        return name, values
    except ValueError:
        raise Problem("usage", f"`{text}` is no sweep; write N=2**10..2**24, or N=100..1000:100", status=2) from None


def _power(text):
    base, _, exponent = text.partition("**")
    return int(base) ** int(exponent) if exponent else int(base)


def main(words):
    options = parser("bench", __doc__.split(":", 1)[1].strip())
    options.add_argument("--reference", metavar="FILE", help="take reference_fn and get_inputs from this file, and kernel_fn from FILE.py")
    options.add_argument("--iterations", type=int, default=None, help=f"timed calls of each [default: {ITERATIONS}, on the CPU 5]")
    options.add_argument("--against", choices=["triton"], help="also time the kernel compiled by Triton, if it is installed")
    options.add_argument("--sweep", metavar="N=LOW..HIGH", help="time several sizes: get_inputs(N=..) is called with each")
    options.add_argument("--plots", metavar="DIR", help="write plots (SVG)")

    def work(arguments):
        if arguments.iterations is not None and arguments.iterations < 1:
            raise Problem("usage", f"--iterations takes 1 and above, not {arguments.iterations}", status=2)
        sweep = sweep_values(arguments.sweep) if arguments.sweep else None
        judge = _judge(arguments)
        try:
            return 0, json.dumps(_timed(judge, arguments, sweep))
        finally:
            judge.close()

    return run_command(options, words, work)


def _judge(arguments):
    """The judge of a file."""
    try:
        from ._judge.bench import Bench
    except ModuleNotFoundError as error:
        raise Problem("import", f"`rtc bench FILE.py` compares with `{error.name}`, which is not installed; install numpy") from error
    check_tolerances(arguments)
    for path in filter(None, (arguments.file, arguments.reference)):
        if not os.path.exists(path):
            raise Problem("io", f"there is no file {path}")
    _advice.on_file(arguments.file)
    return Bench(arguments.file, arguments.reference or arguments.file, arguments)


def _timed(judge, arguments, sweep):
    """Times a file: the fields of the answer."""
    made = judge.make("given")
    judge.judged("get_inputs()", made)
    before = judge.state() if made[0]["gpu"] else None
    times, first, iterations = judge.timed("timing", made, arguments.iterations, WARMUP if made[0]["gpu"] else 1)
    traffic, is_gpu = first["bytes"], first["gpu"]
    (kernel, k_low, k_high), (reference, r_low, r_high) = spread(times["kernel"]), spread(times["reference"])
    found = {"kernel_time_ms": kernel, "reference_time_ms": reference, "speedup": reference / kernel if is_gpu else None,
             "warmup_iters": WARMUP if is_gpu else 1, "benchmark_iters": iterations,
             "kernel_spread_ms": [k_low, k_high], "reference_spread_ms": [r_low, r_high], "bytes": traffic, "device": first["device"]}
    rows = [("kernel", kernel, k_low, k_high), ("reference", reference, r_low, r_high)]
    counted, peak, flops, of_products = judge.work(), None, None, False
    if counted is not None:
        flops, of_products = counted
        found["flops"], found["flops_of"], found["intensity"] = flops, "products" if of_products else "threads", flops / traffic
    rate = None
    if is_gpu:
        state, able = judge.state(), judge.rates(of_products)
        rate, peak = able["rate"], able["peak"] if counted is not None else None
        found["gb_per_s"] = traffic / kernel / 1e6
        found["share_of_copy_rate"] = traffic / (kernel * 1e-3) / rate
        found["state_before"], found["state_after"] = before, state
        if counted is not None:
            found["tflops"] = flops / kernel / 1e9
        if peak:
            name = "tensor" if of_products else "thread"
            found[f"{name}_peak_tflops"], found[f"share_of_{name}_peak"] = peak / 1e12, found["tflops"] * 1e12 / peak
    if arguments.against:
        with STEPS.at("Triton"):
            found["triton_time_ms"], why = against_triton(arguments.file, iterations)
        if why is None:
            rows.append(("Triton", found["triton_time_ms"], None, None))
        else:
            found["triton_error"] = why
            print(f"note: Triton could not run {arguments.file}: {why}", file=sys.stderr)
    print(f"{'':10} {'median ms':>12} {'20 %':>12} {'80 %':>12}", file=sys.stderr)
    for name, mid, low, high in rows:
        print(f"{name:10} {mid:12.5f} " + " ".join(f"{v:12.5f}" if v is not None else " " * 12 for v in (low, high)), file=sys.stderr)
    if rate is not None:
        print(f"{traffic / 1e6:.1f} MB at {found['gb_per_s']:.0f} GB/s, {100 * found['share_of_copy_rate']:.0f} % of a copy's rate "
              f"({rate / 1e9:.0f} GB/s)", file=sys.stderr)
        if peak and flops:
            whose = "a large product's" if of_products else "what all threads can do in fp32"
            print(f"{flops / 1e9:.2f} GFLOP at {found['tflops']:.1f} TFLOP/s, {100 * found['tflops'] * 1e12 / peak:.0f} % of {whose} "
                  f"({peak / 1e12:.0f} TFLOP/s); {found['intensity']:.2f} operations for each byte", file=sys.stderr)
    else:
        print("times of the emulator or interpreter on the CPU; they do not predict times on a GPU", file=sys.stderr)
    if sweep:
        found["sweep"] = _sweep(judge, sweep, arguments)
    if arguments.plots:
        os.makedirs(arguments.plots, exist_ok=True)
        with open(os.path.join(arguments.plots, "times.svg"), "w") as file:
            file.write(_plot.bars("Time of one call", "ms", [r[0] for r in rows], [r[1] for r in rows]))
        if peak and rate and flops:
            points = [(name, flops / traffic, flops / mid / 1e9) for name, mid, *_ in rows]
            with open(os.path.join(arguments.plots, "roofline.svg"), "w") as file:
                file.write(_plot.roofline(points, rate / 1e12, peak / 1e12))
    return found


def _sweep(judge, sweep, arguments):
    """Times over sizes; a plot of them where plots are asked for."""
    from .testing import Benchmark
    name, values = sweep
    rows, table = [], []
    for value in values:
        made = judge.make("sizes", sizes={name: value})
        judge.judged(f"{name}={value}", made)
        times, first, _ = judge.timed(f"timing {name}={value}", made, arguments.iterations, WARMUP if made[0]["gpu"] else 1)
        traffic = first["bytes"]
        kernel, reference = spread(times["kernel"]), spread(times["reference"])
        rows.append(([value], [kernel, reference]))
        table.append({name: value, "kernel_time_ms": kernel[0], "reference_time_ms": reference[0], "bytes": traffic})
    shown = Benchmark([name], values, "of", ["kernel", "reference"], ["kernel", "reference"], "Time over size", {}, xlabel=name,
                      ylabel="ms", x_log=True, y_log=True)
    print(_plot.table(shown, rows), file=sys.stderr)
    if arguments.plots:
        os.makedirs(arguments.plots, exist_ok=True)
        with open(os.path.join(arguments.plots, "sweep.svg"), "w") as file:
            file.write(_plot.lines(shown, rows))
    return table
