"""The judge: has the cases run by the two processes and compares their answers."""

import secrets
from typing import Any

from . import case as cases
from .case import Case, compared
from .plan import Plan
from .process import Journal, Process
from .._contract import Problem
from .._limit import STEPS

#: Draws of other values at the sizes that are given.
DRAWS = 2


class Judge:
    """A verification of one file. `reference`: a file of its own with `reference_fn` and `get_inputs`, or the same."""

    def __init__(self, path, reference, options):
        self.options, self.cases, self.notes, self.tuned, self.coverage = options, [], [], {}, {}
        self.seed = secrets.randbits(32) if options.seed is None else options.seed
        self.journal, self._open = Journal(), []
        self._candidate = self._process("candidate", path)
        self._reference = self._process("reference", reference)
        with STEPS.at(f"importing {path}", counts=False):
            # First the reference, so that the candidate cannot change its file.
            self._reference.ask("load", reference, has_other=reference != path)
            head, _ = self._reference.answer()
            self._candidate.ask("load", path, journal=self.journal.path)
            self._candidate.answer()
            self.journal.opened()
        self.host_arithmetic = head["host_arithmetic"]

    def _process(self, role, path):
        made = Process(role, path, self.options.device)
        self._open.append(made)
        return made

    def close(self):
        for process in self._open:
            process.close()
        self.journal.close()

    def make(self, kind: str, **what: Any) -> Any:
        """Has the arguments of a case made; None if there is no such case."""
        self._reference.ask("make", "get_inputs", kind=kind, **what)
        head, parts = self._reference.answer()
        return None if "none" in head else (head, parts)

    def run(self, name, made, keep=False, is_given=False):
        """Runs a case. The wrapper may refuse other arguments than those given, the reference need not take them."""
        case = Case(name, [of["shape"] for of in made[0]["arrays"]])
        with STEPS.at(name) as facts:
            self._run(case, made, keep, is_given)
            facts["correct"] = case.correct
        return case

    def _run(self, case, made, keep, is_given):
        head, parts = made
        self._candidate.ask("run", "kernel_fn", parts, keep=keep, **head)
        self._reference.ask("expect", "reference_fn", elsewhere=False)
        failed: Problem | None = None
        candidate: Any = None
        reference: Any = None
        with STEPS.at("kernel_fn", counts=False):
            try:
                candidate = self._candidate.answer()
            except Problem as problem:
                failed = problem
        records = self.journal.records()
        with STEPS.at("reference_fn", counts=False):
            try:
                reference = self._reference.answer()
            except Problem as problem:
                if is_given:
                    raise failed or problem from None
                case.verdict, case.reason = cases.OUTSIDE, reason(problem)
                return
        if failed is not None:
            said = failed.said
            if is_given or not said.get("refuses"):
                raise failed if is_given else Problem(failed.code, f"{case.name}: {failed}", failed.status)
            case.verdict, case.reason = cases.REFUSED, reason(failed)
            return
        self.tuned.update(candidate[0]["tuned"])
        compared(case, made, candidate, reference, records, self.options, self._again, self.host_arithmetic)

    def _again(self):
        self._reference.ask("expect", "reference_fn", elsewhere=True)
        return self._reference.answer()

    def given(self, keep):
        """The case of `get_inputs`."""
        with STEPS.at("get_inputs", counts=False):
            self.made = self.make("given")
        if not self.made[0]["contiguous"]:
            self.notes.append("some inputs are not contiguous")
        case = self.run("get_inputs()", self.made, keep, is_given=True)
        self.cases.append(case)
        self.wanted = self.made
        if case.degenerate is not None:
            raise Problem("no-verdict", f"the reference {case.degenerate}, for the arguments of get_inputs(), so that a right result "
                          "cannot be told from a wrong one; give other inputs")
        return case

    def others(self):
        """The cases with other sizes, values and strides."""
        (given,), head = self.cases, self.made[0]
        blocks = sorted({v for launch in given.launches for v in launch["config"]["constexprs"].values()
                         if isinstance(v, int) and not isinstance(v, bool) and v > 1})
        plan = Plan(head["arrays"], blocks, self.seed, head["gpu"], given.seconds)
        self.coverage = {size: Coverage(size, plan.shapes) for size in plan.sizes}
        for size in plan.edges():
            self._size(size)
        for size in plan.sizes:
            found = self._first(plan.larger(size))
            if found is not None and found.reason is not None and "out of resource" in found.reason:
                # A limit of the device, or of a kernel whose block is a whole row.
                found.verdict = cases.OUTSIDE
                self._first([new for new in plan.substitutes(size) if new.new > size])
        for size, known in self.coverage.items():
            if not known.values(cases.RIGHT, cases.WRONG):
                self._first([new for new in plan.substitutes(size) if new.new not in known.tried])
        for number in range(DRAWS):
            self._other(f"values of seed {self.seed + number}", "values", seed=self.seed + number)
        self.stride = self._other("rows with a stride", "strided", may_refuse=True)

    def _size(self, size):
        seed = (self.seed + size.new) % (1 << 32)
        made = self.make("size", size=size.size, new=size.new, seed=seed, others=size.others)
        case = self.run(size.name, made)
        self.coverage[size.size].tried[size.new] = case
        self.cases.append(case)
        return case

    def _first(self, sizes):
        """Tries sizes until the reference takes one; gives its case."""
        for size in sizes:
            case = self._size(size)
            if case.verdict != cases.OUTSIDE:
                return case
        return None

    def _other(self, name, kind, may_refuse=False, **what):
        made = self.make(kind, **what)
        if made is None:
            return None
        case = self.run(name, made)
        if case.verdict != cases.REFUSED or not may_refuse:
            self.cases.append(case)
        return case

    def fixed(self):
        """Sizes in whose place neither a smaller nor a larger one was right or wrong, but for those that the caller knows of."""
        allowed = set(self.options.fixed or ())
        return [size for size, known in self.coverage.items() if size not in allowed and not known.values(cases.RIGHT, cases.WRONG)
                and not known.values(cases.REFUSED)]

    def record(self, folder):
        """Writes the launches of the first case, with the results of the reference."""
        self.make("given")
        self._reference.ask("expect", "reference_fn", elsewhere=False)
        head, parts = self._reference.answer()
        bounds = [(c.rtol, c.atol) for _, c, _ in self.cases[0].comparisons]
        expected = head["results"] or [of for of in head["after"] if of is not None]
        self._candidate.ask("record", "kernel_fn", parts[:len(expected)], folder=folder, expected=expected, bounds=bounds)
        return self._candidate.answer()[0]


def reason(problem):
    """The reason for which a function does not take arguments."""
    return problem.said.get("reason", str(problem)).split("\n")[0]


class Coverage:
    """The values that were tried in the place of a size."""

    def __init__(self, size, shapes):
        self.size, self.tried = size, {}
        self.places = [[number, axis] for number, shape in enumerate(shapes) for axis, s in enumerate(shape) if s == size]

    def values(self, *verdicts):
        return sorted(new for new, case in self.tried.items() if case.verdict in verdicts)

    def json(self, is_fixed):
        why = lambda verdict: [{"value": new, "reason": self.tried[new].reason} for new in self.values(verdict)]
        return {"size": self.size, "at": self.places, "right": self.values(cases.RIGHT), "wrong": self.values(cases.WRONG),
                "refused": why(cases.REFUSED), "outside": why(cases.OUTSIDE), "fixed": is_fixed}
