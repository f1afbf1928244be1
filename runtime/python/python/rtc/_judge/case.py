"""One case: the results of the two functions, compared."""

import math

import numpy as np

from . import wire
from .written import Memory
from .._compare import Comparison, differs, dropout, tolerance
from .._contract import Problem

RIGHT, WRONG, REFUSED, OUTSIDE, OPEN = "right", "wrong", "refused", "outside", "no verdict"


class Case:
    """The outcome of a case."""

    def __init__(self, name, shapes):
        self.name, self.shapes, self.verdict = name, shapes, RIGHT
        self.comparisons, self.notes, self.reason = [], [], None
        self.seconds, self.launches, self.degenerate = 0.0, [], None

    @property
    def correct(self):
        return self.verdict == RIGHT

    def add(self, comparison, what, problem=None, is_right=None):
        """Adds a result. `problem`: why it is none of a launch."""
        self.comparisons.append((what, comparison, problem))
        if problem or not (comparison.correct if is_right is None else is_right):
            self.verdict = WRONG

    def note_wrong(self, text):
        self.notes.append(text)
        self.verdict = WRONG

    def words(self):
        if self.reason is not None:
            return f"{self.name}: {self.verdict}: {self.reason}"
        parts = [f"{what}{comparison.describe()}" + (f"; {problem}" if problem else "") for what, comparison, problem in self.comparisons]
        return f"{self.name}: " + "; ".join(parts + self.notes)

    def json(self):
        results = []
        for _, c, problem in self.comparisons:
            worst = c.worst and {"index": list(c.index(c.worst[0])), "got": finite(c.worst[1]), "want": finite(c.worst[2])}
            results.append({"shape": list(c.shape), "dtype": c.dtype, "rtol": c.rtol, "atol": c.atol, "max_abs": finite(c.max_abs),
                            "max_rel": finite(c.max_rel), "elements": c.elements, "wrong": c.wrong, "worst": worst,
                            "problem": c.problem or problem})
        return {"name": self.name, "verdict": self.verdict, "shapes": self.shapes, "seconds": round(self.seconds, 3), "results": results,
                "reason": self.reason, "notes": self.notes}


def finite(value):
    """A number for JSON."""
    return value if math.isfinite(value) else str(value)


def bounds(expected, has_dots, options):
    """rtol and atol of a result. Where all of the reference is small, the absolute one is, too, so that zeros are wrong."""
    rtol, atol = tolerance(expected, has_dots, options.rtol, options.atol)
    if options.atol is None and atol:
        values = np.asarray(expected, np.float64)
        values = values[np.isfinite(values)]
        spread = float(np.sqrt(np.mean(values ** 2))) if values.size else 0.0
        if spread:
            atol = min(atol, 10 * atol * spread, spread / 8)
    return rtol, float(f"{atol:.3g}")


def no_evidence(expected, rtol, atol):
    """Why a reference cannot tell a right result from a wrong one; None if it can."""
    values = np.asarray(expected, np.float64).reshape(-1)
    if not values.size:
        return "has no elements"
    if bool(np.isnan(values).all()):
        return "is NaN everywhere"
    known = values[~np.isnan(values)]
    if 2 * known.size < values.size:
        return "is NaN in more than half of its elements"
    limit = atol + rtol * abs(known)
    with np.errstate(all="ignore"):
        if bool((abs(known) <= limit).all()):
            return f"differs from 0 by no more than the tolerance (rtol {rtol:g}, atol {atol:g})"
        middle = known[0] if bool((known == known[0]).all()) else float(np.median(known))
        if known.size > 1 and bool(((known == middle) | (abs(known - middle) <= limit)).all()):
            return f"is {middle:.9g} everywhere, up to the tolerance"
    return None


