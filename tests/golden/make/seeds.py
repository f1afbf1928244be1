"""Kernels of others, ../../seeds, and the data of ../../../examples."""
import torch
from safetensors.torch import load_file, save_file
import core
from core import Const, HERE, NAMES, case, cases, cdiv, generator, poison, random, with_tail
from elementwise import gelu_dropout
from rows import layer_norm_gelu


@cases
def make_seeds():
    g = generator("seeds")
    for n in (1, 256, 300):
        x = random(g, (n,), torch.float32)
        out = poison((n + 16,), torch.float32)
        case("../seeds/elementwise_skeleton", f"n_{n}", "kernel", [cdiv(n, 256)], dict(x_ptr="x", out_ptr="out", n_elements=n, BLOCK_SIZE=Const(256)), dict(x=x, out=out), dict(out=with_tail(x, out.shape)), {"exact": True})
    for rows, cols in ((1, 1), (3, 63), (2, 64)):
        x = random(g, (rows, cols), torch.float32)
        out = poison((rows * cols + 16,), torch.float32)
        case("../seeds/rowwise_skeleton", f"{rows}x{cols}", "kernel", [rows], dict(x_ptr="x", out_ptr="out", n_cols=cols, BLOCK_SIZE=Const(64)), dict(x=x, out=out), dict(out=with_tail(x.flatten(), out.shape)), {"exact": True})
    for dtype, m, n, k in ((torch.float16, 70, 50, 40), (torch.float16, 33, 31, 64), (torch.float32, 40, 33, 32)):
        a, b = random(g, (m, k), dtype) * 0.5, random(g, (k, n), dtype) * 0.5
        if dtype == torch.float32: a, b = ((t.view(torch.int32) & ~0x1FFF).view(torch.float32) for t in (a, b))
        c = poison((m + 1, n + 5), dtype)
        case("../seeds/matmul", f"{NAMES[dtype]}_{m}x{n}x{k}", "matmul_kernel", [cdiv(m, 32) * cdiv(n, 32)],
             dict(a_ptr="a", b_ptr="b", c_ptr="c", M=m, N=n, K=k, stride_am=k, stride_ak=1, stride_bk=n, stride_bn=1, stride_cm=c.shape[1], stride_cn=1,
                  BLOCK_M=Const(32), BLOCK_N=Const(32), BLOCK_K=Const(32), GROUP_SIZE_M=Const(8)),
             dict(a=a, b=b, c=c), dict(c=with_tail((a.double() @ b.double()).to(dtype), c.shape)), {"bound": 1e-3 if dtype == torch.float16 else 8e-7})
    for dtype, n, p, seed in ((torch.float32, 1000, 0.1, 4711), (torch.float16, 257, 0.5, 12)):
        x, y = gelu_dropout(g, dtype, n, p, seed)
        out = poison((n + 16,), dtype)
        case("../seeds/fused_gelu_dropout", f"{NAMES[dtype]}_{n}", "fused_gelu_dropout_kernel", [cdiv(n, 256)], dict(x_ptr="x", out_ptr="out", n_elements=n, p=float(p), seed=seed, BLOCK_SIZE=Const(256)),
             dict(x=x, out=out), dict(out=with_tail(y, out.shape)), {"bound": 5e-7 if dtype == torch.float32 else 1e-3})
    for version, kernel in (("v1", "fused_layernorm_gelu_kernel"), ("v2", "fused_layernorm_gelu_v2")):
        for m, n, block in ((2, 64, 64), (3, 100, 128), (2, 300, 128)):
            x, w, b, y, expected = layer_norm_gelu(f"seed{m}{n}", m, n, n, 1, block, version == "v2")
            case(f"../seeds/layernorm_gelu_{version}", f"{m}x{n}", kernel, [m], dict(x_ptr="x", weight_ptr="w", bias_ptr="b", y_ptr="y", M=m, N=n, eps=1e-5, stride_xm=n, stride_xn=1, BLOCK_N=Const(block)),
                 dict(x=x, w=w, b=b, y=y), dict(y=expected), {"bound": 4e-3})
    for dtype in (torch.float16, torch.float32, torch.int8, torch.uint8):
        x = random(g, (512,), dtype)
        out = poison((528,), dtype)
        case("../seeds/triton_abs", NAMES[dtype], "triton_abs", [2], dict(in_ptr0="x", out_ptr0="out", XBLOCK=Const(256), XBLOCK_SUB=Const(64)), dict(x=x, out=out), dict(out=with_tail(x if dtype == torch.uint8 else x.abs(), out.shape)), {"exact": True})


