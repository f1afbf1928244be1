"""Products of matrices as they are used: with an epilogue, persistent, split, in groups, by descriptors."""
import torch
from core import Const, NAMES, case, cases, cdiv, generator, poison, random, with_tail

# A result is summed in fp32 and rounded once: it is at most the neighbour of the one expected.
BOUND = {torch.float16: {"bound": 1e-3}, torch.bfloat16: {"bound": 8e-3}}


@cases
def make_matmul_gelu():
    f16, bf16 = torch.float16, torch.bfloat16
    for name, m, n, k, dtype, function, (bm, bn, bk), pad, arch in (("1x1x1", 1, 1, 1, f16, "gelu", (32, 32, 32), 0, "sm_80"), ("31x33x31", 31, 33, 31, f16, "gelu", (32, 32, 32), 0, "sm_80"), ("64x64x96_sm90", 64, 64, 96, f16, "gelu", (64, 64, 32), 0, "sm_90a"),
                                                                   ("65x50x70_sm90", 65, 50, 70, bf16, "gelu_tanh", (64, 64, 32), 2, "sm_90a"), ("40x32x64_tanh", 40, 32, 64, f16, "gelu_tanh", (32, 32, 32), 3, "sm_80"), ("no_bias", 33, 16, 32, bf16, "gelu", (32, 32, 16), 0, "sm_80"),
                                                                   ("no_k", 20, 40, 0, f16, "gelu", (32, 32, 32), 0, "sm_80")):
        g = generator("matmul gelu" + name)
        # Products of many terms stay within a few units, where GELU bends.
        a, b = (random(g, (m, k + pad), torch.float64) * max(k, 1) ** -0.5).to(dtype), random(g, (max(k, 1), n + pad), dtype)
        bias = random(g, (n,), torch.float32)
        v = a[:, :k].double() @ b[:k, :n].double() + (0 if name == "no_bias" else bias.double())
        want = torch.nn.functional.gelu(v, approximate="tanh" if "tanh" in function else "none").to(dtype)
        c = poison((m + 1, n + 5), dtype)
        arguments = dict(a_ptr="a", b_ptr="b", bias_ptr=Const(None) if name == "no_bias" else "bias", c_ptr="c", M=m, N=n, K=k, stride_am=k + pad, stride_bk=n + pad, stride_cm=n + 5, ACTIVATION=Const({"function": function}), BLOCK_M=Const(bm), BLOCK_N=Const(bn), BLOCK_K=Const(bk))
        tensors = dict(a=a if k else torch.zeros(1, dtype=dtype), b=b, bias=bias, c=c)
        if name == "no_bias": del tensors["bias"]
        case("matmul_gelu", name, "matmul_gelu_kernel", [cdiv(m, bm), cdiv(n, bn)], arguments, tensors, dict(c=with_tail(want, c.shape)), BOUND[dtype], arch=arch)


@cases
def make_matmul_persistent():
    f16, bf16 = torch.float16, torch.bfloat16
    for name, m, n, k, dtype, (bm, bn, bk), programs, warps, arch in (("70x50x40", 70, 50, 40, f16, (32, 32, 32), 2, 4, "sm_80"), ("33x31x64_bf16", 33, 31, 64, bf16, (16, 16, 32), 3, 4, "sm_80"), ("more_programs", 32, 32, 32, f16, (32, 32, 32), 4, 4, "sm_80"),
                                                                    ("128x96x64_sm90", 128, 96, 64, f16, (64, 32, 32), 2, 4, "sm_90a"), ("130x70x72_sm90", 130, 70, 72, bf16, (64, 64, 64), 2, 4, "sm_90a"), ("no_k", 33, 33, 0, f16, (32, 32, 32), 2, 4, "sm_80")):
        g = generator("persistent" + name)
        a, b = random(g, (m, max(k, 1)), dtype) * 0.5, random(g, (max(k, 1), n), dtype) * 0.5
        c = poison((m + 1, n + 5), dtype)
        want = (a[:, :k].double() @ b[:k].double()).to(dtype)
        case("matmul_persistent", name, "matmul_persistent_kernel", [programs], dict(a_ptr="a", b_ptr="b", c_ptr="c", M=m, N=n, K=k, stride_am=max(k, 1), stride_bk=n, stride_cm=n + 5, PROGRAMS=Const(programs), BLOCK_M=Const(bm), BLOCK_N=Const(bn), BLOCK_K=Const(bk), GROUP_M=Const(2)),
             dict(a=a, b=b, c=c), dict(c=with_tail(want, c.shape)), BOUND[dtype], options={"num_warps": warps}, arch=arch)


