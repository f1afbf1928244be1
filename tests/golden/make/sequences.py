"""What language models do beside attention: state space models, the routing of experts."""
import torch
from core import Const, case, cases, cdiv, generator, poison, random, with_tail


@cases
def make_selective_scan():
    f32 = torch.float32
    for name, batch, length, channels, states, dtype in (("1x1x1", 1, 1, 1, 16, f32), ("2x15x7", 2, 15, 7, 16, f32), ("1x16x8", 1, 16, 8, 16, f32), ("2x33x9", 2, 33, 9, 8, f32), ("1x40x8_bf16", 1, 40, 8, 16, torch.bfloat16), ("empty", 1, 0, 4, 16, f32)):
        g = generator("selective scan" + name)
        steps = max(length, 1)
        x, dt = random(g, (batch, steps, channels), dtype), (random(g, (batch, steps, channels), f32) - 1).to(dtype)
        a = -torch.arange(1, states + 1, dtype=f32).repeat(channels, 1) * (0.5 + torch.rand(channels, 1, generator=g))
        b, c, d = random(g, (batch, steps, states), f32), random(g, (batch, steps, states), f32), random(g, (channels,), f32)
        h = torch.zeros(batch, channels, states, dtype=torch.float64)
        want = torch.zeros(batch, length, channels, dtype=torch.float64)
        for t in range(length):
            delta = torch.nn.functional.softplus(dt[:, t].double())
            h = torch.exp(delta[:, :, None] * a.double()) * h + (delta * x[:, t].double())[:, :, None] * b[:, t, None].double()
            want[:, t] = (h * c[:, t, None].double()).sum(2) + d.double() * x[:, t].double()
        # Exponents lie in [-60, 0], so `exp` is within 45 ulp, mostly where its result is tiny, and softplus within 3e-6; h is at
        # most 10 and the sum has 16 terms. A result in bf16 may be the neighbour.
        bound = {"bound": 2.5e-6 if dtype == f32 else 8e-3}
        for kernel, grid, extra in (("selective_scan_kernel", [batch, cdiv(channels, 8)], dict(CHANNELS=Const(8))), ("selective_scan_blocks_kernel", [batch, channels], dict(STEPS=Const(16)))):
            y, state = poison((batch * length + 1, channels), dtype), poison((batch * channels + 1, states), f32)
            case("selective_scan", name + ("_blocks" if "blocks" in kernel else ""), kernel, grid,
                 dict(x_ptr="x", dt_ptr="dt", a_ptr="a", b_ptr="b", c_ptr="c", d_ptr="d", y_ptr="y", state_ptr="state", length=length, channels=channels, STATE=Const(states), **extra),
                 dict(x=x, dt=dt, a=a, b=b, c=c, d=d, y=y, state=state), dict(y=with_tail(want.flatten(0, 1).to(dtype), y.shape), state=with_tail(h.flatten(0, 1).float(), state.shape)),
                 dict(y=bound, state={"bound": 8e-7}))


@cases
def make_moe_routing():
    for name, tokens, experts, top, dtype in (("1x8_top1", 1, 8, 1, torch.float32), ("7x31_top2", 7, 31, 2, torch.float32), ("8x32_top2", 8, 32, 2, torch.bfloat16), ("9x20_top4", 9, 20, 4, torch.float32), ("ties", 17, 32, 8, torch.float16), ("no_tokens", 0, 16, 2, torch.float32)):
        g = generator("routing" + name)
        x = random(g, (max(tokens, 1), experts), torch.float64)
        # A few values only: most of the experts of a token tie with others.
        x = (x * 2).round().clamp(-2, 2).to(dtype) if name == "ties" else x.to(dtype)
        v = x[:tokens].double()
        order = v.sort(dim=1, descending=True, stable=True).indices[:, :top]
        weight = torch.softmax(v.gather(1, order), 1)
        count = torch.bincount(order.flatten(), minlength=experts).int()
        for sort in (False, True):
            tensors = dict(x=x, expert=poison((tokens + 1, top), torch.int32), weight=poison((tokens + 1, top), torch.float32), count=torch.cat((torch.zeros(experts, dtype=torch.int32), poison((4,), torch.int32))))
            expected = dict(expert=with_tail(order.int(), tensors["expert"].shape), weight=with_tail(weight.float(), tensors["weight"].shape), count=with_tail(count, tensors["count"].shape))
            # Exponents lie in [-9, 0]: `exp` is within 8 ulp, the sum and the division add 4.
            case("moe_routing", f"{name}_" + ("sort" if sort else "maxima"), "route_kernel", [cdiv(tokens, 8)], dict(logits_ptr="x", expert_ptr="expert", weight_ptr="weight", count_ptr="count", tokens=tokens, experts=experts, TOP=Const(top), SORT=Const(sort), TOKENS=Const(8), BLOCK=Const(32)),
                 tensors, expected, dict(expert={"exact": True}, weight={"bound": 1.2e-7}, count={"exact": True}))
