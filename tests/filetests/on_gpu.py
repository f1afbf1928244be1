"""On a machine with a GPU: runs the kernels of tests/filetests/async by `rtc run` and compares with the interpreter.

    python3 tests/filetests/on_gpu.py RTC [FILE.tir]...

Planted mistakes (kernels whose header says `fault:`) are left out. Needs nothing but Python; run it in the root of a checkout.
"""
import glob, json, math, os, random, struct, subprocess, sys, tempfile

FORMATS = {"f16": ("e", "F16"), "f32": ("f", "F32"), "i8": ("b", "I8"), "i32": ("i", "I32"), "i64": ("q", "I64")}
BYTES = {"bf16": (2, "BF16"), "f8e4": (1, "F8_E4M3"), "f8e5": (1, "F8_E5M2")}


def bf16(x):
    return struct.pack("<f", x)[2:]


def small(x, kind):
    """A float of 8 bits, of the few that tests use: small whole numbers and halves."""
    bias, mantissa = {"f8e4": (7, 3), "f8e5": (15, 2)}[kind]
    if x == 0:
        return b"\0"
    sign, x = (128, -x) if x < 0 else (0, x)
    exponent = 0
    while x >= 2:
        x, exponent = x / 2, exponent + 1
    while x < 1:
        x, exponent = x * 2, exponent - 1
    return bytes([sign | (exponent + bias) << mantissa | int((x - 1) * (1 << mantissa))])


def encode(kind, values):
    if kind in FORMATS:
        return struct.pack(f"<{len(values)}{FORMATS[kind][0]}", *values)
    return b"".join(bf16(x) if kind == "bf16" else small(x, kind) for x in values)


def content(kind, text):
    """The bytes of a tensor, whose header says `range 64 -4 4` and the like; None for `uninit`."""
    words = text.split()
    draw = random.Random(text)
    count = int(words[1])
    if words[0] == "uninit":
        return b"\xcb" * (count * size(kind))
    if words[0] == "range":
        return encode(kind, [draw.randint(int(words[2]), int(words[3])) for _ in range(count)])
    if words[0] == "iota":
        return encode(kind, list(range(count)))
    if words[0] == "fill":
        return encode(kind, [float(words[2]) if kind[0] != "i" else int(words[2])] * count)
    if words[0] == "near":
        return encode(kind, [draw.choice([-1, 1]) * draw.uniform(1, 2) * 2.0 ** draw.randint(-8, 7) for _ in range(count)])
    raise ValueError(f"content `{text}`")


def size(kind):
    return BYTES[kind][0] if kind in BYTES else struct.calcsize(FORMATS[kind][0])


def write_tensors(path, tensors):
    header, at = {}, 0
    for name, (kind, data) in tensors.items():
        dtype = BYTES[kind][1] if kind in BYTES else FORMATS[kind][1]
        header[name] = {"dtype": dtype, "shape": [len(data) // size(kind)], "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, data in tensors.values()))


def read_tensors(path):
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return {name: data[8 + length + t["data_offsets"][0] : 8 + length + t["data_offsets"][1]] for name, t in header.items()}


def launch(part, folder):
    """Writes kernel, launch and tensors of a part of a file; gives the tolerances."""
    grid, tensors, args, tolerances = [1, 1, 1], {}, {}, {}
    descs = {}
    for line in part.splitlines():
        if not line.startswith("// "):
            break
        word, _, rest = line[3:].partition(" ")
        if word == "grid":
            grid = [int(x) for x in rest.split()]
        elif word == "tolerance":
            name, value = rest.split(" = ")
            tolerances[name] = float(value)
        elif word == "arg":
            name, value = rest.split(" = ")
            kind, _, text = value.partition(" ")
            if kind == "desc":
                of, *shape = text.split()
                descs[name] = (of, [int(x) for x in shape])
            elif text:
                tensors[name] = (kind, content(kind, text))
                args[name] = {"tensor": name}
            else:
                args[name] = json.loads(value)
    for name, (of, shape) in descs.items():
        strides = [1]
        for n in reversed(shape[1:]):
            strides.insert(0, strides[0] * n)
        # The box stands in the parameter's type.
        box = part.split(f"%{name}: desc<")[1].split(">")[0].split(",")[0].split("x")[:-1]
        args[name] = {"descriptor": {"tensor": of, "shape": shape, "strides": strides, "block_shape": [int(x) for x in box]}}
    open(f"{folder}/k.tir", "w").write(part)
    write_tensors(f"{folder}/in.safetensors", tensors)
    json.dump({"spec": {}, "grid": grid, "args": args, "tensors": "in.safetensors"}, open(f"{folder}/l.json", "w"))
    return tensors, tolerances


def run(rtc, folder, device):
    out = f"{folder}/{device.replace(':', '')}.safetensors"
    done = subprocess.run(
        [rtc, "run", f"{folder}/k.tir", "--launch", f"{folder}/l.json", "--device", device, "-o", out],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return None, (done.stderr or done.stdout).strip()
    return read_tensors(out), done.stdout


def decode(kind, data):
    if kind == "bf16":
        return [struct.unpack("<f", b"\0\0" + data[i : i + 2])[0] for i in range(0, len(data), 2)]
    if kind in BYTES:
        return list(data)
    return list(struct.unpack(f"<{len(data) // size(kind)}{FORMATS[kind][0]}", data))


def differences(kind, wanted, found, tolerance):
    if wanted == found:
        return 0
    wanted, found = decode(kind, wanted), decode(kind, found)
    if tolerance is None:
        return sum(a != b for a, b in zip(wanted, found))
    largest = max((abs(x) for x in wanted if math.isfinite(x)), default=0)
    same = lambda a, b: a == b or math.isnan(a) and math.isnan(b) or abs(a - b) <= tolerance * largest
    return sum(not same(a, b) for a, b in zip(wanted, found))


def check(rtc, part, device):
    with tempfile.TemporaryDirectory() as folder:
        tensors, tolerances = launch(part, folder)
        wanted, said = run(rtc, folder, "interpreter")
        if wanted is None:
            return "interpreter: " + said
        found, said = run(rtc, folder, device)
        if found is None:
            return f"{device}: {said}"
        wrong = {n: differences(k, wanted[n], found[n], tolerances.get(n)) for n, (k, _) in tensors.items()}
        changed = any(wanted[n] != data for n, (_, data) in tensors.items())
        usage = next((l for l in said.splitlines() if l.startswith("registers")), "")
        if not changed:
            return "nothing was written"
        if any(wrong.values()):
            return f"differs: {wrong}"
        return "ok   " + usage.removeprefix("registers").strip()


def main():
    rtc, files = sys.argv[1], sys.argv[2:]
    device = os.environ.get("RTC_DEVICE", "cuda:0")
    files = files or sorted(glob.glob("tests/filetests/async/*.tir"))
    count = bad = 0
    for path in files:
        for part in open(path).read().split("\n// ----\n"):
            if "\n// fault: " in "\n" + part:
                continue
            name = part.split("kernel @")[1].split("(")[0]
            result = check(rtc, part, device)
            count, bad = count + 1, bad + (not result.startswith("ok"))
            print(f"{os.path.basename(path)}/{name}: {result}", flush=True)
    print(f"{count} kernels, {count - bad} ok, {bad} bad")
    sys.exit(bad > 0)


main()
