"""Whether NVIDIA's assemblers give right code for sm_90a in a kernel of linear attention.

    python3 benches/gpu/ptxas_defect.py [--ptxas PATH ...] [--quick] [--json OUT.json]

ptxas 12.8 gives wrong results on Hopper in kernels of this structure; 12.9, 13.0 and the driver of CUDA 13.0 do not. It is
dependent products in a row with masks and exponentials between them, and an accumulator in fp32 that a loop over chunks
carries. The kernel here is the chunked form of the gated delta rule. The expected values come from the recurrence, step by step,
in fp64.

Each shape and configuration is compiled by rtc, and by Triton where that is installed under its own name. Each PTX is
assembled by the driver and by each ptxas that is found (--ptxas, RTC_PTXAS, PATH, the package nvidia-cuda-nvcc) and launched
by the driver's API, in a process of its own, which may end by a fault of the GPU; what differs from the expected values is
reported. Exit status 1 if anything is.
It needs a GPU, PyTorch, and the wheel.
"""
import argparse
import ctypes
import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import triton
import triton.language as tl


@triton.jit
def gated_delta_kernel(q_ptr, k_ptr, v_ptr, decay_ptr, beta_ptr, o_ptr, state_ptr, length, K: tl.constexpr, V: tl.constexpr,
                       BV: tl.constexpr, CHUNK: tl.constexpr):
    """o[t] = S[t]^T q[t] with S[t] = exp(decay[t]) (I - beta[t] k[t] k[t]^T) S[t-1] + beta[t] k[t] v[t]^T, in chunks of CHUNK steps.

    One program for each head and BV columns of the state; `length` is a multiple of CHUNK. `decay` is at most 0.
    """
    head, column = tl.program_id(0).to(tl.int64), tl.program_id(1)
    rows, ks, vs = tl.arange(0, CHUNK), tl.arange(0, K), column * BV + tl.arange(0, BV)
    q_ptr += head * length * K
    k_ptr += head * length * K
    v_ptr += head * length * V
    o_ptr += head * length * V
    below = rows[:, None] > rows[None, :]
    up_to = rows[:, None] >= rows[None, :]
    state = tl.zeros((K, BV), tl.float32)
    for chunk in range(length // CHUNK):
        steps = chunk * CHUNK + rows
        q = tl.load(q_ptr + steps[:, None] * K + ks[None, :])
        k = tl.load(k_ptr + steps[:, None] * K + ks[None, :])
        v = tl.load(v_ptr + steps[:, None] * V + vs[None, :])
        beta = tl.load(beta_ptr + head * length + steps)
        decay = tl.cumsum(tl.load(decay_ptr + head * length + steps), 0)
        total = tl.sum(tl.where(rows == CHUNK - 1, decay, 0.0), 0)
        between = tl.exp(tl.where(up_to, decay[:, None] - decay[None, :], 0.0))

        # T = (I + A)^-1 of the strictly lower triangular A: (I - A) (I + A^2) (I + A^4) ..
        a = tl.where(below, tl.dot(k, tl.trans(k)) * between * beta[:, None], 0.0)
        t = tl.where(rows[:, None] == rows[None, :], 1.0, 0.0) - a
        power = a
        for _ in tl.static_range(1, 6):
            low = power.to(k.dtype)
            power = tl.dot(low, low)
            t += tl.dot(t.to(k.dtype), power.to(k.dtype))
        t = t.to(k.dtype)

        scaled = (k * (beta * tl.exp(decay))[:, None]).to(k.dtype)
        w = tl.dot(t, scaled).to(k.dtype)
        u = tl.dot(t, (v * beta[:, None]).to(k.dtype))
        new = (u - tl.dot(w, state.to(k.dtype))).to(k.dtype)
        o = tl.dot((q * tl.exp(decay)[:, None]).to(k.dtype), state.to(k.dtype))
        scores = tl.where(up_to, tl.dot(q, tl.trans(k)) * between, 0.0)
        o = tl.dot(scores.to(k.dtype), new, o)
        tl.store(o_ptr + steps[:, None] * V + vs[None, :], o.to(o_ptr.dtype.element_ty))
        left = (k * tl.exp(total - decay)[:, None]).to(k.dtype)
        state = tl.dot(tl.trans(left), new, state * tl.exp(total))
    tl.store(state_ptr + head * K * V + ks[:, None] * V + vs[None, :], state)


def inputs(torch, heads, length, k_size, v_size, dtype):
    """The arguments, in the order of the parameters, without the results."""
    torch.manual_seed(length + k_size)
    make = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.float32)
    k = torch.nn.functional.normalize(make(heads, length, k_size), dim=-1).to(dtype)
    q = (make(heads, length, k_size) * k_size**-0.5).to(dtype)
    v = make(heads, length, v_size).to(dtype)
    decay = -torch.rand(heads, length, device="cuda") * 0.1
    beta = torch.rand(heads, length, device="cuda")
    return q, k, v, decay, beta


