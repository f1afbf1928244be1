"""Row by row: softmax and norms."""
import torch
from core import Const, NAMES, case, cases, cdiv, generator, poison, random, with_tail


@cases
def make_softmax():
    for name, rows, cols, x_stride, dtype, block in (("1x1", 1, 1, 1, torch.float32, 128), ("3x127", 3, 127, 127, torch.float32, 128), ("4x128", 4, 128, 128, torch.float32, 128), ("5x129", 5, 129, 129, torch.float32, 256),
                                                     ("odd_stride", 3, 200, 211, torch.float32, 256), ("fp16", 3, 300, 304, torch.float16, 512), ("bf16", 2, 64, 64, torch.bfloat16, 64), ("no_columns", 2, 0, 16, torch.float32, 128), ("no_rows", 0, 16, 16, torch.float32, 64)):
        g = generator("softmax" + name)
        x = (random(g, (rows, x_stride), torch.float64) * 4).to(dtype)
        if cols > 100: x[0, 3], x[rows - 1, 0] = -float("inf"), 80.0
        want = torch.softmax(x[:, :cols].double(), 1).to(dtype) if cols else x[:, :0]
        y = poison((rows + 1, max(cols, 1) + 5), dtype)
        bound = {torch.float32: {"bound": 3e-7}, torch.float16: {"bound": 1e-3}, torch.bfloat16: {"bound": 8e-3}}[dtype]
        case("softmax", name, "softmax_kernel", [rows], dict(x_ptr="x", y_ptr="y", x_stride=x_stride, y_stride=y.shape[1], n_cols=cols, BLOCK=Const(block)),
             dict(x=x, y=y), dict(y=with_tail(want, y.shape)), bound)


@cases
def make_norms():
    shapes = (("1x1", 1, 1, 1), ("3x63", 3, 63, 63), ("2x64", 2, 64, 64), ("4x65", 4, 65, 65), ("odd_stride", 3, 150, 157), ("no_rows", 0, 64, 64))
    for name, rows, n, stride in shapes:
        for dtype in (torch.float32, torch.float16, torch.bfloat16) if name == "odd_stride" else (torch.float32,):
            g = generator(f"rms{name}{dtype}")
            x = random(g, (rows, stride), dtype)
            w = random(g, (n,), dtype)
            v = x[:, :n].double()
            want = (v * torch.rsqrt((v * v).mean(1, keepdim=True) + 1e-5) * w.double()).to(dtype)
            y = poison((rows + 1, stride), dtype)
            bound = {"bound": {torch.float32: 4e-7, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]}
            label = name if dtype == torch.float32 else f"{name}_{NAMES[dtype]}"
            case("rms_norm", label, "rms_norm_kernel", [rows], dict(x_ptr="x", w_ptr="w", y_ptr="y", stride=stride, N=n, eps=1e-5, BLOCK=Const(64)), dict(x=x, w=w, y=y), dict(y=with_tail(want, y.shape)), bound)
    for name, rows, n, stride in shapes:
        for affine in (True, False) if name == "odd_stride" else (True,):
            g = generator("layer" + name)
            x = random(g, (rows, stride), torch.float32) * 3 + 1
            w, b = random(g, (n,), torch.float32), random(g, (n,), torch.float32)
            v = x[:, :n].double()
            mean, var = v.mean(1), v.var(1, correction=0)
            rstd = torch.rsqrt(var + 1e-5)
            want = (v - mean[:, None]) * rstd[:, None]
            if affine: want = want * w.double() + b.double()
            tensors = dict(x=x, w=w, b=b, y=poison((rows + 1, stride), torch.float32), mean=poison((rows + 4,), torch.float32), rstd=poison((rows + 4,), torch.float32))
            expected = {key: with_tail(value.float(), tensors[key].shape) for key, value in (("y", want), ("mean", mean), ("rstd", rstd))}
            arguments = dict(x_ptr="x", w_ptr="w", b_ptr="b", y_ptr="y", mean_ptr="mean", rstd_ptr="rstd", stride=stride, N=n, eps=1e-5, HAS_AFFINE=Const(affine), BLOCK=Const(64))
            if not affine:
                arguments["w_ptr"] = arguments["b_ptr"] = Const(None)
                del tensors["w"], tensors["b"]
            case("layer_norm", name if affine else "no_affine", "layer_norm_kernel", [rows], arguments, tensors, expected, {"bound": 5e-7})


def gelu_tanh(v): return 0.5 * v * (1 + torch.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))


def layer_norm_gelu(text, m, n, stride_m, stride_n, block, as_written):
    """(x, weight, bias, poisoned y, expected y); as_written: the lanes' means are added up, not merged."""
    g = generator("lng" + text)
    x = random(g, (m, stride_m), torch.float16)
    w, b = random(g, (n,), torch.float32), random(g, (n,), torch.float32)
    v = x[:, : n * stride_n: stride_n].double()
    if as_written:
        means, m2s = torch.zeros(m, block, dtype=torch.float64), torch.zeros(m, block, dtype=torch.float64)
        counts = torch.zeros(block, dtype=torch.float64)
        for off in range(0, n, block):
            part = v[:, off: off + block]
            k = part.shape[1]
            counts[:k] += 1
            d = part - means[:, :k]
            means[:, :k] += d / counts[:k]
            m2s[:, :k] += d * (part - means[:, :k])
        mean, var = means.sum(1) / n, m2s.sum(1) / n
    else:
        mean, var = v.mean(1), v.var(1, correction=0)
    want = gelu_tanh((v - mean[:, None]) * torch.rsqrt(var + 1e-5)[:, None] * w.double() + b.double()).half()
    y = poison((m + 1, stride_m), torch.float16)
    expected = y.clone()
    expected[:m, : n * stride_n: stride_n] = want
    return x, w, b, y, expected


