"""Launches like earlier ones: what the driver is given is the same as of a launch that goes the long way."""

import random
import struct
import sys
import unittest

import stub_torch

stub_torch.install()

import rtc
import rtc.language as tl
from stub_torch import Tensor, launched

SCALE = 3


@rtc.jit
def kernel(x, y, n, scale, flag, BLOCK: tl.constexpr, MODE: tl.constexpr = "plain", more=7):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n) * scale + flag + more
    if MODE == "plain":
        value += 1
    tl.store(y + i, value, mask=i < n)


@rtc.jit
def with_global(x, n):
    tl.store(x, n * SCALE)


def launch(kernel, grid, *args, **kwargs):
    """What the driver got, the compiled kernel, whether Python was asked of a tensor."""
    before, _ = launched()[3], stub_torch.asked.clear()
    compiled = kernel[grid](*args, **kwargs)
    params, made, stream, count = launched()
    assert count == before + 1
    return (params, made, stream), compiled, bool(stub_torch.asked)


def fresh():
    """The same kernel, of which nothing is known yet."""
    return rtc.jit(kernel.fn)


X, Y, ODD = Tensor(4096), Tensor(8192), Tensor(4100)
HALF = Tensor(16384, stub_torch.float16)


class Recent(unittest.TestCase):
    def same(self, *args, grid=(5, 2), **kwargs):
        """Twice the same, the second time without asking Python; beside a kernel that has seen nothing."""
        (first, compiled, _), (second, again, asked) = (launch(kernel, grid, *args, **kwargs) for _ in range(2))
        long, apart, was_asked = launch(fresh(), grid, *args, **kwargs)
        self.assertEqual((first, second), (long, long))
        self.assertEqual(compiled.metadata, apart.metadata)
        self.assertIs(compiled, again)
        self.assertFalse(asked)
        self.assertTrue(was_asked)
        return second, compiled

    def test_numbers_and_tensors(self):
        made, compiled = self.same(X, Y, 1000, 0.5, True, 128)
        self.assertEqual(made[0][:8], struct.pack("Q", 4096))
        self.assertEqual(made[1:], ((5, 2, 1), 0))
        for args in [(Y, X, 1000, 0.25, False, 128), (X, Y, 24, 2.0, True, 128)]:
            other, same = self.same(*args)
            self.assertIs(same, compiled)
            self.assertNotEqual(other, made)

    def test_kinds_are_told_apart(self):
        seen = {self.same(*args, **kwargs)[1].hash for args, kwargs in [
            ((X, Y, 1000, 0.5, True, 128), {}), ((ODD, Y, 1000, 0.5, True, 128), {}), ((X, HALF, 1000, 0.5, True, 128), {}),
            ((X, Y, 16, 0.5, True, 128), {}), ((X, Y, 1, 0.5, True, 128), {}), ((X, Y, 1 << 40, 0.5, True, 128), {}),
            ((X, Y, 1000, 2, True, 128), {}), ((X, Y, 1000, 0.5, 3, 128), {}), ((X, Y, 1000, 0.5, True, 256), {}),
            ((X, Y, 1000, 0.5, True, 128, "other"), {}), ((X, Y, 1000, 0.5, True, 128), {"num_warps": 8}),
            ((X, Y, 1000, 0.5, True, 128), {"more": 1}), ((X, Y, 1000, 0.5, True, 128, None), {})]}
        # `None` and "other" are both not "plain", but different constants.
        self.assertEqual(len(seen), 13)

    def test_keywords(self):
        by_place = self.same(X, Y, 1000, 0.5, True, 128, "plain", 9)
        for kwargs in [dict(BLOCK=128, more=9), dict(more=9, BLOCK=128), dict(num_warps=4, BLOCK=128, more=9)]:
            self.assertEqual(self.same(X, Y, 1000, 0.5, True, **kwargs)[0], by_place[0])
        self.assertEqual(self.same(x=X, y=Y, n=1000, scale=0.5, flag=True, BLOCK=128, more=9)[0], by_place[0])
        self.assertEqual(self.same(X, Y, 1000, 0.5, True, BLOCK=128, num_warps=8)[1].metadata.num_warps, 8)
        with self.assertRaisesRegex(TypeError, "missing a required argument: 'BLOCK'"):
            kernel[(1,)](X, Y, 1000, 0.5, True)
        with self.assertRaisesRegex(TypeError, "multiple values for argument 'n'"):
            kernel[(1,)](X, Y, 1000, 0.5, True, 128, n=3)

    def test_any_launch_after_any_other(self):
        """Arguments that were packed are those of the launch, whatever came in between."""
        seed = random.randrange(1 << 30)
        print("seed", seed)
        draw = random.Random(seed)
        values = ([X, Y, ODD, HALF], [Y, ODD], [1000, 24, 1, 1 << 40, True, 7.0], [0.5, 0.0, -0.0, 2], [True, False, 3], [128, 256])
        options = [{}, {}, {"more": 1}, {"more": 9}, {"MODE": None}, {"num_warps": 8}]
        calls = [([draw.choice(some) for some in values], draw.choice(options)) for _ in range(24)]
        expected = [launch(fresh(), (5, 2), *args, **kwargs)[0] for args, kwargs in calls]
        one = fresh()
        again = lambda value: type(value)(repr(value)) if type(value) in (int, float) else value
        for _ in range(400):
            number = draw.randrange(len(calls))
            args, kwargs = calls[number]
            for repeat in range(draw.choice([1, 1, 2, 4])):
                # Other objects of the same values.
                args = [again(value) if draw.random() < 0.5 else value for value in args]
                grid = (5, 2) if draw.random() < 0.5 else lambda meta: (5, 2, meta["more"] // meta["more"])
                self.assertEqual(launch(one, grid, *args, **kwargs)[0], expected[number], (seed, args, kwargs))

    def test_grid_functions_see_all_arguments(self):
        seen = []

        def grid(meta):
            seen.append(dict(meta))
            return (rtc.cdiv(meta["n"], meta["BLOCK"]),)

        made, _ = self.same(X, Y, 1000, 0.5, True, BLOCK=128, grid=grid)
        self.assertEqual(made[1], (8, 1, 1))
        # What differs from the first launch of the form, and what the function itself put in.
        other, seen_then = Tensor(32768), list(seen)
        launch(kernel, lambda meta: meta.update(n=5, new=1) or (1,), X, Y, 1000, 0.5, True, BLOCK=128)
        del seen[:]
        launch(kernel, grid, X, other, 24, 0.25, False, BLOCK=128)
        self.assertEqual(seen, [dict(x=X, y=other, n=24, scale=0.25, flag=False, BLOCK=128, MODE="plain", more=7)])
        launch(kernel, grid, Y, X, 24, 0.25, True, BLOCK=128)
        self.assertEqual(seen[1]["x"], Y)
        count = sys.getrefcount(other)
        del seen[:]
        self.assertEqual(sys.getrefcount(other), count - 1)
        seen = seen_then
        everything = dict(x=X, y=Y, n=1000, scale=0.5, flag=True, BLOCK=128, MODE="plain", more=7)
        self.assertEqual(seen, [everything] * 3)

    def test_grid_functions_that_only_ask_for_numbers(self):
        """They are lent one dictionary, which must be right for each launch, whatever other functions do."""
        for repeat in range(3):
            for n, block in [(1000, 128), (24, 128), (1000, 256), (1000, 128)]:
                # A new function for each launch, with the same code.
                grid = lambda meta: (rtc.cdiv(meta["n"], meta["BLOCK"]), meta["more"])
                made, *_ = launch(kernel, grid, X, Y, n, 0.5, True, block)
                self.assertEqual(made[1], (-(-n // block), 7, 1))
        with self.assertRaisesRegex(KeyError, "missing"):
            kernel[lambda meta: (meta["missing"],)](X, Y, 1000, 0.5, True, 128)
        for _ in range(2):
            made, *_ = launch(kernel, lambda meta: (meta["x"].address,), X, Y, 1000, 0.5, True, 128)
            self.assertEqual(made[1], (4096, 1, 1))

    def test_a_grid_function_that_fails_and_one_that_launches(self):
        divisor = 0

        def fails(meta):
            return (meta["BLOCK"] // divisor, meta["n"])

        kept = []
        for number in (1000, 24):
            try:
                kernel[fails](X, Y, number, 0.5, True, 128)
            except ZeroDivisionError as error:
                kept.append(error)
        divisor = 2
        self.assertEqual(launch(kernel, fails, X, Y, 40, 0.5, True, 256)[0][1], (128, 40, 1))
        frames = [error.__traceback__.tb_next.tb_frame.f_locals["meta"] for error in kept]
        self.assertEqual([meta["n"] for meta in frames], [1000, 24])

        def nested(meta):
            if meta["n"] > 100:
                kernel[nested](X, Y, 17, 0.5, True, 64)
            return (meta["n"], meta["BLOCK"])

        for _ in range(3):
            kernel[nested](X, Y, 1000, 0.5, True, 128)
            self.assertEqual(launched()[1], (1000, 128, 1))

    def test_what_functions_ask_for(self):
        from rtc._grids import names_asked
        n = 3

        def lines(meta):
            block = meta["A"]
            if n:
                return block, meta["B"]
            return (meta["A"],)

        def changes(meta):
            meta["A"] = 1
            return (meta["A"],)

        asks = [(lambda meta: (rtc.cdiv(n, meta["A"]) * meta["B"], meta["A"]), ("A", "B")), (lambda meta: (1,), ()),
                (lines, ("A", "B"))]
        # A default may be the dictionary of an earlier call, an inner function keeps it.
        more = [changes, lambda meta: meta, lambda meta: (meta.get("A"),), lambda meta: (meta[n],), lambda *meta: meta,
                lambda meta, n=3: (meta["A"],), lambda meta: (lambda: meta["A"])(), lambda meta: (len({**meta}),),
                lambda meta: (n in meta,), lambda meta: (meta, meta["A"]), lambda meta: (meta[meta["A"]],),
                lambda meta: (locals(), meta["A"]), lambda meta: meta["A"] and meta, lambda meta: (meta["A" if n else "B"],)]
        for function, names in asks:
            self.assertEqual(names_asked(function.__code__), names)
        for function in more:
            self.assertIsNone(names_asked(function.__code__))

    def test_cdiv(self):
        for x, y in [(0, 4), (1, 4), (4, 4), (5, 4), (-5, 4), (-8, 4), (5, -4), (1 << 70, 3), ((1 << 63) - 1, 2), (True, 2)]:
            self.assertEqual(rtc.cdiv(x, y), (x + y - 1) // y)
        self.assertEqual(rtc.cdiv(tl.constexpr(5), 4), 2)
        self.assertIs(type(rtc.cdiv(tl.constexpr(5), tl.constexpr(4))), int)
        self.assertEqual(rtc.cdiv(x=7.5, y=2), 4.0)
        self.assertEqual((rtc.cdiv.__module__, rtc.cdiv.__name__), ("triton", "cdiv"))
        with self.assertRaises(ZeroDivisionError):
            rtc.cdiv(4, 0)

    def test_streams_and_devices(self):
        for device, stream in [(0, 0), (0, 640), (1, 640), (0, 0)]:
            stub_torch.set_current(device, stream)
            made, _ = self.same(X, Y, 1000, 0.5, True, 128)
            self.assertEqual(made[2], stream + device)
        stub_torch.set_current()

    def test_parameters_are_tensors_and_other_classes_go_the_long_way(self):
        self.same(stub_torch.Parameter(4096), Y, 1000, 0.5, True, 128)
        other = [launch(kernel, (1,), stub_torch.Other(4096), Y, 1000, 0.5, True, 128) for _ in range(2)]
        self.assertTrue(other[1][2])

    def test_a_changed_global_is_an_error(self):
        global SCALE
        for _ in range(2):
            launch(with_global, (1,), X, 5)
        SCALE = 4
        try:
            with self.assertRaisesRegex(RuntimeError, "SCALE has changed"):
                with_global[(1,)](X, 5)
        finally:
            SCALE = 3

    def test_hooks_are_told(self):
        told = []
        hook = lambda data: told.append(data.get()["name"])
        launch(kernel, (1,), X, Y, 1000, 0.5, True, 128)
        rtc.knobs.runtime.launch_enter_hook.add(hook)
        try:
            launch(kernel, (1,), X, Y, 1000, 0.5, True, 128)
        finally:
            rtc.knobs.runtime.launch_enter_hook.remove(hook)
        self.assertEqual(told, ["kernel"])

    def test_a_device_on_the_cpu_is_refused(self):
        launch(kernel, (1,), X, Y, 1000, 0.5, True, 128)
        rtc.set_device("emulator")
        try:
            with self.assertRaisesRegex(RuntimeError, "RTC_DEVICE asks for a device on the CPU"):
                kernel[(1,)](X, Y, 1000, 0.5, True, 128)
        finally:
            rtc.set_device("auto")

    def test_many_forms(self):
        for number in list(range(2, 40)) * 2:
            made, *_ = launch(kernel, (number,), X, Y, 1000, 0.5, True, BLOCK=128, MODE=f"mode{number % 3}", more=number)
            self.assertEqual(made[1], (number, 1, 1))


if __name__ == "__main__":
    unittest.main()
