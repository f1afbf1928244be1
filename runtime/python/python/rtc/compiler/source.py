"""Kernels to be compiled for what is said of their arguments, not for arguments: `ASTSource`, and what comes of it."""

import hashlib
import json
from typing import Any

from .. import _rtc
from ..language import core as tl_core


class ASTSource:
    """A kernel, the types of its parameters (`"*fp32"`, `"i32"`, `"constexpr"`), its constants by name or place, and what is
    known of arguments, `{(0,): [["tt.divisibility", 16]]}`."""

    def __init__(self, fn, signature, constexprs=None, attrs=None):
        for name in signature:
            if not isinstance(name, str):
                raise TypeError("Signature keys must be string")
        self.fn, self.signature, self.name, self.ext = fn, signature, fn.__name__, "ttir"
        place = lambda name: (fn.arg_names.index(name),) if isinstance(name, str) else name
        self.constants = {place(name): value for name, value in (constexprs or {}).items()}
        self.attrs = dict(attrs or {})

    @classmethod
    def of(cls, fn: Any) -> "ASTSource":
        """A kernel that was compiled for arguments."""
        made = cls.__new__(cls)
        made.fn, made.signature, made.name, made.ext, made.constants, made.attrs = fn, {}, fn.__name__, "ttir", {}, {}
        return made

    def hash(self) -> str:
        """What tells sources apart."""
        key = lambda value: getattr(value, "cache_key", None) or str(value)
        constants = [(place, key(value)) for place, value in sorted(self.constants.items())]
        text = f"{self.fn.cache_key}-{self.attrs}-{sorted(self.signature.items())}-{constants}"
        return hashlib.sha256(text.encode()).hexdigest()

    def parse_options(self) -> dict[str, Any]:
        """Options that belong to the source: none."""
        return {}

    def spec(self, options: dict[str, Any], functions: list[Any]) -> dict[str, Any]:
        """The specification as `rtc build --spec` takes it; functions among the constants are added to `functions`."""
        # Programs may pass all keywords of a launch as options: one that names a parameter sets no option that Triton lacks.
        taken = set(_rtc.rtc_option_names()).intersection(self.fn.arg_names)
        return {"kernel": self.fn._own_name,
                "options": {n: v for n, v in options.items() if v is not None and n not in taken},
                "args": [self._arg(index, name, functions) for index, name in enumerate(self.fn.arg_names)]}

    def _arg(self, index, name, functions):
        ty = self.signature.get(name, "constexpr")
        if (index,) in self.constants:
            return {"name": name, "constexpr": constant(self.constants[index,], functions)}
        if isinstance(ty, (tuple, list)):
            return {"name": name, "tuple": [self._item((index, at), item, functions) for at, item in enumerate(ty)]}
        if ty == "constexpr":
            raise ValueError(f"kernel `{self.name}`: the constant `{name}` has no value")
        return {"name": name, **self._value((index,), ty)}

    def _item(self, place, ty, functions):
        if place in self.constants or ty == "constexpr":
            return {"constexpr": constant(self.constants.get(place), functions)}
        return self._value(place, ty)

    def _value(self, place, ty):
        factors = [value for key, value in self.attrs.get(place, []) if key == "tt.divisibility"]
        return {"type": ty, "divisible_by": factors[0]} if factors and not ty.startswith("tensordesc") else {"type": ty}


def constant(value: Any, functions: list[Any]) -> Any:
    """A constant as a specification has it."""
    from ..runtime.jit import JITCallable
    value = tl_core._unwrap(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else {"float": str(value)}
    if isinstance(value, tl_core.dtype):
        return {"dtype": value._signature}
    if isinstance(value, (JITCallable, tl_core.KernelFunction)):
        if value not in functions:
            functions.append(value)
        return {"function": f"__argument_{functions.index(value)}"}
    if isinstance(value, (tuple, list)):
        return [constant(item, functions) for item in value]
    if hasattr(value, "__index__"):
        return value.__index__()
    raise TypeError(f"{value!r} is no constant of the kernel language")


class Build:
    """A compiled kernel, which is loaded when it is launched. It can be sent to other processes: they load what the cache on
    disk has, or compile again."""

    def __init__(self, loaded=None):
        self.stages = self.target = self._modules = None
        self._loaded = loaded
        if loaded is not None:
            self.metadata, self.key = json.loads(loaded.metadata()), loaded.key()
            self.spec = json.loads(loaded.spec())

    @classmethod
    def of(cls, src: ASTSource, target: Any, arch: str, options: dict[str, Any]) -> "Build":
        """Compiles."""
        made, functions = cls(), []
        made.target, made.spec = target, src.spec(options, functions)
        made._modules = src.fn._modules(functions)
        metadata, made.key = _rtc.compile_spec(made._modules, json.dumps(made.spec), arch)
        made.metadata = json.loads(metadata)
        return made

    def loaded(self) -> Any:
        """The kernel, loaded."""
        if self._loaded is None:
            assert self._modules is not None
            kernel, backend = self.spec["kernel"], self.target.backend
            self._loaded = _rtc.ready_for(self._modules, kernel, json.dumps(self.spec), backend)
        return self._loaded

    def __getstate__(self):
        if self._modules is None:
            raise TypeError("a kernel that was compiled at its launch cannot be pickled; `compile` makes kernels that can")
        return {**self.__dict__, "_loaded": None, "stages": None}
