"""Keeps what a Triton program asks its compiler for, on a machine without a GPU.

`import recorder; recorder.start()` in a script, or `pytest -p recorder`. The harness's `rtc_shim` binds the arguments of
each launch as Triton does; here its call of the compiler is replaced by one that writes `kernel.py` and `spec.json` to
$RECORD/<hash>/ and always succeeds. Nothing is launched, so comparisons are made to pass and large products of the tests'
references are left out: a test goes on to its later launches.

RECORD: where to write.  RECORD_SECONDS: for one test (20).  PER_FUNCTION: parameter sets of a test function (all).
"""

import contextlib
import hashlib
import json
import os
import signal

os.environ.setdefault("RTC_SHIM_DRY", "1")

import pytest  # noqa: E402
import rtc_shim  # noqa: E402

OUT = os.environ["RECORD"]
started = False


def record(text, spec, kernel="?", quiet=False):
    """Stands for rtc_shim.build: keeps the source and the specification, by their content."""
    name = hashlib.sha256((text + "\0" + json.dumps(spec, sort_keys=True)).encode()).hexdigest()[:16]
    folder = os.path.join(OUT, f"{spec['kernel']}-{name}")
    if not os.path.isdir(folder):
        os.makedirs(folder + ".new", exist_ok=True)
        with open(os.path.join(folder + ".new", "kernel.py"), "w") as f:
            f.write(text)
        with open(os.path.join(folder + ".new", "spec.json"), "w") as f:
            json.dump(spec, f, indent=1)
        os.rename(folder + ".new", folder)
    warps = spec["options"].get("num_warps") or 4
    done = rtc_shim.Outcome()
    done.ok, done.rc, done.code, done.msg, done.text = True, 0, "ok", "", ""
    done.seconds, done.cached, done.dir, done.ptx = 0.0, False, folder, ".version 8.0\n.target sm_90a\n"
    done.meta = {
        "symbol": kernel,
        "num_warps": warps,
        "num_ctas": spec["options"].get("num_ctas") or 1,
        "threads_per_block": 32 * warps,
        "shared_bytes": 1024,
        "params": [],
    }
    return done


def launch_nothing(kernel):
    """Stands for the loading of a kernel: its launches do nothing."""
    kernel.module, kernel.function, kernel.n_regs, kernel.n_spills, kernel.n_max_threads = 1, 1, 32, 0, 1024

    def launch(_x, _y, _z, _stream, _function, _packed, metadata, enter, leave, *_args):
        if enter is not None:
            enter(metadata)
        if leave is not None:
            leave(metadata)

    kernel._run = launch


def start():
    """Installs the recorder in this process."""
    global started
    if started:
        return
    started = True
    os.makedirs(OUT, exist_ok=True)
    rtc_shim.install()
    rtc_shim.build = record
    rtc_shim.RtcKernel._init = launch_nothing
    rtc_shim.AsmDict.__missing__ = lambda self, stage: ""
    from triton._C.libtriton import nvidia

    class NoCublas:
        def __init__(self, *_):
            pass

        def matmul(self, *_):
            pass

    nvidia.cublas.CublasLt = NoCublas
    record_front_end()
    pass_comparisons()
    leave_out_products()


def record_front_end():
    """Tests that go straight to Triton's front end are recorded too."""
    from triton.compiler.compiler import ASTSource

    make_ir = ASTSource.make_ir

    def make_and_record(self, target, options, *args, **kwargs):
        with contextlib.suppress(Exception):
            if not getattr(self.fn, "is_gluon", lambda: False)():
                rtc_shim.rtc_compile(self, dict(options.__dict__))
        return make_ir(self, target, options, *args, **kwargs)

    ASTSource.make_ir = make_and_record


def pass_comparisons():
    """What kernels would have computed is not there: no comparison fails."""
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

    mode = Cheap()
    mode.__enter__()
    rtc_shim.cheap_products = mode


def too_slow(*_):
    """The answer to an alarm."""
    raise TimeoutError("longer than RECORD_SECONDS")


def pytest_configure(config):
    start()


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
