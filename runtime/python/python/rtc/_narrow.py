"""Floats that numpy lacks: `bfloat16`, `float8_e4m3fn` and `float8_e5m2`, as types and as arrays.

`rtc.bfloat16(values)` makes an array. Its elements lie as bits in an array of numpy, which kernels read and write; arithmetic and
functions of numpy get the elements in double precision, and what they give is rounded once, to the nearest and on a tie to the
even one. numpy itself must not see the bits, which it would take for integers: so these arrays have no `__array_interface__`, and
`np.asarray` of one gives its elements in float32, which holds all of them.
"""

import functools

import numpy as np

#: Functions of numpy that only move elements: they are given the bits, so that views stay views.
_MOVING = {"reshape", "ravel", "transpose", "swapaxes", "moveaxis", "rollaxis", "squeeze", "expand_dims", "broadcast_to", "flip",
           "flipud", "fliplr", "rot90", "roll", "take", "take_along_axis", "repeat", "tile", "split", "array_split", "hsplit", "vsplit",
           "concatenate", "stack", "vstack", "hstack", "column_stack", "atleast_1d", "atleast_2d", "atleast_3d", "copy", "diagonal",
           "tril", "triu", "compress", "delete", "shape", "size", "ndim", "shares_memory", "may_share_memory"}
#: Those that change their first argument.
_CHANGING = {"copyto", "put", "place", "putmask", "put_along_axis", "fill_diagonal"}


class NarrowType:
    """A type of floats in 8 or 16 bits. Called, it makes an array of values."""

    kind = "f"

    def __init__(self, name, bits, mantissa, bias, largest, infinity, nan):
        self.name, self.itemsize = name, bits // 8
        self._storage = np.dtype(f"uint{bits}")
        self._sign, self._mantissa, self._least = 1 << (bits - 1), mantissa, 1 - bias
        self._largest, self._infinity, self._nan = largest, infinity, nan

    @functools.cached_property
    def _values(self):
        """The value of each pattern of bits, in float32."""
        pattern = np.arange(2 * self._sign)
        magnitude = pattern & (self._sign - 1)
        exponent, fraction = magnitude >> self._mantissa, magnitude & ((1 << self._mantissa) - 1)
        whole = np.where(exponent > 0, fraction + (1 << self._mantissa), fraction).astype(np.float64)
        values = np.ldexp(whole, np.maximum(exponent, 1) - 1 + self._least - self._mantissa)
        values[magnitude > self._largest] = np.nan
        if self._infinity is not None:
            values[magnitude == self._infinity] = np.inf
        return np.where(pattern >= self._sign, -values, values).astype(np.float32)

    def __call__(self, values):
        """An array of values that are rounded to this type: to the nearest, on a tie to the one whose last bit is 0, subnormals
        too. What is too large becomes infinite, or NaN where the type (float8_e4m3fn) has no infinity."""
        if isinstance(values, NarrowArray):
            return values.copy() if values.dtype is self else self(values.astype(np.float64))
        return NarrowArray(self._rounded(_doubles(np.asarray(values))), self)

    def _rounded(self, x):
        """The bits of doubles."""
        size = np.abs(x)
        exponent = np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, self._least), self._least)
        with np.errstate(all="ignore"):
            # In units of the last place. A carry makes the next exponent, whose field follows that of the fraction.
            units = np.rint(np.ldexp(size, self._mantissa - exponent))
            units = np.where(np.isfinite(units), units, 0).astype(np.int64)
        bits = ((exponent.astype(np.int64) - self._least) << self._mantissa) + units
        bits = np.where(np.isfinite(x) & (bits <= self._largest), bits, self._nan if self._infinity is None else self._infinity)
        bits = np.where(np.isnan(x), self._nan, bits)
        return np.asarray(np.where(np.signbit(x), bits | self._sign, bits)).astype(self._storage)

    def from_bits(self, bits):
        """The array whose elements have these bits, which it shares: unsigned integers as wide as the type."""
        bits = np.asarray(bits)
        if bits.dtype != self._storage:
            raise TypeError(f"the bits of {self.name} are of type {self._storage}, not {bits.dtype}")
        return NarrowArray(bits, self)

    def empty(self, shape):
        """An array whose elements are not set."""
        return NarrowArray(np.empty(shape, self._storage), self)

    def zeros(self, shape):
        """An array of zeros."""
        return NarrowArray(np.zeros(shape, self._storage), self)

    def full(self, shape, value):
        """An array of one value."""
        return NarrowArray(np.full(shape, self(value)._bits, self._storage), self)

    def __str__(self): return self.name
    def __repr__(self): return f"rtc.{self.name}"
    def __reduce__(self): return self.name
    def __hash__(self): return hash(self.name)
    def __eq__(self, other): return self is other or isinstance(other, str) and other == self.name


