"""Worst errors of the fp32 functions over all 2^32 arguments on a GPU, as this compiler compiles them, and their speed.

    python3 on_gpu.py compile RTC DIR [NAME ...]    # writes PTX; needs no GPU
    python3 on_gpu.py run DIR                       # needs only the driver

Each fp32 function (of libdevice unless its name says tl) is compared with the fp64 function of the same name, inside a kernel. The speed is the time of 2^32
evaluations in registers.
"""
import ctypes
import glob
import os
import struct
import subprocess
import sys

FUNCTIONS = ("exp", "tl.exp", "tl.sigmoid", "log", "log2", "tanh", "erf", "sinh", "cosh", "log1p", "log10", "expm1", "exp10", "sinpi", "cospi", "sin", "cos",
             "tan", "atan", "asin", "acos", "asinh", "acosh", "atanh", "rcbrt", "erfc", "erfcx", "erfinv", "erfcinv", "normcdf", "normcdfinv", "tgamma",
             "lgamma", "cyl_bessel_i0", "cyl_bessel_i1")
GRID = 16384
SOURCE = '''

@triton.jit
def error_NAME(o_ptr):
    pid = tl.program_id(0)
    worst = tl.full([1024], 0, tl.int64)
    for b in range(256):
        i = pid * 262144 + b * 1024 + tl.arange(0, 1024)
        x = i.to(tl.float32, bitcast=True)
        got = CALL(x).to(tl.float64)
        want = CALL(x.to(tl.float64))
        nans = (got != got).to(tl.int32) + (want != want).to(tl.int32)
        # 2^128 stands for infinity.
        got = tl.minimum(tl.maximum(got, -3.402823669209385e38), 3.402823669209385e38)
        want = tl.minimum(tl.maximum(want, -3.402823669209385e38), 3.402823669209385e38)
        exponent = (want.to(tl.int64, bitcast=True) >> 52) & 2047
        unit = ((tl.maximum(exponent, 897) - 23) << 52).to(tl.float64, bitcast=True)
        error = tl.where(nans == 0, tl.abs(got - want) / unit, tl.where(nans == 2, 0.0, 1.0e30))
        key = error.to(tl.float32).to(tl.int32, bitcast=True).to(tl.int64) << 32
        worst = tl.maximum(worst, key | (i.to(tl.int64) & 0xFFFFFFFF))
    tl.store(o_ptr + pid, tl.max(worst, 0))


@triton.jit
def speed_NAME(o_ptr):
    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    x = i.to(tl.float32) * 1e-4
    y = x * 0.0
    for b in range(256):
        y += CALL(x)
        x -= 0.01
    tl.store(o_ptr + i, y)
'''


def plain(name):
    """`tl.exp` as a part of a kernel's name."""
    return name.replace(".", "_")


def compile_all(rtc, folder, names):
    os.makedirs(folder, exist_ok=True)
    source = os.path.join(folder, "kernels.rt")
    with open(source, "w") as f:
        f.write("import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n")
        for name in names: f.write(SOURCE.replace("CALL", name if "." in name else f"libdevice.{name}").replace("NAME", plain(name)))
    for name in map(plain, names):
        for kind, pointer in (("error", "*i64"), ("speed", "*fp32")):
            command = [rtc, "emit", source, "--kernel", f"{kind}_{name}", "--signature", pointer, "--stage", "ptx", "--arch", "sm_90a"]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            with open(os.path.join(folder, f"{kind}_{name}.ptx"), "w") as f: f.write(text)


def run_all(folder):
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *args):
        code = getattr(cuda, name)(*args)
        if code: raise SystemExit(f"{name} gave {code}")

    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    start, end = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuMemAlloc_v2", ctypes.byref(memory), 4 * 1024 * GRID)
    call("cuEventCreate", ctypes.byref(start), 0)
    call("cuEventCreate", ctypes.byref(end), 0)
    for path in sorted(glob.glob(os.path.join(folder, "*.ptx"))):
        name = os.path.basename(path)[:-4]
        module, kernel, ms = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
        with open(path, "rb") as f: call("cuModuleLoadData", ctypes.byref(module), f.read() + b"\0")
        call("cuModuleGetFunction", ctypes.byref(kernel), module, name.encode())
        args = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
        best = float("inf")
        for _ in range(1 if name.startswith("error") else 4):
            call("cuEventRecord", start, None)
            call("cuLaunchKernel", kernel, GRID, 1, 1, 128, 1, 1, 16384, None, args, None)
            call("cuEventRecord", end, None)
            call("cuCtxSynchronize")
            call("cuEventElapsedTime", ctypes.byref(ms), start, end)
            best = min(best, ms.value)
        if name.startswith("error"):
            host = (ctypes.c_int64 * GRID)()
            call("cuMemcpyDtoH_v2", host, memory, 8 * GRID)
            high, low = struct.unpack("ff", struct.pack("II", max(host) >> 32, max(host) & 0xFFFFFFFF))
            print(f"{name[6:]}: {high:.3f} ulp at {low!r}", flush=True)
        else:
            print(f"{name[6:]}: {best:.3f} ms", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "compile": compile_all(sys.argv[2], sys.argv[3], sys.argv[4:] or FUNCTIONS)
    else: run_all(sys.argv[2])
