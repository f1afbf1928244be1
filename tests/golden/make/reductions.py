"""Reductions and scans: along axes, with ties, of several values at once."""
import torch
from core import Const, NAMES, case, cases, generator, poison, random, with_tail


@cases
def make_reductions():
    for dtype, m, n in ((torch.float32, 16, 64), (torch.float16, 8, 32), (torch.int32, 4, 128), (torch.int8, 32, 8), (torch.uint8, 16, 16), (torch.float32, 1, 512), (torch.float32, 256, 1)):
        for function in ("sum", "max", "min", "argmax", "argmin", "reduce"):
            for axis in (0, 1):
                if function == "reduce" and dtype != torch.float32: continue
                g = generator(f"reduce{function}{dtype}{axis}")
                x = random(g, (m, n), dtype)
                v = x.double() if dtype.is_floating_point else x.long()
                bound = {"exact": True}
                if function == "sum":
                    want = v.sum(axis)
                    out = torch.int32 if dtype in (torch.int8, torch.int32) else torch.int32 if dtype == torch.uint8 else dtype
                    if dtype.is_floating_point: bound = {"bound": 1e-6 if dtype == torch.float32 else 4e-3}
                elif function in ("max", "min"):
                    want = getattr(torch, "a" + function)(v, axis)
                    out = torch.float32 if dtype.is_floating_point else torch.int32
                elif function == "reduce":
                    want, out = v.gather(axis, v.abs().argmax(axis, keepdim=True)).squeeze(axis), dtype
                else:
                    # The first of equals.
                    best = v.amax(axis, keepdim=True) if function == "argmax" else v.amin(axis, keepdim=True)
                    want, out = (v == best).int().argmax(axis), torch.int32
                y = poison((want.numel() + 16,), out)
                case("reductions", f"{function}_{NAMES[dtype]}_{m}x{n}_axis{axis}", "reduction_kernel", [1], dict(x_ptr="x", y_ptr="y", FUNCTION=Const(function), AXIS=Const(axis), M=Const(m), N=Const(n)),
                     dict(x=x, y=y), dict(y=with_tail(want.to(out), y.shape)), bound)


