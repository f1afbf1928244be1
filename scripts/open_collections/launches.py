"""Keeps the launches of a Triton program as files that `rtc run --launch` takes, on a machine without a GPU.

    python -m rtc SCRIPT        with `import launches; launches.start()` in it, or   python -m rtc -m pytest -p launches ..

The kernels run in rtc's emulator, on tensors of the CPU, so that later kernels get what earlier ones computed. A launch
becomes a folder of RECORD: the kernel's modules (`rtc_m0.py` has it, on its own lines), LAUNCH.json, tensors.safetensors with
the memory as it was before, and origin.json. Uninitialized memory is marked `undefined`. Launches that differ in
nothing but the content of tensors are kept once, and at most so many of each kernel.

RECORD: where to write.         PER_KERNEL: launches of a kernel (6).    MOST_BYTES: tensors of one launch (16 MB); larger
ones are counted and left out.  DRY=1: launches are kept, but not made.  lenient.py says what else is set.
"""

import collections
import hashlib
import json
import math
import os
import sys

import torch

import pretend
from lenient import kept, leave_out_products, pass_comparisons  # noqa: F401
from lenient import pytest_collection_modifyitems, pytest_runtest_call, too_slow  # noqa: F401

OUT = os.environ["RECORD"]
PER_KERNEL = int(os.environ.get("PER_KERNEL", "6"))
MOST_BYTES = int(os.environ.get("MOST_BYTES", str(16 << 20)))
DRY = os.environ.get("DRY") == "1"

# How safetensors names an element type of a specification.
DTYPES = {
    "i1": "BOOL", "u1": "BOOL", "i8": "I8", "u8": "U8", "i16": "I16", "u16": "U16", "i32": "I32", "u32": "U32", "i64": "I64",
    "u64": "U64", "fp16": "F16", "bf16": "BF16", "fp32": "F32", "fp64": "F64", "fp8e5": "F8_E5M2", "fp8e4nv": "F8_E4M3",
}  # fmt: skip
SIZES = {"BOOL": 1, "BF16": 2, "F8_E5M2": 1, "F8_E4M3": 1}

started = False
seen = set()
per_kernel = collections.Counter()
counts = collections.Counter()
test = ""


class CannotBeKept(Exception):
    """What a LAUNCH.json cannot say."""


def bytes_of(dtype):
    """The size of an element."""
    return SIZES.get(dtype) or int(dtype[1:]) // 8


