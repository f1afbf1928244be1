"""The part of the judge that `rtc bench` has: it compares before and after the calls that are timed, and within them.

The candidate and the reference are timed in their processes, in turn. Between timed calls, at rounds that are drawn for each run,
the arguments get other values where they lie and the result of the call is judged: a wrapper that gives an earlier result again,
or that launches nothing when it is timed, is wrong then.
"""

import random
import secrets
import time

from . import case as cases
from .case import Case, compared
from .judge import Judge
from .._contract import Problem
from .._limit import STEPS

#: Rounds whose results are judged.
CHECKS = 2


class Bench(Judge):
    """A judge that times, too."""

    def timed(self, name, made, iterations, warm_up):
        """Times of the kernel and of the reference in milliseconds; what the first call told; the number of rounds."""
        with STEPS.at(name) as facts:
            head, parts = made
            self._candidate.ask("begin", "kernel_fn", parts, times=warm_up, **head)
            first, _ = self._candidate.answer()
            self._reference.ask("begin", "reference_fn", times=warm_up)
            self._reference.answer()
            rounds = iterations or (40 if first["gpu"] else 5)
            # Drawn by a source that the candidate cannot know.
            checks = set(random.Random(secrets.randbits(64)).sample(range(rounds), min(CHECKS, rounds)))
            times = {"kernel": [], "reference": []}
            for number in range(rounds):
                if number in checks:
                    self._check(name, made)
                times["kernel"].append(self._once(self._candidate, "kernel_fn"))
                times["reference"].append(self._once(self._reference, "reference_fn"))
            facts["kernel_time_ms"], facts["reference_time_ms"] = (sorted(of)[len(of) // 2] for of in times.values())
            return times, first, rounds

    def _once(self, process, what):
        """Milliseconds of one call: of events on a GPU, else by the clock of this process."""
        began = time.perf_counter()
        process.ask("time", what)
        head, _ = process.answer()
        took = (time.perf_counter() - began) * 1e3
        return took if head["ms"] is None else head["ms"]

    def _check(self, name, made):
        """Has a call judged that looks like the timed ones."""
        seed = secrets.randbits(32)
        other = self.make("values", seed=seed) or made
        # The journal takes what was in memory before the next launch from before the timed ones: this call ends that.
        self._candidate.ask("settle", "kernel_fn")
        self._candidate.answer()
        self.journal.records()
        head, parts = other
        self._candidate.ask("check", "kernel_fn", parts, **head)
        answer = self._candidate.answer()
        records = self.journal.records()
        self._reference.ask("expect", "reference_fn", elsewhere=False)
        case = Case(f"{name}, a timed call with values of seed {seed}", [of["shape"] for of in head["arrays"]])
        compared(case, other, answer, self._reference.answer(), records, self.options, self._again, self.host_arithmetic)
        if case.verdict not in (cases.RIGHT, cases.OPEN):
            raise Problem("wrong-result", f"the kernel is wrong when it is timed: {case.words()}",
                          found={"correct": False, "details": case.words()})

    def judged(self, name, made):
        """Judges a case before it is timed."""
        case = self.run(name, made, is_given=True)
        if case.degenerate is not None:
            raise Problem("no-verdict", f"the reference {case.degenerate} ({case.name}), so that a right result cannot be told from a "
                          "wrong one; give other inputs")
        if not case.correct:
            raise Problem("wrong-result", f"the kernel is wrong, so it is not timed: {case.words()}",
                          found={"correct": False, "details": case.words()})

    def work(self):
        """The operations of a call, and whether they are those of products; None where nothing counts them."""
        self._reference.ask("products", "reference_fn")
        counted = self._reference.answer()[0]["operations"]
        if counted is not None:
            return counted, True
        self._candidate.ask("threads", "kernel_fn")
        found = self._candidate.answer()[0]["operations"]
        return found and ((found[0], True) if found[0] else (found[1], False))

    def rates(self, of_products):
        """What the device can do: bytes per second of a copy, operations per second."""
        self._reference.ask("rates", "reference_fn", of_products=of_products)
        return self._reference.answer()[0]

    def state(self):
        """Clock, power and temperature of the device."""
        self._reference.ask("state", "reference_fn")
        return self._reference.answer()[0]["state"]
