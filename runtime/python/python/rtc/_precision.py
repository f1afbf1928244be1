"""`rtc precision FILE.py`: how precise `kernel_fn` is, over dtypes and sizes at the edges of blocks."""

import json
import math
import os

from . import _arrays, _plot, _rtc, _widen
from ._compare import CHUNK, differs, kept_by_both
from ._contract import Problem, guarded, results, run_command
from ._limit import STEPS
from ._record import Recorder, tuned_before
from ._cases import boundary_inputs
from ._poison import poisoned
from ._verify import copies, parser, prepare

#: Mean relative errors that a dtype may have; the largest may be ten times that.
THRESHOLDS = {"float32": 2.0 ** -13, "float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "float8_e4m3fn": 2.0 ** -3, "float8_e5m2": 2.0 ** -2}
#: Below these, the absolute error counts.
SMALL = {"float32": 1e-7, "float16": 2.0 ** -14, "bfloat16": 1e-7, "float8_e4m3fn": 2.0 ** -6, "float8_e5m2": 2.0 ** -14}
FULL_NAMES = {"float32": "Single Precision", "float16": "Half Precision", "bfloat16": "Brain Float",
              "float8_e4m3fn": "8 bits, 3 of them of the mantissa", "float8_e5m2": "8 bits, 2 of them of the mantissa"}
STANDARDS = [("float16", "relative error rtol=1e-03, atol=1e-03"), ("float32", "relative error rtol=1e-04, atol=1e-04"),
             ("bfloat16", "relative error rtol=1e-02, atol=1e-02"), ("int32/int64/int16/int8", "equal"),
             ("uint32/uint64/uint16/uint8", "equal"), ("bool", "equal")]
#: Results of these must be equal.
EXACT = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
#: What `--dtype all` stands for.
ALL = ("float16", "bfloat16", "float32", *EXACT)
BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52, "float8_e4m3fn": 3, "float8_e5m2": 2}
LINE = "=" * 80
RULE = "-" * 80