def compared(case, made, candidate, reference, records, options, again, host_arithmetic):
    """Compares the answers of the two processes. `made`: the arguments of the case; `again` has the reference run once more."""
    mine, theirs, given = Answer(*candidate), Answer(*reference), Answer.of_arguments(*made)
    has_dots = any(head["has_dots"] for head, _ in records)
    memory = Memory(records, given.arrays)
    case.launches, case.seconds = memory.launches, candidate[0]["seconds"]
    kernels = set(reference[0]["kernels"]) & {head["kernel"] for head, _ in records}
    if kernels:
        raise Problem("no-verdict", f"`reference_fn` launches `{kernels.pop()}`, too, so that there is nothing else to compare with")
    pairs = list(zip(mine.arrays, theirs.arrays))
    if len(mine.arrays) != len(theirs.arrays):
        raise Problem("contract", f"`kernel_fn` gives {len(mine.arrays)} results, `reference_fn` {len(theirs.arrays)}")
    in_place = changed_arguments(case, given.top, mine, theirs)
    if not pairs and not in_place:
        raise Problem("no-verdict", f"there are no results ({case.name}): `reference_fn` gives none and changes none of its arguments")
    pairs += in_place
    if not records:
        case.notes.append("no kernel was launched")
    inputs = [wire.to_numpy(*array) for array in given.arrays]
    known_nan = any(v is not None and "float" in str(v.dtype) and np.isnan(np.asarray(v, np.float64)).any() for v in inputs)
    reasons = []
    for number, ((described, data), wanted) in enumerate(pairs):
        what = f"result {number}: " if len(pairs) > 1 else ""
        a, e = wire.to_numpy(described, data), wire.to_numpy(*wanted)
        if a is None or e is None:
            raise Problem("contract", f"{what}results of {described['dtype']} cannot be compared")
        rtol, atol = bounds(e, has_dots, options)
        reason = no_evidence(e, rtol, atol)
        reasons.append(reason)
        if reason is not None:
            case.notes.append(f"{what}the reference {reason}")
        if not known_nan and "float" in str(e.dtype) and bool(np.isnan(np.asarray(e, np.float64)).any()):
            raise Problem("reference", f"{what}the reference gives NaN for inputs without one ({case.name}); there is nothing to compare with")
        comparison = Comparison(a, e, rtol, atol)
        problem = None if host_arithmetic else memory.problem(described, data, len(pairs) == 1)
        if problem is None:
            problem = prepared(memory, inputs, e, rtol, atol)
        if not comparison.correct and comparison.problem is None and number < len(theirs.arrays):
            repeated = Answer(*again())
            second = wire.to_numpy(*repeated.arrays[number]) if number < len(repeated.arrays) else None
            if second is not None and differs(e, second):
                if not bool((np.asarray(e, np.float64) == 0).any()):
                    raise Problem("reference", f"{what}the reference draws random numbers, but not as dropout does; give both functions "
                                  "the same numbers as an argument")
                agree, comparison, words = dropout(a, e, rtol, atol)
                case.notes.append(words)
                case.add(comparison, what, problem, agree)
                continue
        case.add(comparison, what, problem)
    if all(reason is not None for reason in reasons):
        case.degenerate = reasons[0]
        case.verdict = OPEN if case.correct else case.verdict


def prepared(memory, inputs, expected, rtol, atol):
    """Why a result was there before the launch that gives it; None if it was not."""
    wanted = np.asarray(expected, np.float64).reshape(-1)

    def is_result(values):
        if values is None or np.asarray(values).size != wanted.size:
            return False
        with np.errstate(all="ignore"):
            held = np.asarray(values, np.float64).reshape(-1)
            same = (abs(held - wanted) <= atol + rtol * abs(wanted)) | (held == wanted) | np.isnan(wanted) & np.isnan(held)
            return bool(same.all()) or is_scaled(held, wanted)

    if any(is_result(v) for v in inputs):
        return None
    found = memory.holding(is_result)
    return found and (f"argument `{found.name}` of launch {found.launch} already holds the result, or one that differs by a factor and a "
                      "constant, which the host has computed")


def is_scaled(held, wanted):
    """Whether numbers are others times a factor, plus a constant."""
    known = np.isfinite(held) & np.isfinite(wanted)
    if int(known.sum()) < 8:
        return False
    held, wanted = (x[known] - x[known].mean() for x in (held, wanted))
    sizes = float((held ** 2).sum()) * float((wanted ** 2).sum())
    return sizes > 0 and float((held * wanted).sum()) ** 2 > (1 - 1e-6) * sizes


class Answer:
    """The answer of a process: its results, and its arguments after the call."""

    def __init__(self, head, parts):
        parts = list(parts)
        self.arrays = [(described, parts.pop(0)) for described in head["results"]]
        self.top = [None if described is None else (described, parts.pop(0)) for described in head["after"]]

    @classmethod
    def of_arguments(cls, head, parts):
        """Of the arguments of a case, before the call."""
        made, count = cls({"results": [], "after": []}, []), head["arguments"]
        made.arrays = list(zip(head["arrays"], parts[count:]))
        made.top = [None if number is None else made.arrays[number] for number in head["top"]]
        return made


def changed_arguments(case, given, mine, theirs):
    """Pairs of arguments that both functions changed; notes those that one of them changed."""
    results = {described["address"] for described, _ in mine.arrays}
    pairs = []
    for number, (before, a, e) in enumerate(zip(given, mine.top, theirs.top)):
        if before is None or a is None or e is None or a[0]["address"] in results:
            continue
        changed = [after[1] != before[1] for after in (a, e)]
        if changed[0] != changed[1]:
            case.note_wrong(f"argument {number} was changed by {'kernel_fn' if changed[0] else 'reference_fn'} and not by the other")
        elif changed[0]:
            pairs.append((a, e))
    return pairs