def _doubles(x):
    """Numbers in double precision. Integers that it does not hold are rounded to an odd number, so that rounding that once more
    to fewer bits is as if it were the first time."""
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        exact = (x >> 11 << 11) == x
        small = (x < 1 << 53) & ((x > -(1 << 53)) if x.dtype.kind == "i" else True)
        half = ((x >> 11) | 1).astype(np.float64)
        return np.where(exact | small, x.astype(np.float64), half * 2048.0)
    if x.dtype.kind not in "biuf" and not _is_ml_dtype(x.dtype):
        raise TypeError(f"there is no conversion of {x.dtype} to a float")
    # Of a NaN that signals numpy says that it is one.
    with np.errstate(all="ignore"):
        return x.astype(np.float64)


def _is_ml_dtype(dtype):
    return dtype.type.__module__ == "ml_dtypes"


class NarrowArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of bfloat16, float8_e4m3fn or float8_e5m2."""

    __slots__ = ("_bits", "dtype")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, bits, dtype):
        self._bits, self.dtype = bits, dtype

    # ---- what launches ask for

    @property
    def base(self):
        """The array of numpy that holds the bits."""
        return self._bits

    def data_ptr(self):
        """Where the elements begin."""
        return self._bits.__array_interface__["data"][0]

    # ---- as an array of numpy

    shape = property(lambda self: self._bits.shape)
    ndim = property(lambda self: self._bits.ndim)
    size = property(lambda self: self._bits.size)
    nbytes = property(lambda self: self._bits.nbytes)
    itemsize = property(lambda self: self._bits.itemsize)
    strides = property(lambda self: self._bits.strides)
    flags = property(lambda self: self._bits.flags)
    T = property(lambda self: self._moved(self._bits.T))

    def _moved(self, bits):
        return NarrowArray(bits, self.dtype)

    def reshape(self, *shape, **order): return self._moved(self._bits.reshape(*shape, **order))
    def ravel(self, *order): return self._moved(self._bits.ravel(*order))
    def flatten(self, *order): return self._moved(self._bits.flatten(*order))
    def transpose(self, *axes): return self._moved(self._bits.transpose(*axes))
    def swapaxes(self, a, b): return self._moved(self._bits.swapaxes(a, b))
    def squeeze(self, *axis, **named): return self._moved(self._bits.squeeze(*axis, **named))
    def take(self, indices, axis=None): return self._moved(self._bits.take(indices, axis))
    def repeat(self, count, axis=None): return self._moved(self._bits.repeat(count, axis))
    def copy(self, order="C"): return self._moved(self._bits.copy(order))
    def tobytes(self, order="C"): return self._bits.tobytes(order)
    def tolist(self): return self.astype(np.float64).tolist()
    def item(self, *at): return float(self.dtype._values[self._bits.item(*at)])
    def __len__(self): return len(self._bits)
    def __iter__(self): return (self[at] for at in range(len(self)))
    def __bool__(self): return bool(self.__array__())
    def __float__(self): return float(self.__array__())
    def __int__(self): return int(self.__array__())
    def __copy__(self): return self.copy()
    def __deepcopy__(self, memo): return self.copy()
    def __reduce__(self): return NarrowArray, (self._bits, self.dtype)
    def __str__(self): return str(self.__array__())

    def __repr__(self):
        return f"{self.dtype!r}({np.array2string(self.__array__(), separator=', ', prefix=repr(self.dtype) + '(')})"

    def __getattr__(self, name):
        raise AttributeError(f"arrays of {self.dtype.name} have no `{name}`; `.astype(np.float32)` gives an array of numpy")

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError(f"numpy has no {self.dtype.name}: its elements must be converted, which makes a copy")
        values = self.dtype._values[self._bits]
        return values if dtype is None else values.astype(dtype)

    def astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
        """The elements as another type: one of these types, or any of numpy."""
        if isinstance(dtype, NarrowType):
            return self if dtype is self.dtype and not copy else dtype(self)
        dtype = np.dtype(dtype)
        if _is_ml_dtype(dtype) and dtype.name == self.dtype.name:
            return self._bits.view(dtype).copy()
        with np.errstate(all="ignore"):
            return self.__array__().astype(dtype, order=order)

    def view(self, dtype):
        """The same bits as another type of the same width."""
        if isinstance(dtype, NarrowType):
            return dtype.from_bits(self._bits.view(dtype._storage))
        return self._bits.view(dtype)

    def fill(self, value):
        """Sets all elements to a value."""
        self._bits.fill(self.dtype(value)._bits[()])

    def __getitem__(self, at):
        found = self._bits[at]
        return self._moved(found) if isinstance(found, np.ndarray) else float(self.dtype._values[found])

    def __setitem__(self, at, value):
        self._bits[at] = self.dtype(value)._bits

    # ---- functions of numpy

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method == "at":
            raise TypeError(f"`{ufunc.__name__}.at` cannot change arrays of {self.dtype.name}; use an array of float32")
        outputs = kwargs.pop("out", ())
        if method == "reduceat" or any(not _is_known(value) for value in (*inputs, *outputs)):
            return NotImplemented
        asked = kwargs.pop("dtype", None)
        common = _common(inputs) if asked is None else asked
        if outputs:
            kwargs["out"] = tuple(np.asarray(out, np.float64) if isinstance(out, NarrowArray) else out for out in outputs)
        with np.errstate(all="ignore"):
            found = getattr(ufunc, method)(*[_widened(value) for value in inputs], **kwargs)
        if not outputs:
            return _narrowed(found, common)
        for out, wide in zip(outputs, kwargs["out"]):
            if isinstance(out, NarrowArray):
                out[...] = wide
        return outputs[0] if len(outputs) == 1 else outputs

    def __array_function__(self, function, types, args, kwargs):
        name = function.__name__
        if name in ("empty_like", "zeros_like", "ones_like", "full_like"):
            return _like(name, *args, **kwargs)
        if name in _CHANGING and isinstance(args[0], NarrowArray):
            wide = args[0].astype(np.float64)
            function(wide, *_widened(args[1:]), **_widened(kwargs))
            args[0][...] = wide
            return None
        common = _common((args, kwargs)) if kwargs.get("dtype") is None else kwargs["dtype"]
        if name == "result_type":
            return common
        is_plain = all(isinstance(value, NarrowArray) for value in _leaves((args, kwargs)) if isinstance(value, (np.ndarray, NarrowArray))
                       and _is_float(value)) and "dtype" not in kwargs
        if name in _MOVING and is_plain and isinstance(common, NarrowType):
            return _changed(function(*_changed(args, _bits), **_changed(kwargs, _bits)), lambda found: _from_bits(found, common))
        out = kwargs.pop("out", None)
        kwargs = {name: value for name, value in kwargs.items() if name != "dtype"}
        found = _narrowed(function(*_widened(args), **_widened(kwargs)), common)
        if out is None:
            return found
        out[...] = found
        return out


def _reduction(name):
    def method(self, *args, **kwargs):
        return getattr(np, name)(self, *args, **kwargs)
    method.__name__, method.__doc__ = name, f"`np.{name}` of the array."
    return method


for _name in ("sum", "prod", "mean", "std", "var", "max", "min", "argmax", "argmin", "argsort", "any", "all", "cumsum",
              "clip", "round", "dot", "nonzero"):
    setattr(NarrowArray, _name, _reduction(_name))


def _is_float(value):
    return isinstance(value, NarrowArray) or value.dtype.kind in "fc" or _is_ml_dtype(value.dtype)


def _is_known(value):
    """Whether a value takes part in functions of numpy: a number, an array of numpy or one of these. Others are told so."""
    if isinstance(value, (NarrowArray, np.ndarray, np.generic, bool, int, float, list, tuple)) or value is None:
        return True
    if type(value).__module__.startswith("torch"):
        raise TypeError("an array of numpy's kind and a tensor of PyTorch do not mix: convert one of them")
    return False


def _leaves(value):
    """The arrays and numbers in arguments."""
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    return [value]


def _common(values):
    """The type of a result: the one narrow type, unless there are wider floats."""
    values = _leaves(values)
    narrow = {value.dtype.name: value.dtype for value in values if isinstance(value, NarrowArray)}
    others = [value.dtype for value in values if isinstance(value, (np.ndarray, np.generic))]
    known = sorted([*narrow, *(str(dtype) for dtype in others if _is_ml_dtype(dtype))])
    if len(known) > 1:
        mixed = " and ".join(dict.fromkeys(known)) if len(set(known)) > 1 else f"{known[0]} of rtc and of ml_dtypes"
        raise TypeError(f"{mixed} have no common type: convert one of them with `.astype(..)`")
    floats = [dtype for dtype in others if dtype.kind in "fc"]
    own = next(iter(narrow.values()), None)
    if not floats or own is None:
        return own
    wide = np.result_type(*floats)
    return np.dtype(np.float32) if own.name == "bfloat16" and wide == np.float16 else wide


def _changed(value, change):
    """Arguments or results with a change made to each part."""
    if isinstance(value, (list, tuple)):
        items = [_changed(item, change) for item in value]
        return type(value)(items) if type(value) in (list, tuple) else type(value)(*items)
    if isinstance(value, dict):
        return {name: _changed(item, change) for name, item in value.items()}
    return change(value)


def _bits(value):
    return value._bits if isinstance(value, NarrowArray) else value


def _widened(value):
    """Arguments with all floats in double precision."""
    return _changed(value, lambda leaf: leaf.astype(np.float64) if isinstance(leaf, NarrowArray) or
                    isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind == "f" else leaf)


def _from_bits(found, common):
    return common.from_bits(found) if isinstance(found, np.ndarray) and found.dtype == common._storage else found


def _narrowed(value, common):
    """Results with all doubles rounded to a type; single numbers are numbers of Python."""
    def rounded(found):
        if not isinstance(found, (np.ndarray, np.generic)) or found.dtype != np.float64:
            return found
        if not isinstance(common, NarrowType):
            return found.astype(common)
        return common(found) if isinstance(found, np.ndarray) and found.ndim else float(common(found))
    return _changed(value, rounded)


def _like(name, model, fill=None, dtype=None, order="K", subok=True, shape=None):
    """`np.empty_like` and those beside it. `fill`: of `full_like` the value, of the others the dtype if it comes second."""
    if name != "full_like" and fill is not None:
        dtype = fill
    dtype = model.dtype if dtype is None else dtype
    bits = _bits(model)
    if not isinstance(dtype, NarrowType):
        made = np.empty_like(bits, dtype=dtype, order=order, shape=shape)
    else:
        made = dtype.from_bits(np.empty_like(bits, dtype=dtype._storage, order=order, shape=shape))
    if name != "empty_like":
        made[...] = {"zeros_like": 0, "ones_like": 1}.get(name, fill)
    return made


def allocated(name, make, args, kwargs):
    """What a function of numpy that allocates gives, `np.empty(shape, dtype)` or `np.empty_like(model, dtype)` and the like; it is
    called unless its dtype is one of these types."""
    place = 2 if name.startswith("full") else 1
    dtype = kwargs.get("dtype", args[place] if len(args) > place else None)
    if not isinstance(dtype, NarrowType):
        return make(*args, **kwargs)
    if name.endswith("_like"):
        return _like(name, *args, **kwargs)
    shape = kwargs.get("shape", args[0] if args else None)
    if name == "full":
        return dtype.full(shape, kwargs["fill_value"] if "fill_value" in kwargs else args[1])
    return {"empty": dtype.empty, "zeros": dtype.zeros, "ones": lambda shape: dtype.full(shape, 1)}[name](shape)


bfloat16 = NarrowType("bfloat16", 16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0)
float8_e4m3fn = NarrowType("float8_e4m3fn", 8, 3, 7, 0x7e, None, 0x7f)
float8_e5m2 = NarrowType("float8_e5m2", 8, 2, 15, 0x7b, 0x7c, 0x7e)

#: By name.
TYPES = {made.name: made for made in (bfloat16, float8_e4m3fn, float8_e5m2)}
