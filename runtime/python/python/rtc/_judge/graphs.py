"""CUDA graphs in the candidate's process: the journal has no launches of a graph that is replayed, so that none is captured."""

from .. import _arrays
from .._contract import Problem


def _refused(*_, **__):
    raise Problem("no-verdict", "the wrapper captures its launches in a CUDA graph: what a replay of it writes is in no journal of "
                  "launches, so that the results cannot be judged; give a wrapper that launches its kernels itself")


def refuse():
    """From now on, the capture of a graph of PyTorch is an error, if PyTorch is loaded."""
    graph = getattr(getattr(_arrays.torch(), "cuda", None), "CUDAGraph", None)
    if graph is not None:
        graph.capture_begin = _refused
