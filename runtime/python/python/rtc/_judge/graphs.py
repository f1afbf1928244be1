"""CUDA graphs in the candidate's process: the journal has no launches of a graph that is replayed, so that none is captured or
replayed, not even one that was captured while the user's file was imported."""

import importlib.abc
import importlib.machinery
import sys
from typing import Any

from .. import _arrays
from .._contract import Problem

#: The module of PyTorch whose import makes the class of graphs.
_MODULE = "torch.cuda.graphs"


def _refused(*_, **__):
    raise Problem("no-verdict", "the wrapper captures its launches in a CUDA graph, or replays one: what a replay of it writes is in no "
                  "journal of launches, so that the results cannot be judged; give a wrapper that launches its kernels itself")


def _refuse(graph):
    # The base class is that of the extension module, which can be used without the other.
    for owner in getattr(graph, "__mro__", ()):
        for name in ("capture_begin", "replay"):
            if owner is not object and name in vars(owner):
                setattr(owner, name, _refused)


def refuse():
    """From now on, the capture and the replay of a graph of PyTorch are errors, if PyTorch is loaded."""
    _refuse(getattr(getattr(_arrays.torch(), "cuda", None), "CUDAGraph", None))


class _Refusing(importlib.abc.MetaPathFinder):
    """Refuses graphs as soon as PyTorch has them, before the user's file can keep a function of theirs."""

    def find_spec(self, fullname, path, target=None):
        if fullname != _MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def and_refuse(module):
                execute(module)
                _refuse(getattr(module, "CUDAGraph", None))

            loader.exec_module = and_refuse
        return spec


def refuse_when_loaded():
    """The same for a PyTorch that is loaded later."""
    refuse()
    sys.meta_path.insert(0, _Refusing())
