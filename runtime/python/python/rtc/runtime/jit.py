"""`jit`: Python functions as kernels."""

import hashlib
import inspect
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, overload

from .. import _gather, _rtc, knobs
from ..language import core as tl_core


def type_names() -> dict[str, str]:
    """Names of types as annotations write them, and as signatures do."""
    ints = {f"{'u' if u else ''}int{b}": f"{'u' if u else 'i'}{b}" for u in (False, True) for b in (8, 16, 32, 64)}
    floats = {"float8e4nv": "fp8e4nv", "float8e5": "fp8e5", "float8e4b15": "fp8e4b15", "float8e4b8": "fp8e4b8",
              "float8e5b16": "fp8e5b16", "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "half": "fp16",
              "float16": "fp16", "bfloat16": "bf16", "float": "fp32", "float32": "fp32", "double": "fp64",
              "float64": "fp64"}
    return {"bool": "i1", "int1": "u1", **ints, **floats, **{short: short for short in [*ints.values(), *floats.values()]}}


class KernelParam:
    """A parameter of a kernel."""

    def __init__(self, num, param, do_not_specialize, do_not_specialize_on_alignment):
        self.num, self._param = num, param
        self.do_not_specialize, self.do_not_specialize_on_alignment = do_not_specialize, do_not_specialize_on_alignment

    name = property(lambda self: self._param.name)
    default = property(lambda self: self._param.default)
    has_default = property(lambda self: self._param.default is not inspect.Parameter.empty)

    @property
    def annotation(self) -> str:
        """The annotation as text."""
        given = self._param.annotation
        if given is inspect.Parameter.empty:
            return ""
        return given if isinstance(given, str) else getattr(given, "__name__", str(given))

    @property
    def is_constexpr(self) -> bool:
        """Whether its value is known when the kernel is compiled."""
        return "constexpr" in self.annotation

    @property
    def is_const(self) -> bool:
        """Whether it is a pointer that is only read through."""
        return "const" in self.annotation and not self.is_constexpr

    @property
    def annotation_type(self) -> str:
        """Its type as signatures write it; empty if the annotation has none."""
        name = self.annotation.split(".")[-1]
        if name.startswith("*"):
            return name
        return type_names().get(name, "")


class KernelInterface:
    """What can be launched as `kernel[grid](..)`."""

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Compiles for such arguments and launches nothing."""
        return self.run(*[MockTensor.wrap_dtype(arg) for arg in args], grid=grid, warmup=True, **kwargs)

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launches."""
        raise NotImplementedError("run is not implemented")

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)


class JITCallable:
    """A function of the kernel language."""


