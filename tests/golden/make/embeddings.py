"""Embeddings: rotary ones, rows of a table and the gradient of that table."""
import torch
from core import Const, NAMES, case, cases, cdiv, generator, poison, random, with_tail


@cases
def make_rotary():
    f32 = torch.float32
    for name, length, heads, half, dtype, interleaved, backward in (("halves_1", 1, 1, 16, f32, False, False), ("halves_15", 15, 2, 16, f32, False, False), ("halves_16_backward", 16, 2, 32, f32, False, True),
                                                                   ("halves_17_fp16", 17, 3, 32, torch.float16, False, False), ("pairs_17", 17, 2, 16, f32, True, False), ("pairs_33_bf16", 33, 2, 32, torch.bfloat16, True, False),
                                                                   ("pairs_16_backward", 16, 1, 16, f32, True, True), ("halves_0", 0, 2, 16, f32, False, False)):
        g = generator("rotary" + name)
        x = random(g, (max(length, 1), heads, 2 * half), torch.float64).clamp(-4, 4).to(dtype)
        angle = torch.arange(max(length, 1), dtype=torch.float64)[:, None] * 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        cos, sin = angle.cos().float(), angle.sin().float()
        c, s = cos.double()[:length, None], sin.double()[:length, None] * (-1 if backward else 1)
        v = x[:length].double()
        a, b = (v[..., 0::2], v[..., 1::2]) if interleaved else (v[..., :half], v[..., half:])
        u, w = a * c - b * s, b * c + a * s
        want = (torch.stack((u, w), -1).flatten(-2) if interleaved else torch.cat((u, w), -1)).to(dtype)
        y = poison((length + 1, heads, 2 * half), dtype)
        # Two products of at most 4 and their sum, each within 2**-24 of itself.
        bound = {f32: 2.4e-7, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]
        case("rotary", name, "rotary_kernel", [cdiv(length, 16), heads],
             dict(x_ptr="x", y_ptr="y", cos_ptr="cos", sin_ptr="sin", length=length, heads=heads, HALF=Const(half), BLOCK=Const(16), INTERLEAVED=Const(interleaved), BACKWARD=Const(backward)),
             dict(x=x, cos=cos, sin=sin, y=y), dict(y=torch.cat((want, y[length:]))), {"bound": bound})


@cases
def make_embedding():
    for name, count, width, entries, dtype, index_dtype in (("1x1", 1, 1, 5, torch.float32, torch.int32), ("7x63", 7, 63, 10, torch.float16, torch.int64), ("8x64", 8, 64, 3, torch.float32, torch.int64),
                                                           ("9x65", 9, 65, 20, torch.bfloat16, torch.int32), ("40x100", 40, 100, 6, torch.float32, torch.int32), ("all_padding", 5, 20, 4, torch.float32, torch.int64),
                                                           ("no_rows", 0, 64, 4, torch.float32, torch.int32)):
        g = generator("embedding" + name)
        padding = -1 if index_dtype == torch.int32 else 2
        index = torch.randint(0, entries, (max(count, 1),), generator=g).to(index_dtype)
        if name == "all_padding": index[:] = padding
        elif count > 3: index[1] = padding
        used = index[:count].long()
        table = random(g, (entries, width), dtype)
        want = torch.where((used == padding)[:, None], torch.zeros((), dtype=dtype), table[used.clamp(min=0)])
        y = poison((count + 1, width), dtype)
        arguments = dict(count=count, width=width, PADDING=Const(padding), ROWS=Const(8), BLOCK=Const(64))
        grid = [cdiv(count, 8), cdiv(width, 64)]
        case("embedding", f"gather_{name}", "embedding_kernel", grid, dict(index_ptr="index", table_ptr="table", y_ptr="y", **arguments), dict(index=index, table=table, y=y),
             dict(y=torch.cat((want, y[count:]))), {"exact": True})
        # Quarters of small integers, at most 40 of them: every sum of some is exact in any order, in bf16 too.
        dtype = torch.float32 if dtype == torch.bfloat16 and count > 32 else dtype
        dy = (torch.randint(-7, 8, (max(count, 1), width), generator=g) * 0.25).to(dtype)
        start = (torch.randint(-3, 4, (entries, width), generator=g) * 0.5).to(dtype)
        total = start.double()
        total.index_add_(0, used[used != padding], dy[:count][used != padding].double())
        case("embedding", f"scatter_{name}", "embedding_backward_kernel", grid, dict(index_ptr="index", dy_ptr="dy", dtable_ptr="dtable", **arguments), dict(index=index, dy=dy, dtable=start),
             dict(dtable=total.to(dtype)), {"exact": True})
