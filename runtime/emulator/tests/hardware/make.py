#!/usr/bin/env python3
"""Runs every form of forms.txt on an NVIDIA GPU and writes hardware.bin, which the test `hardware` compares with.

usage: make.py ptx OUT.ptx     writes the PTX only (to look at, or for ptxas)
       make.py run OUT.bin     needs a GPU with its driver

hardware.bin: for each input class in CLASSES, 3 * 64 values of 8 bytes; then for each form and destination, 64
values of the destination's width.
"""
import ctypes, os, random, struct, sys

N = 64
HERE = os.path.dirname(os.path.abspath(__file__))
# letter: register type, bits
KINDS = {"h": ("b16", 16), "r": ("b32", 32), "d": ("b64", 64), "p": ("pred", 32)}
# class: kind, generator
CLASSES = ["f32", "f64", "f16", "i16", "i32", "i64", "bf16", "f16x2", "bf16x2", "s8x4", "small", "shift", "ints", "halfint",
           "bfint", "tfint", "dint", "f8", "pred"]
KIND_OF = dict(f32="r", f64="d", f16="h", i16="h", i32="r", i64="d", bf16="h", f16x2="r", bf16x2="r", s8x4="r", small="r",
               shift="r", ints="r", halfint="r", bfint="r", tfint="r", dint="d", f8="h", pred="p")


def f32(x): return struct.unpack("<I", struct.pack("<f", x))[0]
def f64(x): return struct.unpack("<Q", struct.pack("<d", x))[0]
def f16(x): return struct.unpack("<H", struct.pack("<e", x))[0]


EDGE = {
    "f32": [0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00001, 0xffc12345, 1, 0x80000001, 0x007fffff,
            0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f000000, 0x4b000001, 0x4f000000, 0xcf000000, 0x5f000000, 0x40490fdb,
            0x3f7fffff, 0x477fe000, 0x33000000, 0x437f8000, 0x7f801234],
    "f64": [0, 1 << 63, f64(1.0), f64(-1.0), 0x7ff << 52, 0xfff << 52, 0x7ff8 << 48, 1, (1 << 52) - 1, 1 << 52, 0x7fefffffffffffff,
            f64(0.5), f64(2.5), f64(2.0**31), f64(-(2.0**31)), f64(2.0**63), f64(1e300), f64(1e-300), f64(65519.99), f64(0.1)],
    "f16": [0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e01, 0xfe55, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0xfbff, 0x3800, 0x6400,
            0x7c01, 0x3c01, 0x1400],
    "bf16": [0, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc1, 0xffd5, 1, 0x8001, 0x7f, 0x80, 0x7f7f, 0xff7f, 0x3f00, 0x4b00,
             0x3f81, 0x7f81],
    "i16": [0, 1, 0xffff, 0x7fff, 0x8000, 2, 0x100, 0xff],
    "i32": [0, 1, 0xffffffff, 0x7fffffff, 0x80000000, 2, 0xffff, 0x10000, 0xff, 0x80],
    "i64": [0, 1, (1 << 64) - 1, (1 << 63) - 1, 1 << 63, 1 << 32, 0xffffffff, (1 << 53) + 1, (1 << 62) + (1 << 38) + 1],
    "shift": [0, 1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, 257, 0xffffffff],
}