class JITFunction(_rtc.Kernel, JITCallable, KernelInterface):
    """A kernel, or a function that kernels call."""
    #: How the source calls its decorator, and text before the function, where they are not the usual.
    _decorator: str
    _preamble: str

    def __init__(self, fn, version=None, do_not_specialize=None, do_not_specialize_on_alignment=None, debug=None,
                 noinline=None, repr=None, launch_metadata=None):
        self.fn = fn
        self.module = fn.__module__
        self.version, self.debug, self.noinline = version, debug, noinline
        self._repr, self.launch_metadata = repr, launch_metadata
        self.do_not_specialize = list(do_not_specialize or [])
        self.do_not_specialize_on_alignment = list(do_not_specialize_on_alignment or [])
        self._fn_name = f"{fn.__module__}.{fn.__qualname__}"
        self.__doc__, self.__name__, self.__qualname__ = fn.__doc__, fn.__name__, fn.__qualname__
        self.__module__, self.__globals__ = fn.__module__, fn.__globals__
        self.signature = inspect.signature(fn)
        self._own_source = self._key = self._hash_lock = None
        self._read_signature()
        self.pre_run_hooks = []
        self.kernel = None
        self.used_global_vals = {}

    def _read_signature(self):
        params = []
        for number, param in enumerate(self.signature.parameters.values()):
            lists = (self.do_not_specialize, self.do_not_specialize_on_alignment)
            params.append(KernelParam(number, param, *(number in names or param.name in names for names in lists)))
        self.params = params
        self.arg_names = [p.name for p in params]
        self.constexprs = [p.num for p in params if p.is_constexpr]
        options = {}
        if self.debug or knobs.runtime.debug:
            options["debug"] = True
        if not knobs.language.default_fp_fusion:
            options["enable_fp_fusion"] = False
        given = [(p.name, p.is_constexpr, (p.default,) if p.has_default else ()) for p in params]
        self._own_name = self.fn.__code__.co_name
        self._configure(self._own_name, given, options)
        self._compiled_kernels = []

    @property
    def repr(self) -> Callable[[Any], str]:
        """The function that makes the name of a specialization."""
        return self._repr if self._repr is not None else lambda _: self._fn_name

    @repr.setter
    def repr(self, function: Callable[[Any], str] | None) -> None:
        self._repr = function

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        """Other processes get what describes the kernel, not its function."""
        left_out = {"_compiled_kernels": [], "fn": None, "__globals__": None}
        return _restored, (type(self),), {**self.__dict__, **left_out}

    # ---- source

    def _decorator_text(self):
        words = []
        if self.noinline:
            words.append("noinline=True")
        for name in ("do_not_specialize", "do_not_specialize_on_alignment"):
            if getattr(self, name):
                words.append(f"{name}={list(getattr(self, name))!r}")
        return "@triton.jit" + (f"({', '.join(words)})" if words else "")

    @property
    def src(self) -> str:
        """The function's text, from `def` on."""
        text, _, _ = _gather.source_of(self)
        at = text.find("def ")
        return text[max(at, 0):]

    @src.setter
    def src(self, text: str) -> None:
        raise AttributeError("Cannot set attribute 'src' directly. Use '_unsafe_update_src()' instead.")

    @property
    def raw_src(self) -> list[str]:
        """The lines of its text."""
        return self.src.splitlines(keepends=True)

    @property
    def starting_line_number(self) -> int:
        """The line of the file where it begins."""
        return _gather.source_of(self)[1]

    def _unsafe_update_src(self, text):
        """Gives the function another text."""
        _, line, file = _gather.source_of(self)
        self._own_source = text, line, file
        self._key = None
        self._read_signature()

    def _gathered(self, functions=()):
        made = _gather.Gathered()
        extra = [(f"__argument_{number}", function) for number, function in enumerate(functions)]
        made.function(self, "jit", self._decorator_text(), extra)
        return made

    def _modules(self, functions):
        made = self._gathered(functions)
        self._watch([(d, n, v) for d, n, v in made.watched if isinstance(d, dict)])
        return [tuple(module) for module in made.modules]

    def _global_changed(self, name, then, now):
        if type(then) is type(now) and (then == now or _gather.literal(then) == _gather.literal(now)):
            return
        value = getattr(then, "value", then)
        if getattr(now, "value", now) == value:
            return
        raise RuntimeError(f"Global variable {name} has changed since we compiled this kernel, from {then} to {now}")

    @property
    def cache_key(self) -> str:
        """A hash of all that the function's meaning depends on, but for its arguments."""
        if self._key is None:
            text = json.dumps([[name, body] for name, _, body in self._gathered().modules])
            self._key = hashlib.sha256(text.encode()).hexdigest() + str(self.starting_line_number)
        return self._key

    @property
    def hash(self) -> str:
        """The same as `cache_key`."""
        return self.cache_key

    def __hash__(self):
        return object.__hash__(self)

    def __eq__(self, other):
        return self is other

    # ---- launches

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launches, or only compiles for `warmup`."""
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        return self._launch(grid, warmup, args, kwargs)

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Compiles for such arguments and launches nothing; dtypes may stand for tensors."""
        return self.run(*[MockTensor.wrap_dtype(arg) for arg in args], grid=grid, warmup=True, **kwargs)

    def add_pre_run_hook(self, hook: Callable[..., object]) -> None:
        """Has `hook` called with the arguments before each launch."""
        self.pre_run_hooks.append(hook)
        self.__class__ = _HookedFunction

    def _compiled(self, ready, is_warmup):
        """What Python has of a kernel that is new to this process; None where a hook keeps it from being launched."""
        from ..compiler.compiler import CompiledKernel
        made = CompiledKernel(self, ready)
        if self._tell(knobs.runtime.jit_cache_hook, made, is_warmup):
            return None
        self._compiled_kernels.append(made)
        loaded = ready, ready, made.name, {}, made.hash
        knobs.runtime.kernel_load_start_hook(*loaded)
        knobs.runtime.kernel_load_end_hook(*loaded)
        self._tell(knobs.runtime.jit_post_compile_hook, made, is_warmup)
        return made

    def _tell(self, hook, made, is_warmup):
        """Calls a hook of compilations, if there is one."""
        if hook is None:
            return None
        metadata, spec = made.metadata, json.loads(made._ready.spec())
        signature = dict(made._ready.signature())
        options = {"num_warps": metadata.num_warps, "num_ctas": metadata.num_ctas, "num_stages": metadata.num_stages,
                   "enable_fp_fusion": spec["options"].get("enable_fp_fusion", True),
                   "launch_cooperative_grid": metadata.launch_cooperative_grid}
        constants = {(at,): arg["constexpr"] for at, arg in enumerate(spec["args"]) if "constexpr" in arg}
        words = ", ".join(f"{name}={value}" for name, value in options.items())
        types = ", ".join(f"{name}: {ty}" for name, ty in signature.items())
        described = {"key": made.hash, "signature": signature, "constants": constants, **options, "extern_libs": None, "configs": [],
                     "device": ready_device(made), "specialization_data": json.dumps(spec), "is_warmup": is_warmup}
        return hook(key=made.hash, repr=f"{self.fn.__qualname__}[{words}]({types})",
                    fn=JitFunctionInfo(self.fn.__module__, self.fn.__qualname__, self), compile=described,
                    is_manual_warmup=is_warmup, already_compiled=False)

    def _enter(self, compiled, grid, stream, args):
        if knobs.runtime.launch_enter_hook is not None:
            knobs.runtime.launch_enter_hook(compiled._launch_metadata(grid, stream, args))

    def _exit(self, compiled, grid, stream, args):
        if knobs.runtime.launch_exit_hook is not None:
            knobs.runtime.launch_exit_hook(compiled._launch_metadata(grid, stream, args))

    def _findings(self, compiled):
        for text in compiled._ready.take_findings():
            knobs.report_finding(self.__name__, text)

    @property
    def device_caches(self) -> dict[int, Any]:
        """The compiled kernels, as Triton keeps them: by device, then by key."""
        caches = defaultdict(lambda: ({}, {}, None, None, None))
        caches[0] = ({k.hash: k for k in self._compiled_kernels}, {}, None, None, None)
        return caches

    def is_gluon(self) -> bool:
        """Whether it is a kernel of Gluon: never."""
        return False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuses: kernels are launched by `kernel[grid](..)`."""
        raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel; `kernel[grid](..)` launches it")

    def __repr__(self):
        return f"JITFunction({self.module}:{self.fn.__qualname__})"


def _restored(cls):
    """A kernel without content, for pickles."""
    return cls.__new__(cls)


@dataclass
class JitFunctionInfo:
    """The function of a kernel, as hooks of compilations are told."""
    module: str
    name: str
    jit_function: JITFunction


def ready_device(compiled: Any) -> int:
    """The number of the GPU of a compiled kernel; 0 for the CPU."""
    words = compiled._ready.device()
    number = words[5:].split(" ")[0] if words.startswith("cuda:") else "0"
    return int(number)


class _HookedFunction(JITFunction):
    """A kernel with hooks before its launches."""

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)


class ConstexprFunction(JITCallable):
    """A Python function that kernels call with constexprs, and host code as it is."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self._own_source = None
        self.__name__, self.__doc__, self.__module__ = fn.__name__, fn.__doc__, fn.__module__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it from host code."""
        unwrap = tl_core._unwrap_if_constexpr
        return unwrap(self.fn(*[unwrap(a) for a in args], **{k: unwrap(v) for k, v in kwargs.items()}))

    def __get__(self, obj, objclass):
        if obj is None:
            return self
        return lambda *args, **kwargs: self(obj, *args, **kwargs)

    @property
    def cache_key(self) -> str:
        """A hash of all that the function's meaning depends on."""
        made = _gather.Gathered()
        made.function(self, "constexpr", "@triton.constexpr_function")
        return hashlib.sha256(repr([m[2] for m in made.modules]).encode()).hexdigest()