def expected(torch, q, k, v, decay, beta):
    """Results and last state by the recurrence, in fp64."""
    q, k, v, decay, beta = (x.double() for x in (q, k, v, decay, beta))
    heads, length, k_size = q.shape
    state, out = torch.zeros(heads, k_size, v.shape[2], device=q.device, dtype=torch.float64), []
    for t in range(length):
        state = state * decay[:, t, None, None].exp()
        error = (v[:, t] - torch.einsum("hk,hkv->hv", k[:, t], state)) * beta[:, t, None]
        state = state + torch.einsum("hk,hv->hkv", k[:, t], error)
        out.append(torch.einsum("hk,hkv->hv", q[:, t], state))
    return torch.stack(out, 1), state


def assemblers(named):
    """All ptxas that run, with their versions: pairs of a path and (major, minor)."""
    packages = [pattern for root in sys.path for pattern in glob.glob(os.path.join(root, "nvidia", "*", "bin", "ptxas"))]
    bundled = [path for root in sys.path for path in glob.glob(os.path.join(root, "triton", "backends", "nvidia", "bin", "ptxas*"))]
    found = {}
    for path in [*named, os.environ.get("RTC_PTXAS"), shutil.which("ptxas"), *packages, *bundled, "/usr/local/cuda/bin/ptxas"]:
        if not path or not os.path.exists(path):
            continue
        said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        version = re.search(r"release (\d+)\.(\d+)", said)
        if version:
            found.setdefault(tuple(map(int, version.groups())), path)
    return [(path, version) for version, path in found.items()]


class Driver:
    """Modules and launches by the driver's API, in PyTorch's context."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.version = version.value // 1000, version.value % 1000 // 10

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} gives {status}")

    def launch(self, image, entry, grid, threads, shared, values):
        """Loads PTX or a cubin and launches an entry; values are pointers (Python integers) or (ctype, value)."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image))
        self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        if shared > 48 * 1024:
            self.call("cuFuncSetAttribute", function, 8, shared)       # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        boxes = [value[0](value[1]) if isinstance(value, tuple) else ctypes.c_uint64(value) for value in values]
        pointers = (ctypes.c_void_p * len(boxes))(*(ctypes.addressof(box) for box in boxes))
        self.call("cuLaunchKernel", function, *grid, threads, 1, 1, shared, None, pointers, None)
        self.call("cuCtxSynchronize")
        self.call("cuModuleUnload", module)


def assemble(ptxas, ptx, arch):
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
        with open(source, "w") as file:
            file.write(ptx)
        done = subprocess.run([ptxas, f"-arch={arch}", source, "-o", cubin], capture_output=True, text=True)
        if done.returncode:
            return None, (done.stderr or done.stdout).strip().splitlines()[-1]
        with open(cubin, "rb") as file:
            return file.read(), None


