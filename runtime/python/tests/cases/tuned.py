"""Launches of autotuned kernels: a later one with the same key does not ask Python, and is what Python would make of it."""

import unittest

from recent import HALF, ODD, X, Y, fresh, kernel, launch

import rtc
from stub_torch import launched


class Tuned(unittest.TestCase):
    TIMES = {(128, 4): 2.0, (128, 8): 1.0, (256, 4): 3.0}

    def setUp(self):
        self.trials = trials = []

        configs = [rtc.Config({"BLOCK": block}, num_warps=warps) for block, warps in self.TIMES]

        def do_bench(call, quantiles):
            call()
            trials.append(list(self.TIMES.values())[len(trials) % 3])
            return trials[-1:] * 3

        self.configs = configs
        self.search = rtc.autotune(configs=configs, key=["n", "MODE"], do_bench=do_bench)(fresh())

    def launch(self, *args, grid=(5, 2), **kwargs):
        """What the driver got; how many configurations were tried; whether Python launched."""
        runs, tried, run = [], len(self.trials), rtc.runtime.Autotuner._tuning_key
        rtc.runtime.Autotuner._tuning_key = lambda *args: runs.append(1) or run(*args)
        try:
            self.search[grid](*args, **kwargs)
        finally:
            rtc.runtime.Autotuner._tuning_key = run
        return launched()[:3], len(self.trials) - tried, bool(runs)

    def test_the_second_launch_is_the_same_and_asks_nothing(self):
        first, tried, asked = self.launch(X, Y, 1000, 0.5, True)
        self.assertEqual((tried, asked), (3, True))
        again, tried, asked = self.launch(X, Y, 1000, 0.5, True)
        self.assertEqual((again, tried, asked), (first, 0, False))
        plain, *_ = launch(fresh(), (5, 2), X, Y, 1000, 0.5, True, BLOCK=128, num_warps=8)
        self.assertEqual(again, plain)
        self.assertIs(self.search.best_config, self.configs[1])
        other, _, asked = self.launch(Y, X, 1000, 0.25, False, grid=lambda meta: (meta["n"] // meta["BLOCK"],))
        self.assertEqual((other[1], asked), ((7, 1, 1), False))
        self.assertEqual(other[0], launch(fresh(), (7,), Y, X, 1000, 0.25, False, BLOCK=128, num_warps=8)[0][0])

    def test_another_key_is_searched_for_and_both_are_kept(self):
        self.launch(X, Y, 1000, 0.5, True)
        for args, kwargs in [((X, Y, 2000, 0.5, True), {}), ((X, HALF, 1000, 0.5, True), {}),
                             ((X, Y, 1000, 0.5, True), {"MODE": "other"}), ((X, Y, 1 << 70, 0.5, True), {})]:
            if args[2] < 1 << 63:
                self.assertEqual(self.launch(*args, **kwargs)[1:], (3, True))
                self.assertEqual(self.launch(*args, **kwargs)[1:], (0, False))
        self.assertEqual(self.launch(X, Y, 1000, 0.5, True)[1:], (0, False))
        # Another kind of the same kernel, for which the same configuration holds.
        self.assertEqual(self.launch(ODD, Y, 1000, 2, True)[1:], (0, False))

    def test_what_users_change_is_seen(self):
        args = (X, Y, 1000, 0.5, True)
        self.launch(*args)
        for change in (self.search.cache.clear, lambda: setattr(self.search, "cache", {}),
                       lambda: setattr(self.search, "fn", fresh())):
            self.launch(*args)
            self.assertFalse(self.launch(*args)[2])
            change()
            self.assertTrue(self.launch(*args)[2])
        key, = self.search.cache
        self.search.cache[key] = self.configs[2]
        self.assertEqual(self.launch(*args)[1:], (0, True))
        self.assertIs(self.search.best_config, self.configs[2])
        self.assertEqual(self.launch(*args)[1:], (0, False))
        seen = []
        self.search.fn.add_pre_run_hook(lambda *args, **kwargs: seen.append(kwargs["BLOCK"]))
        self.launch(*args), self.launch(*args)
        self.assertEqual(seen, [256, 256])

    def test_configurations_with_hooks_and_subclasses_are_pythons(self):
        seen = []
        hooked = rtc.autotune(configs=[rtc.Config({"BLOCK": 128}, pre_hook=lambda args: seen.append(args["n"]))], key=[])(fresh())

        class Counted(type(self.search)):
            def run(self, *args, **kwargs):
                seen.append("run")
                return super().run(*args, **kwargs)

        counted = Counted(fresh(), kernel.arg_names, [rtc.Config({"BLOCK": 128})], [], None, None)
        for _ in range(3):
            hooked[(1,)](X, Y, 1000, 0.5, True)
            counted[(1,)](X, Y, 1000, 0.5, True)
        self.assertEqual(seen, [1000, "run"] * 3)

    def test_heuristics_are_computed_for_each_launch(self):
        seen = []
        even = rtc.heuristics({"more": lambda args: seen.append((args["n"], args["BLOCK"])) or int(args["scale"] * 8)})
        search = rtc.autotune(configs=self.configs[:1], key=["n"])(even(fresh()))
        for scale in (0.5, 0.5, 2.0):
            search[(5, 2)](X, Y, 1000, scale, True)
            made = launched()[:3]
            self.assertEqual(made, launch(fresh(), (5, 2), X, Y, 1000, scale, True, BLOCK=128, more=int(scale * 8))[0])
        self.assertEqual(seen, [(1000, 128)] * 3)

    def test_one_configuration(self):
        self.search.configs = self.configs[:1]
        made, *_ = self.launch(X, Y, 1000, 0.5, True)
        self.assertEqual(self.launch(X, Y, 1000, 0.5, True)[0], made)
        self.search.configs = self.configs[2:]
        self.assertEqual(self.launch(X, Y, 1000, 0.5, True)[0],
                         launch(fresh(), (5, 2), X, Y, 1000, 0.5, True, BLOCK=256)[0])

    def test_wrong_calls(self):
        self.launch(X, Y, 1000, 0.5, True)
        for kwargs, text in [({"BLOCK": 64}, "Conflicting|multiple values"), ({"grid": (1,)}, "multiple values.*'grid'"),
                             ({"warmup": True}, "multiple values.*'warmup'"), ({"nothing": 1}, "nothing")]:
            with self.assertRaisesRegex((TypeError, KeyError, ValueError), text):
                self.search[(1,)](X, Y, 1000, 0.5, True, **kwargs)
        with self.assertRaisesRegex(TypeError, "missing a required argument: 'flag'"):
            self.search[(1,)](X, Y, 1000, 0.5)


if __name__ == "__main__":
    unittest.main()
