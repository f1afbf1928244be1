"""What host code sees of the kernel language: dtypes, constexprs, and the names of functions that only kernels can call."""

import ast
import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

from .. import _rtc

TRITON_MAX_TENSOR_NUMEL = 1048576


class dtype:
    """A type of elements."""

    SINT_TYPES = ["int8", "int16", "int32", "int64"]
    UINT_TYPES = ["int1", "uint8", "uint16", "uint32", "uint64"]
    FP_TYPES = ["fp8e4b15", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", "fp16", "bf16", "fp32", "fp64"]
    STANDARD_FP_TYPES = ["fp16", "bf16", "fp32", "fp64"]
    OTHER_TYPES = ["void"]

    class SIGNEDNESS:
        """Whether an integer type has a sign."""

        SIGNED = 0
        UNSIGNED = 1

    _BITS = {"void": 0, "int1": 1, "bf16": 16}
    _MANTISSA = {"fp8e4b15": (3, 15), "fp8e4nv": (3, 7), "fp8e4b8": (3, 8), "fp8e5": (2, 15), "fp8e5b16": (2, 16),
                 "fp16": (10, 15), "bf16": (7, 127), "fp32": (23, 127), "fp64": (52, 1023)}
    _PUBLIC = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}

    def __init__(self, name):
        name = _unwrap(name)
        known = dtype.SINT_TYPES + dtype.UINT_TYPES + dtype.FP_TYPES + dtype.OTHER_TYPES
        if name not in known:
            raise ValueError(f"there is no dtype {name!r}; dtypes are {', '.join(known)}")
        self.name = name
        if name in dtype._BITS:
            self.primitive_bitwidth = dtype._BITS[name]
        elif name.startswith("fp8"):
            self.primitive_bitwidth = 8
        else:
            self.primitive_bitwidth = int(name.lstrip("uintfp"))
        self.itemsize = self.primitive_bitwidth // 8
        if name in dtype.SINT_TYPES:
            self.int_signedness, self.int_bitwidth = dtype.SIGNEDNESS.SIGNED, self.primitive_bitwidth
        elif name in dtype.UINT_TYPES:
            self.int_signedness, self.int_bitwidth = dtype.SIGNEDNESS.UNSIGNED, self.primitive_bitwidth
        elif name in dtype.FP_TYPES:
            self.fp_mantissa_width, self.exponent_bias = dtype._MANTISSA[name]

    @property
    def _signature(self):
        """As signatures of kernels write it."""
        if self.name == "int1":
            return "u1"
        return self.name.replace("uint", "u").replace("int", "i")

    def is_fp8(self) -> bool: return "fp8" in self.name
    def is_fp8e4nv(self) -> bool: return self.name == "fp8e4nv"
    def is_fp8e4b8(self) -> bool: return self.name == "fp8e4b8"
    def is_fp8e4b15(self) -> bool: return self.name == "fp8e4b15"
    def is_fp8e5(self) -> bool: return self.name == "fp8e5"
    def is_fp8e5b16(self) -> bool: return self.name == "fp8e5b16"
    def is_fp16(self) -> bool: return self.name == "fp16"
    def is_bf16(self) -> bool: return self.name == "bf16"
    def is_fp32(self) -> bool: return self.name == "fp32"
    def is_fp64(self) -> bool: return self.name == "fp64"
    def is_int1(self) -> bool: return self.name == "int1"
    def is_int8(self) -> bool: return self.name == "int8"
    def is_int16(self) -> bool: return self.name == "int16"
    def is_int32(self) -> bool: return self.name == "int32"
    def is_int64(self) -> bool: return self.name == "int64"
    def is_uint8(self) -> bool: return self.name == "uint8"
    def is_uint16(self) -> bool: return self.name == "uint16"
    def is_uint32(self) -> bool: return self.name == "uint32"
    def is_uint64(self) -> bool: return self.name == "uint64"
    def is_floating(self) -> bool: return self.name in dtype.FP_TYPES
    def is_standard_floating(self) -> bool: return self.name in dtype.STANDARD_FP_TYPES
    def is_int_signed(self) -> bool: return self.name in dtype.SINT_TYPES
    def is_int_unsigned(self) -> bool: return self.name in dtype.UINT_TYPES
    def is_int(self) -> bool: return self.is_int_signed() or self.is_int_unsigned()
    def is_bool(self) -> bool: return self.name == "int1"
    def is_void(self) -> bool: return self.name == "void"
    def is_block(self) -> bool: return False
    def is_ptr(self) -> bool: return False
    def is_const(self) -> bool: return False

    @staticmethod
    def is_dtype(text: str) -> bool:
        return text in dtype.SINT_TYPES + dtype.UINT_TYPES + dtype.FP_TYPES + dtype.OTHER_TYPES

    @property
    def scalar(self) -> "dtype":
        return self

    @property
    def element_ty(self) -> "dtype":
        raise TypeError(f"{self} is no pointer and no block")

    def get_int_max_value(self) -> int:
        """The largest integer of the type."""
        if not self.is_int():
            raise TypeError(f"{self} is no integer type")
        return 2 ** (self.int_bitwidth - (1 if self.is_int_signed() else 0)) - 1

    def get_int_min_value(self) -> int:
        """The smallest integer of the type."""
        if not self.is_int():
            raise TypeError(f"{self} is no integer type")
        return -2 ** (self.int_bitwidth - 1) if self.is_int_signed() else 0

    def __eq__(self, other):
        other = _unwrap(other)
        return type(other) is dtype and self.name == other.name

    def __hash__(self):
        return hash((self.name,))

    def __str__(self):
        return self.name

    def __repr__(self):
        public = dtype._PUBLIC.get(self.name, self.name.replace("fp8", "float8"))
        return f"triton.language.{public}"


