"""Has `import triton` give this package: `triton` is `rtc`, `triton.X` is `rtc.X`."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types

from . import _changes

#: The version of Triton whose programs run unchanged.
TRITON_VERSION = "3.6.0"


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `triton` and all below it."""

    def find_spec(self, name, path=None, target=None):
        if name == "triton":
            return importlib.machinery.ModuleSpec(name, _Top(), origin="rtc", is_package=True)
        if not name.startswith("triton."):
            return None
        own = "rtc" + name[len("triton"):]
        parent, _, leaf = own.rpartition(".")
        importlib.import_module(parent)
        if leaf.startswith("_as_") or importlib.util.find_spec(own) is None:
            raise ModuleNotFoundError(f"rtc provides no module `{name}`", name=name)
        return importlib.machinery.ModuleSpec(name, _Alias(own), origin="rtc",
                                              is_package=importlib.util.find_spec(own).submodule_search_locations is not None)


class _Alias(importlib.abc.Loader):
    """Gives a module of this package under another name."""

    def __init__(self, own):
        self.own = own

    def create_module(self, spec):
        module = importlib.import_module(self.own)
        self.kept = {name: getattr(module, name, None) for name in ("__spec__", "__loader__", "__package__", "__path__")}
        return module

    def exec_module(self, module):
        for name, value in self.kept.items():
            if value is not None:
                setattr(module, name, value)


class _Top(importlib.abc.Loader):
    """The module `triton` itself."""

    def create_module(self, spec):
        return types.ModuleType("triton", "Triton's interface, by rtc.")

    def exec_module(self, module):
        rtc = importlib.import_module("rtc")
        # What is loaded is there under both names: an import under the other would put the module `runtime.driver` in the
        # place of the object `runtime.driver`.
        for name, loaded in list(sys.modules.items()):
            if name.startswith("rtc.") and not name.startswith("rtc._"):
                sys.modules["triton" + name[len("rtc"):]] = loaded
        for name in rtc.__all__:
            setattr(module, name, getattr(rtc, name))
        module.__version__, module.__all__ = TRITON_VERSION, list(rtc.__all__)
        module.__file__ = rtc.__file__
        module.backends = importlib.import_module("rtc.backends")
        module.errors = importlib.import_module("rtc.errors")

        def missing(name):
            raise AttributeError(f"rtc has no `triton.{name}`")

        module.__getattr__ = missing


class _Last(importlib.abc.MetaPathFinder):
    """Finds `test_common` if no other finder does."""

    def find_spec(self, name, path=None, target=None):
        if name != "test_common":
            return None
        return importlib.machinery.ModuleSpec(name, _Alias("rtc._test_common"), origin="rtc")


def install():
    """Has this process, from now on, import this package as `triton`."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    loaded = sys.modules.get("triton")
    if loaded is not None and getattr(loaded, "__spec__", None) is not None and loaded.__spec__.origin != "rtc":
        raise RuntimeError("triton was imported before rtc could take its place; start the program by `python -m rtc`")
    sys.meta_path.insert(0, _Finder())
    sys.meta_path.append(_Last())
    _changes.install()
