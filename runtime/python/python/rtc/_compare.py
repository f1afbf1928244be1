"""Comparing results with a reference."""

import math

from . import _arrays

#: rtol and atol by dtype; of floats that are not here, those of float32.
TOLERANCES = {"float16": (1e-3, 1e-3), "bfloat16": (1e-2, 1e-2), "float32": (1e-5, 1e-5), "float64": (1e-8, 1e-8),
              "float8_e4m3fn": (0.13, 0.13), "float8_e5m2": (0.26, 0.26)}
#: Of float32 where the kernel has products of matrices: tensor cores round their operands to tf32.
WITH_DOTS = (1e-2, 1e-1)
CHUNK = 1 << 24


def tolerance(value, has_dots, rtol=None, atol=None):
    """rtol and atol for results of a dtype; what is given counts."""
    name = _arrays.dtype_name(value)
    if not _arrays.is_float(value):
        return 0.0, 0.0
    known = WITH_DOTS if has_dots and name == "float32" else TOLERANCES.get(name, TOLERANCES["float32"])
    return known[0] if rtol is None else rtol, known[1] if atol is None else atol


class Comparison:
    """How one result differs from its reference."""

    def __init__(self, actual, expected, rtol, atol):
        self.shape, self.dtype = tuple(expected.shape), _arrays.dtype_name(expected)
        self.rtol, self.atol = rtol, atol
        self.problem = None
        self.elements, self.wrong, self.nans = _arrays.size(expected), 0, 0
        self.max_abs = self.max_rel = self.mean_rel = 0.0
        self.worst: tuple[int, float, float] | None = None
        self.first, self.bad = [], []
        if tuple(actual.shape) != self.shape:
            self.problem = f"the shape is {tuple(actual.shape)}, that of the reference {self.shape}"
        elif _arrays.dtype_name(actual) != self.dtype:
            self.problem = f"the dtype is {_arrays.dtype_name(actual)}, that of the reference {self.dtype}"
        if self.problem is None:
            self._compare(actual, expected)

    def _compare(self, actual, expected):
        actual, expected = actual.reshape(-1), expected.reshape(-1)
        total, counted, worst_excess = 0.0, 0, -1.0
        for begin in range(0, self.elements, CHUNK):
            a, e = _arrays.wide(actual[begin:begin + CHUNK]), _arrays.wide(expected[begin:begin + CHUNK])
            if _arrays.is_tensor(a) and a.device != e.device:
                a = a.to(e.device)
            same = (a == e) | ((a != a) & (e != e))
            difference = abs(a - e)
            difference[same] = 0.0
            unknown = difference != difference
            self.nans += int(((a != a) & (e == e)).sum())
            difference[unknown] = math.inf
            limit = self.atol + self.rtol * abs(e)
            wrong = (difference > limit) & ~same | unknown
            self.wrong += int(wrong.sum())
            largest = float(difference.max())
            if self.worst is None or worst_excess < 0 and largest > self.max_abs:
                at = int(difference.argmax())
                self.worst = (begin + at, float(a[at]), float(e[at]))
            self.max_abs = max(self.max_abs, largest)
            nonzero = (e != 0) & (abs(e) != math.inf) & (e == e)
            if bool(nonzero.any()):
                relative = difference[nonzero] / abs(e[nonzero])
                self.max_rel = max(self.max_rel, float(relative.max()))
                total += float(relative.sum())
                counted += int(nonzero.sum())
            if bool(wrong.any()):
                places = wrong.nonzero()
                places = places[0] if isinstance(places, tuple) else places.reshape(-1)
                for at in places[:5].tolist()[:max(0, 5 - len(self.first))]:
                    self.first.append((begin + at, float(a[at]), float(e[at])))
                excess = difference - limit
                at = int(excess.argmax())
                if float(excess[at]) > worst_excess:
                    worst_excess = float(excess[at])
                    self.worst = (begin + at, float(a[at]), float(e[at]))
                step = max(1, len(places) // 20000)
                self.bad += [begin + p for p in places[::step].tolist()]
        self.mean_rel = total / counted if counted else 0.0

    @property
    def correct(self):
        return self.problem is None and self.wrong == 0

    def index(self, flat):
        """The place of an element by its number."""
        place = []
        for size in reversed(self.shape):
            place.append(flat % size)
            flat //= size
        return tuple(reversed(place))

    def describe(self):
        """In words."""
        if self.problem:
            return self.problem
        what = f"{self.elements} elements of {self.dtype} {list(self.shape)}"
        if self.correct:
            return f"{what} within rtol {self.rtol:g}, atol {self.atol:g}"
        text = f"{self.wrong} of {what} outside rtol {self.rtol:g}, atol {self.atol:g}"
        if self.worst is not None:
            at, got, wanted = self.worst
            text += f"; worst at {list(self.index(at))}: {got:.9g} instead of {wanted:.9g}"
        return text + (f"; {self.nans} are NaN where the reference is not" if self.nans else "")

    def picture(self):
        """Where they differ: rows and columns of the result, a mark for each part with wrong elements."""
        if self.problem or not self.wrong:
            return ""
        columns = self.shape[-1] if self.shape else 1
        rows = max(1, self.elements // max(columns, 1))
        if rows == 1 and columns > 64:
            columns, rows = math.ceil(columns / 16), 16
        high, wide = min(rows, 16), min(columns, 64)
        counts = [[0] * wide for _ in range(high)]
        for flat in self.bad:
            row, column = divmod(flat, columns)
            counts[min(row * high // rows, high - 1)][column * wide // columns] += 1
        most = max(max(line) for line in counts)
        marks = " .:+#"
        lines = ["".join(marks[0 if not c else max(1, math.ceil(4 * c / most))] for c in line) for line in counts]
        text = [f"  where they differ ({rows} rows of {columns} elements, `#` most):", "  +" + "-" * wide + "+"]
        text += [f"  |{line}|" for line in lines] + ["  +" + "-" * wide + "+"]
        text += [f"  {list(self.index(at))}: {got:.9g} instead of {wanted:.9g}" for at, got, wanted in self.first]
        return "\n".join(text)


def differs(first, second):
    """Whether a function that ran twice gave something else."""
    return tuple(first.shape) == tuple(second.shape) and bool(((first != second) & (first == first)).any())


def kept_by_both(actual, expected):
    """Of results of which a random part is zero: whether the shares of zeros agree by a binomial bound, the elements that both
    keep, and words."""
    a, e = actual.reshape(-1), expected.reshape(-1)
    kept = (a != 0) & (e != 0)
    count = _arrays.size(e)
    shares = [int((x == 0).sum()) / count for x in (a, e)]
    pooled = sum(shares) / 2
    bound = 6 * math.sqrt(max(2 * pooled * (1 - pooled) / count, 0.0)) + 1 / count
    a, e = a[kept], e[kept]
    words = (f"the reference draws random numbers (dropout): {_arrays.size(e)} elements that both keep are compared by value, "
             f"the dropped shares {shares[0]:.6f} and {shares[1]:.6f} by a binomial bound of {bound:.2g}")
    return abs(shares[0] - shares[1]) <= bound, a, e, words


def dropout(actual, expected, rtol, atol):
    """Compares results of which a random part is zero. Gives whether they agree, the comparison of what both keep, and words."""
    agree, a, e, words = kept_by_both(actual, expected)
    compared = Comparison(a, e, rtol, atol)
    return agree and compared.correct, compared, words
