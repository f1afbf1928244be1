"""Where the expected values of the cases come from. The project's own tests do not need this script.

    python3 values.py fill FILE.rt ...     writes the `expect` line of each `numpy` line
    python3 values.py check [FILE.rt ...]  whether the formulas still give the expected values
    python3 values.py triton [FILE.rt ...] runs the cases in Triton's own interpreter and compares

Formulas see the arguments by name (bf16 and fp8 as float32, flat), `np`, `ml` (see FP8 below) and each other's results.
"""
import linecache
import math
import os
import pathlib
import re
import struct
import sys

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
M64 = (1 << 64) - 1
KINDS = {
    "i1": ("bool", np.uint8), "u1": ("bool", np.uint8), "i8": ("int8", np.int8), "i16": ("int16", np.int16),
    "i32": ("int32", np.int32), "i64": ("int64", np.int64), "u8": ("uint8", np.uint8), "u16": ("uint16", np.uint16),
    "u32": ("uint32", np.uint32), "u64": ("uint64", np.uint64), "fp16": ("float16", np.float16),
    "bf16": ("bfloat16", np.uint16), "fp32": ("float32", np.float32), "fp64": ("float64", np.float64),
    "fp8e5": ("float8_e5m2", np.uint8), "fp8e4nv": ("float8_e4m3fn", np.uint8), "fp8e4b15": (None, np.uint8),
}
SMALL = ("bf16", "fp8e5", "fp8e4nv", "fp8e4b15")


class Random:
    """SplitMix64, as `tests/central/data.rs` has it."""

    def __init__(self, seed): self.state = seed & M64

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & M64
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
        return z ^ (z >> 31)


def e4b15(byte):
    sign, exponent, mantissa = byte >> 7, byte >> 3 & 15, byte & 7
    value = (8 + mantissa) * 2.0 ** (exponent - 18) if exponent else mantissa * 2.0 ** -17
    return -value if sign else value


def decode(kind, bits):
    """Float32 values of raw elements of the small float types."""
    if kind == "fp8e4b15": return np.array([e4b15(int(b)) for b in bits], np.float32)
    return torch.from_numpy(np.ascontiguousarray(bits)).view(getattr(torch, KINDS[kind][0])).float().numpy()


def encode(kind, values):
    """Elements of a type, raw for the small float types."""
    values = np.asarray(values)
    if kind == "fp8e4b15":
        table = {e4b15(b): b for b in reversed(range(256))}
        return np.array([table[float(v)] for v in values], np.uint8)
    if kind in SMALL:
        tensor = torch.from_numpy(np.ascontiguousarray(values.astype(np.float32)))
        raw = tensor.to(getattr(torch, KINDS[kind][0])).view(torch.uint16 if kind == "bf16" else torch.uint8)
        return raw.numpy()
    if kind in ("i1", "u1"): return (values != 0).astype(np.uint8)
    return values.astype(KINDS[kind][1])


def element(word, kind):
    word, store = word.strip(), KINDS[kind][1]
    if word.startswith("0x"): return np.array([int(word, 16)], f"u{np.dtype(store).itemsize}").view(store)[0]
    number = int(word) if re.fullmatch(r"-?\d+", word) else float(word)
    if store in (np.float16, np.float32, np.float64): return store(number)
    if kind in SMALL: return encode(kind, [float(number)])[0]
    size = np.dtype(store).itemsize
    return np.array([int(number) & ((1 << 8 * size) - 1)], f"u{size}").view(store)[0]


def content(kind, text, name):
    """Raw elements of what stands after the type."""
    store = KINDS[kind][1]
    if text.startswith("["):
        body, _, times = text.partition("] * ")
        words = [w for w in body.strip("[] ").split(",") if w.strip()]
        return np.array([element(w, kind) for w in words] * int(times or 1), store)
    words = text.split()
    count = int(words[1])
    if words[0] == "uninit": return np.frombuffer(b"\xcb" * count * np.dtype(store).itemsize, store).copy()
    if words[0] == "iota": return np.array([element(str(i), kind) for i in range(count)], store)
    if words[0] == "fill": return np.array([element(words[2], kind)] * count, store)
    seed = 7
    for byte in name.encode(): seed = (seed * 0x1000001B3 & M64) ^ byte
    at = {"range": 4, "bits": 2, "near": 2}[words[0]]
    random = Random(int(words[at]) if len(words) > at else seed)
    size = np.dtype(store).itemsize
    if words[0] == "range":
        low, high = int(words[2]), int(words[3])
        return np.array([element(str(low + random.next() % (high - low + 1)), kind) for _ in range(count)], store)
    if words[0] == "bits" or kind[0] in "iu":
        mask = 1 if kind in ("i1", "u1") else (1 << 8 * size) - 1
        return np.array([random.next() & mask for _ in range(count)], f"u{size}").view(store)
    out = []
    for _ in range(count):
        mantissa = 1.0 + (random.next() >> 12) / 2.0 ** 52
        value = mantissa * 2.0 ** (random.next() % 16 - 8)
        out.append(value if random.next() & 1 == 0 else -value)
    return encode(kind, out)


