"""`rtc verify FILE.py`: compares `kernel_fn` with `reference_fn` on `get_inputs()` and on sizes at the edges of blocks."""

import contextlib
import functools
import json
import math
import os
import sys
import warnings

from . import _advice, _arrays, _as_triton, _rtc, _sanitized
from ._compare import Comparison, dropout, tolerance
from ._contract import Parser, Problem, guarded, load, refuses, results, run_command
from ._golden import verify_golden
from ._limit import LIMIT, STEPS
from ._record import Recorder, tuned_before, write


def seconds(text):
    """A number of seconds of the command line."""
    value = float(text)
    if not 0 <= value <= 1e9:
        raise ValueError
    return value


def parser(name, what):
    """The options that `verify`, `bench` and `precision` share."""
    made = Parser(prog=f"rtc {name}", description=what)
    made.add_argument("file", nargs="?" if name == "verify" else None, help="a file that exports kernel_fn, reference_fn and get_inputs")
    made.add_argument("--rtol", type=float, help="how much floats may differ, relative to the reference")
    made.add_argument("--atol", type=float, help="how much floats may differ, absolutely")
    made.add_argument("--seed", type=int, default=0, help="of the random inputs of other sizes")
    made.add_argument("--device", help="auto, cuda:N, emulator or interpreter")
    made.add_argument("--time-limit", type=seconds, default=LIMIT, metavar="SECONDS",
                      help="how long the command may take, 0: as long as it needs [default: %(default)g]")
    made.add_argument("--json", action="store_true", help="write one JSON object to standard output, also for errors"
                      + ("" if name == "precision" else "; the default" + (" but for --golden" if name == "verify" else "")))
    return made


def choose_device(name):
    """Has kernels run on a device, if one is named."""
    if name:
        try:
            _rtc.set_device(name)
        except ValueError as error:
            raise Problem("usage", str(error), status=2) from None


def prepare(arguments, needs_reference=True):
    """Makes ready what a command needs and reads the file."""
    _as_triton.install()
    choose_device(arguments.device)
    if arguments.rtol is not None and arguments.rtol < 0 or arguments.atol is not None and arguments.atol < 0:
        raise Problem("usage", "a tolerance is not below 0", status=2)
    with STEPS.at(f"importing {arguments.file}", counts=False):
        contract = load(arguments.file, needs_reference)
    _advice.on_file(arguments.file)
    return contract


