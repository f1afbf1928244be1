"""Writes the cases of this folder: PTX of other compilers, a launch, inputs and what must come out, by NumPy.

    python3 make.py [NVCC [INCLUDE]...]        needs Triton 3.6 and NumPy; with nvcc the kernels of kernels.cu, too

Each case is NAME.ptx, NAME.launch.json, NAME.safetensors and NAME.expect.safetensors. Whole numbers make the results exact.
"""
import json, os, struct, subprocess, sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = {"float32": "F32", "float16": "F16", "int32": "I32", "uint8": "U8"}


def write_tensors(path, tensors):
    header, at = {}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": NAMES[t.dtype.name], "shape": list(t.shape), "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(t.tobytes() for t in tensors.values()))


def case(name, ptx, grid, args, tensors, expected, **spec):
    args = {k: {"tensor": k} if k in tensors else v for k, v in args.items()}
    lines = [line for line in ptx.splitlines() if not line.strip().startswith((".file", ".loc"))]
    text = "\n".join(lines).split("\t.section\t.debug")[0].rstrip() + "\n"
    open(f"{HERE}/{name}.ptx", "w").write(text)
    launch = {"spec": spec, "grid": grid, "tensors": f"{name}.safetensors", "args": args}
    json.dump(launch, open(f"{HERE}/{name}.launch.json", "w"), indent=2)
    write_tensors(f"{HERE}/{name}.safetensors", tensors)
    write_tensors(f"{HERE}/{name}.expect.safetensors", expected)


def by_triton(name, function, signature, constants, arch, grid, args, tensors, expected, num_warps=4, stages=3, scratch=0):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {**signature, **{k: "constexpr" for k in constants}}
    source = ASTSource(function, signature, constexprs=constants, attrs={(i,): [["tt.divisibility", 16]] for i, k in enumerate(signature) if signature[k][0] == "*"})
    made = triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": num_warps, "num_stages": stages})
    args = {**args, "global_scratch": 0, "profile_scratch": 0}
    if made.metadata.global_scratch_size:
        size = made.metadata.global_scratch_size * int(np.prod(grid))
        tensors = {**tensors, "global_scratch": np.zeros(size, np.uint8)}
    case(name, made.asm["ptx"], grid, args, tensors, expected, shared=made.metadata.shared)


