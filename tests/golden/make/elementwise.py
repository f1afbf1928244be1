"""Element by element: addition, magnitudes, random numbers, dropout; options of launches."""
import math
import torch
from core import At, Const, NAMES, case, cases, cdiv, generator, poison, random, with_tail


@cases
def make_add():
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int8):
        for n in (0, 1, 127, 128, 129, 1000) if dtype == torch.float32 else (1000,):
            g = generator(f"add{dtype}{n}")
            x, y = random(g, (n,), dtype), random(g, (n,), dtype)
            out = poison((n + 16,), dtype)
            case("add", f"{NAMES[dtype]}_{n}", "add_kernel", [cdiv(n, 128)], dict(x_ptr="x", y_ptr="y", out_ptr="out", n=n, BLOCK=Const(128)),
                 dict(x=x, y=y, out=out), dict(out=with_tail(x + y, out.shape)), {"exact": True})
    g = generator("add misaligned")
    x, y = random(g, (301,), torch.float32), random(g, (303,), torch.float32)
    out = poison((320,), torch.float32)
    want = out.clone()
    want[5:305] = x[1:] + y[3:]
    case("add", "misaligned", "add_kernel", [3], dict(x_ptr=At("x", 1), y_ptr=At("y", 3), out_ptr=At("out", 5), n=300, BLOCK=Const(128)),
         dict(x=x, y=y, out=out), dict(out=want), {"exact": True})
    out = poison((64,), torch.float32)
    case("add", "all_masked", "add_kernel", [2], dict(x_ptr="x", y_ptr="y", out_ptr="out", n=0, BLOCK=Const(128)),
         dict(x=x, y=y, out=out), dict(out=out), {"exact": True})


@cases
def make_launch_options():
    g = generator("launch options")
    x = random(g, (500,), torch.float32)
    y = poison((512,), torch.float32)
    case("launch_options", "pdl", "dependent_kernel", [4], dict(x_ptr="x", y_ptr="y", n=500, BLOCK=Const(128)), dict(x=x, y=y),
         dict(y=with_tail(x * 2, y.shape)), {"exact": True}, options={"launch_pdl": True}, arch="sm_90a")
    x = random(g, (8, 128), torch.float32)
    y = poison((1040,), torch.float32)
    # The interpreter runs one program after the other, so none can wait for a later one.
    case("launch_options", "cooperative", "ring_kernel", [8], dict(x_ptr="x", y_ptr="y", z_ptr="z", count_ptr="count", BLOCK=Const(128)),
         dict(x=x, y=y, z=y, count=torch.zeros(1, dtype=torch.int32)),
         dict(y=with_tail((x + 1).flatten(), y.shape), z=with_tail((x + 1).roll(-1, 0).flatten(), y.shape), count=torch.tensor([8], dtype=torch.int32)),
         {"exact": True}, options={"launch_cooperative_grid": True}, arch="sm_90a", devices=["emulator", "cuda"])


def philox(seed, counters):
    """The four 32-bit words for each counter (int64 values), as Python integers."""
    m32 = 0xFFFFFFFF
    out = []
    for c in counters:
        c0, c1, c2, c3 = c & m32, (c >> 32) & m32, 0, 0
        k0, k1 = seed & m32, (seed >> 32) & m32
        for _ in range(10):
            a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
            c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & m32, (a >> 32) ^ c3 ^ k1, a & m32
            k0, k1 = (k0 + 0x9E3779B9) & m32, (k1 + 0xBB67AE85) & m32
        out.append((c0, c1, c2, c3))
    return out


def uniform(words):
    signed = torch.tensor([w - 2**32 if w >= 2**31 else w for w in words], dtype=torch.int64)
    magnitude = torch.where(signed < 0, -signed - 1, signed)
    return (magnitude.to(torch.float32) * torch.tensor(4.6566125955216364e-10, dtype=torch.float32)).to(torch.float32)