class Memory:
    """The memory behind the arguments of a launch."""

    def __init__(self):
        self.tensors, self.owners, self.views = {}, {}, {}

    def place(self, tensor, element, name):
        """Where a tensor lies, as LAUNCH.json says it."""
        tensor = getattr(tensor, "base", tensor)  # of triton.reinterpret
        if not isinstance(tensor, torch.Tensor):
            raise CannotBeKept(f"`{name}` is {type(tensor).__name__}")
        dtype = DTYPES.get(element, "U8")
        storage = tensor.untyped_storage()
        offset = tensor.storage_offset() * tensor.element_size()
        owner = self.owners.setdefault(storage.data_ptr(), name)
        own = self.views.setdefault((owner, dtype), owner if owner == name else name)
        if own not in self.tensors:
            raw = pretend.storage_bytes(tensor).copy()
            raw = raw[: len(raw) // bytes_of(dtype) * bytes_of(dtype)]
            if dtype in ("I64", "U64") and ((raw.view("int64") >> 44) > 0).any() and ((raw.view("int64") >> 47) == 0).all():
                raise CannotBeKept(f"`{name}` seems to hold addresses")
            self.tensors[own] = dtype, raw, pretend.undefined(raw, tensor.element_size())
        place = {"tensor": own}
        if own != owner:
            place |= {"view_of": owner, "offset": 0}
            if offset:
                raise CannotBeKept(f"`{name}` is one of several views with other types")
        elif offset:
            place["offset"] = offset
        if ranges := self.tensors[own][2]:
            place["undefined"] = ranges
        return place, tensor

    def argument(self, spec, value, name):
        """A value, as LAUNCH.json says it, after its entry in the specification."""
        if "tuple" in spec:
            return {"tuple": [self.argument(s, v, f"{name}.{i}") for i, (s, v) in enumerate(zip(spec["tuple"], value))]}
        kind = spec.get("type", "")
        if "constexpr" in spec:
            return None
        if hasattr(value, "block_shape"):
            element = kind.removeprefix("tensordesc<").split("[")[0]
            place, _ = self.place(value.base, element, name)
            numbers = {key: [int(n) for n in getattr(value, key)] for key in ("shape", "strides", "block_shape")}
            return {"descriptor": place | numbers | {"padding": getattr(value, "padding", "zero")}}
        if kind.startswith("*"):
            place, tensor = self.place(value, kind.lstrip("*").removeprefix("k"), name)
            if not tensor.is_contiguous() and tensor.numel():
                place |= {"shape": list(tensor.shape), "strides": list(tensor.stride())}
            return place
        if isinstance(value, bool):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if hasattr(value, "__index__"):
            return int(value)
        raise CannotBeKept(f"`{name}` is {type(value).__name__}")

    def safetensors(self):
        """The file of the tensors."""
        header, at = {}, 0
        for name, (dtype, raw, _) in self.tensors.items():
            header[name] = {"dtype": dtype, "shape": [len(raw) // bytes_of(dtype)], "data_offsets": [at, at + len(raw)]}
            at += len(raw)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text + b"".join(raw.tobytes() for _, raw, _ in self.tensors.values())


def bound(kernel, args, kwargs):
    """The arguments by name."""
    names = set(kernel.arg_names)
    own = {name: value for name, value in (kwargs or {}).items() if name in names}
    bound = kernel.signature.bind(*args, **own)
    bound.apply_defaults()
    return dict(bound.arguments)


def keep(kernel, compiled, grid, arguments):
    """Gives what is written of a launch: its files; nothing if one like it was kept."""
    from rtc._record import functions_among

    functions = functions_among(arguments.values())
    modules = [tuple(module) for module in kernel._gathered(functions).modules]
    spec = json.loads(compiled._ready.spec())
    text = json.dumps(modules)
    memory, described = Memory(), {}
    by_name = {entry["name"]: entry for entry in spec["args"]}
    for name, value in arguments.items():
        if name in by_name and "constexpr" not in by_name[name]:
            described[name] = memory.argument(by_name[name], value, name)
    launch = {"spec": spec, "grid": list(grid), "args": described, "tensors": "tensors.safetensors"}
    shapes = [[name, dtype, len(raw), bool(ranges)] for name, (dtype, raw, ranges) in memory.tensors.items()]
    without = json.dumps([text, launch | {"args": {n: str(v) for n, v in described.items()}}, shapes])
    identity = hashlib.sha256(without.encode()).hexdigest()[:12]
    if identity in seen:
        return None
    seen.add(identity)
    group = hashlib.sha256(text.encode()).hexdigest()[:8]
    per_kernel[group] += 1
    if per_kernel[group] > PER_KERNEL:
        counts["more of the same kernel"] += 1
        return None
    if sum(len(raw) for _, raw, _ in memory.tensors.values()) > MOST_BYTES:
        counts["too large"] += 1
        per_kernel[group] -= 1
        return None
    origin = {"kernel": spec["kernel"], "file": modules[0][1], "line": kernel.fn.__code__.co_firstlineno,
              "function": f"{kernel.fn.__module__}.{kernel.fn.__qualname__}", "test": test, "modules": {n: f for n, f, _ in modules}}  # fmt: skip
    files = {f"{name}.py": body.encode() for name, _, body in modules}
    files["tensors.safetensors"] = memory.safetensors()
    files["LAUNCH.json"] = json.dumps(launch, indent=1).encode()
    files["origin.json"] = json.dumps(origin, indent=1).encode()
    return f"{spec['kernel']}-{group}-{identity}", files


def write(name, files):
    """Writes the folder of a launch."""
    folder = os.path.join(OUT, name)
    if os.path.isdir(folder):
        return
    os.makedirs(folder + ".new", exist_ok=True)
    for file, content in files.items():
        with open(os.path.join(folder + ".new", file), "wb") as f:
            f.write(content)
    os.rename(folder + ".new", folder)


def start():
    """Installs the recorder in this process."""
    global started
    if started:
        return
    started = True
    os.makedirs(OUT, exist_ok=True)
    os.environ["RTC_DEVICE"] = "emulator"
    kept.append(pretend.start())
    pass_comparisons()
    leave_out_products()

    from rtc.runtime.autotuner import Autotuner
    from rtc.runtime.jit import JITFunction

    own_launch = JITFunction._launch

    def launch(*args):
        pretend.launching = True
        try:
            return own_launch(*args)
        finally:
            pretend.launching = False

    def noted(kernel, grid, warmup, args, kwargs=None, options=None):
        """What `kernel[grid](..)`, `kernel.run(..)` and launches of compiled kernels come to."""
        if warmup:
            return launch(kernel, grid, warmup, args, kwargs, options)
        arguments = bound(kernel, args, kwargs)
        sizes = grid({**arguments, **(kwargs or {})}) if callable(grid) else grid
        sizes = tuple(int(n) for n in (sizes if isinstance(sizes, (tuple, list)) else (sizes,)))
        made = None
        try:
            compiled = launch(kernel, sizes, True, args, kwargs, options)
        except Exception as error:
            counts["not compiled"] += 1
            print(f"not compiled: {kernel.__name__}: {str(error)[:1000]}", flush=True)
            raise
        try:
            made = keep(kernel, compiled, sizes, arguments)
        except CannotBeKept as error:
            counts["cannot be kept"] += 1
            print(f"cannot be kept: {kernel.__name__}: {error}", flush=True)
        if made:
            counts["kept"] += 1
            write(*made)
        if DRY:
            return compiled
        try:
            return launch(kernel, sizes, False, args, kwargs, options)
        except Exception as error:  # The sanitizer reports it of the files; the program goes on.
            counts["fault"] += 1
            print(f"fault: {kernel.__name__}: {made and made[0]}: {str(error)[:1000]}", flush=True)
            return compiled

    def tune(self, key, args, kwargs):
        """Takes the configurations in turn instead of the fastest."""
        configs = self.prune_configs(kwargs)
        turn = self.__dict__.setdefault("_turn", 0)
        self._turn += 1
        self.cache[key] = configs[turn * 7 % len(configs)]
        self.pre_hook({**self.nargs, **kwargs, **self.cache[key].all_kwargs()}, reset_only=True)

    JITFunction._launch, Autotuner._tune = noted, tune
    JITFunction.__getitem__ = lambda kernel, grid: lambda *a, **k: kernel.run(*a, grid=grid, warmup=False, **k)


def end():
    """Prints what was kept."""
    print("launches: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())), flush=True)
    sys.stdout.flush()


def pytest_configure(config):
    start()


def pytest_runtest_logstart(nodeid, location):
    global test
    test = nodeid


def pytest_unconfigure(config):
    end()
