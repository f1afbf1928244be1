"""On a machine with a GPU: launches the kernels that `RTC_CENTRAL_EXPORT=FOLDER cargo test --test central generated` wrote.

    python3 tests/central/on_gpu.py ours FILE [PROCESSES]      our PTX, by the driver: results equal to the interpreter's
    python3 tests/central/on_gpu.py triton FILE [PROCESSES] [SETS]    the same kernels by Triton: the same results
    python3 tests/central/on_gpu.py inputs FILE                only whether the inputs are made as they were, without a GPU

FILE has a kernel in each line (the exported files one after the other), and may end in .xz. Needs NumPy, and for Triton
PyTorch. All NaN count as one; all else is compared by bits. The inputs come from rules with seeds, as in
`tests/central/data.rs`; results are compared by a digest (`tests/central/export.rs`).
"""
import ctypes, json, lzma, multiprocessing, os, re, sys, tempfile, time

import numpy as np

U = np.uint64
BITS = {"i1": 8, "i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64, "fp16": 16, "bf16": 16,
        "fp32": 32, "fp64": 64, "fp8e5": 8, "fp8e4nv": 8}
# Bits of the mantissa, and the bias of the exponent.
FLOATS = {"fp16": (10, 15), "bf16": (7, 127), "fp32": (23, 127), "fp64": (52, 1023), "fp8e5": (2, 15), "fp8e4nv": (3, 7)}
WORDS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def mixed(z):
    z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
    return z ^ (z >> U(31))


def draws(seed, count):
    """The first numbers of SplitMix64 from a seed."""
    return mixed(U(seed) + U(0x9E3779B97F4A7C15) * np.arange(1, count + 1, dtype=U))


def encode(kind, values):
    """Small whole numbers and short fractions as elements."""
    if kind not in FLOATS:
        return values.astype(np.int64).astype(U).astype(WORDS[BITS[kind]])
    if kind in ("fp16", "fp32", "fp64"):
        with np.errstate(over="ignore"):
            return values.astype({"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}[kind]).view(WORDS[BITS[kind]])
    mantissa, bias = FLOATS[kind]
    if kind == "bf16":
        # Rounded to the nearest, ties to even, from fp64 by way of its bits.
        bits = values.astype(np.float32).view(np.uint32).astype(U)
        low = bits & U(0xFFFF)
        up = (low > U(0x8000)) | ((low == U(0x8000)) & ((bits >> U(16)) & U(1) == U(1)))
        return ((bits >> U(16)) + up.astype(U)).astype(np.uint16)
    sign = (values < 0).astype(U) << U(7)
    size = np.abs(values)
    exponent = np.floor(np.log2(np.where(size == 0, 1, size))).astype(np.int64)
    fraction = ((size / 2.0**exponent - 1) * (1 << mantissa)).astype(np.int64)
    bits = ((exponent + bias) << mantissa | fraction).astype(U) | sign
    return np.where(size == 0, U(0), bits).astype(np.uint8)


def content(kind, text, kept):
    """The elements of a tensor as words of their width."""
    words = text.split()
    what, count = words[0], int(words[1])
    width = BITS[kind]
    if what == "uninit":
        return np.full(count * (width // 8), 0xCB, np.uint8).view(WORDS[width])
    if what == "iota":
        return encode(kind, np.arange(count))
    if what == "range":
        low, high, seed = int(words[2]), int(words[3]), int(words[4])
        return encode(kind, (draws(seed, count) % U(high - low + 1)).astype(np.int64) + low)
    if what == "bits" or (what == "near" and kind not in FLOATS):
        return draws(int(words[2]), count).astype(WORDS[width])
    if what == "near":
        three = draws(int(words[2]), 3 * count).reshape(count, 3)
        values = 1.0 + (three[:, 0] >> U(12)).astype(np.float64) / float(1 << 52)
        values = values * 2.0 ** ((three[:, 1] % U(16)).astype(np.int64) - 8)
        values = np.where(three[:, 2] & U(1) == 0, values, -values)
        return nearest(kind, values)
    if what == "special":
        first = np.frombuffer(bytes.fromhex(kept), np.uint8).view(WORDS[width])
        return np.roll(first, -(int(words[3]) if len(words) > 3 else 0))
    raise ValueError(text)


def nearest(kind, values):
    """Rounded once, to the nearest and ties to even."""
    if kind == "bf16":
        bits = values.view(U)
        # Ordinary numbers only: 52 bits of mantissa to 7.
        sign, rest = bits >> U(63), bits & U((1 << 63) - 1)
        rest = rest - (U(1023 - 127) << U(52))
        low, kept = rest & U((1 << 45) - 1), rest >> U(45)
        half = U(1 << 44)
        kept = kept + ((low > half) | ((low == half) & (kept & U(1) == U(1)))).astype(U)
        return (kept | sign << U(15)).astype(np.uint16)
    return encode(kind, values)


def digest(kind, words):
    bits = words.astype(U)
    if kind in ("fp16", "bf16", "fp32", "fp64"):
        mantissa = FLOATS[kind][0]
        top = U(1 << (BITS[kind] - 1))
        infinity = (top - U(1)) >> U(mantissa) << U(mantissa)
        bits = np.where(bits & (top - U(1)) > infinity, top - U(1), bits)
    place = np.arange(1, len(bits) + 1, dtype=U) * U(0x9E3779B97F4A7C15)
    return f"{int(np.sum(mixed(bits ^ place), dtype=U)):016x}"


def arguments(lines):
    """Name, kind without alignment, and what stands behind it, of each argument."""
    for line in lines:
        name, _, rest = line.partition(" = ")
        kind, _, text = rest.partition(" ")
        yield name, kind.split(":")[0], text


def tensors(kernel, number):
    """The tensors of a set of inputs, in order."""
    for name, kind, text in arguments(kernel["sets"][number][0]):
        if kind.startswith("*"):
            yield name, kind[1:], content(kind[1:], text, kernel.get("special", {}).get(name))


# Our PTX, by the driver.


class Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *args):
        status = getattr(self.cuda, name)(*args)
        if status:
            raise RuntimeError(f"{name}: {status}")

    def alloc(self, size):
        at = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(max(size, 16)))
        return at.value

    def load(self, form):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), form["ptx"].encode() + b"\0")
        self.call("cuModuleGetFunction", ctypes.byref(function), module, form["symbol"].encode())
        if form["shared"] > 48 * 1024:
            self.call("cuFuncSetAttribute", function, 8, ctypes.c_int(form["shared"]))
        return module, function

    def map(self, fields, base):
        out = (ctypes.c_uint64 * 32)()
        # The map lies at a multiple of 64 bytes.
        at = (ctypes.addressof(out) + 63) // 64 * 64
        rank = len(fields["sizes"])
        numbers = lambda ty, values: (ty * max(len(values), 1))(*values)
        swizzle = {0: 0, 32: 1, 64: 2, 128: 3}[fields["swizzle"]]
        self.call("cuTensorMapEncodeTiled", ctypes.c_void_p(at), fields["type"], rank, ctypes.c_void_p(base),
                  numbers(ctypes.c_uint64, fields["sizes"]), numbers(ctypes.c_uint64, fields["strides"]),
                  numbers(ctypes.c_uint32, fields["box"]), numbers(ctypes.c_uint32, [1] * rank), 0, swizzle, 0,
                  1 if fields["nan"] else 0)
        return ctypes.string_at(at, 128)