@cases
def make_random():
    for name, seed, start, n in (("seed_0", 0, 0, 100), ("seed_42", 42, 7, 64), ("seed_minus_1", -1, 0, 33), ("seed_large", 2**40 + 3, 2**31 - 50, 40), ("offset_large", 5, 2**32 + 5, 65)):
        # 32-bit offsets wrap, and count as unsigned words.
        wide = not -2**31 <= start < 2**31
        counters = [(start + i) & (2**64 - 1 if wide else 2**32 - 1) for i in range(n)]
        words = philox(seed, counters)
        bits = torch.tensor([w - 2**32 if w >= 2**31 else w for four in words for w in four], dtype=torch.int32)
        u = poison((n + 16,), torch.float32)
        b = poison((n * 4 + 16,), torch.int32)
        case("random", name, "random_kernel", [cdiv(n, 64)], dict(uniform_ptr="uniform", bits_ptr="bits", n=n, seed=seed, start=start, BLOCK=Const(64)),
             dict(uniform=u, bits=b), dict(uniform=with_tail(uniform([w[0] for w in words]), u.shape), bits=with_tail(bits, b.shape)), {"exact": True})


def gelu_dropout(g, dtype, n, p, seed):
    """Arguments and results of GELU, rounded to dtype, then dropout."""
    x = (random(g, (n,), torch.float64) * 2).to(dtype)
    w = x.double()
    gelu = (0.5 * w * (1 + torch.erf(w * math.sqrt(0.5)))).to(dtype)
    p32 = torch.tensor(p, dtype=torch.float32)
    keep = uniform([w[0] for w in philox(seed, range(n))]) > p32
    return x, torch.where(keep, gelu.double() / (1 - p32).double(), torch.zeros((), dtype=torch.float64)).to(dtype)


@cases
def make_gelu_dropout():
    for dtype, n, p, seed in ((torch.float32, 1000, 0.1, 1234), (torch.float32, 1, 0.5, 7), (torch.float32, 255, 0.5, 2**33 + 9), (torch.float32, 256, 0.0, 3), (torch.float16, 257, 0.25, 99), (torch.bfloat16, 300, 0.1, 0)):
        x, y = gelu_dropout(generator(f"gelu{dtype}{n}"), dtype, n, p, seed)
        out = poison((n + 16,), dtype)
        # Cancellation in 1 + erf for negative x: bounded, not by ulp.
        bound = {torch.float32: 5e-7, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]
        case("gelu_dropout", f"{NAMES[dtype]}_{n}", "gelu_dropout_kernel", [cdiv(n, 256)], dict(x_ptr="x", out_ptr="out", n=n, p=float(p), seed=seed, BLOCK=Const(256)),
             dict(x=x, out=out), dict(out=with_tail(y, out.shape)), {"bound": bound})


@cases
def make_abs():
    n = 300
    for dtype in NAMES:
        g = generator(f"abs{dtype}")
        x = random(g, (n,), dtype) if dtype.itemsize > 1 or not dtype.is_floating_point else random(g, (n,), torch.float32).to(dtype)
        bits = dtype.itemsize * 8
        if dtype.is_floating_point:
            # Every sign and exponent, and the special values; NaN only with a clear sign.
            word = {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}[bits]
            x[:n - 60] = random(g, (n - 60,), word).view(dtype)
            x[:2] = torch.tensor([0.0, -0.0]).to(dtype)
            if dtype != torch.float8_e4m3fn: x[2:4] = torch.tensor([float("inf"), -float("inf")]).to(dtype)
            y = x.view(word) & torch.iinfo(word).max
            nan = y.view(dtype).isnan() if bits > 8 else y.view(dtype).float().isnan()
            x = torch.where(nan, torch.ones(n, dtype=word), x.view(word)).view(dtype)
            y = (x.view(word) & torch.iinfo(word).max).view(dtype)
        elif dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
            x[:4] = torch.tensor([torch.iinfo(dtype).min, torch.iinfo(dtype).max, -1, 0], dtype=dtype)
            y = x.abs()
        else:
            y = x.clone()
        out = poison((n + 16,), dtype)
        case("abs", NAMES[dtype], "abs_kernel", [cdiv(n, 256)], dict(in_ptr="x", out_ptr="out", n=n, BLOCK=Const(256), SUB=Const(64)),
             dict(x=x, out=out), dict(out=torch.cat([y.view(torch.uint8), out.view(torch.uint8)[n * dtype.itemsize:]]).view(dtype)), {"exact": True},
             arch="sm_89" if bits == 8 and dtype.is_floating_point else "sm_80")


