"""A program with types all over: `mypy --strict` must find nothing in it but what `wrong.py` beside it expects."""

from typing import Any

import rtc
import rtc.language as tl
import rtc.testing


@rtc.jit
def add(x: Any, y: Any, out: Any, n: int, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@rtc.autotune(configs=[rtc.Config({"BLOCK": 128}, num_warps=2), rtc.Config({"BLOCK": 256}, num_warps=4, num_stages=2)], key=["n"])
@rtc.heuristics({"EVEN": lambda values: bool(values["n"] % values["BLOCK"] == 0)})
@rtc.jit(do_not_specialize=["n"])
def scale(x: Any, factor: float, n: int, BLOCK: tl.constexpr, EVEN: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@rtc.constexpr_function
def doubled(n: int) -> int:
    return 2 * n


def launch(x: Any, y: Any, out: Any, n: int) -> int:
    programs: int = rtc.cdiv(n, 128)
    add[(programs,)](x, y, out, n, BLOCK=128)
    scale[lambda meta: (rtc.cdiv(n, meta["BLOCK"]),)](out, 2.0, n)
    return programs


def measured(x: Any, y: Any, out: Any) -> float:
    milliseconds: float = rtc.testing.do_bench(lambda: launch(x, y, out, 1000), warmup=1, rep=10)
    every: list[float] = rtc.testing.do_bench(lambda: launch(x, y, out, 1000), return_mode="all")
    rtc.testing.assert_close(out, x + y, atol=1e-6)
    return min(milliseconds, *every)


@rtc.testing.perf_report(rtc.testing.Benchmark(x_names=["n"], x_vals=[1 << k for k in range(4)], line_arg="by", line_vals=["rtc"],
                                               line_names=["rtc"], plot_name="add", args={}))
def table(n: int, by: str) -> float:
    return float(n)


def main(x: Any) -> str:
    rtc.set_device("emulator")
    descriptor = rtc.TensorDescriptor.from_tensor(x, [16, 16])
    rows: int = descriptor.block_shape[0]
    try:
        table.run(print_data=True)
    except rtc.KernelFault as fault:
        return str(fault)
    return f"{rtc.__version__} {rows}"