class Case:
    """One test: a dtype, shapes, and what was measured."""

    def __init__(self, dtype, shapes):
        self.dtype, self.shapes = dtype, shapes
        self.elements, self.mere, self.mare, self.max_abs, self.small_wrong, self.wrong = 0, 0.0, 0.0, 0.0, 0, 0
        self.ulps, self.points, self.notes = {}, [], []
        self.worst = None       # what stands where the relative error is largest, and what should
        self.problem = None

    @property
    def exact(self):
        return self.dtype not in THRESHOLDS

    @property
    def passed(self):
        if self.problem:
            return False
        if self.exact:
            return self.wrong == 0
        limit = THRESHOLDS[self.dtype]
        return self.mere < limit and self.mare < 10 * limit and self.small_wrong == 0

    def add(self, actual, expected):
        """Measures a result against its reference."""
        if tuple(actual.shape) != tuple(expected.shape):
            self.problem = f"the shape is {tuple(actual.shape)}, that of the reference {tuple(expected.shape)}"
            return
        count = _arrays.size(expected)
        actual, expected = actual.reshape(-1), expected.reshape(-1)
        total, counted = 0.0, 0
        for begin in range(0, count, CHUNK):
            a, e = _arrays.wide(actual[begin:begin + CHUNK]), _arrays.wide(expected[begin:begin + CHUNK])
            relative = self._add(a.to(e.device) if _arrays.is_tensor(a) else a, e, max(1, count // 2000))
            if relative is not None:
                total, counted = total + float(relative.sum()), counted + _arrays.size(relative)
        self.elements += count
        if counted:
            self.mere = max(self.mere, total / counted)

    def _add(self, a, e, every):
        """Measures a part of a result; gives the relative errors, where they count."""
        import numpy as np
        xp = _arrays.torch() if _arrays.is_tensor(a) else np
        same = (a == e) | (xp.isnan(a) & xp.isnan(e))
        with np.errstate(all="ignore"):
            error = abs(a - e)
        error[xp.isnan(error)] = math.inf
        error[same] = 0.0
        self.wrong += int((~same).sum())
        self.max_abs = max(self.max_abs, float(error.max()))
        if self.exact:
            return None
        small = abs(e) < SMALL[self.dtype]
        self.small_wrong += int((error[small] > SMALL[self.dtype]).sum())
        rest = ~small & xp.isfinite(e)
        magnitude = abs(e[rest])
        relative = error[rest] / magnitude
        if not _arrays.size(relative):
            return None
        at = int(relative.argmax())
        if self.worst is None or float(relative[at]) > self.mare:
            self.mare, self.worst = float(relative[at]), (float(a[rest][at]), float(e[rest][at]))
        bins, counts = xp.unique(ulp_bins(relative * 2.0 ** BITS[self.dtype]), return_counts=True)
        for ulp, number in zip(bins.tolist(), counts.tolist()):
            self.ulps[int(ulp)] = self.ulps.get(int(ulp), 0) + number
        self.points += list(zip(magnitude[::every].tolist(), relative[::every].tolist()))
        return relative

    def json(self):
        number = lambda v: v if math.isfinite(v) else str(v)
        return {"dtype": self.dtype, "shapes": [list(s) for s in self.shapes], "elements": self.elements, "mere": number(self.mere),
                "mare": number(self.mare), "max_abs_error": number(self.max_abs),
                "worst": self.worst and [number(v) for v in self.worst], "small_wrong": self.small_wrong, "wrong": self.wrong, "passed": self.passed,
                "problem": self.problem, "notes": self.notes}


def ulp_bins(steps):
    """The largest error of the bin of each: up to 4 units each number has its own, from there on they double, to 65536."""
    import numpy as np
    xp = _arrays.torch() if _arrays.is_tensor(steps) else np
    whole = xp.round(steps).clip(0, 1 << 16)
    return xp.where(whole <= 4, whole, 2.0 ** xp.ceil(xp.log2(whole.clip(1))))


def ulp_label(ulp):
    """What a bin is called."""
    return str(ulp) if ulp <= 4 else f"{ulp // 2 + 1}-{ulp}" if ulp <= 64 else f"to {ulp}" if ulp < 1 << 16 else "more"


def cast(value, name):
    """A float tensor as one of another dtype; anything else as it is. Whole numbers are 32 times the floats, rounded to nearest,
    within what 8 bits hold and without a sign for unsigned ones; truth values say which floats are positive."""
    if not (_arrays.is_array(value) and _arrays.is_float(value)):
        return value
    if name in EXACT:
        wide = _arrays.wide(value).reshape(tuple(value.shape))
        value = wide > 0 if name == "bool" else (wide * 32).round()
        if name.startswith("uint"):
            value = abs(value)
        if name != "bool":
            value = value.clip(-128, 127)
    return _arrays.cast(value, name)


def dtypes_of(inputs, asked):
    """The dtypes that are tested."""
    arrays = [v for v in inputs if _arrays.is_array(v)]
    if asked:
        return asked
    floats = [_arrays.dtype_name(v) for v in arrays if _arrays.is_float(v)]
    if not floats:
        return [_arrays.dtype_name(arrays[0])]
    # A kernel for floats of 8 bits is seldom one for others.
    of_8_bits = [name for name in dict.fromkeys(floats) if name in ("float8_e4m3fn", "float8_e5m2")]
    return of_8_bits or ["float16", "bfloat16", "float32"]


def oracle(contract, inputs, held):
    """The reference's results, in double precision where it can be had. What it was given is added to `held`, so that in
    another run the arguments lie elsewhere: some references draw random numbers by addresses."""
    fresh = _arrays.moved if held else _arrays.copy
    try:
        held.append([fresh(cast(v, "float64")) if _arrays.is_array(v) else v for v in inputs])
        return results(contract.reference(*held[-1]), "reference_fn")
    except Exception:  # whatever the reference cannot do in fp64
        held.append([fresh(v) if _arrays.is_array(v) else v for v in inputs])
        return results(guarded("reference_fn", lambda: contract.reference(*held[-1])), "reference_fn")


def differs_in_zeros(actual, expected):
    """Whether two results of one shape are zero in different places, as after dropout."""
    if tuple(actual.shape) != tuple(expected.shape):
        return False
    return bool(((actual == 0) != (expected == 0)).any()) and bool((actual == 0).any() and (expected == 0).any())


def measure(contract, dtype, inputs):
    """One case, and the noted launches."""
    shapes = ", ".join(str(list(v.shape)) for v in inputs if _arrays.is_array(v))
    with STEPS.at(f"{dtype} {shapes}") as facts:
        found = _measure(contract, dtype, inputs)
        # Without a reference the second oracle judges later.
        facts["passed"] = found[0].passed if contract.reference is not None else None
        return found


def _measure(contract, dtype, inputs):
    given = [cast(v, dtype) for v in inputs]
    case = Case(dtype, [tuple(v.shape) for v in given if _arrays.is_array(v)])
    mine = copies(given)
    with Recorder(keep=sum(_arrays.size(v) for v in given if _arrays.is_array(v)) < 1 << 20) as recorder, poisoned():
        made = results(guarded("kernel_fn", lambda: contract.kernel(*mine)), "kernel_fn")
    if not made:
        made = [v for v in mine if _arrays.is_array(v)]
    wanted, held = None, []
    if contract.reference is not None:
        wanted = oracle(contract, given, held)
        if len(wanted) != len(made):
            raise Problem("contract", f"`kernel_fn` gives {len(made)} results, `reference_fn` {len(wanted)}")
        for number, (a, e) in enumerate(zip(made, wanted)):
            if differs_in_zeros(a, e) and differs(e, oracle(contract, given, held)[number]):
                agree, a, e, words = kept_by_both(a, e)
                case.notes.append(words)
                case.problem = None if agree else "the dropped shares differ by more than the bound"
            case.add(a, e)
    # Random numbers say nothing of the algorithm.
    return case, recorder, made, None if case.notes else wanted


def second_opinion(recorder, made, wanted):
    """What the same kernel in fp64 says: a dictionary, or why there is none."""
    launches = [launch for launch in recorder.launches if launch.before]
    if len(launches) != 1 or len(recorder.launches) != 1:
        return None, "the second oracle takes wrappers with one launch of tensors"
    launch = launches[0]
    try:
        _rtc.set_device("interpreter")
        loss = _widen.analyse(launch)
    except Exception as error:  # what cannot be widened is said, not fatal
        return None, f"the kernel cannot be run in fp64: {str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}"
    finally:
        _rtc.set_device("auto")
    if loss is None:
        return None, "the kernel writes nothing that it does not read"
    algorithm = None
    if wanted is not None:
        import numpy as np
        for result, reference in zip(made, wanted):
            for name, exact in loss.exact.items():
                if _arrays.address(launch.arguments[name]) == _arrays.address(result) and exact.size == _arrays.size(reference):
                    e = _arrays.wide(reference)
                    e = e.cpu().numpy() if _arrays.is_tensor(e) else e
                    nonzero = (e != 0) & np.isfinite(e)
                    if nonzero.any():
                        found = float(np.abs((exact[nonzero] - e[nonzero]) / e[nonzero]).max())
                        algorithm = max(algorithm or 0.0, found)
    worst = loss.worst()
    kernel = launch.kernel
    return {"_arrays": (loss.actual, loss.exact), "mare": loss.total, "algorithm": algorithm, "file": kernel.fn.__code__.co_filename,
            "worst_line": worst and {"line": worst[0], "text": worst[1], "adds": worst[2]},
            "lines": [{"line": n, "text": t, "adds": a} for n, t, a in loss.lines]}, None


def report(contract, cases, opinions, device, left_out):
    """The text."""
    name = getattr(contract.kernel, "__name__", "kernel_fn")
    tested = [d for d in dict.fromkeys(c.dtype for c in cases)]
    out = [LINE, "Triton operator precision report", RULE, "[Configuration]:", f"  Operator: {name} ({contract.path})",
           f"  Device: {device}", f"  Shapes: {'; '.join(dict.fromkeys(' '.join(str(list(s)) for s in c.shapes) for c in cases))}"]
    for dtype in tested:
        if dtype in THRESHOLDS:
            out += [f"  Data type: {dtype} ({FULL_NAMES[dtype]})", f"    MERE threshold: {THRESHOLDS[dtype]:.6e}",
                    f"    MARE threshold: {10 * THRESHOLDS[dtype]:.6e} (10 x MERE threshold)",
                    f"    Small value threshold: {SMALL[dtype]:.6e}"]
        else:
            out += [f"  Data type: {dtype} (equal)"]
    out += [f"  Not tested: {dtype}: {why}" for dtype, why in left_out.items()]
    out += [RULE, "[Precision standards]:", *[f"  {d}: {rule}" for d, rule in STANDARDS], RULE]
    good = sum(c.passed for c in cases)
    out += ["[Results]:", f"  Result: {'PASS' if good == len(cases) else 'FAIL'}", f"  Tests: {len(cases)}, passed: {good}, failed: {len(cases) - good}",
            f"  Samples: {sum(c.elements for c in cases)}", RULE, "[Error metrics]:"]
    for c in cases:
        shape = " ".join(str(list(s)) for s in c.shapes)
        out.append(f"  {c.dtype} {shape}: {'PASS' if c.passed else 'FAIL'}")
        if c.problem:
            out.append(f"    {c.problem}")
        elif c.exact:
            out.append(f"    Elements that differ: {c.wrong} of {c.elements}; maximum absolute error: {c.max_abs:.6e}")
        else:
            limit = THRESHOLDS[c.dtype]
            out += [f"    Mean relative error (MERE): {c.mere:.6e}   required: MERE < {limit:.6e}",
                    f"    Maximum relative error (MARE): {c.mare:.6e}   required: MARE < {10 * limit:.6e}",
                    f"    Maximum absolute error: {c.max_abs:.6e}"]
            if not c.passed and c.worst is not None:
                out.append(f"    Where it is largest: {c.worst[0]:.6e} instead of {c.worst[1]:.6e}")
            if c.small_wrong:
                out.append(f"    Elements below the small value threshold with a larger error than that: {c.small_wrong}")
            out += [f"    {note}" for note in c.notes]
    for dtype, (found, why) in opinions.items():
        out += [RULE, f"[Where {dtype} loses precision]:"]
        if found is None:
            out.append(f"  {why}")
            continue
        part = f", of which the algorithm {found['algorithm']:.1e}" if found["algorithm"] is not None else ""
        out.append(f"  MARE {found['mare']:.1e} against the same kernel in fp64{part}")
        worst = found["worst_line"]
        if worst:
            out.append(f"  line {worst['line']} loses most bits (adds {worst['adds']:.1e}): {worst['text']}")
        out += [f"    line {line['line']}: {line['adds']:.1e}   {line['text']}" for line in found["lines"]]
    mark = lambda truth: "True" if truth else "False"
    floats = [c for c in cases if not c.exact]
    out += [RULE, "[Judgment]:"]
    if floats:
        out += [f"  MERE < threshold: {mark(all(c.mere < THRESHOLDS[c.dtype] for c in floats))}",
                f"  MARE < 10 x threshold: {mark(all(c.mare < 10 * THRESHOLDS[c.dtype] for c in floats))}"]
    out += [f"  {d}: {mark(all(c.passed for c in cases if c.dtype == d))}" for d in tested]
    out += [f"  Overall: {mark(good == len(cases))}", LINE]
    return "\n".join(out)


def plots(folder, cases):
    """Writes a histogram of errors in units in the last place, and errors over magnitudes, for each dtype."""
    os.makedirs(folder, exist_ok=True)
    for dtype in dict.fromkeys(c.dtype for c in cases if not c.exact):
        ulps, points = {}, []
        for c in cases:
            if c.dtype == dtype:
                points += c.points
                for ulp, count in c.ulps.items():
                    ulps[ulp] = ulps.get(ulp, 0) + count
        shown = sorted(ulps)
        if shown:
            with open(os.path.join(folder, f"ulp_{dtype}.svg"), "w") as file:
                file.write(_plot.bars(f"{dtype}: errors in units in the last place", "elements", [ulp_label(u) for u in shown],
                                      [ulps[u] for u in shown], _plot.COLOURS[:1]))
        points = [(x, y) for x, y in points if x > 0 and 0 < y < math.inf]
        if points:
            axes = _plot.Axes(f"{dtype}: relative error over magnitude", "magnitude", "relative error", [x for x, _ in points],
                              [y for _, y in points], x_log=True, y_log=True)
            axes.parts += [f'<circle fill="{_plot.COLOURS[0]}" fill-opacity=".5" r="1.6" cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}"/>'
                           for x, y in points]
            with open(os.path.join(folder, f"error_{dtype}.svg"), "w") as file:
                file.write(axes.finish())


def precision(contract, options):
    """All cases, what the second oracle says by dtype, the device, and why dtypes were not tested."""
    inputs = contract.inputs()
    cases, opinions, device, left_out = [], {}, "none", {}
    for dtype in dtypes_of(inputs, options.dtype):
        try:
            first, recorder, made, wanted = measure(contract, dtype, inputs)
        except Problem as problem:
            if options.all:
                left_out[dtype] = str(problem)
                continue
            # Wrappers that only know arrays of numpy, whose files were made for what numpy has.
            is_own = not options.dtype and dtype == "bfloat16" and any(_arrays.is_narrow(cast(v, dtype)) for v in inputs)
            if not is_own or not isinstance(problem.__cause__, (TypeError, AttributeError)):
                raise
            left_out[dtype] = str(problem)
            continue
        device = recorder.launches[0].compiled._ready.device() if recorder.launches else device
        if contract.reference is not None:
            cases.append(first)
            for _, other in boundary_inputs(inputs, recorder.blocks(), options.seed, limit=3):
                try:
                    with tuned_before():
                        case, *small = measure(contract, dtype, other)
                except Problem:
                    continue
                cases.append(case)
                recorder, made, wanted = small
        if dtype in THRESHOLDS and not options.no_second_oracle:
            with STEPS.at(f"{dtype} in fp64"):
                opinions[dtype] = second_opinion(recorder, made, wanted)
            found = opinions[dtype][0]
            if contract.reference is None:
                if found is None:
                    raise Problem("reference", f"there is no `reference_fn`, and {opinions[dtype][1]}")
                case = Case(dtype, [tuple(v.shape) for v in inputs if _arrays.is_array(v)])
                actual, exact = found["_arrays"]
                for name, values in exact.items():
                    case.add(actual[name], values)
                cases.append(case)
            if found is not None:
                del found["_arrays"]
    if not cases:
        raise Problem("reference", "there is no `reference_fn` and nothing that could be compared without one")
    return cases, opinions, device, left_out


def main(words):
    options = parser("precision", __doc__.split(":", 1)[1].strip())
    options.add_argument("--dtype", action="append", help="test this dtype only; may be repeated; `all`: every dtype of the standards")
    options.add_argument("--no-second-oracle", action="store_true", help="do not run the kernel in fp64")
    options.add_argument("-o", "--output", metavar="FILE", help="also write the report to a file")
    options.add_argument("--plots", metavar="DIR", help="write plots (SVG)")

    def work(arguments):
        contract = prepare(arguments, needs_reference=False)
        arguments.all = "all" in (arguments.dtype or [])
        if arguments.all:
            arguments.dtype = list(ALL)
        for dtype in arguments.dtype or []:
            if dtype not in (*THRESHOLDS, *EXACT):
                raise Problem("usage", f"--dtype takes all, {', '.join((*THRESHOLDS, *EXACT))}", status=2)
        cases, opinions, device, left_out = precision(contract, arguments)
        text = report(contract, cases, opinions, device, left_out)
        if arguments.output:
            with open(arguments.output, "w") as file:
                file.write(text + "\n")
        if arguments.plots:
            plots(arguments.plots, cases)
        passed = all(c.passed for c in cases)
        if arguments.json:
            second = {d: found if found is not None else {"skipped": why} for d, (found, why) in opinions.items()}
            text = json.dumps({"passed": passed, "device": device, "tests": [c.json() for c in cases], "second_oracle": second,
                               "not_tested": left_out})
        return 0 if passed else 1, text

    return run_command(options, words, work, json_by_default=False)