@cases
def make_argmax_ties():
    nan, inf = float("nan"), float("inf")
    for n in (1, 31, 32, 33):
        g = generator(f"ties{n}")
        # Few values, so that each row has ties; the last rows have special ones.
        x = torch.randint(-2, 3, (9, n), generator=g).float()
        x[5], x[6, n // 2:], x[7, 0] = 3.0, inf, -inf
        signs = torch.where(torch.arange(n) % 2 == 0, 0.0, -0.0)
        for function in ("argmax", "argmin", "max", "min") if n > 31 else ("argmax", "min"):
            for left in (True, False):
                if n < 32 and not left: continue
                # The first of equals, and zeros of both signs are equal: where any may come, the sign would be open.
                x[8] = signs if left else 1.0
                best = x.amax(1, keepdim=True) if "max" in function else x.amin(1, keepdim=True)
                at = (x == best).int().argmax(1).int()
                write_argmax(f"{function}_{n}" + ("" if left else "_any"), x, at, best[:, 0], function, left)
        # NaN in half of the rows, alone and several; a row of nothing else.
        y = x.clone()
        y[0, n // 3], y[1, n // 2:], y[2], y[3, -1] = nan, nan, nan, nan
        at = y.argmax(1)
        at = torch.where(y.isnan().any(1), y.isnan().int().argmax(1), (y == y.amax(1, keepdim=True)).int().argmax(1)).int()
        write_argmax(f"nan_{n}", y, at, y.gather(1, at[:, None].long())[:, 0], "nan", True)


def write_argmax(name, x, at, value, function, left):
    rows, n = x.shape
    case("argmax_ties", name, "argmax_kernel", [3], dict(x_ptr="x", at_ptr="at", value_ptr="value", rows=rows, n=n, FUNCTION=Const(function), LEFT=Const(left), ROWS=Const(4), BLOCK=Const(64)),
         dict(x=x, at=poison((rows + 4,), torch.int32), value=poison((rows + 4,), torch.float32)),
         dict(at=with_tail(at if left else at[:0], (rows + 4,)), value=with_tail(value, (rows + 4,))), {"exact": True})


def wrap(v):
    """Integers modulo 2**32, as int32."""
    return ((v + 2**31) % 2**32 - 2**31).int()


@cases
def make_tuple_reduce():
    for function, dtype in (("moments", torch.float32), ("moments", torch.int32), ("extremes", torch.float32), ("extremes", torch.int16), ("products", torch.int32)):
        for m, n, axes in ((1, 32, (0, 1)), (8, 64, (0, 1)), (64, 8, (0,))):
            for axis in axes:
                g = generator(f"tuple reduce{function}{dtype}{m}{n}{axis}")
                x = torch.randint(-20, 21, (m, n), generator=g).to(dtype)
                v = x.double() if dtype.is_floating_point else x.long()
                count = m if axis == 1 else n
                out = {"a": dtype, "b": dtype, "c": dtype, "d": dtype}
                # Small integers, in fp32 too: all sums and products are exact in any order.
                if function == "moments": want = [v.sum(axis).to(dtype), (v * v).sum(axis).to(dtype)]
                elif function == "extremes":
                    low, high = v.amin(axis, keepdim=True), v.amax(axis, keepdim=True)
                    want = [low.squeeze(axis).to(dtype), (v == low).int().argmax(axis).int(), high.squeeze(axis).to(dtype), (v == high).int().argmax(axis).int()]
                    out |= {"b": torch.int32, "d": torch.int32}
                else:
                    line = v if axis == 1 else v.T
                    p = [torch.ones(count, dtype=torch.int64)] + [torch.zeros(count, dtype=torch.int64)] * 3
                    for t in line.T:
                        (a, b, c, d), (e, f, g_, h) = p, (t, t + 1, t - 1, t * 3)
                        p = [wrap(q).long() for q in (a * e + 2 * b * f + 3 * c * g_ + 6 * d * h, a * f + b * e + 3 * (c * h + d * g_), a * g_ + c * e + 2 * (b * h + d * f), a * h + d * e + b * g_ + c * f)]
                    want = [q.int() for q in p]
                tensors = {key: poison((count + 8,), t) for key, t in out.items()}
                expected = {key: with_tail(want[i], (count + 8,)) if i < len(want) else tensors[key] for i, key in enumerate(out)}
                case("tuple_reduce", f"{function}_{NAMES[dtype]}_{m}x{n}_axis{axis}", "tuple_reduce_kernel", [1], dict(x_ptr="x", first_ptr="a", second_ptr="b", third_ptr="c", fourth_ptr="d", FUNCTION=Const(function), AXIS=Const(axis), M=Const(m), N=Const(n)),
                     dict(x=x, **tensors), expected, {"exact": True})


@cases
def make_tuple_scan():
    along, all_ways = ((1, False), (1, True)), ((0, False), (1, False), (1, True))
    shapes = ((1, 1, along[:1]), (4, 63, all_ways), (3, 64, along))
    for function, dtype in (("recurrence", torch.int32), ("recurrence", torch.float32), ("segmented", torch.int32), ("largest", torch.float32)):
        for m, n, ways in shapes:
            for axis, reverse in ways:
                g = generator(f"tuple scan{function}{dtype}{m}{n}{axis}")
                a, b = torch.randint(-9, 10, (m, n), generator=g), torch.randint(-9, 10, (m, n), generator=g)
                if function == "segmented": a = (a > 6).long()
                # Factors at most 0.95: what an early step contributes to a late one fades, and so do its errors.
                if function == "recurrence" and dtype == torch.float32: a, b = a * 0.1 + 0.05, b * 0.37
                a, b = a.to(dtype), b.to(dtype)
                first, second = scan(function, a, b, axis, reverse)
                tensors = dict(a=a, b=b, x=poison((m + 1, n), dtype), y=poison((m + 1, n), torch.int32 if function == "largest" else dtype))
                expected = dict(x=torch.cat((first.to(dtype), tensors["x"][m:])), y=torch.cat((second.to(tensors["y"].dtype), tensors["y"][m:])))
                # Sums of at most 64 terms of 3.4 * 0.95**k, which are below 70 in all, with 8 roundings of each: 70 * 8 * 2**-24.
                rule = {"bound": 6e-7} if function == "recurrence" and dtype == torch.float32 else {"exact": True}
                case("tuple_scan", f"{function}_{NAMES[dtype]}_{m}x{n}_axis{axis}" + "_reverse" * reverse, "tuple_scan_kernel", [1],
                     dict(a_ptr="a", b_ptr="b", first_ptr="x", second_ptr="y", m=m, n=n, FUNCTION=Const(function), AXIS=Const(axis), REVERSE=Const(reverse), M=Const(8), N=Const(64)), tensors, expected, rule)


def scan(function, a, b, axis, reverse):
    """Both results, step by step, in fp64 or in int32 that wraps."""
    if axis == 0: return tuple(t.T for t in scan(function, a.T, b.T, 1, reverse))
    n = a.shape[1]
    # Beyond the end stand zeros, which a scan from the right meets first.
    a, b = (t.double() if t.dtype.is_floating_point else t.long() for t in (a, b))
    order = list(range(n))[::-1] if reverse else list(range(n))
    if function == "largest": b = torch.arange(n).expand_as(a)
    x, y = torch.zeros_like(a), torch.zeros_like(b)
    if reverse and n < 64:
        p, q = (torch.full_like(a[:, 0], 0), torch.full_like(b[:, 0], n if function == "largest" else 0))
        if function == "largest": q[:] = n
    else: p = q = None
    for i in order:
        u, v = a[:, i], b[:, i]
        if p is None: p, q = u, v
        elif function == "recurrence": p, q = p * u, q * u + v
        elif function == "segmented": p, q = p | u, torch.where(u != 0, v, q + v)
        else:
            keep = (p > u) | ((p == u) & (q < v))
            p, q = torch.where(keep, p, u), torch.where(keep, q, v)
        if not a.dtype.is_floating_point: p, q = wrap(p).long(), wrap(q).long()
        x[:, i], y[:, i] = p, q
    return x, y
