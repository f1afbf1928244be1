#!/usr/bin/env python3
"""Runs the kernels of the test `hardware` on an NVIDIA GPU and writes hardware.bin, which the test compares with.

usage: make.py FOLDER        FOLDER: plan.txt, kernels.ptx, inputs.bin and expected.bin, which the test wrote
                             (RTC_HARDWARE_EXPORT); hardware.bin is written there, and full.bin with all results of the
                             launches that gave something else than the emulator. Needs numpy.

For each launch and each register of results: the first results as they are, then a digest of all of them.
"""
import ctypes, os, shutil, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy

MODULES = 64


def assemble(texts):
    """One cubin for each group of kernels, the n-th of which is `kn`; made by ptxas, several at a time."""
    program = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    folder = tempfile.mkdtemp()

    def one(number):
        # Kernels with memory of their own at the level of the module stay alone.
        path = f"{folder}/{number}"
        with open(path + ".ptx", "w") as file:
            file.write(groups[number])
        subprocess.run([program, "-arch", "sm_90a", "-o", path + ".cubin", path + ".ptx"], check=True, capture_output=True)
        return open(path + ".cubin", "rb").read()

    groups, where = [], []
    for text in texts:
        if ".extern" in text or not groups or len(where) % MODULES == 0 or ".extern" in groups[-1]:
            groups.append(text.replace(".entry k(", f".entry k{len(where)}("))
        else:
            body = text[text.index(".visible .entry"):]
            groups[-1] += body.replace(".entry k(", f".entry k{len(where)}(")
        where.append(len(groups) - 1)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, range(len(groups)))), where


def digest(values):
    with numpy.errstate(over="ignore"):
        u = numpy.uint64
        z = values.astype(u) ^ (numpy.arange(1, len(values) + 1, dtype=u) * u(0x9E3779B97F4A7C15))
        z = (z ^ (z >> u(30))) * u(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> u(27))) * u(0x94D049BB133111EB)
        return int((z ^ (z >> u(31))).sum(dtype=u)).to_bytes(8, "little")


def main(folder):
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *args):
        status = getattr(cuda, name)(*args)
        if status:
            raise RuntimeError(f"{name}: {status}")

    texts = open(f"{folder}/kernels.ptx").read().split("//====\n")[:-1]
    plan = open(f"{folder}/plan.txt").read().splitlines()
    data = open(f"{folder}/inputs.bin", "rb").read()
    cubins, where = assemble(texts)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)

    def alloc(content):
        at = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(max(len(content), 16)))
        call("cuMemcpyHtoD_v2", at, content, ctypes.c_size_t(len(content)))
        return at

    modules = []
    for cubin in cubins:
        module = ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(module), cubin)
        modules.append(module)
    inputs, kept, full, differ = {}, bytearray(), bytearray(), 0
    expected = open(f"{folder}/expected.bin", "rb").read()
    for number, line in enumerate(plan):
        shape, params, parts = (part.split() for part in line.split("|"))
        blocks, threads, shared = map(int, shape)
        values, out = [], None
        for param in params:
            kind, first, second = param.split(":")
            first, second = int(first), int(second)
            if kind == "n":
                values.append((ctypes.c_uint32 if second == 4 else ctypes.c_uint64)(first))
            elif kind == "i":
                if (first, second) not in inputs:
                    inputs[first, second] = alloc(data[first : first + second])
                values.append(inputs[first, second])
            else:
                out = (alloc(data[first : first + second]), second)
                values.append(out[0])
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), modules[where[number]], f"k{number}".encode())
        if shared > 48 * 1024:
            call("cuFuncSetAttribute", function, 8, ctypes.c_int(shared))
        array = (ctypes.c_void_p * len(values))(*[ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values])
        try:
            call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, shared, None, array, None)
            call("cuCtxSynchronize")
        except RuntimeError as error:
            raise SystemExit(f"{number}: {error}\n{texts[number]}")
        result = ctypes.create_string_buffer(out[1])
        call("cuMemcpyDtoH_v2", result, out[0], ctypes.c_size_t(out[1]))
        call("cuMemFree_v2", out[0])
        total = 0
        for part in parts:
            offset, count, size, keep = map(int, part.split(":"))
            values = numpy.frombuffer(result.raw, dtype=f"<u{size}", count=count, offset=offset)
            of_all = digest(values)
            kept += values[:keep].tobytes() + of_all
            total += int.from_bytes(of_all, "little")
        same = total % (1 << 64) == int.from_bytes(expected[8 * number : 8 * number + 8], "little")
        differ += not same
        full += (0 if same else out[1]).to_bytes(4, "little") + (b"" if same else result.raw)
    open(f"{folder}/hardware.bin", "wb").write(kept)
    open(f"{folder}/full.bin", "wb").write(full)
    print(f"{len(plan)} launches, {differ} differ from the emulator; {len(kept)} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