@cases
def make_examples():
    """The data of ../../examples: the file names there are the examples' own."""
    if core.wanted: return
    g = generator("examples")
    x = random(g, (64, 781), torch.float32) * 3
    y = poison((64, 781), torch.float32)
    example("softmax", "softmax_kernel", [8], dict(x_ptr="x", y_ptr="y", x_stride=781, y_stride=781, n_rows=64, n_cols=781, BLOCK=Const(1024), STAGES=Const(2)), dict(x=x, y=y), dict(y=torch.softmax(x.double(), 1).float()), {"bound": 1e-6})
    a, b = random(g, (1000,), torch.float32), random(g, (1000,), torch.float32)
    example("vector_add", "add_kernel", [4], dict(x_ptr="x", y_ptr="y", out_ptr="out", n=1000, BLOCK=Const(256)), dict(x=a, y=b, out=poison((1000,), torch.float32)), dict(out=a + b), {"exact": True})
    a, b = random(g, (150, 100), torch.float16) * 0.5, random(g, (100, 130), torch.float16) * 0.5
    example("matmul", "matmul_kernel", [9], dict(a_ptr="a", b_ptr="b", c_ptr="c", M=150, N=130, K=100, stride_am=100, stride_ak=1, stride_bk=130, stride_bn=1, stride_cm=130, stride_cn=1,
            BLOCK_M=Const(64), BLOCK_N=Const(64), BLOCK_K=Const(32), GROUP_M=Const(4), ACTIVATION=Const({"function": "leaky_relu"})),
            dict(a=a, b=b, c=poison((150, 130), torch.float16)), dict(c=torch.nn.functional.leaky_relu(a.double() @ b.double(), 0.01).half()), {"bound": 2e-3})
    x, y = gelu_dropout(g, torch.float32, 1000, 0.25, 2024)
    example("dropout", "gelu_dropout_kernel", [4], dict(x_ptr="x", out_ptr="out", n=1000, p=0.25, seed=2024, BLOCK=Const(256)), dict(x=x, out=poison((1000,), torch.float32)), dict(out=y), {"bound": 1e-6})
    x = random(g, (32, 300), torch.float32) * 2 + 1
    w, b = random(g, (300,), torch.float32), random(g, (300,), torch.float32)
    example("layer_norm", "layer_norm_kernel", [32], dict(x_ptr="x", weight_ptr="weight", bias_ptr="bias", y_ptr="y", stride=300, N=300, eps=1e-5, BLOCK=Const(128)), dict(x=x, weight=w, bias=b, y=poison((32, 300), torch.float32)),
            dict(y=torch.nn.functional.layer_norm(x.double(), (300,), w.double(), b.double(), 1e-5).float()), {"bound": 5e-6})


def example(folder, *rest):
    """As case, but the files are launch.json, inputs.safetensors and expected.safetensors (for `rtc run --check`)."""
    case("../../examples/" + folder, "inputs", *rest)
    path = HERE / "../../examples" / folder
    (path / "inputs.launch.json").rename(path / "launch.json")
    data = load_file(path / "inputs.safetensors")
    save_file({key: t for key, t in data.items() if not key.startswith("expect.")}, path / "inputs.safetensors")
    save_file({key[7:]: t for key, t in data.items() if key.startswith("expect.")}, path / "expected.safetensors")
