"""What the scripts of this folder share: the recorder, stand-ins for modules, one call after another.

SOURCES: the folder with the checkouts of the collections. RECORDER: `recorder`, which keeps specializations, or `launches`.
Every fault of a case is printed, and the script goes on.
"""

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import itertools  # noqa: F401
import os
import signal
import sys
import traceback
import types

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

recorder = importlib.import_module(os.environ.get("RECORDER", "recorder"))
recorder.start()

import torch  # noqa: E402
import triton  # noqa: E402, F401

SOURCES = os.environ["SOURCES"]
torch.library.wrap_triton = lambda kernel: kernel
torch.compile = lambda f=None, **k: f if callable(f) else (lambda g: g)
count = {"done": 0, "fault": 0}


class Anything:
    """Whatever a missing module would hold."""

    def __init__(self, name="anything"):
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else Anything()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)

    def __mro_entries__(self, bases):
        return (object,)

    def __iter__(self):
        return iter(())

    def __lt__(self, other):
        return False

    __le__ = __lt__

    def __gt__(self, other):
        return True

    __ge__ = __gt__


class StandIn(types.ModuleType):
    """A module that has every name."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins under the given roots."""

    def __init__(self, roots):
        self.roots = roots

    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in self.roots:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = StandIn(spec.name)
        module.__version__, module.__path__ = "99.0", []
        return module

    def exec_module(self, module):
        pass


def stand_in(*roots):
    """Imports under these roots give stand-ins."""
    sys.meta_path.insert(0, Finder(set(roots)))


def package(name, path, **attributes):
    """A package whose own __init__ is not run; its modules come from `path`."""
    module = types.ModuleType(name)
    module.__path__ = [path]
    module.__dict__.update(attributes)
    sys.modules[name] = module
    parent, _, leaf = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], leaf, module)
    return module


def op(module, *names):
    """Names of a module of liger_kernel.ops; None for each where it cannot be imported."""
    try:
        found = importlib.import_module("liger_kernel.ops." + module)
        values = [getattr(found, name) for name in names]
    except Exception as e:
        count["fault"] += 1
        print(f"fault in the import of {module}: {e!r}", flush=True)
        values = [None] * len(names)
    return values if len(names) > 1 else values[0]


def R(*shape, dt=torch.float16, g=False, std=1.0):
    """Random values of a type; with `g` they require a gradient."""
    return (torch.randn(*shape, device="cuda") * std).to(dt).requires_grad_(g)


def RG(*shape, dt=torch.float16):
    """Random values that require a gradient."""
    return R(*shape, dt=dt, g=True)


def RI(high, *shape, dt=torch.int64):
    """Random integers below `high`."""
    return torch.randint(0, high, shape, device="cuda").to(dt)


def backward(result):
    """Differentiates every result that can be."""
    results = result if isinstance(result, (tuple, list)) else (result,)
    results = [x for x in results if isinstance(x, torch.Tensor) and x.requires_grad]
    if not results:
        raise RuntimeError("nothing to differentiate")
    torch.autograd.backward(results, [torch.randn_like(x) for x in results])


@contextlib.contextmanager
def case(label, seconds=60):
    """One call of a wrapper; its fault is printed."""
    recorder.test = label
    signal.signal(signal.SIGALRM, recorder.too_slow)
    signal.alarm(seconds)
    try:
        yield
        count["done"] += 1
    except Exception as e:
        count["fault"] += 1
        where = traceback.extract_tb(e.__traceback__)[-1]
        print(
            f"fault in {label}: {type(e).__name__}: {str(e)[:200]}, {where.filename}:{where.lineno}",
            flush=True,
        )
    finally:
        signal.alarm(0)


def end():
    """The last line of a script's output."""
    print(f"cases: {count['done']} done, {count['fault']} with a fault")
    getattr(recorder, "end", lambda: None)()