@cases
def make_layer_norm_gelu():
    for folder in ("layer_norm_gelu_three_pass", "layer_norm_gelu_welford", "layer_norm_gelu_as_written"):
        for name, m, n, stride_m, stride_n, block in (("2x63", 2, 63, 63, 1, 64), ("3x64", 3, 64, 64, 1, 64), ("2x65", 2, 65, 65, 1, 64), ("2x300", 2, 300, 304, 1, 128), ("column_stride_2", 2, 100, 201, 2, 64), ("no_rows", 0, 64, 64, 1, 64)):
            x, w, b, y, expected = layer_norm_gelu(name, m, n, stride_m, stride_n, block, folder.endswith("as_written"))
            case(folder, name, "layer_norm_gelu_kernel", [m], dict(x_ptr="x", weight_ptr="w", bias_ptr="b", y_ptr="y", M=m, N=n, eps=1e-5, stride_xm=stride_m, stride_xn=stride_n, BLOCK_N=Const(block)),
                 dict(x=x, w=w, b=b, y=y), dict(y=expected), {"bound": 1e-3})


@cases
def make_welford():
    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
    for name, rows, n, stride, dtype, mean, arch in (("1x1", 1, 1, 1, f32, 0, "sm_80"), ("3x63", 3, 63, 63, f32, 0, "sm_80"), ("4x64", 4, 64, 64, f32, 0, "sm_80"), ("5x65", 5, 65, 67, f32, 0, "sm_80"),
                                                     ("6x300", 6, 300, 300, f32, 0, "sm_90a"), ("far_from_zero", 4, 200, 200, f32, 1000, "sm_80"), ("fp16", 3, 150, 151, f16, 1, "sm_80"), ("bf16", 4, 130, 136, bf16, 1, "sm_90a"), ("no_rows", 0, 64, 64, f32, 0, "sm_80")):
        g = generator("welford" + name)
        x = (random(g, (max(rows, 1), stride), torch.float64) * 2 + mean).to(dtype)
        w, b = random(g, (n,), f32), random(g, (n,), f32)
        v = x[:rows, :n].double()
        means = v.mean(1)
        rstd = torch.rsqrt(((v - means[:, None]) ** 2).mean(1) + 1e-5)
        want = ((v - means[:, None]) * rstd[:, None] * w.double() + b.double()).to(dtype)
        tensors = dict(x=x, w=w, b=b, y=poison((rows + 1, n + 3), dtype), mean=poison((rows + 4,), f32), rstd=poison((rows + 4,), f32))
        # Each of at most 14 merges rounds the mean to 2**-24 of it; `x - mean` then has that error, too: 1e-6 of the mean, times
        # rstd, which is 0.5 but for one column: there nothing is merged but zeros, and all is exact. The errors mostly cancel.
        bound = {f32: 5e-7 if not mean else 2 * 2**-24 * mean, f16: 1e-3, bf16: 8e-3}[dtype]
        case("welford", name, "layer_norm_kernel", [cdiv(rows, 4)], dict(x_ptr="x", weight_ptr="w", bias_ptr="b", y_ptr="y", mean_ptr="mean", rstd_ptr="rstd", rows=rows, n=n, stride_x=stride, stride_y=n + 3, eps=1e-5, ROWS=Const(4), BLOCK=Const(64)),
             tensors, dict(y=with_tail(want, tensors["y"].shape), mean=with_tail(means.float(), (rows + 4,)), rstd=with_tail(rstd.float(), (rows + 4,))), dict(y={"bound": bound}, mean={"bound": 2e-7}, rstd={"bound": 2e-6 if mean else 3e-7}), arch=arch)


@cases
def make_group_norm():
    f32, f16 = torch.float32, torch.float16
    for name, batch, channels, groups, pixels, dtype in (("1x1x1", 1, 1, 1, 1, f32), ("2x4x31", 2, 4, 2, 31, f32), ("1x6x64", 1, 6, 3, 64, f32), ("2x8x33", 2, 8, 2, 33, f32), ("instance", 2, 3, 3, 127, f32), ("one_group", 2, 5, 1, 49, f16), ("no_images", 0, 4, 2, 16, f32)):
        g = generator("group norm" + name)
        x = (random(g, (max(batch, 1), channels, pixels), torch.float64) * 2 + 0.5).to(dtype)
        w, b = random(g, (channels,), f32), random(g, (channels,), f32)
        v = x[:batch].double().view(batch, groups, channels // groups * pixels)
        v = (v - v.mean(2, keepdim=True)) * torch.rsqrt(v.var(2, keepdim=True, correction=0) + 1e-5)
        want = (v.view(batch, channels, pixels) * w.double()[:, None] + b.double()[:, None]).to(dtype)
        y = poison((batch + 1, channels, pixels), dtype)
        # One element is its own mean, which is exact, so that the large rstd meets 0. Else the mean is within 2e-6, and rstd about 0.5.
        case("group_norm", name, "group_norm_kernel", [batch * groups], dict(x_ptr="x", weight_ptr="w", bias_ptr="b", y_ptr="y", groups=groups, group_channels=channels // groups, pixels=pixels, eps=1e-5, BLOCK=Const(128)),
             dict(x=x, w=w, b=b, y=y), dict(y=torch.cat((want, y[batch:]))), {"bound": 5e-7 if dtype == f32 else 1e-3})