@contextlib.contextmanager
def poisoned():
    """Fills memory that is allocated without content with NaN or the largest integer. numpy's functions that allocate take the
    types of `_narrow` meanwhile, so that wrappers that say `x.dtype` run with them, too."""
    t = _arrays.torch()
    np = sys.modules.get("numpy")
    saved = {}
    if np is not None:
        from ._narrow import allocated

        def filled(name, make):
            @functools.wraps(make)
            def made(*args, **kwargs):
                array = allocated(name, make, args, kwargs)
                if not name.startswith("empty"):
                    return array
                if array.dtype.kind == "f" or "float" in str(array.dtype):
                    array.fill(np.nan)
                elif array.dtype.kind in "iu":
                    array.fill(np.iinfo(array.dtype).max)
                return array
            return made
        saved = {name: getattr(np, name) for name in ("empty", "empty_like", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like")}
        for name, make in saved.items():
            setattr(np, name, filled(name, make))
    before = None
    if t is not None:
        before = t.are_deterministic_algorithms_enabled(), t.is_deterministic_algorithms_warn_only_enabled()
        fill = t.utils.deterministic.fill_uninitialized_memory
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            t.use_deterministic_algorithms(True, warn_only=True)
        t.utils.deterministic.fill_uninitialized_memory = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, make in saved.items():
            setattr(np, name, make)
        if before is not None:
            t.use_deterministic_algorithms(before[0], warn_only=before[1])
            t.utils.deterministic.fill_uninitialized_memory = fill


class Judgement:
    """What one case gave."""

    def __init__(self, name):
        self.name, self.correct, self.comparisons, self.notes = name, True, [], []
        self.max_abs = self.max_rel = 0.0

    def add(self, comparison, what=""):
        self.comparisons.append((what, comparison))
        self.correct &= comparison.correct
        self.max_abs, self.max_rel = max(self.max_abs, comparison.max_abs), max(self.max_rel, comparison.max_rel)

    def words(self):
        parts = [f"{what}{comparison.describe()}" for what, comparison in self.comparisons]
        return f"{self.name}: " + "; ".join(parts + self.notes)


def copies(inputs):
    """Copies of the arguments."""
    return [_arrays.copy(v) if _arrays.is_array(v) else v for v in inputs]


def run_case(contract, name, inputs, options, keep=False):
    """Runs both functions and compares. Gives the judgement, the launches, and pairs of results."""
    with STEPS.at(name) as facts:
        found = _run_case(contract, name, inputs, options, keep)
        facts["correct"] = found[0].correct
        return found


def _run_case(contract, name, inputs, options, keep):
    judgement = Judgement(name)
    mine, theirs = copies(inputs), copies(inputs)
    with Recorder(keep) as recorder, poisoned():
        made = guarded("kernel_fn", lambda: contract.kernel(*mine))
        _synchronize(mine)
    wanted = guarded("reference_fn", lambda: contract.reference(*theirs))
    actual, expected = results(made, "kernel_fn"), results(wanted, "reference_fn")
    if not actual and not expected:
        # A wrapper that works in place.
        actual, expected = ([v for v in a if _arrays.is_array(v)] for a in (mine, theirs))
    if len(actual) != len(expected):
        raise Problem("contract", f"`kernel_fn` gives {len(actual)} results, `reference_fn` {len(expected)}")
    if not recorder.launches:
        judgement.notes.append("no kernel was launched")
    has_dots = recorder.has_dots()
    bounds = []
    for number, (a, e) in enumerate(zip(actual, expected)):
        what = f"result {number}: " if len(actual) > 1 else ""
        rtol, atol = tolerance(e, has_dots, options.rtol, options.atol)
        bounds.append((rtol, atol))
        known_nan = any(bool((v != v).any()) for v in inputs if _arrays.is_array(v) and _arrays.is_float(v))
        if _arrays.is_float(e) and not known_nan and bool((e != e).any()):
            raise Problem("reference", f"{what}the reference gives NaN for inputs without one ({name}); there is nothing to compare with")
        comparison = Comparison(a, e, rtol, atol)
        if not comparison.correct and comparison.problem is None and is_random(contract, inputs, expected, number):
            if not bool((e == 0).any()):
                raise Problem("reference", f"{what}the reference draws random numbers, but not as dropout does; give both functions "
                              "the same numbers as an argument")
            agree, comparison, words = dropout(a, e, rtol, atol)
            judgement.notes.append(words)
            judgement.add(comparison, what)
            judgement.correct &= agree
            continue
        judgement.add(comparison, what)
    _in_place(judgement, mine, theirs, inputs, actual)
    return judgement, recorder, list(zip(actual, expected)), bounds


def _synchronize(values):
    if any(_arrays.is_tensor(v) and v.is_cuda for v in values):
        _arrays.torch().cuda.synchronize()


def is_random(contract, inputs, expected, number):
    """Whether the reference gives something else when it runs again on copies that lie elsewhere."""
    elsewhere = [_arrays.moved(v) if _arrays.is_array(v) else v for v in inputs]
    again = results(guarded("reference_fn", lambda: contract.reference(*elsewhere)), "reference_fn")
    return bool(again) and differs(expected[number], again[number])


def differs(first, second):
    """Whether a function that ran twice gave something else."""
    return tuple(first.shape) == tuple(second.shape) and bool(((first != second) & (first == first)).any())


def _in_place(judgement, mine, theirs, inputs, actual):
    """What one function did to its arguments and the other did not."""
    for number, (a, e, given) in enumerate(zip(mine, theirs, inputs)):
        if not _arrays.is_array(given) or any(a is r for r in actual):
            continue
        changed = [bool(((x != given) & (x == x)).any()) for x in (a, e)]
        if changed[0] != changed[1]:
            judgement.correct = False
            judgement.notes.append(f"argument {number} was changed by {'kernel_fn' if changed[0] else 'reference_fn'} and not by the other")


def boundary_inputs(inputs, blocks, seed, limit=12):
    """Inputs of other sizes: each size that tensors have, replaced wherever it stands by those around a block. What belongs
    together in the given tensors, such as the halves of a row or the same row of two tensors, stays together."""
    sizes = sorted({s for v in inputs if _arrays.is_array(v) for s in v.shape if s > 3}, reverse=True)
    blocks = [b for b in blocks if 8 <= b <= 1 << 14] or [64]
    cases = []
    # Each size in turn, and first those around the nearest block, so that a limit leaves out none of the sizes.
    for number in range(2):
        for step in (-1, 1, 0):
            for size in sizes:
                fitting = sorted(set(blocks), key=lambda b: (abs(math.log2(b / min(size, 1 << 14))), b))
                new = fitting[min(number, len(fitting) - 1)] + step
                if new != size and (size, new) not in cases:
                    cases.append((size, new))
    for size, new in cases[:limit]:
        first = next(v for v in inputs if _arrays.is_array(v))
        generator = _arrays.generator(first, seed)
        order = _arrays.drawn(size, new, seed)
        made = []
        for value in inputs:
            if _arrays.is_array(value):
                shape = tuple(new if s == size else min(s, 64) if s > 4096 and s != size else s for s in value.shape)
                is_flat = len(shape) < 2 and _arrays.is_float(value)
                made.append(_arrays.like(value, shape, generator) if is_flat else _arrays.resized(value, shape, size, order))
            elif isinstance(value, int) and not isinstance(value, bool) and value == size:
                made.append(new)
            else:
                made.append(value)
        yield f"size {size} -> {new}", made


def verify(contract, options, boundary=True, record=None):
    """All cases of a file: judgements, the first of `get_inputs()`; the recorder of that; notes."""
    inputs = contract.inputs()
    notes = []
    if any(_arrays.is_array(v) and not _arrays.is_contiguous(v) for v in inputs):
        notes.append("some inputs are not contiguous")
    judgement, recorder, pairs, bounds = run_case(contract, "get_inputs()", inputs, options, keep=record is not None)
    judgements = [judgement]
    if record is not None:
        if not judgement.correct:
            raise Problem("record", "the kernel is wrong; nothing is recorded")
        try:
            checked = write(record, recorder.launches, pairs, bounds)
        except ValueError as error:
            raise Problem("record", str(error)) from None
        if not checked:
            raise Problem("record", "no result is memory that a launch was given, so there is nothing to check without Python")
        launches = len(recorder.launches)
        notes.append(f"{launches} launch{'' if launches == 1 else 'es'} with {checked} checked result{'' if checked == 1 else 's'}: {record}")
    refused = 0
    if boundary and judgement.correct:
        cases = list(boundary_inputs(inputs, recorder.blocks(), options.seed))
        taken = {}
        views = [_arrays.strided(v) if _arrays.is_array(v) else None for v in inputs]
        for name, made in cases:
            try:
                guarded("reference_fn", lambda made=made: contract.reference(*copies(made)))
            except Problem:
                refused += 1
                continue
            try:
                with tuned_before() as kept:
                    judgements.append(run_case(contract, name, made, options)[0])
                taken.update(kept)
            except Problem as problem:
                if refuses(problem.__cause__):
                    refused += 1
                    continue
                raise Problem(problem.code, f"{name}: {problem}", problem.status) from problem.__cause__
        notes += [f"`{name}` ran at these sizes with the configuration that was found for get_inputs(): {config}"
                  for name, config in taken.items()]
        if any(v is not None for v in views):
            made = [v if v is not None else given for v, given in zip(views, inputs)]
            with contextlib.suppress(Problem):
                found = run_case(contract, "rows with a stride", made, options)[0]
                if not found.correct:
                    notes.append("inputs whose rows are not adjacent give wrong results: check for that in the wrapper, or pass strides")
        if not all(found.correct for found in judgements):
            notes.append("the results for get_inputs() itself are right; if other sizes are not meant, have the wrapper refuse them "
                         "(`assert`), or leave them out by --no-boundary")
        if refused:
            notes.append(f"{refused} sizes at the edges of blocks were refused by the wrapper, the compiler or the reference")
    return judgements, recorder, notes


def sanitized(arguments):
    """What the sanitizer finds, and notes on it; None and no notes if it is turned off."""
    if arguments.no_sanitize:
        return None, []
    everywhere = arguments.sanitize is not None and not arguments.no_boundary
    with STEPS.at("the sanitizer"):
        found = _sanitized.run(arguments.file, arguments.sanitize or "all", everywhere, arguments.seed, arguments.sanitize_limit)
    if (found["skipped"] or "").find("RTC_SANITIZE: ") >= 0:
        raise Problem("usage", f"--sanitize: {found['skipped'].split('RTC_SANITIZE: ', 1)[1]}", status=2)
    notes = [f"the sanitizer: {finding['case']}: {finding['text']}" for finding in found["findings"]]
    if found["skipped"]:
        notes.append(f"the sanitizer has not checked everything: {found['skipped']}")
    return found, notes


def summary(judgements, notes, checked=None):
    """The JSON of a verification."""
    wrong = [j for j in judgements if not j.correct]
    shown = wrong[:3] or judgements[:1]
    details = "; ".join([j.words() for j in shown] + notes)
    findings = checked["findings"] if checked else []
    if not wrong and len(judgements) > 1:
        details += f"; {len(judgements) - 1} further cases with sizes at the edges of blocks are right"
    number = lambda value: value if math.isfinite(value) else str(value)
    return {"correct": not wrong and not findings, "max_abs_diff": number(max(j.max_abs for j in judgements)),
            "max_rel_diff": number(max(j.max_rel for j in judgements)), "details": details, "sanitizer": checked}


def main(words):
    options = parser("verify", __doc__.split(":", 1)[1].strip())
    options.add_argument("--no-boundary", action="store_true", help="only the inputs that get_inputs gives")
    options.add_argument("--record", metavar="DIR", help="write inputs, launches and expected results, for `rtc verify --golden DIR`")
    options.add_argument("--golden", metavar="DIR", help="replay what --record wrote, with neither FILE nor reference")
    options.add_argument("--sanitize", nargs="?", const="all", metavar="CHECKS",
                         help="run every case under the sanitizer, not the first alone; CHECKS: a list such as race,memory [default: all]")
    options.add_argument("--no-sanitize", action="store_true", help="run no case under the sanitizer")
    options.add_argument("--sanitize-limit", type=float, default=_sanitized.LIMIT, metavar="SECONDS",
                         help="how long the cases under the sanitizer may take [default: %(default)g]")
    is_golden = any(word.partition("=")[0] == "--golden" for word in words)
    return run_command(options, words, lambda arguments: _work(options, arguments), json_by_default=not is_golden)


def _work(options, arguments):
    """Runs the command: exit status and text."""
    if arguments.file is None and arguments.golden is None and arguments.sanitize is not None:
        # `--sanitize FILE.py`
        arguments.file, arguments.sanitize = arguments.sanitize, "all"
    if arguments.sanitize is not None and arguments.no_sanitize:
        options.error("give either --sanitize or --no-sanitize")
    if (arguments.file is None) == (arguments.golden is None):
        options.error("give either a FILE or --golden DIR")
    if arguments.golden is not None:
        choose_device(arguments.device)
        return verify_golden(arguments.golden, arguments.json)
    contract = prepare(arguments)
    if arguments.record:
        os.makedirs(arguments.record, exist_ok=True)
    judgements, _, notes = verify(contract, arguments, not arguments.no_boundary, arguments.record)
    for judgement in judgements:
        mark = "ok   " if judgement.correct else "WRONG"
        print(f"{mark} {judgement.words()}", file=sys.stderr)
        for _, comparison in judgement.comparisons:
            picture = comparison.picture()
            if picture:
                print(picture, file=sys.stderr)
    checked, more = sanitized(arguments)
    notes += more
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    found = summary(judgements, notes, checked)
    return 0 if found["correct"] else 1, json.dumps(found)