def parameters(ptx):
    """The parameters of the entry, as sizes in bytes."""
    head = ptx[ptx.index(".entry"):]
    head = head[head.index("("):head.index(")")]
    sizes = {"b64": 8, "u64": 8, "s64": 8, "b32": 4, "u32": 4, "s32": 4, "f32": 4}
    found = re.findall(r"\.param\s+(?:\.align \d+\s+)?\.(\w+)(?:\s+\.ptr[^,]*?)?\s+\w+(\[\d+\])?", head)
    return [None if array else sizes.get(kind) for kind, array in found]


def compiled(kernel, arguments, options, grid):
    """PTX, entry, threads and shared bytes, by the `triton` of this process."""
    made = kernel.warmup(*arguments, grid=grid, **options)
    ptx = made.asm["ptx"]
    entry = re.search(r"\.entry\s+([\w$]+)", ptx).group(1)
    shared = getattr(made.metadata, "shared", 0)
    threads = re.search(r"\.reqntid\s+(\d+)", ptx)
    return ptx, entry, int(threads.group(1)) if threads else 32 * options["num_warps"], shared


def configurations(quick):
    sizes = [(64, 64, 64), (128, 128, 64), (64, 128, 32)] if quick else list(itertools.product((64, 128), (64, 128), (32, 64, 128)))
    for (k_size, v_size, block), warps, stages in itertools.product(sizes, (4,) if quick else (2, 4, 8), (1, 2) if quick else (1, 2, 3, 4)):
        if block <= v_size:
            yield k_size, v_size, block, warps, stages


def cases(quick):
    """All shapes and configurations, in the order of their numbers."""
    for dtype, (heads, length) in itertools.product(("bfloat16", "float16"), ((4, 64), (4, 256), (2, 1024))):
        for k_size, v_size, block, warps, stages in configurations(quick):
            yield dict(dtype=dtype, heads=heads, length=length, K=k_size, V=v_size, BV=block, num_warps=warps, num_stages=stages)


