"""The findings of a verification: text for standard error, and the JSON."""

import sys

from . import case as cases
from .case import finite


def summary(judge, checked, more):
    """Prints each case; gives the JSON. `checked`: what the sanitizer found; `more`: notes on that."""
    fixed = judge.fixed()
    wrong = [case for case in judge.cases if case.verdict in (cases.WRONG, cases.REFUSED)]
    for case in judge.cases:
        mark = {cases.RIGHT: "ok   ", cases.WRONG: "WRONG", cases.REFUSED: "REFUSED"}.get(case.verdict, "-    ")
        print(f"{mark} {case.words()}", file=sys.stderr)
        for _, comparison, _ in case.comparisons:
            picture = comparison.picture()
            if picture:
                print(picture, file=sys.stderr)
    notes = [*judge.notes, *_notes(judge, wrong, fixed), *more]
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    right = [case for case in judge.cases[1:] if case.correct]
    details = [case.words() for case in wrong[:3] or judge.cases[:1]] + notes
    if not wrong and right:
        details.append(f"{len(right)} further cases with other sizes, values and strides are right")
    compared = [comparison for case in judge.cases for _, comparison, _ in case.comparisons]
    largest = lambda field: finite(max((getattr(c, field) for c in compared), default=0.0))
    stride = getattr(judge, "stride", None)
    return {
        "correct": not wrong and not fixed and not (checked and checked["findings"]),
        "max_abs_diff": largest("max_abs"),
        "max_rel_diff": largest("max_rel"),
        "details": "; ".join(details),
        "sanitizer": checked,
        "seed": judge.seed,
        "host_arithmetic": judge.host_arithmetic,
        "non_contiguous": stride and {"verdict": stride.verdict, "reason": stride.reason},
        "coverage": [known.json(size in fixed) for size, known in judge.coverage.items()],
        "launches": judge.cases[0].launches,
        "cases": [case.json() for case in judge.cases],
    }


def _notes(judge, wrong, fixed):
    notes = [f"`{name}` ran at these sizes with the configuration that was found for get_inputs(): {config}"
             for name, config in judge.tuned.items()]
    if judge.host_arithmetic:
        notes.append("the file declares `host_arithmetic`: results need not come from a launch")
    notes += [f"the reference accepts only size {size} in its place, so the kernel was not tested with another; if no other size is "
              f"meant to work, pass --fixed {size}" for size in fixed]
    if judge.cases[0].correct and wrong:
        notes.append("the results for get_inputs() are right; if other sizes are not meant to work, refuse them in `reference_fn` (`assert`), "
                     "or use --no-boundary")
    outside = sum(case.verdict == cases.OUTSIDE for case in judge.cases)
    if outside:
        notes.append(f"{outside} sizes were refused by the reference, or are too large for the device")
    stride = getattr(judge, "stride", None)
    if stride is not None and stride.verdict == cases.WRONG:
        notes.append("inputs whose rows are not adjacent give wrong results: pass the strides to the kernel, or refuse such inputs in the wrapper")
    return notes
