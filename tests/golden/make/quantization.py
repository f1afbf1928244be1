"""Numbers in 8 bits: int8 and fp8, rounded to nearest even, saturating; and back."""
import torch
from core import Const, NAMES, case, cases, cdiv, generator, poison, random, with_tail

LARGEST = {torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0}


def tail_of_bytes(values, like):
    """`values` over the start of a poisoned tensor of an 8-bit type."""
    return torch.cat((values.view(torch.uint8), like.view(torch.uint8)[values.numel():])).view(like.dtype)


@cases
def make_quantize_static():
    f32, f16 = torch.float32, torch.float16
    # Ties of int8 at .5; ends; for fp8 ties between neighbours, its denormals, what is just below and above the largest.
    special = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, 127.5, -127.5, -128.5, 1e6, -1e6, 0.0, -0.0, 0.49999997, 17.0, 19.0, 21.0, 464.0, 465.0, -464.0, 2.0**-9, 2.0**-10, 3 * 2.0**-11, 2.0**-17, 3 * 2.0**-18, 61440.0, 60000.0, float("inf"), -float("inf")]
    for target in (torch.int8, *LARGEST):
        for n, dtype, scale in ((0, f32, 1.0), (1, f32, 1.0), (127, f32, 1.0), (128, f32, 0.1), (129, f16, 1.0), (300, f32, 0.037)):
            g = generator(f"quantize{target}{n}")
            x = (random(g, (max(n, 1),), torch.float64) * 60).to(dtype)
            if n > 100: x[:len(special)] = torch.tensor(special).to(dtype)
            inverse = (1 / torch.tensor(scale, dtype=torch.float32))
            v = x[:n].float() * inverse  # one rounding, as in the kernel
            q = v.round().clamp(-128, 127).to(target) if target == torch.int8 else v.clamp(-LARGEST[target], LARGEST[target]).to(target)
            out = poison((n + 16,), target)
            case("quantize", f"static_{NAMES[target]}_{n}", "quantize_static_kernel", [cdiv(n, 128)], dict(x_ptr="x", q_ptr="q", n=n, inverse=inverse.item(), BLOCK=Const(128)), dict(x=x, q=out),
                 dict(q=tail_of_bytes(q, out)), {"exact": True}, arch="sm_80" if target == torch.int8 else "sm_89")


@cases
def make_quantize_rows():
    for rows, n, stride, dtype in ((1, 1, 1, torch.float32), (3, 63, 63, torch.float32), (2, 64, 70, torch.float16), (4, 50, 51, torch.bfloat16), (0, 64, 64, torch.float32)):
        g = generator(f"quantize rows{rows}{n}")
        x = random(g, (max(rows, 1), stride), dtype)
        if rows > 1: x[1] = 0.0
        v = x[:rows, :n].float()
        top = v.abs().amax(1)
        scale = top / 127.0
        inverse = torch.where(top > 0, 127.0 / top, torch.zeros(()))
        q = (v * inverse[:, None]).round().clamp(-127, 127).to(torch.int8).flatten()
        out, scales = poison((rows * n + 16,), torch.int8), poison((rows + 4,), torch.float32)
        case("quantize", f"rows_{rows}x{n}", "quantize_rows_kernel", [rows], dict(x_ptr="x", q_ptr="q", scale_ptr="scale", stride=stride, n=n, BLOCK=Const(64)), dict(x=x, q=out, scale=scales),
             dict(q=with_tail(q, out.shape), scale=with_tail(scale, scales.shape)), {"exact": True})


@cases
def make_quantize_groups():
    for target, arch in ((torch.float8_e4m3fn, "sm_89"), (torch.float8_e5m2, "sm_90a")):
        for n, dtype in ((1, torch.float32), (31, torch.float32), (256, torch.float16), (257, torch.float32)):
            g = generator(f"quantize groups{n}{target}")
            x = (random(g, (n,), torch.float64) * torch.exp2(torch.randint(-9, 10, (n,), generator=g).double())).to(dtype)
            if n > 200: x[64:96] = 0.0
            groups = cdiv(n, 32)
            v = torch.cat((x.float(), torch.zeros(groups * 32 - n))).view(groups, 32)
            scale = v.abs().amax(1).clamp(min=1e-10) / LARGEST[target]
            q = (v / scale[:, None]).clamp(-LARGEST[target], LARGEST[target]).to(target).flatten()[:n]
            out, scales = poison((n + 16,), target), poison((groups + 4,), torch.float32)
            case("quantize", f"groups_{NAMES[target]}_{n}", "quantize_groups_kernel", [cdiv(n, 256)], dict(x_ptr="x", q_ptr="q", scale_ptr="scale", n=n, LARGEST=Const(LARGEST[target]), GROUP=Const(32), BLOCK=Const(256)),
                 dict(x=x, q=out, scale=scales), dict(q=tail_of_bytes(q, out), scale=with_tail(scale, scales.shape)), {"exact": True}, arch=arch)


@cases
def make_dequantize():
    for source, dtype, n in ((torch.int8, torch.float16, 129), (torch.int8, torch.float32, 128), (torch.float8_e4m3fn, torch.bfloat16, 300), (torch.float8_e5m2, torch.float32, 127), (torch.float8_e4m3fn, torch.float16, 1)):
        g = generator(f"dequantize{source}{n}")
        q = random(g, (n,), torch.int8).view(source)
        # Numbers alone: two NaNs need not have the same bits.
        if source != torch.int8: q = torch.where(q.float().isfinite(), q.view(torch.int8), torch.ones((), dtype=torch.int8)).view(source)
        scale = torch.rand(cdiv(n, 32), generator=g) * 0.01
        y = poison((n + 16,), dtype)
        want = (q.float() * scale.repeat_interleave(32)[:n]).to(dtype)
        case("quantize", f"back_{NAMES[source]}_{NAMES[dtype]}_{n}", "dequantize_kernel", [cdiv(n, 128)], dict(q_ptr="q", scale_ptr="scale", y_ptr="y", n=n, GROUP=Const(32), BLOCK=Const(128)), dict(q=q, scale=scale, y=y),
             dict(y=with_tail(want, y.shape)), {"exact": True}, arch="sm_80" if source == torch.int8 else "sm_89")
