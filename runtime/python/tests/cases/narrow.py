"""Arrays of floats that numpy lacks, and those of `ml_dtypes` where that is installed."""

import copy
import importlib.util
import pickle
import unittest

import numpy as np

import rtc
import rtc.language as tl
from rtc.tools.tensor_descriptor import TensorDescriptor

TYPES = [rtc.bfloat16, rtc.float8_e4m3fn, rtc.float8_e5m2]


@rtc.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, (tl.load(x + i, mask=i < n).to(tl.float32) * 1.5).to(out.dtype.element_ty), mask=i < n)


@rtc.jit
def through_descriptors(source, target, N: tl.constexpr):
    target.store([0, 0], source.load([0, 0]) * 2)


def every(dtype):
    """An array of all patterns of bits."""
    storage = np.dtype(f"uint{8 * dtype.itemsize}")
    return dtype.from_bits(np.arange(1 << 8 * dtype.itemsize).astype(storage))


class Conversion(unittest.TestCase):

    def test_known_values(self):
        for dtype, pairs in [
            (rtc.bfloat16, {0x3f80: 1.0, 0xc040: -3.0, 0x0001: 2.0 ** -133, 0x0080: 2.0 ** -126, 0x7f7f: (2 - 2.0 ** -7) * 2.0 ** 127,
                            0x7f80: np.inf, 0xff80: -np.inf}),
            (rtc.float8_e4m3fn, {0x38: 1.0, 0xc4: -3.0, 0x01: 2.0 ** -9, 0x08: 2.0 ** -6, 0x7e: 448.0}),
            (rtc.float8_e5m2, {0x3c: 1.0, 0xc2: -3.0, 0x01: 2.0 ** -16, 0x04: 2.0 ** -14, 0x7b: 57344.0, 0x7c: np.inf}),
        ]:
            for bits, value in pairs.items():
                self.assertEqual(every(dtype)[bits], value)
                self.assertEqual(dtype(value).base, bits)
        self.assertTrue(np.isnan(every(rtc.float8_e4m3fn)[0x7f]))

    def test_all_patterns_and_all_ties(self):
        for dtype in TYPES:
            x = every(dtype)
            values = x.astype(np.float64)
            numbers = ~np.isnan(values)
            np.testing.assert_array_equal(dtype(values).base[numbers], x.base[numbers])
            self.assertTrue(np.isnan(dtype(values[~numbers]).astype(np.float32)).all())
            # Between two neighbours: up to the middle the one, beyond it the other, there the even one.
            finite = np.unique(values[np.isfinite(values)])
            low, high = finite[:-1], finite[1:]
            middle = (low + high) / 2
            np.testing.assert_array_equal(dtype(np.nextafter(middle, -np.inf)).astype(np.float64), low)
            np.testing.assert_array_equal(dtype(np.nextafter(middle, np.inf)).astype(np.float64), high)
            tied = dtype(middle)
            self.assertTrue(((tied.base & 1) == 0).all() and ((tied == low) | (tied == high)).all())

    def test_what_is_too_large(self):
        for dtype, largest, beyond in [(rtc.bfloat16, 3.3895313892515355e38, np.inf), (rtc.float8_e4m3fn, 448.0, np.nan),
                                       (rtc.float8_e5m2, 57344.0, np.inf)]:
            half = (largest - every(dtype)[dtype(largest).base - 1]) / 2
            below = dtype([np.nextafter(largest + half, 0), -np.nextafter(largest + half, 0)]).astype(np.float64)
            np.testing.assert_array_equal(below, [largest, -largest])
            # The middle to what would come next goes to that where its last bit would be 0: not for float8_e4m3fn.
            middle = largest if dtype is rtc.float8_e4m3fn else beyond
            self.assertEqual(dtype([largest + half])[0], middle)
            for value in (np.nextafter(largest + half, np.inf), 1e308, np.inf):
                np.testing.assert_array_equal(dtype([value, -value]).astype(np.float64), [beyond, -beyond])
        self.assertEqual(rtc.bfloat16(-0.0).base, 0x8000)

    def test_integers_are_rounded_once(self):
        numbers = np.array([257, 258, 259, (1 << 60) + (1 << 52), (1 << 60) + (1 << 52) + 1, -(1 << 60) - (1 << 52) - 1, -(1 << 63)])
        wanted = [256, 258, 260, 2.0 ** 60, 2.0 ** 60 + 2.0 ** 53, -(2.0 ** 60 + 2.0 ** 53), -2.0 ** 63]
        np.testing.assert_array_equal(rtc.bfloat16(numbers).astype(np.float64), wanted)
        np.testing.assert_array_equal(rtc.bfloat16(np.array([(1 << 63) + (1 << 55) + 1], np.uint64)).astype(np.float64), [2.0 ** 63 + 2.0 ** 56])