def shown(kind, values):
    def one(v):
        if kind in SMALL: v = decode(kind, np.array([v], KINDS[kind][1]))[0]
        if isinstance(v, np.floating):
            if np.isnan(v): return "nan"
            if np.isinf(v): return "inf" if v > 0 else "-inf"
            if v == int(v) and abs(v) < 1e9 and not (v == 0 and np.signbit(v)): return str(int(v))
            return str(v)
        return str(int(v))
    words = [one(v) for v in values]
    if len(words) > 8 and len(set(words)) == 1: return f"fill {len(words)} {words[0]}"
    return "[" + ", ".join(words) + "]"


class Case:
    """A case as its header has it."""

    def __init__(self, path, prelude, lines):
        self.path, self.prelude, self.lines = path, prelude, lines
        self.args, self.expect, self.numpy, self.tolerance = {}, {}, {}, {}
        self.grid, self.prints, self.fault, self.interpreted, self.free = (1, 1, 1), False, False, True, []
        self.order = []
        joined = []
        for line in lines:
            if not line.startswith("#"): break
            if line.startswith("#   "): joined[-1] += " " + line[1:].strip()
            else: joined.append(line[1:].strip())
        self.name = joined[0][5:].split(":")[0].strip()
        for line in joined[1:]:
            word, _, rest = line.partition(" ")
            name, _, value = rest.partition(" = ")
            if word == "arg": self.arg(name, value)
            elif word == "expect": self.expect[name] = content(self.args[name][0], value, name)
            elif word == "numpy": self.numpy[name] = value
            elif word == "tolerance": self.tolerance[name] = value
            elif word == "grid": self.grid = tuple(map(int, rest.split()))
            elif word == "fault:": self.fault = True
            elif word == "print": self.prints = True
            elif word == "any": self.free = rest.split()

    def arg(self, name, value):
        entry, _, rest = value.partition(" ")
        plain = entry.split(":")[0].replace("*k", "*")
        self.order.append(name)
        if plain.startswith("*") and plain[1:] in KINDS:
            self.args[name] = (plain[1:], content(plain[1:], rest, name), True)
        elif plain in KINDS and rest:
            self.args[name] = (plain, np.array([element(rest, plain)], KINDS[plain][1]), False)
        else: self.args[name] = (None, value, False)

    def formulas(self):
        names = {"np": np, "math": math, "torch": torch}
        for name, (kind, value, is_tensor) in self.args.items():
            if kind is None:
                try: value = eval(value.replace("i32:1", "1"), {"float": float})
                except Exception: continue
            else:
                if kind in SMALL: value = decode(kind, value)
                elif kind in ("i1", "u1"): value = value != 0
                else: value = value.copy()
                if not is_tensor: value = value[0].item()
            names[name.replace(".", "_")] = value
        out = {}
        with np.errstate(all="ignore"):
            for name, formula in self.numpy.items():
                kind, before, _ = self.args[name]
                found = np.asarray(eval(formula, names)).reshape(-1)
                names[name] = found
                raw = encode(kind, found)
                whole = before.copy()
                assert len(raw) <= len(whole), f"{self.path}: {self.name}: {name} has {len(whole)} elements, not {len(raw)}"
                whole[:len(raw)] = raw
                out[name] = whole
        return out


def cases(path):
    lines = path.read_text().splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("# case ")] + [len(lines)]
    prelude = lines[:starts[0]]
    return lines, [(a, Case(path, prelude, lines[a:b])) for a, b in zip(starts, starts[1:])]