@cases
def make_matmul_split_k():
    for name, m, n, k, out, split, tiles, arch in (("33x31x200", 33, 31, 200, torch.float32, 4, (32, 32, 32), "sm_80"), ("one_part", 16, 40, 64, torch.float32, 1, (16, 32, 32), "sm_80"), ("more_parts_than_k", 20, 20, 40, torch.float32, 5, (32, 32, 32), "sm_80"),
                                                   ("fp16", 32, 33, 130, torch.float16, 3, (32, 32, 16), "sm_80"), ("sm90", 64, 65, 160, torch.float32, 3, (64, 64, 32), "sm_90a")):
        g = generator("split k" + name)
        # Small integers, whose sums are exact in any order, in fp16 too: at most 130 * 9 + 8.
        a, b = (torch.randint(-3, 4, shape, generator=g).half() for shape in ((m, k), (k, n)))
        start = torch.randint(-8, 9, (m, n), generator=g).to(out)
        c = with_tail(start, (m + 1, n + 5))
        want = (start.double() + a.double() @ b.double()).to(out)
        bm, bn, bk = tiles
        case("matmul_split_k", name, "matmul_split_k_kernel", [cdiv(m, bm) * cdiv(n, bn), split], dict(a_ptr="a", b_ptr="b", c_ptr="c", M=m, N=n, K=k, stride_am=k, stride_bk=n, stride_cm=n + 5, SPLIT=Const(split), BLOCK_M=Const(bm), BLOCK_N=Const(bn), BLOCK_K=Const(bk)),
             dict(a=a, b=b, c=c), dict(c=with_tail(want, c.shape)), {"exact": True}, arch=arch)


@cases
def make_grouped_matmul():
    for name, sizes, n, k, dtype, programs, (bm, bn, bk), arch in (("uneven", [1, 0, 33, 16, 31], 40, 33, torch.float16, 3, (16, 32, 32), "sm_80"), ("one", [20], 16, 16, torch.bfloat16, 1, (32, 16, 16), "sm_80"), ("empty", [0, 0], 16, 16, torch.float16, 2, (16, 16, 16), "sm_80"),
                                                                   ("sm90", [70, 5, 64], 48, 64, torch.float16, 2, (64, 32, 32), "sm_90a")):
        g = generator("grouped" + name)
        total = sum(sizes)
        a, b = random(g, (max(total, 1), k), dtype) * 0.5, random(g, (len(sizes), k, n), dtype) * 0.5
        offsets = torch.tensor([0] + sizes).cumsum(0)
        want = torch.cat([a[offsets[i]:offsets[i + 1]].double() @ b[i].double() for i in range(len(sizes))]).to(dtype)
        c = poison((total + 1, n), dtype)
        case("grouped_matmul", name, "grouped_matmul_kernel", [programs], dict(a_ptr="a", b_ptr="b", c_ptr="c", offsets_ptr="offsets", groups=len(sizes), N=n, K=k, PROGRAMS=Const(programs), BLOCK_M=Const(bm), BLOCK_N=Const(bn), BLOCK_K=Const(bk)),
             dict(a=a, b=b, c=c, offsets=offsets.int()), dict(c=with_tail(want, c.shape)), BOUND[dtype], arch=arch)