class Arrays(unittest.TestCase):

    def setUp(self):
        self.x = rtc.bfloat16(np.linspace(-3, 3, 12).reshape(3, 4))

    def test_types_of_results(self):
        x = self.x
        for found, dtype in [(np.abs(x), "bfloat16"), (x * 2.5, "bfloat16"), (x + np.ones(4, np.int64), "bfloat16"), (-x, "bfloat16"),
                             (x + np.ones(4, np.float32), "float32"), (np.float64(2) * x, "float64"), (x + np.ones(4, np.float16), "float32"),
                             (x < 0, "bool"), (np.isnan(x), "bool"), (x @ x.T, "bfloat16"), (np.where(x > 0, x, 0), "bfloat16"),
                             (np.concatenate([x, x]), "bfloat16"), (np.concatenate([x, np.ones((1, 4), np.float32)]), "float32"),
                             (np.sum(x, axis=0, dtype=np.float32), "float32"), (np.empty_like(x), "bfloat16"),
                             (np.full_like(x, 2.0, dtype=np.float16), "float16"), (np.asarray(x), "float32"), (x.astype("float16"), "float16"),
                             (rtc.float8_e5m2(x) + np.ones(4, np.float16), "float16")]:
            self.assertEqual(str(found.dtype), dtype)

    def test_a_result_is_rounded_once(self):
        x = rtc.bfloat16([1.0])
        # In float32 first, the sum would be a tie.
        self.assertEqual((x + np.float64(2.0 ** -8 + 2.0 ** -40)).astype(np.float64)[0], 1 + 2.0 ** -8 + 2.0 ** -40)
        y = x.copy()
        y += 2.0 ** -8 + 2.0 ** -40
        self.assertEqual(y[0], 1 + 2.0 ** -7)
        self.assertEqual(rtc.bfloat16([256, 1, 1, 1]).sum(), 260)

    def test_views_share_memory(self):
        x = self.x.copy()
        x[1:, ::2][...] = 7
        x.reshape(-1)[0] = 9
        np.reshape(x, (4, 3)).T[2, 3] = 11
        np.testing.assert_array_equal(np.asarray(x)[[0, 1, 1, 2, 2], [0, 0, 2, 0, 3]], [9, 7, 7, 7, 11])
        self.assertEqual((x.shape, x.strides, x.nbytes, x.T.shape, len(x), x[x > 8].size), ((3, 4), (8, 2), 24, (4, 3), 3, 2))
        np.copyto(x, self.x)
        self.assertTrue((x == self.x).all() and x.view(np.uint16).dtype == np.uint16)
        x.fill(0.5)
        self.assertEqual((x.max(), x.sum(), x[0, 0], type(x[0, 0])), (0.5, 6, 0.5, float))

    def test_copies(self):
        for made in (pickle.loads(pickle.dumps(self.x)), copy.deepcopy(self.x), rtc.bfloat16(self.x)):
            self.assertIs(made.dtype, rtc.bfloat16)
            self.assertFalse(np.shares_memory(made, self.x))
            self.assertTrue((made == self.x).all())
        self.assertTrue(repr(self.x[0]).startswith("rtc.bfloat16([-3."), repr(self.x[0]))

    def test_what_does_not_work_says_so(self):
        x = self.x
        for call, error, text in [
            (lambda: x + rtc.float8_e5m2(x), TypeError, r"bfloat16 and float8_e5m2 have no common type: convert one of them with `.astype"),
            (lambda: x.cumprod(), AttributeError, "arrays of bfloat16 have no `cumprod`; `.astype"),
            (lambda: np.add.at(x, 0, 1), TypeError, "cannot change arrays of bfloat16"),
            (lambda: rtc.bfloat16.from_bits(np.zeros(3, np.int16)), TypeError, "the bits of bfloat16 are of type uint16, not int16"),
            (lambda: rtc.bfloat16(["a"]), TypeError, "no conversion of <U1 to a float"),
            (lambda: np.ones(3).astype(x.dtype), TypeError, "Cannot interpret 'rtc.bfloat16' as a data type"),
            (lambda: np.array(x, copy=False), ValueError, "its elements must be converted"),
            (lambda: np.concatenate([x, rtc.float8_e5m2(x)]), TypeError, "no common type"),
        ]:
            with self.assertRaisesRegex(error, text):
                call()


