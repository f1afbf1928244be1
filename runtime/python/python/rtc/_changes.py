"""Which arguments a kernel changes: what `torch.compile` must know of kernels that a program launches itself.

PyTorch reads it from Triton's IR; under `python -m rtc` it asks here, and the answer is the compiler's own analysis, the
`access` of the metadata."""

import functools
import importlib.abc
import importlib.machinery
import json
import sys

from . import _rtc

#: Where PyTorch keeps the function that tells it.
MODULE, FUNCTION = "torch._higher_order_ops.triton_kernel_wrap", "identify_mutated_tensors"


def changed_arguments(kernel, kwargs, descriptors=None):
    """The names of the tensors among the arguments that a launch may write. `descriptors` has for each tensor that stands for
    a descriptor how it was made: `("stable", (block_shape,))`."""
    from .compiler.compiler import make_backend
    from .compiler.source import ASTSource
    from .runtime.driver import driver
    from .runtime.jit import JITFunction
    while not isinstance(kernel, JITFunction):
        configs = getattr(kernel, "configs", None)
        # The tensors that are written are the same with each of them.
        kwargs = {**kwargs, **configs[0].kwargs} if configs else kwargs
        kernel = kernel.fn
    signature, constants, tensors = {}, {}, []
    for param in kernel.params:
        value = kwargs[param.name] if param.name in kwargs or not param.has_default else param.default
        ty = _type(value, (descriptors or {}).get(param.name))
        if ty[0] in "*t":
            tensors.append(param.name)
        is_constant = param.is_constexpr or ty == "constexpr" or type(value) is int and value == 1 and not param.do_not_specialize
        if is_constant:
            constants[param.name] = 2 if _is_symbol(value) else value
        signature[param.name] = "constexpr" if is_constant else ty
    functions = []
    spec = ASTSource(kernel, signature, constants).spec({}, functions)
    target = driver.active.get_current_target()
    metadata, _ = _rtc.compile_spec(kernel._modules(functions), json.dumps(spec), make_backend(target).arch)
    changed = {param["name"].split(".")[0] for param in json.loads(metadata)["params"]
               if param["type"][0] in "*t" and param.get("access") != "read"}
    return [name for name in tensors if name in changed]


def _is_symbol(value):
    """Whether a value is one that PyTorch has not made up its mind about."""
    return type(value).__name__ in ("SymInt", "SymFloat", "SymBool") or type(value).__module__.startswith("sympy")


def _type(value, descriptor):
    """The type of an argument as signatures have it; `constexpr` for what is part of the kernel."""
    from .runtime.jit import type_names
    if hasattr(value, "dtype") and hasattr(value, "shape") or type(value).__name__ == "TensorBox":
        element = type_names()[str(value.dtype).rsplit(".", 1)[-1]]
        if descriptor is None:
            return f"*{element}"
        kind, (block, *_) = descriptor
        if kind != "stable":
            raise TypeError(f"descriptors of the kind {kind}")
        return f"tensordesc<{element}[{','.join(map(str, block))}]>"
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, float):
        return "fp32"
    if isinstance(value, int):
        return "i32" if -2**31 <= value < 2**31 else "i64" if value < 2**63 else "u64"
    return "i32" if _is_symbol(value) else "constexpr"


class _Loader(importlib.abc.Loader):
    """Loads PyTorch's module and puts the answer in."""

    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _answer(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds that module, and no other."""

    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def _answer(module):
    theirs = getattr(module, FUNCTION, None)
    if theirs is None:
        return

    @functools.wraps(theirs)
    def ours(kernel, kwargs, descriptors=None, *rest, **more):
        try:
            return changed_arguments(kernel, kwargs, descriptors)
        except Exception:
            # PyTorch's own way ends in a warning, and in all tensors.
            return theirs(kernel, kwargs, descriptors, *rest, **more)

    setattr(module, FUNCTION, ours)


def install():
    """Has PyTorch, loaded or not, ask here."""
    if MODULE in sys.modules:
        _answer(sys.modules[MODULE])
    else:
        sys.meta_path.insert(0, _Finder())