def inputs(name, rng):
    out = []
    edge = EDGE.get(name, [])
    for j in range(3):
        column = []
        for i in range(N):
            if name in ("f16x2", "bf16x2"):
                e = EDGE[name[:-2]]
                half = lambda: rng.choice(e) if rng.random() < .5 else rng.getrandbits(16)
                column.append(half() | half() << 16)
            elif name == "s8x4": column.append(rng.getrandbits(32))
            elif name == "small": column.append(rng.randrange(-4, 5) & 0xffffffff)
            elif name == "ints": column.append(f32(float(rng.randrange(-64, 65))))
            elif name == "tfint": column.append(f32(float(rng.randrange(-32, 33))))
            elif name == "dint": column.append(f64(float(rng.randrange(-32, 33))))
            elif name == "halfint": column.append(f16(float(rng.randrange(-8, 9))) | f16(float(rng.randrange(-8, 9))) << 16)
            elif name == "bfint": column.append(f32(float(rng.randrange(-8, 9))) >> 16 | f32(float(rng.randrange(-8, 9))) & 0xffff0000)
            elif name == "f8": column.append((i * 2) | (i * 2 + 1) << 8 if j == 0 else rng.getrandbits(16))
            elif name == "pred": column.append(rng.getrandbits(1))
            elif edge and i < len(edge) * 2 and j == 0: column.append(edge[i // 2])
            elif edge and rng.random() < .4: column.append(rng.choice(edge))
            elif name == "shift": column.append(rng.randrange(0, 70))
            elif name == "f32":
                column.append(rng.getrandbits(32) if rng.random() < .3 else f32(rng.uniform(-1, 1) * 2.0 ** rng.randrange(-12, 20)))
            elif name == "f64":
                column.append(rng.getrandbits(64) if rng.random() < .3 else f64(rng.uniform(-1, 1) * 2.0 ** rng.randrange(-12, 70)))
            else: column.append(rng.getrandbits(KINDS[KIND_OF[name]][1]))
        out.append(column)
    return out


def forms():
    """(destination kinds, source classes, text, ulp)"""
    for line in open(os.path.join(HERE, "forms.txt")):
        line = line.split("#")[0].strip()
        if not line: continue
        head, text = line.split(":", 1)
        words = head.split()
        ulp = int(words.pop()[1:]) if words[-1].startswith("~") else 0
        yield words[0], words[1:], text.strip(), ulp


def kernel(index, destinations, sources, text):
    """Registers a0..a7, b0.., c0..: lane i of a_j is value (i + 37 j) mod N of the column."""
    lines = [f".visible .entry k{index}(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 po)", "{",
             ".reg .b64 %x<8>; .reg .b32 %y<4>; .reg .pred %q;", "mov.u32 %y0, %tid.x;"]
    for n, name in enumerate(sources):
        letter = "abc"[n]
        kind = KIND_OF[name]
        register, bits = KINDS[kind]
        lines.append(f"ld.param.b64 %x0, [p{letter}];")
        for j in range(8):
            if f"${letter}{j}" not in text: continue
            lines.append(f".reg .{register} %{letter}{j};")
            lines.append(f"add.s32 %y1, %y0, {37 * j}; and.b32 %y1, %y1, {N - 1}; mul.wide.u32 %x1, %y1, 8; add.s64 %x2, %x0, %x1;")
            if kind == "p": lines.append(f"ld.global.b32 %y2, [%x2]; setp.ne.b32 %{letter}{j}, %y2, 0;")
            else: lines.append(f"ld.global.b{bits} %{letter}{j}, [%x2];")
    for j, kind in enumerate(destinations):
        lines.append(f".reg .{KINDS[kind][0]} %d{j};")
    lines.append(text.replace("$", "%") + ("" if text.startswith("{ ") else ";"))
    lines.append("ld.param.b64 %x0, [po];")
    for j, kind in enumerate(destinations):
        bits = KINDS[kind][1]
        lines.append(f"mul.wide.u32 %x1, %y0, {bits // 8}; add.s64 %x2, %x0, %x1;")
        if kind == "p": lines.append(f"selp.b32 %y2, 1, 0, %d{j}; st.global.b32 [%x2+{j * N * bits // 8}], %y2;")
        else: lines.append(f"st.global.b{bits} [%x2+{j * N * bits // 8}], %d{j};")
    return "\n".join(lines + ["ret;", "}"])


def ptx():
    parts = [".version 8.4", ".target sm_90a", ".address_size 64"]
    for i, (destinations, sources, text, _) in enumerate(forms()):
        parts.append(kernel(i, destinations, sources, text))
    return "\n".join(parts) + "\n"


def run():
    rng = random.Random(1)
    columns = {name: inputs(name, rng) for name in CLASSES}
    cuda = ctypes.CDLL("libcuda.so.1")
    def check(code, what):
        if code: raise SystemExit(f"{what}: CUDA error {code}")
    check(cuda.cuInit(0), "init")
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "device")
    check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device), "context")
    log = ctypes.create_string_buffer(1 << 16)
    options = (ctypes.c_int * 2)(5, 6)
    values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), 1 << 16)
    code = cuda.cuModuleLoadDataEx(ctypes.byref(module), ptx().encode(), 2, options, values)
    if code: print(log.value.decode())
    check(code, "module")
    def alloc(size):
        pointer = ctypes.c_uint64()
        check(cuda.cuMemAlloc_v2(ctypes.byref(pointer), size), "alloc")
        return pointer
    out = b""
    pointers = {}
    for name in CLASSES:
        for j, column in enumerate(columns[name]):
            data = struct.pack(f"<{N}Q", *column)
            out += data
            pointers[name, j] = alloc(len(data))
            check(cuda.cuMemcpyHtoD_v2(pointers[name, j], data, len(data)), "copy")
    result = alloc(N * 8 * 8)
    for i, (destinations, sources, text, _) in enumerate(forms()):
        function = ctypes.c_void_p()
        check(cuda.cuModuleGetFunction(ctypes.byref(function), module, f"k{i}".encode()), "function")
        params = [pointers[name, n] for n, name in enumerate(sources)]
        params += [pointers["f32", 0]] * (3 - len(params)) + [result]
        array = (ctypes.c_void_p * 4)(*[ctypes.cast(ctypes.byref(p), ctypes.c_void_p) for p in params])
        check(cuda.cuLaunchKernel(function, 1, 1, 1, N, 1, 1, 0, None, array, None), text)
        check(cuda.cuCtxSynchronize(), text)
        size = N * sum(KINDS[k][1] // 8 for k in destinations)
        data = ctypes.create_string_buffer(size)
        check(cuda.cuMemcpyDtoH_v2(data, result, size), "copy")
        out += data.raw
    return out


if __name__ == "__main__":
    if sys.argv[1] == "ptx": open(sys.argv[2], "w").write(ptx())
    else: open(sys.argv[2], "wb").write(run())