def place(bases, address):
    number = address >> 40
    return bases[number - 1] + (address & ((1 << 40) - 1)) if 0 < number <= len(bases) else address


form_in_hand = [""]


def ours(kernel, driver, report):
    sets = range(len(kernel["sets"]))
    given = [list(tensors(kernel, number)) for number in sets]
    bases = [driver.alloc(words.nbytes) for _, _, words in given[0]]
    for form in kernel["forms"]:
        form_in_hand[0] = form["structure"]
        module, function = driver.load(form)
        for number in sets:
            for base, (_, _, words) in zip(bases, given[number]):
                driver.call("cuMemcpyHtoD_v2", ctypes.c_uint64(base), words.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(words.nbytes))
            values = []
            for (_, size), value in zip(form["params"], form["sets"][number]):
                if isinstance(value, dict):
                    data = driver.map(value, place(bases, value["base"]))
                else:
                    value = place(bases, value) if size == 8 else value
                    data = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
                values.append((ctypes.c_uint64 * ((size + 7) // 8)).from_buffer_copy(data.ljust((size + 7) // 8 * 8, b"\0")))
            if form.get("scratch"):
                blocks = form["grid"][0] * form["grid"][1] * form["grid"][2]
                scratch = driver.alloc(blocks * form["scratch"])
                values.append(ctypes.c_uint64(scratch))
            pointers = (ctypes.c_void_p * max(len(values), 1))(*[ctypes.addressof(value) for value in values])
            driver.call("cuLaunchKernel", function, *form["grid"], form["threads"], 1, 1, form["shared"], None, pointers, None)
            driver.call("cuCtxSynchronize")
            if form.get("scratch"):
                driver.call("cuMemFree_v2", ctypes.c_uint64(scratch))
            found = []
            for base, (_, _, words) in zip(bases, given[number]):
                out = np.empty_like(words)
                driver.call("cuMemcpyDtoH_v2", out.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(base), ctypes.c_size_t(out.nbytes))
                found.append(out)
            report(number, form["structure"], found, given[number])
        driver.call("cuModuleUnload", module)
    for base in bases:
        driver.call("cuMemFree_v2", ctypes.c_uint64(base))


# The same by Triton.


def triton_kernel(kernel, folder):
    import importlib.util

    numbers = [name for name, kind, _ in arguments(kernel["sets"][0][0]) if not kind.startswith("*")]
    source = kernel["prelude"] + "\n" + kernel["source"].replace("@triton.jit\n", f"@triton.jit(do_not_specialize={numbers!r})\n", 1)
    path = f"{folder}/k{kernel['seed']}.py"
    with open(path, "w") as file:
        file.write("import triton\nimport triton.language as tl\n\n\n" + source)
    spec = importlib.util.spec_from_file_location(f"k{kernel['seed']}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def triton(kernel, folder, report, limit):
    import torch
    import triton as library

    library.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    dtypes = {"i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "u16": torch.uint16, "i32": torch.int32, "u32": torch.uint32,
              "i64": torch.int64, "u64": torch.uint64, "fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32,
              "fp64": torch.float64, "fp8e5": torch.float8_e5m2, "fp8e4nv": torch.float8_e4m3fn}
    function = triton_kernel(kernel, folder)
    options = dict(line.split(" ", 1) for line in kernel["header"] if " " in line)
    stages = int(re.search(r"num_stages = (\d+)", "\n".join(kernel["header"])).group(1))
    grid = tuple(int(x) for x in options["grid"].split())
    for number in range(min(limit, len(kernel["sets"]))):
        given = list(tensors(kernel, number))
        on_device = {name: torch.from_numpy(words.view(np.uint8).copy()).cuda().view(dtypes[kind]) for name, kind, words in given}
        args = [on_device[name] if kind.startswith("*") else int(text) for name, kind, text in arguments(kernel["sets"][number][0])]
        function[grid](*args, num_warps=int(options["warps"]), num_stages=stages, enable_fp_fusion=False)
        torch.cuda.synchronize()
        found = [on_device[name].view(torch.uint8).cpu().numpy().view(words.dtype) for name, _, words in given]
        report(number, "triton", found, given)


def kernels(path):
    opened = lzma.open(path, "rt") if path.endswith(".xz") else open(path)
    with opened as file:
        return [json.loads(line) for line in file if line.strip()]


def inputs(all_kernels):
    """Compares the tensors that no kernel writes with what the interpreter was given."""
    count = 0
    for kernel in all_kernels:
        for number, (_, wanted) in enumerate(kernel["sets"]):
            for (name, kind, words), digits in zip(tensors(kernel, number), wanted):
                if name.startswith("x"):
                    count += 1
                    assert digest(kind, words) == digits, (kernel["seed"], number, name, kind)
    print(f"{count} tensors of {len(all_kernels)} kernels are what the interpreter was given")
    return 0


def worker(mode, part, limit, deadline, results):
    # What compilers print of their own failures is long; the message of the exception says enough.
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    count = wrong = tried = 0
    shown = []
    with tempfile.TemporaryDirectory() as folder:
        driver = None
        for kernel in part:
            if time.time() > deadline:
                break
            tried += 1
            before = wrong

            def report(number, form, found, given):
                nonlocal count, wrong
                count += 1
                for wanted, words, (name, kind, _) in zip(kernel["sets"][number][1], found, given):
                    if digest(kind, words) != wanted:
                        wrong += 1
                        if len(shown) < 30:
                            shown.append([kernel["seed"], number, form, name, kind, words.tobytes().hex() if words.nbytes < 9000 else ""])
                        return

            try:
                if mode == "ours":
                    driver = driver or Driver()
                    ours(kernel, driver, report)
                else:
                    triton(kernel, folder, report, limit)
            except Exception as error:
                words = str(error).strip().splitlines() or [""]
                shown.append([kernel["seed"], -1, form_in_hand[0] or mode, type(error).__name__, words[0][:300] + " ... " + words[-1][:300], ""])
                if mode == "ours" and "700" in str(error) or "illegal" in str(error):
                    break
    results.put((count, wrong, tried, shown))


def main():
    mode, path = sys.argv[1:3]
    processes = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    limit = int(sys.argv[4]) if len(sys.argv) > 4 else 1 << 30
    start = time.time()
    deadline = start + float(os.environ.get("SECONDS_LIMIT", "1e9"))
    all_kernels = kernels(path)
    if mode == "inputs":
        return inputs(all_kernels)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    parts = [all_kernels[i::processes] for i in range(processes)]
    running = [context.Process(target=worker, args=(mode, part, limit, deadline, results)) for part in parts]
    for process in running:
        process.start()
    count = wrong = tried = 0
    shown = []
    for _ in running:
        done, bad, some, found = results.get()
        count, wrong, tried, shown = count + done, wrong + bad, tried + some, shown + found
    for process in running:
        process.join()
    errors = [entry for entry in shown if entry[1] < 0]
    print(f"{mode}: {tried} of {len(all_kernels)} kernels, {count} launches, {wrong} differ, {len(errors)} kernels failed, {time.time() - start:.0f} s")
    for entry in shown[:12]:
        print("  ", *[str(x)[:70] for x in entry[:5]])
    if os.environ.get("OUT"):
        with open(f"{os.environ['OUT']}/proof-{mode}.json", "w") as file:
            json.dump(shown, file)
    return 1 if wrong or errors else 0


if __name__ == "__main__":
    sys.exit(main())
