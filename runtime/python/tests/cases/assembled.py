"""Versions of NVIDIA's assembler that are known to make wrong code, with a driver that is one for CUDA 12.8; and the streams of
launches, which are not kept for ever. The driver and PyTorch are stubs."""

import os
import subprocess
import sys
import tempfile
import unittest

#: What stands in for the assembler, here and in the tests in Rust.
STUB = os.path.join(os.path.dirname(__file__), *[os.pardir] * 4, "tests", "needs", "src", "ptxas.sh")

PROGRAM = """
import io, sys
import stub_torch
stub_torch.install()
import rtc
import rtc.language as tl
from stub_torch import Tensor, float16, launched

@rtc.jit
def product(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(z + at, tl.dot(tl.load(x + at), tl.load(y + at)))

@rtc.jit
def plain(x, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), 1.0)

sys.stderr = io.StringIO()
x, y, z = Tensor(4096, float16), Tensor(1 << 16, float16), Tensor(1 << 20)
plain[(1,)](z, N=64)
assert not sys.stderr.getvalue(), sys.stderr.getvalue()
for warps in (4, 8):
    made = product[(1,)](x, y, z, N=64, num_warps=warps)
print(launched()[3], made.asm["cubin"].decode().strip())
print(sys.stderr.getvalue(), end="")
"""

#: Scratch memory for a tensor map that the kernel makes.
STREAMS = """
import ctypes
import stub_torch
stub_torch.install()
import rtc
import rtc.language as tl
from stub_torch import DRIVER, Tensor, float16, set_current

@rtc.jit
def fill(x, y, rows_ptr, K: tl.constexpr):
    rows = tl.load(rows_ptr).to(tl.int32)
    a_of = tl.make_tensor_descriptor(x, [rows, K], [K, 1], [64, 64])
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 64):
        a = a_of.load([0, k])
        acc = tl.dot(a, a.T, acc)
    i = tl.arange(0, 64)
    tl.store(y + i[:, None] * 64 + i[None, :], acc)

x, y, rows = Tensor(1 << 20, float16), Tensor(1 << 24), Tensor(1 << 28)
read = lambda name: ctypes.c_ulong.in_dll(DRIVER, name).value
for stream in range(1, 501):
    set_current(stream=stream << 8)
    fill[(1,)](x, y, rows, K=1024)
    assert stub_torch.launched()[2] == stream << 8
print(read("allocated"), read("freed"))
"""

#: The assembler as Triton's back end gives it.
ASKED = """
from rtc import _as_triton
_as_triton.install()
from triton.backends.nvidia.compiler import get_ptxas
try:
    print(get_ptxas(90).version, get_ptxas(100).path)
except RuntimeError as error:
    print(str(error).partition(":")[0])
"""


def ptxas(folder, version):
    """A stub that says that it is of this version; its machine code is its version."""
    os.makedirs(folder)
    path = os.path.join(folder, "ptxas")
    with open(STUB) as stub, open(path, "w") as file:
        file.write(stub.read().replace("VERSION", version))
    os.chmod(path, 0o755)
    return path


def ran(program, path=None, packages=(), named=None, cache=None):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], *packages]),
                   "PATH": os.pathsep.join(filter(None, [path, "/usr/bin", "/bin"]))}
    for name in ("RTC_PTXAS", "TRITON_PTXAS_PATH", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"):
        environment.pop(name, None)
    if named:
        environment["RTC_PTXAS"] = named
    if cache:
        environment["RTC_CACHE_DIR"] = cache
    # Kernels need a file.
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "program.py")
        with open(script, "w") as file:
            file.write(program)
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


class Assembled(unittest.TestCase):
    def test_the_assembler(self):
        with tempfile.TemporaryDirectory() as folder:
            old = ptxas(os.path.join(folder, "old"), "12.8")
            packages = os.path.join(folder, "packages")
            ptxas(os.path.join(packages, "nvidia", "cuda_nvcc", "bin"), "12.9")
            first, *warnings = ran(PROGRAM, named=old)
            self.assertEqual(first, "3 12.8")
            driver, of_ptxas = [line for line in warnings if line.startswith("warning[assembler-defect]: kernel `product`")]
            self.assertIn("by the driver's assembler of CUDA 12.8, which gives wrong code", driver)
            self.assertIn(f"by `{old}` of CUDA 12.8", of_ptxas)
            # Another one, in a package that this Python would import.
            self.assertEqual(ran(PROGRAM, path=os.path.dirname(old), packages=[packages]), ["3 12.9"])

    def test_the_assembler_is_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            found = ptxas(os.path.join(folder, "found"), "13.2")
            self.assertEqual(ran(ASKED, named=found), [f"13.2 {found}"])
            self.assertEqual(ran(ASKED, named=os.path.join(folder, "nowhere")), ["Cannot find ptxas"])

    def test_streams(self):
        allocated, freed = map(int, ran(STREAMS)[0].split())
        self.assertGreaterEqual(allocated, 500)
        self.assertLess(allocated - freed, 100)


if __name__ == "__main__":
    unittest.main()