@cases
def make_descriptors():
    f32, f16, i8 = torch.float32, torch.float16, torch.int8
    for name, rows, cols, pad, dtype, row_shift, col_shift, (br, bc) in (("", 1, 8, 0, f32, 0, 0, (8, 8)), ("", 15, 63, 1, f32, 0, 0, (8, 32)), ("", 16, 64, 0, f16, 0, 0, (16, 64)), ("", 17, 65, 7, f16, 0, 0, (16, 64)),
                                                                         ("before", 20, 40, 0, f32, -3, -5, (8, 16)), ("after", 20, 40, 8, f16, 7, 9, (8, 16)), ("outside", 10, 20, 0, f32, 30, -40, (8, 16)), ("bytes", 9, 50, 14, i8, 1, -1, (8, 32))):
        for arch in ("sm_80", "sm_90a"):
            g = generator(f"descriptors{rows}{name}")
            if arch == "sm_90a":
                # TMA writes the 16 bytes in which a row ends whole.
                size, width = 16 // dtype.itemsize, cols + pad
                cols = cdiv(cols, size) * size
                pad = cdiv(width, size) * size - cols
            x = random(g, (rows, cols + pad), dtype)
            y = poison((rows + 1, cols + pad + 16 // dtype.itemsize), dtype)
            want = torch.zeros(rows, cols, dtype=dtype)
            r, c = torch.arange(rows)[:, None] + row_shift, torch.arange(cols)[None, :] + col_shift
            inside = (r >= 0) & (r < rows) & (c >= 0) & (c < cols)
            want = torch.where(inside, x[r.clamp(0, rows - 1), c.clamp(0, cols - 1)], want)
            arguments = dict(x_ptr="x", y_ptr="y", rows=rows, cols=cols, stride_x=x.shape[1], stride_y=y.shape[1], row_shift=row_shift, col_shift=col_shift, ROWS=Const(br), COLS=Const(bc))
            grid = [cdiv(rows, br), cdiv(cols, bc)]
            label = (name or f"{rows}x{cols}") + "_sm90" * (arch == "sm_90a")
            case("descriptors", f"copy_{label}", "copy_kernel", grid, arguments, dict(x=x, y=y), dict(y=with_tail(want, y.shape)), {"exact": True}, arch=arch)
            if dtype == f32 and rows > 1:
                # Every element is added to once.
                z = with_tail(torch.randint(-9, 10, (rows, cols), generator=g).float(), y.shape)
                case("descriptors", f"add_{label}", "add_kernel", grid, arguments, dict(x=x, y=z), dict(y=with_tail(z[:rows, :cols] + want, y.shape)), {"exact": True}, arch=arch)
    for name, m, n, k, dtype, (bm, bn, bk), arch in (("70x48x40", 70, 48, 40, f16, (32, 32, 32), "sm_80"), ("130x72x88_sm90", 130, 72, 88, f16, (64, 64, 32), "sm_90a"), ("130x80x96_sm90", 130, 80, 96, f16, (64, 64, 32), "sm_90a"), ("64x64x64_sm90", 64, 64, 64, torch.bfloat16, (64, 64, 64), "sm_90a")):
        g = generator("descriptors" + name)
        a, b = random(g, (m, k), dtype) * 0.5, random(g, (n, k), dtype) * 0.5
        c = poison((m + 1, n + 8), dtype)
        case("descriptors", f"matmul_{name}", "matmul_kernel", [cdiv(m, bm), cdiv(n, bn)], dict(a_ptr="a", b_ptr="b", c_ptr="c", M=m, N=n, K=k, stride_am=k, stride_bn=k, stride_cm=n + 8, BLOCK_M=Const(bm), BLOCK_N=Const(bn), BLOCK_K=Const(bk)),
             dict(a=a, b=b, c=c), dict(c=with_tail((a.double() @ b.double().T).to(dtype), c.shape)), BOUND[dtype], arch=arch)