class Assembler:
    """How one process gets its kernels: by a `launch` of the compiler's own, by the `driver`, or by a ptxas."""

    def __init__(self, name, arch):
        self.name, self.arch, self.driver = name, arch, Driver()

    def run(self, torch, case):
        """Launches the kernel of a case: what it gives, or why it is left out, and whether it has wgmma."""
        dtype, block = getattr(torch, case["dtype"]), case["BV"]
        given = inputs(torch, case["heads"], case["length"], case["K"], case["V"], dtype)
        grid, options = (case["heads"], case["V"] // block), dict(num_warps=case["num_warps"], num_stages=case["num_stages"])
        o, state = torch.full_like(given[2], float("nan")), torch.full((case["heads"], case["K"], case["V"]), float("nan"), device="cuda")
        values = (*given, o, state, case["length"], case["K"], case["V"], block, 64)
        try:
            if self.name == "launch":
                gated_delta_kernel[grid](*values, **options)
                torch.cuda.synchronize()
            ptx, entry, threads, shared = compiled(gated_delta_kernel, values, options, grid)
        except Exception as error:      # a configuration that does not fit
            if "illegal" in str(error):
                raise
            return dict(skipped=f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[-1]}")
        if self.name != "launch":
            sizes = parameters(ptx)
            if sizes[:8] != [8] * 7 + [4] or any(size != 8 for size in sizes[8:]):
                # Tensor maps that the launch makes cannot be passed here.
                return dict(skipped=f"parameters {sizes}", wgmma="wgmma" in ptx)
            image, problem = (ptx.encode() + b"\0", None) if self.name == "driver" else assemble(self.name, ptx, self.arch)
            if problem:
                return dict(skipped=problem, wgmma="wgmma" in ptx)
            pointers = [x.data_ptr() for x in (*given, o, state)]
            # Behind the arguments: pointers to scratch memory, which this kernel does not use.
            more = [(ctypes.c_int32, case["length"]), *[0] * (len(sizes) - 8)]
            self.driver.launch(image, entry, (*grid, 1), threads, shared, [*pointers, *more])
        bound = 4e-2 if dtype == torch.bfloat16 else 8e-3
        pairs = zip((o, state), expected(torch, *given))
        errors = [((got.double() - good).abs() / (1 + good.abs())).nan_to_num(nan=1e9).max().item() for got, good in pairs]
        return dict(error=errors, right=all(error <= bound for error in errors), wgmma="wgmma" in ptx)


def work(name, first, quick):
    """The cases from a number on with one assembler, in this process: a line of JSON for each, before and after."""
    import torch
    torch.zeros(1, device="cuda")
    major, minor = torch.cuda.get_device_capability()
    assembler = Assembler(name, f"sm_{major}{minor}" + ("a" if major >= 9 else ""))
    for number, case in list(enumerate(cases(quick)))[first:]:
        print(json.dumps(dict(begun=number)), flush=True)
        print(json.dumps(dict(done=number, result=assembler.run(torch, case))), flush=True)


def results_of(name, quick, command):
    """The results of all cases with one assembler. A fault of the GPU takes the process with it, and is the result of its case;
    the next case begins in another process."""
    found, first, count = {}, 0, sum(1 for _ in cases(quick))
    while first < count:
        words = [*command, "--only", name, "--first", str(first), *(["--quick"] if quick else [])]
        with tempfile.TemporaryFile("w+") as heard:
            with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=heard, text=True) as process:
                begun = None
                for line in process.stdout:
                    try:
                        said = json.loads(line)
                    except ValueError:
                        continue        # what the compiler prints
                    if "begun" in said:
                        begun = said["begun"]
                    elif "done" in said:
                        found[said["done"]] = said["result"]
            heard.seek(0)
            last = (heard.read().strip().splitlines() or [f"exit status {process.returncode}"])[-1]
        if process.returncode == 0:
            break
        if begun is None:
            raise SystemExit(f"{name}: {last}")
        if begun not in found:
            found[begun] = dict(fault=last, right=False)
        first = begun + 1
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ptxas", action="append", default=[], help="another assembler to compare; may be repeated")
    parser.add_argument("--quick", action="store_true", help="a few configurations")
    parser.add_argument("--json", help="write all comparisons to this file")
    parser.add_argument("--only", help=argparse.SUPPRESS)       # the assembler of a process of its own
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        work(arguments.only, arguments.first, arguments.quick)
        return 0
    import torch
    driver, found = Driver(), assemblers(arguments.ptxas)
    compiler = "rtc" if "rtc" in sys.modules else "triton"
    command = [sys.executable, *(["-m", "rtc"] if compiler == "rtc" else []), os.path.abspath(__file__)]
    print(f"{torch.cuda.get_device_name()}, driver for CUDA {driver.version[0]}.{driver.version[1]}, kernels by {compiler} {triton.__version__}")
    names = {"launch": "launch", "driver": "driver"}
    for path, version in found:
        names[path] = f"ptxas {version[0]}.{version[1]}"
        print(f"  {names[path]}: {path}")
    records = [dict(case=case, wgmma=False, results={}) for case in cases(arguments.quick)]
    for path, name in names.items():
        for number, result in results_of(path, arguments.quick, command).items():
            records[number]["wgmma"] |= result.pop("wgmma", False)
            records[number]["results"][name] = result
    wrong = 0
    for record in records:
        bad = [name for name, result in record["results"].items() if result.get("right") is False]
        wrong += len(bad)
        if bad:
            shown = "; ".join(f"{name} {result.get('fault') or result.get('error')}" for name, result in record["results"].items())
            print(f"WRONG by {', '.join(bad)}: {record['case']}: {shown}")
    compared = [result for record in records for result in record["results"].values() if "right" in result]
    skipped = sum("skipped" in result for record in records for result in record["results"].values())
    print(f"{len(records)} configurations, {sum(r['wgmma'] for r in records)} with wgmma; {wrong} wrong results, {skipped} comparisons skipped")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(dict(device=torch.cuda.get_device_name(), driver=driver.version, compiler=compiler, records=records), file, indent=1)
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