class pointer_type(dtype):
    """The type of pointers to elements of a type."""

    def __init__(self, element_ty, address_space=1, const=False):
        element_ty = _unwrap(element_ty)
        if not isinstance(element_ty, dtype):
            raise TypeError(f"element_ty has type `{type(element_ty).__name__}`; expected `dtype`.")
        self._element_ty, self.address_space, self.const = element_ty, address_space, const
        self.primitive_bitwidth, self.itemsize = 64, 8
        self.name = f"pointer<{element_ty}>" if not const else f"const_pointer<{element_ty}>"

    @property
    def _signature(self):
        return ("*k" if self.const else "*") + self._element_ty._signature

    @property
    def element_ty(self) -> "dtype":
        return self._element_ty

    def is_ptr(self) -> bool: return True
    def is_const(self) -> bool: return self.const

    def __eq__(self, other):
        other = _unwrap(other)
        return isinstance(other, pointer_type) and self._element_ty == other._element_ty and self.const == other.const

    def __hash__(self):
        return hash((self.name, self.const))

    def __repr__(self):
        return f"triton.language.pointer_type({self._element_ty!r})"


class block_type(dtype):
    """The type of blocks of elements."""

    def __init__(self, element_ty, shape):
        self._element_ty = _unwrap(element_ty)
        self.shape = tuple(_unwrap(size) for size in shape)
        if not self.shape:
            raise TypeError("0d block_type is forbidden")
        self.numel = functools.reduce(lambda a, b: a * b, self.shape, 1)
        self.primitive_bitwidth = self._element_ty.primitive_bitwidth
        self.itemsize = self._element_ty.itemsize
        self.name = f"<{list(self.shape)}, {self._element_ty}>"

    @property
    def _signature(self):
        return self.name

    @property
    def element_ty(self) -> "dtype":
        return self._element_ty

    @property
    def scalar(self) -> "dtype":
        return self._element_ty

    def is_block(self) -> bool: return True
    def get_block_shapes(self) -> tuple[int, ...]: return self.shape

    def __eq__(self, other):
        return isinstance(other, block_type) and self._element_ty == other._element_ty and self.shape == other.shape

    def __hash__(self):
        return hash(self.name)


def _unwrap(value):
    return value.value if isinstance(value, constexpr) else value


