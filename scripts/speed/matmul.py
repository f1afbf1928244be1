"""On a machine with an H100 or H200 and PyTorch: times matmul.tir against torch.matmul, and checks it.

    python3 scripts/speed/matmul.py RTC [MxNxK ...]

One launch of each in turn, L2 flushed before each: kernels that are timed one after the other see different clocks. Printed
are the median and, in brackets, the tenth and ninetieth percentile in TFLOP/s.
"""
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import torch

cuda = ctypes.CDLL("libcuda.so.1")


def check(status, call):
    if status:
        raise SystemExit(f"{call} failed: {status}")


def pointer(value):
    return ctypes.c_void_p(ctypes.addressof(value))


def tensor_map(tensor, form):
    """A map of a tensor of two dimensions in row-major order, fp16."""
    rows, columns = tensor.shape
    memory = ctypes.create_string_buffer(192)
    at = (ctypes.addressof(memory) + 63) & ~63
    box = (ctypes.c_uint32 * 2)(*reversed(form["box"]))
    swizzle = {0: 0, 32: 1, 64: 2, 128: 3}[form["swizzle"]]
    sizes, strides, ones = (ctypes.c_uint64 * 2)(columns, rows), (ctypes.c_uint64 * 1)(2 * columns), (ctypes.c_uint32 * 2)(1, 1)
    check(cuda.cuTensorMapEncodeTiled(ctypes.c_void_p(at), 6, 2, ctypes.c_void_p(tensor.data_ptr()), sizes, strides, box, ones,
                                      0, swizzle, 2, 0), "cuTensorMapEncodeTiled")
    return memory, at


class Kernel:
    def __init__(self, rtc):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(os.path.dirname(__file__), "matmul.tir")
            subprocess.run([rtc, "build", source, "--arch", "sm_90a", "-o", folder], check=True, stdout=subprocess.DEVNULL)
            ptx = open(f"{folder}/matmul.ptx").read().encode()
            self.metadata = json.load(open(f"{folder}/matmul.json"))
        torch.zeros(1, device="cuda")
        module, self.function, log = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(1 << 14)
        # The log of the driver's compiler, and its size.
        keys, values = (ctypes.c_int * 2)(3, 4), (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        check(cuda.cuModuleLoadDataEx(pointer(module), ptx, 2, keys, values), "cuModuleLoadDataEx")
        warnings = [line for line in log.value.decode().splitlines() if "C75" in line]
        print(f"serialized products: {warnings or 'none'}")
        check(cuda.cuModuleGetFunction(pointer(self.function), module, b"matmul"), "cuModuleGetFunction")
        check(cuda.cuFuncSetAttribute(self.function, 8, self.metadata["shared_bytes"]), "cuFuncSetAttribute")

    def launcher(self, a, b, c):
        (m, k), n = a.shape, b.shape[1]
        params = {param["name"]: param for param in self.metadata["params"]}
        maps = [tensor_map(t, params[name]["hidden"]["tensor_map"]) for name, t in (("a", a), ("b", b), ("c", c))]
        tiles = -(-m // 128) * -(-n // 256)
        most = torch.cuda.get_device_properties(0).multi_processor_count
        blocks = -(-tiles // -(-tiles // most))
        numbers = [ctypes.c_uint64(t.data_ptr()) for t in (a, b, c)] + [ctypes.c_int32(x) for x in (m, n, k, tiles)]
        places = [ctypes.addressof(x) for x in numbers] + [at for _, at in maps]
        args = (ctypes.c_void_p * len(places))(*places)
        args.kept = numbers, maps
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        threads, shared = self.metadata["threads_per_block"], self.metadata["shared_bytes"]
        return lambda: check(cuda.cuLaunchKernel(self.function, blocks, 1, 1, threads, 1, 1, shared, stream, args, None), "launch")


def interleaved(todo, rounds=40):
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    events = {name: [] for name in todo}
    names = list(todo)
    for turn in range(rounds + 3):
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            flush.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            todo[name]()
            end.record()
            if turn >= 3:
                events[name].append((start, end))
    torch.cuda.synchronize()
    return {name: sorted(start.elapsed_time(end) for start, end in pairs) for name, pairs in events.items()}


def main():
    kernel = Kernel(sys.argv[1])
    for size in sys.argv[2:] or ["4096x4096x4096", "8192x8192x8192", "8192x8192x1024", "1000x1000x1000"]:
        m, n, k = map(int, size.split("x"))
        a, b = torch.randn(m, k, device="cuda").half(), torch.randn(k, n, device="cuda").half()
        expected, c = torch.empty(m, n, device="cuda").half(), torch.full((m, n), -7.0, device="cuda").half()
        own = kernel.launcher(a, b, c)
        own()
        torch.matmul(a, b, out=expected)
        error = ((c.float() - expected.float()).norm() / expected.float().norm()).item()
        times = interleaved({"torch.matmul": lambda: torch.matmul(a, b, out=expected), "matmul.tir": own})
        rate = lambda time: f"{2e-9 * m * n * k / time:.0f}"
        for name, list_ in times.items():
            middle, slow, fast = (list_[len(list_) * i // 10] for i in (5, 9, 1))
            print(f"{size:18} {name:14} {rate(middle):>5} ({rate(slow)} to {rate(fast)}) TFLOP/s")
        print(f"{size:18} relative error to torch {error:.1e}")


main()