def constexpr_function(fn: Callable[..., Any]) -> ConstexprFunction:
    """Makes a Python function that kernels call with constexprs."""
    return ConstexprFunction(fn)


@overload
def jit(fn: Callable[..., Any]) -> JITFunction: ...
@overload
def jit(*, version: Any = None, repr: Callable[[Any], str] | None = None, launch_metadata: Callable[..., Any] | None = None,
        do_not_specialize: Iterable[int | str] | None = None, do_not_specialize_on_alignment: Iterable[int | str] | None = None,
        debug: bool | None = None, noinline: bool | None = None) -> Callable[[Callable[..., Any]], JITFunction]: ...
def jit(fn=None, *, version=None, repr=None, launch_metadata=None, do_not_specialize=None,
        do_not_specialize_on_alignment=None, debug=None, noinline=None):
    """Makes a kernel of a function, or a function that kernels call."""

    def decorator(fn):
        if not inspect.isfunction(fn):
            raise TypeError(f"rtc.jit takes a function, not {fn!r}; it is the innermost decorator, below `@triton.autotune` and "
                            "`@triton.heuristics` (rtc explain autotuning-order)")
        if not _gather.has_source(fn):
            raise _gather.NoSource(fn)
        if os.environ.get("TRITON_INTERPRET", "").lower() in ("1", "true", "on", "yes", "y"):
            _rtc.set_device("interpreter")
        return JITFunction(fn, version=version, do_not_specialize=do_not_specialize,
                           do_not_specialize_on_alignment=do_not_specialize_on_alignment, debug=debug, noinline=noinline,
                           repr=repr, launch_metadata=launch_metadata)

    return decorator(fn) if fn is not None else decorator