class Launches(unittest.TestCase):

    def test_kernels_read_and_write_them(self):
        for dtype in TYPES:
            x = dtype(np.linspace(-3, 3, 100))
            out = np.empty_like(x)
            scaled[(2,)](x, out, 100, BLOCK=64)
            self.assertTrue((out == dtype(x.astype(np.float64) * 1.5)).all())
            # A view, whose neighbours stay as they are.
            out = dtype.full((4, 50), 7)
            scaled[(1,)](x, out[2], 50, BLOCK=64)
            self.assertTrue((out[2] == dtype(x[:50].astype(np.float64) * 1.5)).all() and (out[[0, 1, 3]] == 7).all())

    def test_descriptors(self):
        x, out = rtc.bfloat16(np.arange(256).reshape(16, 16)), rtc.bfloat16.zeros((16, 16))
        through_descriptors[(1,)](TensorDescriptor.from_tensor(x, [16, 16]), TensorDescriptor.from_tensor(out, [16, 16]), 16)
        self.assertTrue((out == x * 2).all())


@unittest.skipUnless(importlib.util.find_spec("ml_dtypes"), "ml_dtypes is not installed")
class MlDtypes(unittest.TestCase):

    def test_values_are_the_same(self):
        import ml_dtypes
        for dtype in TYPES:
            x = every(dtype)
            theirs = x.base.view(getattr(ml_dtypes, dtype.name))
            np.testing.assert_array_equal(x.astype(np.float32), theirs.astype(np.float32))
            np.testing.assert_array_equal(x.astype(theirs.dtype).view(x.base.dtype), x.base)
            numbers = ~np.isnan(x)
            np.testing.assert_array_equal(dtype(theirs).base[numbers], x.base[numbers])

    def test_kernels_read_and_write_them(self):
        import ml_dtypes
        for dtype in TYPES:
            x = np.linspace(-3, 3, 100).astype(getattr(ml_dtypes, dtype.name))
            out = np.empty_like(x)
            scaled[(2,)](x, out, 100, BLOCK=64)
            np.testing.assert_array_equal(out.astype(np.float64), dtype(x.astype(np.float64) * 1.5).astype(np.float64))

    def test_they_do_not_mix(self):
        import ml_dtypes
        theirs = np.ones(3, ml_dtypes.bfloat16)
        for call in (lambda: rtc.bfloat16(theirs) + theirs, lambda: theirs + rtc.bfloat16(theirs)):
            with self.assertRaisesRegex(TypeError, "bfloat16 of rtc and of ml_dtypes have no common type"):
                call()

    def test_precision_casts_to_them_where_the_file_does(self):
        import ml_dtypes
        from rtc import _arrays
        found = _arrays.cast(np.array([1.0, 1 + 2.0 ** -8 + 2.0 ** -40]), "bfloat16")
        self.assertEqual(found.dtype, np.dtype(ml_dtypes.bfloat16))
        self.assertEqual(found.astype(np.float64).tolist(), [1, 1 + 2.0 ** -7])


if __name__ == "__main__":
    unittest.main()
