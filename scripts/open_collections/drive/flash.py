"""flash-attention's Triton files: attention (two versions), cross entropy, rotary, layer norm, with their gradients."""

from session import *  # noqa: F403

F = SOURCES + "/flash-attention/"
package("flash_attn", F + "flash_attn")
stand_in("flash_attn_2_cuda", "fused_dense_lib", "dropout_layer_norm", "flash_attn_3", "aiter")


def R(*s, dt=torch.float16, g=True):
    return torch.randn(*s, device="cuda").to(dt).requires_grad_(g)


with case("import"):
    import flash_attn.flash_attn_triton as fa
for dt in (torch.float16, torch.bfloat16):
    for d in (40, 64, 128):
        for causal in (False, True):
            for bias in (None, "v", "m"):
                for lq, lk in ((256, 256), (113, 203)):
                    if bias and (d == 40 or dt == torch.bfloat16):
                        continue
                    with case(f"flash {dt} {d} {causal} {bias} {lq}"):
                        q, k, v = (R(2, lq, 4, d, dt=dt), R(2, lk, 4, d, dt=dt), R(2, lk, 4, d, dt=dt))
                        b = None if bias is None else torch.randn(1, 4, 1 if bias == "v" else lq, lk).to(dt)
                        o = fa.flash_attn_func(q, k, v, b, causal)
                        o.backward(torch.randn_like(o))
with case("import og"):
    import flash_attn.flash_attn_triton_og as og
for d in (64, 128):
    with case("og"):
        q, k, v = (R(2, 4, 256, d) for _ in range(3))
        o = og.attention(q, k, v, 0.3)
        o.backward(torch.randn_like(o))
with case("import ce"):
    from flash_attn.ops.triton.cross_entropy import cross_entropy_loss
for dt in (torch.float16, torch.float32, torch.bfloat16):
    for sm in (0.0, 0.9):
        for V in (512, 50257, 128256):
            for pre in (False, True):
                with case(f"ce {dt} {sm} {V}"):
                    x = R(4, V, dt=dt)
                    y = torch.randint(0, V, (4,))
                    r = cross_entropy_loss(
                        x,
                        y,
                        torch.logsumexp(x.float(), -1) if pre else None,
                        sm,
                        0.7 if pre else 1.0,
                        0.01 if sm else 0.0,
                    )
                    r[0].sum().backward()
with case("import rotary"):
    from flash_attn.ops.triton.rotary import apply_rotary
for dt in (torch.float16, torch.bfloat16):
    for inter in (False, True):
        for conj in (False, True):
            for so in (0, 5, torch.zeros(2, dtype=torch.int32)):
                for rd in (32, 128):
                    with case(f"rotary {dt} {inter} {conj} {rd}"):
                        c = torch.randn(300, rd // 2).to(dt)
                        apply_rotary(R(2, 217, 6, 128, dt=dt, g=False), c, c.clone(), so, None, None, inter, conj, conj)
        with case("rotary varlen"):
            c = torch.randn(300, 16).to(dt)
            apply_rotary(
                R(400, 6, 128, dt=dt, g=False),
                c,
                c.clone(),
                0,
                torch.tensor([0, 180, 400], dtype=torch.int32),
                220,
                inter,
            )
with case("import ln"):
    from flash_attn.ops.triton.layer_norm import layer_norm_fn, rms_norm_fn
n = 0
for rms, res, rs, x1, w1, drop, pre, wd, idt, H in itertools.product(
    (False, True),
    (False, True),
    (False, True),
    (False, True),
    (False, True),
    (0.0, 0.27),
    (False, True),
    (torch.float32, torch.float16),
    (torch.float16, torch.float32, torch.bfloat16),
    (192, 2048, 3000),
):
    n += 1
    if n % 61:
        continue
    if rs and x1:
        continue
    with case(f"ln rms={rms} res={res} rs={rs} x1={x1} w1={w1} drop={drop} pre={pre} {wd} {idt} {H}"):
        x = R(4, 8, H, dt=idt)
        w = R(H, dt=wd)
        b = None if rms else R(H, dt=wd)
        o = layer_norm_fn(
            x,
            w,
            b,
            residual=R(4, 8, H, dt=idt) if res else None,
            x1=R(4, 8, H, dt=idt) if x1 else None,
            weight1=R(H, dt=wd) if w1 else None,
            bias1=R(H, dt=wd) if w1 and (not rms) else None,
            eps=1e-06,
            dropout_p=drop,
            rowscale=torch.rand(4, 8).to(idt) if rs else None,
            prenorm=pre,
            is_rms_norm=rms,
            zero_centered_weight=n % 2 == 1,
        )
        o = o if isinstance(o, torch.Tensor) else sum(t.float().sum() for t in o if isinstance(t, torch.Tensor))
        o.float().sum().backward()
end()