class MockTensor:
    """Stands for a tensor of a dtype where a kernel is only compiled."""

    @staticmethod
    def wrap_dtype(arg: Any) -> Any:
        """A stand-in for a dtype of PyTorch; anything else as it is."""
        if type(arg).__name__ == "dtype" and type(arg).__module__ == "torch":
            return MockTensor(arg)
        return arg

    def __init__(self, dtype: Any, shape: list[int] | None = None) -> None:
        self.dtype, self.shape = dtype, [1] if shape is None else shape

    def stride(self) -> tuple[int, ...]:
        """Strides of a tensor whose elements lie row after row."""
        strides = [1]
        for size in reversed(self.shape[1:]):
            strides.append(strides[-1] * size)
        return tuple(reversed(strides))

    @staticmethod
    def data_ptr() -> int:
        """The address of no tensor."""
        return 0

    @staticmethod
    def ptr_range() -> int:
        """The bytes of no tensor."""
        return 0


class TensorWrapper:
    """A tensor seen as one of another dtype."""

    def __init__(self, base: Any, dtype: Any) -> None:
        self.dtype, self.base = dtype, base
        self.data, self.device, self.shape = getattr(base, "data", base), getattr(base, "device", None), base.shape

    def data_ptr(self) -> int:
        """The address of the elements."""
        if hasattr(self.base, "data_ptr"):
            return self.base.data_ptr()
        return self.base.__array_interface__["data"][0]

    def stride(self, *args: Any) -> Any:
        """The strides in elements."""
        return self.base.stride(*args)

    def element_size(self) -> int:
        """The bytes of an element."""
        return self.base.element_size()

    def cpu(self) -> "TensorWrapper":
        """The tensor on the CPU."""
        return TensorWrapper(self.base.cpu(), self.dtype)

    def copy_(self, other: "TensorWrapper") -> None:
        """Takes the elements of another."""
        self.base.copy_(other.base)

    def clone(self) -> "TensorWrapper":
        """A copy."""
        return TensorWrapper(self.base.clone(), self.dtype)

    def to(self, device: Any) -> "TensorWrapper":
        """The tensor on a device."""
        return TensorWrapper(self.base.to(device), self.dtype)

    def new_empty(self, sizes: Any) -> "TensorWrapper":
        """A new tensor of the same kind."""
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def __str__(self):
        return f"TensorWrapper[{self.dtype}]({self.base})"


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """A tensor as one of another dtype of the kernel language."""
    if isinstance(tensor, TensorWrapper):
        return tensor.base if dtype == tensor.base.dtype else TensorWrapper(tensor.base, dtype)
    if hasattr(tensor, "data_ptr") or hasattr(tensor, "__array_interface__"):
        return TensorWrapper(tensor, dtype)
    raise TypeError(f"Cannot reinterpret a {type(tensor)}.")


def get_jit_fn_file_line(fn: Any) -> tuple[str, int]:
    """The file and the line of a kernel."""
    text, line, file = _gather.source_of(fn)
    before = text[:max(text.find("def "), 0)].count("\n")
    return file, line + before