@cases
def make_silu_mul():
    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
    for name, rows, n, pad, dtype in (("1x1", 1, 1, 0, f32), ("2x127", 2, 127, 0, f32), ("2x128", 2, 128, 0, f32), ("3x129", 3, 129, 0, f32), ("2x300_fp16", 2, 300, 4, f16),
                                      ("3x200_bf16", 3, 200, 1, bf16), ("no_columns", 2, 0, 5, f32), ("no_rows", 0, 128, 0, f32)):
        g = generator("silu" + name)
        x = (random(g, (max(rows, 1), 2 * n + pad), torch.float64) * 3).to(dtype)
        if n > 100: x[0, :6] = torch.tensor([0.0, -0.0, 100.0, -100.0, 20.0, -20.0], dtype=dtype)
        v = x[:rows].double()
        want = (torch.nn.functional.silu(v[:, :n]) * v[:, n:2 * n]).to(dtype)
        y = poison((rows + 1, n + 5), dtype)
        # `tl.sigmoid` is within 19 ulp on fp32 (stdlib/MATH.md), the products add one: 20 * 2**-24 of the result. In 16 bits that
        # leads at most to the neighbour.
        case("silu_mul", name, "silu_mul_kernel", [rows, cdiv(n, 128)], dict(x_ptr="x", y_ptr="y", stride_x=x.shape[1], stride_y=n + 5, n=n, BLOCK=Const(128)),
             dict(x=x, y=y), dict(y=with_tail(want, y.shape)), {"bound": 4e-7} if dtype == f32 else {"ulp": 1})


@cases
def make_strided():
    # Name, rows, columns, then for x, y and z: row stride, column stride. Tensors begin where the lowest address needs it.
    for name, rows, cols, *strides in (("odd", 5, 9, (11, 1), (9, 1), (13, 1)), ("transposed", 17, 15, (1, 19), (15, 1), (1, 17)), ("negative_rows", 8, 16, (-16, 1), (16, 1), (-16, 1)),
                                       ("negative_columns", 7, 33, (33, -1), (40, 1), (33, -1)), ("all_negative", 9, 17, (-51, -3), (-17, -1), (-2, -18)), ("zero_rows", 9, 18, (0, 1), (0, -1), (18, 1)),
                                       ("zero_columns", 16, 32, (1, 0), (3, 0), (32, 1)), ("zero", 10, 20, (0, 0), (20, 1), (20, 1)), ("steps", 7, 5, (30, 3), (2, 14), (64, 7)),
                                       ("one_element", 1, 1, (5, 3), (-1, -1), (7, 9)), ("no_columns", 4, 0, (8, 1), (8, 1), (8, 1))):
        g = generator("strided" + name)
        tensors, arguments, views = {}, {}, {}
        for key, (row, col) in zip("xyz", strides):
            low = min(0, row * (rows - 1)) + min(0, col * (cols - 1))
            high = max(0, row * (rows - 1)) + max(0, col * (cols - 1))
            size = high - low + 1 + (8 if key == "z" else 0)
            tensors[key] = poison((size,), torch.float32) if key == "z" else random(g, (size,), torch.float32)
            arguments[key + "_ptr"] = At(key, -low)
            at = -low + torch.arange(rows)[:, None] * row + torch.arange(cols)[None, :] * col
            views[key] = at
        want = tensors["z"].clone()
        want[views["z"]] = tensors["x"][views["x"]] + tensors["y"][views["y"]]
        arguments |= dict(rows=rows, cols=cols) | {f"{key}_{side}": value for key, pair in zip("xyz", strides) for side, value in zip(("row", "col"), pair)}
        case("strided", name, "strided_add_kernel", [cdiv(rows, 8), cdiv(cols, 16)], arguments | dict(BLOCK_ROWS=Const(8), BLOCK_COLS=Const(16)), tensors, dict(z=want), {"exact": True})