def _unwrap_if_constexpr(value):
    if isinstance(value, list):
        return [_unwrap_if_constexpr(item) for item in value]
    return _unwrap(value)


_unwrap_shape = _unwrap_if_constexpr


class constexpr:
    """A value that is known when a kernel is compiled. Its operators give such values, too."""

    def __init__(self, value):
        while isinstance(value, constexpr):
            value = value.value
        self.value: Any = value

    def __repr__(self): return f"constexpr[{self.value}]"
    def __hash__(self): return hash((self.value, type(self.value)))
    def __index__(self): return self.value
    def __bool__(self): return bool(self.value)
    def __int__(self): return int(self.value)
    def __float__(self): return float(self.value)
    def __neg__(self): return constexpr(-self.value)
    def __pos__(self): return constexpr(+self.value)
    def __invert__(self): return constexpr(~self.value)
    def not_(self) -> "constexpr": return constexpr(not self.value)
    def logical_and(self, other: Any) -> "constexpr": return constexpr(self.value and _unwrap(other))
    def logical_or(self, other: Any) -> "constexpr": return constexpr(self.value or _unwrap(other))
    def __call__(self, *args, **kwargs): return self.value(*args, **kwargs)
    def __getitem__(self, *args): return self.value[tuple(_unwrap(a) for a in args)[0]]

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.value, name)


def _operator(name, swapped):
    import operator
    of = getattr(operator, name)

    def method(self, other):
        a, b = self.value, _unwrap(other)
        return constexpr(of(b, a) if swapped else of(a, b))

    return method


for _name in ["add", "sub", "mul", "mod", "truediv", "floordiv", "lshift", "rshift", "and_", "or_", "xor", "pow"]:
    setattr(constexpr, f"__{_name.rstrip('_')}__", _operator(_name, False))
    setattr(constexpr, f"__r{_name.rstrip('_')}__", _operator(_name, True))
for _name in ["lt", "le", "gt", "ge", "eq", "ne"]:
    setattr(constexpr, f"__{_name}__", _operator(_name, False))


class const:
    """An annotation: a pointer that is only read through."""


class tensor:
    """The type of values in kernels; host code has none of them."""

    def __init__(self, *args, **kwargs):
        raise TypeError("tensors of the kernel language exist in kernels only")


class tensor_descriptor(tensor):
    """The type of tensor descriptors in kernels."""


class PropagateNan:
    """Whether a minimum or maximum gives NaN if an operand is NaN."""
    NONE = "none"
    ALL = "all"


class KernelFunction:
    # A function of the kernel language, which only kernels can call. Its docstring and signature are those of the reference,
    # looked up when they are asked for.

    def __init__(self, namespace, name):
        self.__name__ = self.__qualname__ = name
        self._namespace = namespace
        self.__module__ = _MODULES.get(namespace, "triton.language")

    def __call__(self, *args, _semantic=None, **kwargs):
        raise ValueError(f"Did you forget to add @triton.jit ? (`{self._namespace}.{self.__name__}` can only be called in kernels)")

    def __repr__(self):
        return f"<function {self._namespace}.{self.__name__} of the kernel language>"

    @property
    def __doc__(self):  # type: ignore[override]
        try:
            return _rtc.explain(f"{self._namespace}.{self.__name__}")
        except LookupError:
            return "A function of the kernel language. Only kernels can call it."

    @property
    def __signature__(self):
        written = _rtc.language_parameters(self._namespace, self.__name__)
        return None if written is None else _signature(written)


def _signature(written):
    """The signature of parameters as the reference writes them."""
    kinds = inspect.Parameter
    kind: Any = kinds.POSITIONAL_OR_KEYWORD
    parameters = []
    for text in written:
        head, _, default = (part.strip() for part in text.partition("="))
        name, _, annotation = (part.strip() for part in head.partition(":"))
        if name == "/":
            parameters = [p.replace(kind=kinds.POSITIONAL_ONLY) for p in parameters]
            continue
        if name == "*":
            kind = kinds.KEYWORD_ONLY
            continue
        own = kinds.VAR_KEYWORD if name.startswith("**") else kinds.VAR_POSITIONAL if name.startswith("*") else kind
        if own is kinds.VAR_POSITIONAL:
            kind = kinds.KEYWORD_ONLY
        try:
            value = ast.literal_eval(default) if default else kinds.empty
        except ValueError:
            value = default
        parameters.append(kinds(name.lstrip("*"), own, default=value, annotation=annotation or kinds.empty))
    return inspect.Signature(parameters)


