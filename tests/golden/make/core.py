"""What every file of cases uses: how a launch is written down, poisoned tensors, random inputs."""
import json
import pathlib
import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent.parent
ALL_DEVICES = ["interpreter", "emulator", "cuda"]
NAMES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32", torch.float64: "fp64",
         torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
         torch.uint8: "u8", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64", torch.bool: "u1",
         torch.float8_e5m2: "fp8e5", torch.float8_e4m3fn: "fp8e4nv"}
# Folders that the command line names; all where there are none.
wanted = []
# Functions that write cases, in the order in which their files are imported.
makers = []
written = 0


def cases(function):
    """Marks a function that writes cases."""
    makers.append(function)
    return function


class Const:
    """An argument that is a constexpr whatever its value."""
    def __init__(self, value): self.value = value


class At:
    """A tensor argument that starts some elements into the tensor."""
    def __init__(self, name, elements): self.name, self.elements = name, elements


def poison(shape, dtype):
    if dtype.is_floating_point and dtype.itemsize > 1:
        return torch.full(shape, -768.0, dtype=dtype)
    return torch.full(tuple(shape) + (dtype.itemsize,), 0x5A if dtype != torch.bool else 1, dtype=torch.uint8).view(dtype).reshape(shape)


def generator(text):
    g = torch.Generator()
    g.manual_seed(sum(ord(c) * 131**i for i, c in enumerate(text)) % 2**31)
    return g


def spec_argument(name, value, tensors):
    if isinstance(value, Const): return {"name": name, "constexpr": value.value}, None
    if isinstance(value, (str, At)):
        tensor, elements = (value, 0) if isinstance(value, str) else (value.name, value.elements)
        t = tensors[tensor]
        offset = elements * t.dtype.itemsize
        arg = {"name": name, "type": "*" + NAMES[t.dtype]}
        if offset % 16 == 0: arg["divisible_by"] = 16
        return arg, {"tensor": tensor, "offset": offset} if offset else {"tensor": tensor}
    if isinstance(value, float): return {"name": name, "type": "fp32"}, value
    if value == 1: return {"name": name, "constexpr": 1}, None
    arg = {"name": name, "type": "i32" if -2**31 <= value < 2**31 else "i64"}
    if value % 16 == 0: arg["divisible_by"] = 16
    return arg, value


def case(folder, name, kernel, grid, arguments, tensors, expected, tolerance, options=None, arch="sm_80", devices=ALL_DEVICES):
    """Writes one launch. `arguments`: name -> tensor name, At, int, float or Const; `expected`: output -> (tensor of
    all its elements); `tolerance`: output -> {"exact": true}, {"ulp": n} or {"bound": t}, or one for all."""
    global written
    if wanted and folder not in wanted: return
    spec_args, args = [], {}
    for key, value in arguments.items():
        spec, arg = spec_argument(key, value, tensors)
        spec_args.append(spec)
        if arg is not None: args[key] = arg
    grid = list(grid) + [1] * (3 - len(grid))
    launch = {
        "spec": {"kernel": kernel, "args": spec_args, "options": {"num_warps": 4, **(options or {})}, "arch": arch},
        "grid": grid, "args": args, "tensors": f"{name}.safetensors",
        "golden": {"outputs": {key: tolerance.get(key, tolerance) for key in expected}, "devices": devices},
    }
    data = {key: t.contiguous().clone() for key, t in tensors.items()}
    for key, t in expected.items():
        assert t.shape == tensors[key].shape and t.dtype == tensors[key].dtype, (folder, name, key, t.shape, tensors[key].shape, t.dtype)
        data["expect." + key] = t.contiguous().clone()
    (HERE / folder / f"{name}.launch.json").write_text(json.dumps(launch, indent=1) + "\n")
    save_file(data, HERE / folder / f"{name}.safetensors")
    written += 1


def with_tail(values, shape):
    """`values` written over the start of a poisoned tensor (2-D: over its top left corner)."""
    t = poison(shape, values.dtype)
    if values.dim() == 2: t[: values.shape[0], : values.shape[1]] = values
    else: t[: values.numel()] = values
    return t


def cdiv(a, b): return -(-a // b)


def random(g, shape, dtype):
    if dtype == torch.bool: return torch.randint(0, 2, shape, generator=g).bool()
    if dtype.is_floating_point: return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)
    bits = dtype.itemsize * 8
    return torch.randint(-2**63, 2**63 - 1, shape, generator=g, dtype=torch.int64).bitwise_right_shift(64 - bits).to(
        {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}[bits]).view(dtype)



def folders():
    """The folders of cases, from HERE."""
    return [p.name for p in HERE.iterdir() if p.is_dir()] + ["../seeds/" + p.name for p in (HERE / "../seeds").iterdir() if p.is_dir()]
