"""Keeps what a Triton program asks its compiler for, on a machine without a GPU.

`import recorder; recorder.start()` in a script, or `pytest -p recorder`. The harness's `rtc_shim` binds the arguments of
each launch as Triton does; here its call of the compiler is replaced by one that writes `kernel.py` and `spec.json` to
$RECORD/<hash>/ and always succeeds. Nothing is launched, so comparisons are made to pass and large products of the tests'
references are left out: a test goes on to its later launches.

RECORD: where to write; lenient.py says what else is set.
"""

import contextlib
import hashlib
import json
import os

os.environ.setdefault("RTC_SHIM_DRY", "1")

import rtc_shim  # noqa: E402

from lenient import leave_out_products, pass_comparisons, pytest_collection_modifyitems  # noqa: E402, F401
from lenient import pytest_runtest_call, too_slow  # noqa: E402, F401

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


def pytest_configure(config):
    start()