def main():
    sys.path.insert(0, HERE)
    import kernels as k

    draw = np.random.default_rng(1)
    whole = lambda shape, dtype, low=-3, high=4: draw.integers(low, high, shape).astype(dtype)
    x, y = whole(300, np.float32, -99, 99), whole(300, np.float32, -99, 99)
    by_triton("triton_add", k.add, {"x": "*fp32", "y": "*fp32", "z": "*fp32", "n": "i32"}, {"B": 128}, 80, [3],
              {"x": 0, "y": 0, "z": 0, "n": 300}, {"x": x, "y": y, "z": np.zeros(300, np.float32)}, {"z": x + y})
    x = whole((4, 64), np.float32, 0, 1)
    by_triton("triton_rows", k.rows, {"x": "*fp32", "z": "*fp32", "columns": "i32"}, {"B": 64}, 90, [4],
              {"x": 0, "z": 0, "columns": 64}, {"x": x, "z": np.zeros_like(x)}, {"z": np.full_like(x, 1 / 64)})
    for arch in (80, 90):
        depth = 72
        a, b = whole((128, depth), np.float16), whole((depth, 32), np.float16)
        by_triton(f"triton_matmul_sm{arch}", k.matmul, {"a": "*fp16", "b": "*fp16", "c": "*fp32", "k": "i32"},
                  {"M": 64, "N": 32, "K": 32}, arch, [2], {"a": 0, "b": 0, "c": 0, "k": depth},
                  {"a": a, "b": b, "c": np.zeros((128, 32), np.float32)}, {"c": a.astype(np.float32) @ b.astype(np.float32)})
    a, b = whole((128, 64), np.float16), whole((64, 32), np.float16)
    by_triton("triton_matmul_tma", k.matmul_tma, {"a": "*fp16", "b": "*fp16", "c": "*fp16", "k": "i32"},
              {"M": 64, "N": 32, "K": 32}, 90, [2], {"a": 0, "b": 0, "c": 0, "k": 64},
              {"a": a, "b": b, "c": np.zeros((128, 32), np.float16)}, {"c": (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)})
    described = {"da": a, "db": b, "dc": np.zeros((128, 32), np.float16)}
    blocks = {"da": [64, 32], "db": [32, 32], "dc": [64, 32]}
    args = {}
    for name, t in described.items():
        # Triton passes sizes and strides beside the map; rows of a block have 64 bytes, and so has the swizzle.
        shape, strides = list(t.shape), [t.shape[1], 1]
        args[name] = {"descriptor": {"tensor": name[1], "shape": shape, "strides": strides, "block_shape": blocks[name], "swizzle": 64}}
        args |= {f"{name}_{what}{i}": n for what, list_ in (("shape", shape), ("stride", strides)) for i, n in enumerate(list_)}
    by_triton("triton_matmul_host_tma", k.matmul_host_tma, {n: f"tensordesc<fp16{b}>".replace(" ", "") for n, b in blocks.items()} | {"k": "i32"},
              {"M": 64, "N": 32, "K": 32}, 90, [2], {**args, "k": 64}, {n[1]: t for n, t in described.items()},
              {"c": (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)})
    x = whole((2, 256), np.int32, -999, 999)
    by_triton("triton_scan_sort", k.scan_sort, {"x": "*i32", "y": "*i32", "z": "*i32"}, {"B": 256}, 90, [2], {"x": 0, "y": 0, "z": 0},
              {"x": x, "y": np.zeros_like(x), "z": np.zeros_like(x)}, {"y": np.cumsum(x, 1, dtype=np.int32), "z": np.sort(x, 1)})
    x = whole(500, np.int32, 0, 99)
    by_triton("triton_count", k.count, {"x": "*i32", "bins": "*i32", "n": "i32"}, {"B": 128}, 80, [4], {"x": 0, "bins": 0, "n": 500},
              {"x": x, "bins": np.zeros(8, np.int32)}, {"bins": np.bincount(x & 7, minlength=8).astype(np.int32)})
    # Triton 3.6 reduces between the wrong lanes here: see docs/correctness/found.md.
    x = np.arange(128, dtype=np.float32).reshape(8, 16) * 37 % 128
    by_triton("triton_reshaped_max", k.reshaped_max, {"x": "*fp32", "z": "*fp32"}, {}, 90, [1], {"x": 0, "z": 0},
              {"x": x, "z": np.zeros(2, np.float32)}, {"z": x.T.reshape(2, 64).max(1)})
    if len(sys.argv) > 1:
        def by_nvcc(source):
            includes = [f"-I{path}" for path in sys.argv[2:]]
            path = f"{HERE}/{source}.ptx"
            subprocess.run([sys.argv[1], "-ptx", "-O3", "-std=c++17", "-arch=sm_90", *includes, f"{HERE}/{source}.cu", "-o", path], check=True)
            ptx = open(path).read()
            os.remove(path)
            return ptx

        ptx = by_nvcc("kernels")
        x = whole(1000, np.float32)
        case("nvcc_group_sum", ptx, [3], {"x": 0, "sum": 0, "n": 1000}, {"x": x, "sum": np.zeros(1, np.float32)},
             {"sum": x.sum(keepdims=True)}, kernel="group_sum", block=128)
        a, b = whole((32, 32), np.float32), whole((32, 32), np.float32)
        case("nvcc_tiled_matmul", ptx, [4], {"a": 0, "b": 0, "c": 0, "n": 32}, {"a": a, "b": b, "c": np.zeros_like(a)}, {"c": a @ b},
             kernel="tiled_matmul", block=256)
        x = whole(256, np.int32, -99, 99)
        case("nvcc_block_scan", ptx, [1], {"x": 0, "y": 0}, {"x": x, "y": np.zeros_like(x)}, {"y": np.cumsum(x, dtype=np.int32)},
             kernel="block_scan", block=256)
        ptx = by_nvcc("shapes")
        x = whole((24, 40), np.float32)
        case("nvcc_transpose", ptx, [3, 2], {"x": 0, "y": 0, "rows": 24, "columns": 40}, {"x": x, "y": np.zeros((40, 24), np.float32)},
             {"y": x.T.copy()}, kernel="transpose", block=[16, 8])
        x = whole((6, 6, 6), np.int32, -9, 9)
        y = x.copy()
        for axis in range(3):
            before, after = np.zeros_like(x), np.zeros_like(x)
            part = lambda of: tuple(of if i == axis else slice(None) for i in range(3))
            before[part(slice(1, None))], after[part(slice(None, -1))] = x[part(slice(None, -1))], x[part(slice(1, None))]
            y += before + after
        case("nvcc_neighbours", ptx, [1, 2, 3], {"x": 0, "y": 0, "n": 6}, {"x": x, "y": np.zeros_like(x)}, {"y": y},
             kernel="neighbours", block=[8, 4, 2])


if __name__ == "__main__":
    main()