def fill(path):
    lines, found = cases(path)
    for start, case in reversed(found):
        for name, values in reversed(list(case.formulas().items())):
            at = next(i for i in range(start, len(lines)) if re.match(rf"# numpy {re.escape(name)} = ", lines[i]))
            while lines[at + 1].startswith("#   "): at += 1
            words = f"# expect {name} = {shown(case.args[name][0], values)}".split(" ")
            wrapped, line = [], ""
            for word in words:
                if len(line) + len(word) > 116: wrapped.append(line.rstrip()); line = "#   "
                line += word + " "
            wrapped.append(line.rstrip())
            end = at + 1
            if lines[end].startswith(f"# expect {name} = "):
                end += 1
                while lines[end].startswith("#   "): end += 1
            lines[at + 1:end] = wrapped
    path.write_text("\n".join(lines) + "\n")


def differs(case, name, found):
    """What is wrong with an output, or nothing."""
    kind, wanted = case.args[name][0], case.expect.get(name)
    if wanted is None: wanted = case.args[name][1]
    if kind in SMALL: wanted, found = decode(kind, wanted), decode(kind, found)
    if wanted.dtype.kind != "f": bad = wanted != found
    else:
        bad = ~((wanted == found) | (np.isnan(wanted) & np.isnan(found)))
        rule = case.tolerance.get(name, "")
        a, b = wanted.astype(np.float64), found.astype(np.float64)
        with np.errstate(all="ignore"):
            if rule.endswith("ulp"): bad &= ~(abs(a - b) <= float(rule.split()[0]) * np.spacing(np.maximum(abs(wanted), abs(found))))
            elif rule: bad &= ~(abs(a - b) <= float(rule) * max([abs(x) for x in a if np.isfinite(x)] or [0]))
    if not bad.any(): return None
    i = int(bad.nonzero()[0][0])
    return f"{name}[{i}] is {found[i]}, not {wanted[i]} ({int(bad.sum())} of {len(wanted)} differ)"


def run_in_triton(case):
    import triton
    import triton.language as tl
    source = "import math\nimport triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"
    source += "\n".join(case.prelude + case.lines) + "\n"
    file = f"/{case.path.stem}_{case.name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names = {"__name__": case.name, "__file__": file}
    exec(compile(source, file, "exec"), names)
    kernel = [v for v in names.values() if hasattr(v, "run") and hasattr(v, "fn")][-1]
    arguments, tensors = {}, {}
    for name in case.order:
        kind, value, is_tensor = case.args[name]
        if kind is None: value = eval(value.replace("i32:1", "1"), {**names, "float": float})
        elif is_tensor:
            tensor = torch.from_numpy(value.copy())
            if kind in SMALL and KINDS[kind][0]: tensor = tensor.view(getattr(torch, KINDS[kind][0]))
            if kind in ("i1", "u1"): tensor = tensor.view(torch.bool)
            if kind == "fp8e4b15": tensor = triton.reinterpret(tensor, tl.float8e4b15)
            value = tensors[name] = tensor
        else: value = value[0].item()
        root, _, field = name.partition(".")
        if field:
            assert field.isdigit(), "named fields"
            arguments[root] = arguments.get(root, ()) + (value,)
        else: arguments[root] = value
    kernel[case.grid](**arguments)
    wrong = []
    for name, tensor in tensors.items():
        if name in case.free: continue
        tensor = getattr(tensor, "base", tensor)
        raw = tensor.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()])
        wrong.append(differs(case, name, raw.numpy().view(KINDS[case.args[name][0]][1])))
    return [w for w in wrong if w]


def main():
    command, names = sys.argv[1], sys.argv[2:]
    if command == "triton": os.environ["TRITON_INTERPRET"] = "1"
    paths = [pathlib.Path(n) for n in names] or sorted(HERE.glob("*.rt"))
    good = bad = refused = 0
    for path in paths:
        if command == "fill":
            fill(path)
            continue
        for _, case in cases(path)[1]:
            try:
                if command == "check":
                    wrong = [f"{n}: the formula gives {shown(case.args[n][0], v)}" for n, v in case.formulas().items()
                             if n not in case.expect or v.tobytes() != case.expect[n].tobytes()
                             and differs(case, n, v)]
                else: wrong = [] if case.fault else run_in_triton(case)
            except Exception as error:
                refused += 1
                print(f"{path.stem}/{case.name}: refused: {type(error).__name__} {str(error).splitlines()[-1:] or ''}")
                continue
            bad, good = bad + bool(wrong), good + (not wrong)
            for line in wrong: print(f"{path.stem}/{case.name}: {line}")
    if command != "fill": print(f"{good} agree, {bad} differ, {refused} could not be run")
    sys.exit(bool(bad) and command == "check")


if __name__ == "__main__": main()
