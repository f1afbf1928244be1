"""What both recorders change of a program so that it goes on to all of its launches: comparisons pass, benchmarks call once,
large products of references are left out; of tests with many sets of parameters some are run.

RECORD_SECONDS: for one test (20).  PER_FUNCTION: parameter sets of a test function (all).
"""

import contextlib
import os
import signal

import pytest

# Modes that stay active to the end of the process.
kept = []


def pass_comparisons():
    """What kernels would have computed may not be there: no comparison fails."""
    import numpy
    import torch
    import triton.testing

    torch.set_num_threads(1)
    for name in ("allclose", "array_equal", "equal", "almost_equal", "array_less", "array_almost_equal"):
        setattr(numpy.testing, f"assert_{name}", lambda *a, **k: None)
    numpy.allclose = numpy.array_equal = torch.allclose = torch.equal = lambda *a, **k: True
    torch.testing.assert_close = torch.testing.assert_allclose = triton.testing.assert_close = lambda *a, **k: None

    def once(call, *_, **kwargs):
        call()
        return [1.0, 1.0, 1.0] if kwargs.get("quantiles") else 1.0

    triton.testing.do_bench = triton.testing.do_bench_cudagraph = once
    triton.testing.Mark.run = lambda *a, **k: None
    raises = pytest.raises

    class Raises:
        """pytest.raises that is content when nothing is raised"""

        value, type = Exception(), Exception

        def __enter__(self):
            return self

        def __exit__(self, kind, value, _trace):
            self.value = value if value is not None else self.value
            return kind is not None and issubclass(kind, Exception)

        def match(self, *_):
            return True

    pytest.raises = lambda e, *a, **k: raises(e, *a, **k) if a and callable(a[0]) else Raises()


def leave_out_products():
    """Large matrix products of references cost minutes on a CPU and tell nothing here."""
    import torch
    from torch.overrides import TorchFunctionMode

    tensor = torch.Tensor
    products = {torch.matmul, torch.mm, torch.bmm, tensor.matmul, tensor.__matmul__, tensor.mm, tensor.bmm}

    class Cheap(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func in products and len(args) == 2 and all(isinstance(x, tensor) and x.dim() >= 2 for x in args):
                a, b = args
                if a.numel() * b.shape[-1] > 3e8 and not (a.requires_grad or b.requires_grad):
                    with contextlib.suppress(Exception):
                        batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
                        return torch.zeros(*batch, a.shape[-2], b.shape[-1], dtype=a.dtype)
            return func(*args, **(kwargs or {}))

    kept.append(Cheap())
    kept[-1].__enter__()


def too_slow(*_):
    """The answer to an alarm."""
    raise TimeoutError("longer than RECORD_SECONDS")


def pytest_collection_modifyitems(config, items):
    """At most PER_FUNCTION parameter sets of each test function, spread over all."""
    per = int(os.environ.get("PER_FUNCTION", "0"))
    if not per:
        return
    functions = {}
    for item in items:
        functions.setdefault((item.fspath, getattr(item, "originalname", item.name)), []).append(item)
    kept = set()
    for group in functions.values():
        chosen = group if len(group) <= per else [group[(2 * i + 1) * len(group) // (2 * per)] for i in range(per)]
        kept |= {id(item) for item in chosen}
    items[:] = [item for item in items if id(item) in kept]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(int(os.environ.get("RECORD_SECONDS", "20")))
    try:
        yield
    finally:
        signal.alarm(0)
