"""`rtc verify FILE.py`: compares `kernel_fn` with `reference_fn` on `get_inputs()` and on sizes at the edges of blocks."""

import json
import os

from . import _advice, _arrays, _as_triton, _rtc, _sanitized
from ._compare import Comparison, differs, dropout, tolerance
from ._contract import Parser, Problem, guarded, load, results, run_command
from ._golden import verify_golden
from ._limit import LIMIT, STEPS
from ._poison import poisoned
from ._record import Recorder


def seconds(text):
    """A number of seconds of the command line."""
    value = float(text)
    if not 0 <= value <= 1e9:
        raise ValueError
    return value


def parser(name, what):
    """The options that `verify`, `bench` and `precision` share."""
    made = Parser(prog=f"rtc {name}", description=what)
    made.add_argument("file", nargs="?" if name == "verify" else None, help="a file that defines kernel_fn, reference_fn and get_inputs")
    made.add_argument("--rtol", type=float, help="relative tolerance of floats")
    made.add_argument("--atol", type=float, help="absolute tolerance of floats")
    made.add_argument("--seed", type=int, default=0, help="seed of the random inputs of other sizes")
    made.add_argument("--device", help="auto, cuda:N, emulator or interpreter")
    made.add_argument("--time-limit", type=seconds, default=LIMIT, metavar="SECONDS",
                      help="time limit of the command, 0: none [default: %(default)g]")
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


def check_tolerances(arguments):
    """Refuses tolerances below 0."""
    if arguments.rtol is not None and arguments.rtol < 0 or arguments.atol is not None and arguments.atol < 0:
        raise Problem("usage", "a tolerance is not below 0", status=2)


def prepare(arguments, needs_reference=True):
    """Makes ready what a command needs and reads the file."""
    _as_triton.install()
    choose_device(arguments.device)
    check_tolerances(arguments)
    with STEPS.at(f"importing {arguments.file}", counts=False):
        contract = load(arguments.file, needs_reference)
    _advice.on_file(arguments.file)
    return contract


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


def _in_place(judgement, mine, theirs, inputs, actual):
    """What one function did to its arguments and the other did not."""
    for number, (a, e, given) in enumerate(zip(mine, theirs, inputs)):
        if not _arrays.is_array(given) or any(a is r for r in actual):
            continue
        changed = [bool(((x != given) & (x == x)).any()) for x in (a, e)]
        if changed[0] != changed[1]:
            judgement.correct = False
            judgement.notes.append(f"argument {number} was changed by {'kernel_fn' if changed[0] else 'reference_fn'} and not by the other")


def sanitized(arguments):
    """Starts the sanitizer; None if it is turned off."""
    if arguments.no_sanitize:
        return None
    everywhere = arguments.sanitize is not None and not arguments.no_boundary
    return _sanitized.Sanitizer(arguments.file, arguments.reference or arguments.file, arguments.sanitize or "all", everywhere,
                                arguments.seed or 0, arguments.sanitize_limit)


def findings(sanitizer):
    """What the sanitizer finds, and notes on it; None and no notes if it is turned off."""
    if sanitizer is None:
        return None, []
    with STEPS.at("the sanitizer"):
        found = sanitizer.finish()
    if (found["skipped"] or "").find("RTC_SANITIZE: ") >= 0:
        raise Problem("usage", f"--sanitize: {found['skipped'].split('RTC_SANITIZE: ', 1)[1]}", status=2)
    notes = [f"the sanitizer: {finding['case']}: {finding['text']}" for finding in found["findings"]]
    if found["skipped"]:
        notes.append(f"the sanitizer has not checked everything: {found['skipped']}")
    return found, notes


def verify(arguments):
    """Runs the command on a file: exit status and text."""
    try:
        from ._judge import report
        from ._judge.judge import Judge
    except ModuleNotFoundError as error:
        raise Problem("import", f"`rtc verify FILE.py` compares with `{error.name}`, which is not installed; install numpy") from error
    sanitizer = sanitized(arguments)
    judge = None
    try:
        judge = Judge(arguments.file, arguments.reference or arguments.file, arguments)
        given = judge.given(arguments.record is not None)
        if given.correct and not arguments.no_boundary:
            judge.others()
        if arguments.record is not None:
            judge.notes.append(recorded(judge, given, arguments.record))
        checked, more = findings(sanitizer)
        found = report.summary(judge, checked, more)
    except Problem as problem:
        if judge is not None and problem.found is None and judge.cases:
            problem.found = {"correct": False if problem.code != "no-verdict" else None, "seed": judge.seed,
                             "cases": [case.json() for case in judge.cases]}
        raise
    finally:
        for started in (judge, sanitizer):
            if started is not None:
                started.close()
    return 0 if found["correct"] else 1, json.dumps(found)


def recorded(judge, given, folder):
    """Writes the launches of the first case; a note of it."""
    if not given.correct:
        raise Problem("record", "the kernel is wrong; nothing is recorded")
    done = judge.record(folder)
    launches, checked = done["launches"], done["checked"]
    if not checked:
        raise Problem("record", "no result is memory that a launch was given, so there is nothing to check without Python")
    return f"{launches} launch{'' if launches == 1 else 'es'} with {checked} checked result{'' if checked == 1 else 's'}: {folder}"


def main(words):
    options = parser("verify", __doc__.split(":", 1)[1].strip())
    options.set_defaults(seed=None)
    options.add_argument("--reference", metavar="FILE", help="use reference_fn and get_inputs of this file, and kernel_fn of FILE.py")
    options.add_argument("--no-boundary", action="store_true", help="only the inputs of get_inputs")
    options.add_argument("--fixed", type=int, action="append", metavar="SIZE",
                         help="a size that must not be varied, because the reference accepts no other; repeatable")
    options.add_argument("--record", metavar="DIR", help="write inputs, launches and expected results, for `rtc verify --golden DIR`")
    options.add_argument("--golden", metavar="DIR", help="replay the launches that --record wrote; needs neither FILE nor reference")
    options.add_argument("--sanitize", nargs="?", const="all", metavar="CHECKS",
                         help="run every case under the sanitizer, not only the first; CHECKS: a list such as race,memory [default: all]")
    options.add_argument("--no-sanitize", action="store_true", help="run no case under the sanitizer")
    options.add_argument("--sanitize-limit", type=float, default=_sanitized.LIMIT, metavar="SECONDS",
                         help="time limit of the cases under the sanitizer [default: %(default)g]")
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
    check_tolerances(arguments)
    for path in filter(None, (arguments.file, arguments.reference)):
        if not os.path.exists(path):
            raise Problem("io", f"there is no file {path}")
    _advice.on_file(arguments.file)
    if arguments.record:
        os.makedirs(arguments.record, exist_ok=True)
    return verify(arguments)