_MODULES = {"tl": "triton.language", "libdevice": "triton.language.extra.libdevice",
            "tl.extra.cuda": "triton.language.extra.cuda", "triton_helpers": "torch._inductor.runtime.triton_helpers",
            "tl.target_info": "triton.language.target_info"}

#: The functions of each namespace.
FUNCTIONS: dict[str, dict[str, KernelFunction]] = {}
for _namespace, _name in _rtc.language_names():
    FUNCTIONS.setdefault(_namespace, {})[_name] = KernelFunction(_namespace, _name)


def builtin(function: Any) -> NoReturn:
    """Marks functions of a compiler's front end; rtc has no use for them."""
    raise NotImplementedError("rtc: functions in Triton's IR builder (`tl.core.builtin`) cannot be added; write a @triton.jit function")


def extern(function: Callable[..., Any]) -> Any:
    """Marks wrappers of functions of a library."""
    from ..runtime.jit import JITFunction
    made = JITFunction(function)
    made._decorator = "triton.language.core.extern"
    return made


def _aggregate(cls):
    """Marks a class whose values kernels hold: its annotations are the fields."""
    cls.__triton_aggregate__ = True
    return cls


def constexpr_function(function: Callable[..., Any]) -> Any:
    """Makes a Python function that kernels call with constexprs."""
    from ..runtime.jit import ConstexprFunction
    return ConstexprFunction(function)


class static_range:
    """`range` that is unrolled; in kernels only."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError("static_range can only be used in @triton.jit'd functions")


class range:  # noqa: A001
    """`range` with options; in kernels only."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError("tl.range can only be used in @triton.jit'd functions")


void = dtype("void")
int1, int8, int16, int32, int64 = (dtype(n) for n in ["int1", "int8", "int16", "int32", "int64"])
uint8, uint16, uint32, uint64 = (dtype(n) for n in ["uint8", "uint16", "uint32", "uint64"])
float8e5, float8e5b16, float8e4nv, float8e4b8, float8e4b15 = (
    dtype(n) for n in ["fp8e5", "fp8e5b16", "fp8e4nv", "fp8e4b8", "fp8e4b15"])
float16, bfloat16, float32, float64 = (dtype(n) for n in ["fp16", "bf16", "fp32", "fp64"])
pi32_t = pointer_type(int32)

_BY_NAME = {str(t): t for t in [void, int1, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float8e5, float8e5b16,
                                float8e4nv, float8e4b8, float8e4b15, float16, bfloat16, float32, float64]}


def str_to_ty(name: str, c: Any = None) -> Any:
    """The type of a signature's spelling, such as `fp16` or `*fp32`."""
    from ..runtime.jit import type_names
    if name.startswith("*"):
        is_const = name.startswith("*k")
        return pointer_type(str_to_ty(name[2 if is_const else 1:]), const=is_const)
    if name == "constexpr":
        return constexpr
    short = type_names().get(name, name)
    for known in _BY_NAME.values():
        if short in (known.name, known._signature) or (short, known.name) == ("i1", "int1"):
            return known
    raise ValueError(f"there is no type {name!r}")


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer type of so many bits."""
    return _BY_NAME["int1" if bitwidth == 1 else f"{'' if signed else 'u'}int{bitwidth}"]


def is_own(value: Any) -> bool:
    """Whether a value is a function of the kernel language."""
    return isinstance(value, KernelFunction) or value in (static_range, range) if not inspect.ismodule(value) else False


def __getattr__(name):
    if name in FUNCTIONS["tl"]:
        return FUNCTIONS["tl"][name]
    raise AttributeError(f"rtc has no `triton.language.{name}`")
