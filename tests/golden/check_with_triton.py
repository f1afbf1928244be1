"""Runs the golden launches with Triton itself: on a GPU, or without one in Triton's interpreter.

    python3 check_with_triton.py [--emulator RTC] [CASE ...]

An independent look at kernels and expected values; the project's own tests do not need it. In the interpreter some
launches fail for reasons of its own (bf16 arithmetic, fp8, NaN in maximum, fma rounded twice, descriptors off multiples of 16
bytes); on a GPU none should. With --emulator Triton compiles them, for which it needs no GPU, and `RTC run` executes its
PTX in the emulator; loops are not pipelined, as the emulator faults where Triton leaves out fences.
"""
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings
import torch

emulator = sys.argv[2] if sys.argv[1:2] == ["--emulator"] else None
chosen = sys.argv[3:] if emulator else sys.argv[1:]
device = "cuda" if torch.cuda.is_available() and not emulator else "cpu"
interpreted = device == "cpu" and not emulator
if interpreted: os.environ["TRITON_INTERPRET"] = "1"
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

warnings.simplefilter("ignore")
HERE = pathlib.Path(__file__).resolve().parent
PRELUDE = """import math
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def _tanh(x):
    return 1.0 - 2.0 / (tl.exp(2.0 * x) + 1.0)


@triton.jit
def _rint(x):
    # For numbers below 2**22; larger ones saturate all the same.
    return x + 12582912.0 - 12582912.0


"""
DTYPES = {"i32": tl.int32, "fp32": tl.float32, "fp16": tl.float16, "bf16": tl.bfloat16}
# Memory for the tensor maps of descriptors that kernels make.
if hasattr(triton, "set_allocator"): triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device=device))


def compare(actual, expected, tolerance):
    if not actual.dtype.is_floating_point or actual.dtype.itemsize == 1:
        return (actual.view(torch.uint8) == expected.view(torch.uint8)).all().item(), ""
    x, y = actual.double(), expected.double()
    good = (x.isnan() & y.isnan()) | (x == y)
    if "bound" in tolerance: good |= (x - y).abs() <= tolerance["bound"] * (1 + y.abs())
    if "ulp" in tolerance:
        word = {2: torch.int16, 4: torch.int32, 8: torch.int64}[actual.dtype.itemsize]
        good |= (actual.view(word).long() - expected.view(word).long()).abs() <= tolerance["ulp"]
    return good.all().item(), f"{int((~good).sum())} wrong at {(~good).nonzero()[:3].tolist()}: {x[~good][:3].tolist()} instead of {y[~good][:3].tolist()}"


def in_emulator(kernel, launch, arguments, tensors):
    """Compiles a launch with Triton and gives its tensors after the emulator has run the PTX."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {a["name"]: "constexpr" if "constexpr" in a else a["type"] for a in launch["spec"]["args"]}
    divisible = {(i,): [["tt.divisibility", 16]] for i, a in enumerate(launch["spec"]["args"]) if a.get("divisible_by")}
    source = ASTSource(kernel, signature, constexprs={name: value for name, value in arguments.items() if signature[name] == "constexpr"}, attrs=divisible)
    target = GPUTarget("cuda", int(launch["spec"]["arch"].strip("sm_a")), 32)
    made = triton.compile(source, target=target, options={"num_warps": launch["spec"]["options"]["num_warps"], "num_stages": 1})
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "kernel.ptx").write_text(made.asm["ptx"])
    scratch = torch.zeros(made.metadata.global_scratch_size * math.prod(launch["grid"]) + 1, dtype=torch.uint8)
    save_file(tensors | {"scratch": scratch}, folder / "in.safetensors")
    args = launch["args"] | {"global_scratch": {"tensor": "scratch"}, "profile_scratch": 0}
    text = json.dumps({"spec": {"shared": made.metadata.shared}, "grid": launch["grid"], "tensors": "in.safetensors", "args": args})
    (folder / "launch.json").write_text(text)
    command = [emulator, "run", folder / "kernel.ptx", "--launch", folder / "launch.json", "--device", "emulator", "-o", folder / "out.safetensors"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode: raise RuntimeError(ran.stderr)
    return load_file(folder / "out.safetensors")


passed = failed = 0
folders = [p for place in (HERE, HERE / "../seeds", HERE / "../../examples") for p in place.iterdir() if p.is_dir() and any(p.glob("*launch.json"))]
for folder in sorted(folders):
    if chosen and folder.name not in chosen: continue
    text = next(p for p in folder.iterdir() if p.suffix in (".rt", ".py")).read_text()
    text = text.replace("tl.math.tanh", "libdevice.tanh" if folder.name == "float_math" else "_tanh")
    if interpreted: text = text.replace("libdevice.rint", "_rint").replace("libdevice.tanh", "_tanh").replace("libdevice.pow(x, y)", "x")
    source = pathlib.Path(tempfile.mkdtemp()) / f"{folder.name}.py"
    source.write_text(PRELUDE + text)
    spec = importlib.util.spec_from_file_location(folder.name, source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for path in sorted(folder.glob("*launch.json")):
        launch = json.loads(path.read_text())
        tensors = {name: t.to(device, copy=True) for name, t in load_file(folder / launch["tensors"]).items()}
        if (folder / "expected.safetensors").exists(): tensors |= {"expect." + name: t.to(device) for name, t in load_file(folder / "expected.safetensors").items()}
        arguments = {}
        for argument in launch["spec"]["args"]:
            name = argument["name"]
            if "constexpr" in argument:
                value = argument["constexpr"]
                if isinstance(value, dict): value = getattr(module, value["function"]) if "function" in value else DTYPES[value["dtype"]]
                arguments[name] = value
            else:
                value = launch["args"][name]
                if isinstance(value, dict):
                    t = tensors[value["tensor"]]
                    value = t.view(-1)[value.get("offset", 0) // t.dtype.itemsize:] if "offset" in value else t
                arguments[name] = value
        try:
            kernel = getattr(module, launch["spec"]["kernel"])
            if hasattr(kernel, "configs"): kernel = kernel.fn  # below @triton.autotune
            options = {key: launch["spec"]["options"][key] for key in ("num_warps", "num_stages") if key in launch["spec"]["options"]}
            if 0 in launch["grid"]: pass
            elif emulator: tensors |= in_emulator(kernel, launch, arguments, tensors)
            else: kernel[tuple(launch["grid"])](**arguments, **({} if device == "cpu" else options))
        except Exception as error:
            print("error", folder.name, path.name, type(error).__name__, str(error)[:300].replace("\n", " "))
            failed += 1
            continue
        wrong = [(name, message) for name, tolerance in launch["golden"]["outputs"].items()
                 for good, message in [compare(tensors[name], tensors["expect." + name], tolerance)] if not good]
        for name, message in wrong: print("wrong", folder.name, path.name, name, message)
        failed += bool(wrong)
        passed += not wrong
print(f"{passed} passed, {failed} failed")
