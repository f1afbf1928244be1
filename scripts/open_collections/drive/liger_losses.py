"""Liger-Kernel: the losses of liger_kernel.ops, with their gradients, at small shapes."""

from session import *  # noqa: F403

sys.path.insert(0, SOURCES + "/Liger-Kernel/src")
DT = (torch.bfloat16, torch.float32, torch.float16)


CE = op("cross_entropy", "LigerCrossEntropyFunction")
for dt in DT:
    for V in (41, 4096, 32000, 128256):
        for w, smo, z, cap, red, tok in (
            (0, 0.0, 0.0, None, "mean", 0),
            (1, 0.1, 0.0001, None, "sum", 0),
            (0, 0.1, 0.0, 30.0, "none", 0),
            (1, 0.0, 0.0001, 30.0, "mean", 1),
        ):
            with case(f"ce {dt} {V} {w} {smo} {z} {cap}"):
                y = RI(V, 8)
                y[3] = -100
                o = CE.apply(
                    RG(8, V, dt=dt) * 1,
                    y,
                    torch.rand(V, device="cuda") if w else None,
                    -100,
                    z,
                    smo,
                    red,
                    cap,
                    bool(z),
                    bool(tok),
                    bool(tok),
                )
                backward(o)
FL = op("fused_linear_cross_entropy", "LigerFusedLinearCrossEntropyFunction")
for dt in DT:
    for b in (False, True):
        with case(f"flce {dt} {b}"):
            backward(
                FL.apply(
                    RG(16, 64, dt=dt) * 1,
                    RG(1000, 64, dt=dt) * 1,
                    RI(1000, 16),
                    RG(1000, dt=dt) * 1 if b else None,
                )
            )
    with case(f"flce opts {dt}"):
        backward(
            FL.apply(
                RG(16, 64, dt=dt) * 1,
                RG(1000, 64, dt=dt) * 1,
                RI(1000, 16),
                None,
                torch.rand(1000, device="cuda"),
                -100,
                0.0001,
                0.1,
                "mean",
                30.0,
                True,
                torch.float32,
                True,
                True,
            )
        )
FJ = op("fused_linear_jsd", "LigerFusedLinearJSDFunction")
for dt in DT:
    for lab in (None, 1):
        with case(f"fljsd {dt} {lab}"):
            backward(
                FJ.apply(
                    RG(16, 32, dt=dt) * 1,
                    RG(1000, 32, dt=dt) * 1,
                    R(16, 64, dt=dt),
                    R(1000, 64, dt=dt),
                    None if lab is None else RI(1000, 16),
                    0.5,
                )
            )
JS = op("jsd", "LigerJSDFunction")
lsm = lambda *s, dt, g: torch.log_softmax(R(*s, dt=torch.float32), -1).to(dt).requires_grad_(g)
for dt in (torch.float32, torch.bfloat16):
    for beta in (0.0, 0.1, 0.5, 1.0):
        for lab in (False, True):
            with case(f"jsd {dt} {beta} {lab}"):
                backward(
                    JS.apply(
                        lsm(32, 1000, dt=dt, g=True) * 1,
                        lsm(32, 1000, dt=dt, g=False),
                        RI(1000, 32) if lab else None,
                        beta,
                        -100,
                    )
                )
KL = op("kl_div", "LigerKLDivLossFunction")
TV = op("tvd", "LigerTVDLossFunction")
for dt in DT:
    for red in ("none", "sum", "mean", "batchmean"):
        for lt in (False, True):
            with case(f"kl {dt} {red} {lt}"):
                t = lsm(16, 1000, dt=torch.float32, g=False)
                backward(KL.apply(lsm(16, 1000, dt=dt, g=True) * 1, (t if lt else t.exp()).to(dt), red, lt))
        for lab in (False, True):
            with case(f"tvd {dt} {red} {lab}"):
                backward(
                    TV.apply(
                        R(16, 1000, dt=torch.float32).softmax(-1).to(dt).requires_grad_() * 1,
                        R(16, 1000, dt=torch.float32).softmax(-1).to(dt),
                        RI(1000, 16) if lab else None,
                        red,
                    )
                )
VP = op("vocab_parallel_cross_entropy", "LigerVocabParallelCEFunction")
for dt in DT:
    for V in (512, 5000, 64000):
        for smo in (0.0, 0.1):
            with case(f"vpce {dt} {V} {smo}"):
                backward(VP.apply(RG(8, 2, V, dt=dt) * 1, RI(V, 8, 2), None, -100, smo, "megatron", "global"))
GR, FSL = op("grpo_loss", "GrpoLossFunction", "fused_selective_log_softmax")
for dt in (torch.bfloat16, torch.float32):
    for kind in ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo"):
        for beta in (0.0, 0.04):
            for mask in (False, True):
                with case(f"grpo {dt} {kind} {beta} {mask}"):
                    B, L, V = (3, 9, 1000)
                    ids = RI(V, B, L)
                    m = torch.ones(B, L, device="cuda", dtype=torch.int32)
                    m[0, 5:] = 0
                    backward(
                        GR.apply(
                            RG(B, L + 1, V, dt=dt) * 1,
                            R(B, L, dt=torch.float32) - 6,
                            R(B, L, dt=torch.float32) - 6,
                            ids,
                            R(B, dt=torch.float32),
                            m if mask else None,
                            0.9,
                            beta,
                            0.2,
                            0.4,
                            False,
                            kind,
                            L,
                            False,
                            "token",
                            1.0,
                            1.05,
                            torch.rand(B, L, device="cuda") if mask else None,
                            2.0 if kind in ("grpo", "bnpo") and mask else None,
                            mask and kind == "grpo",
                            None,
                            torch.rand(B, device="cuda") if kind == "vespo" else None,
                        )
                    )
    for beta in (0.0, 0.04):
        for mask in (False, True):
            with case(f"grpo seq {dt} {beta} {mask}"):
                B, L, V = (3, 9, 1000)
                m = torch.ones(B, L, device="cuda", dtype=torch.int32)
                backward(
                    GR.apply(
                        RG(B, L + 1, V, dt=dt) * 1,
                        R(B, L, dt=torch.float32) - 6 if mask else None,
                        R(B, L, dt=torch.float32) - 6,
                        RI(V, B, L),
                        R(B, dt=torch.float32),
                        m if mask else None,
                        0.9,
                        beta,
                        0.2,
                        0.4,
                        False,
                        "grpo",
                        L,
                        False,
                        "sequence",
                        1.0,
                        1.05,
                        torch.rand(B, device="cuda") if mask else None,
                        2.0 if mask else None,
                    )
                )
    with case("fsl"):
        FSL(R(3, 10, 1000, dt=dt), RI(1000, 3, 9), 0.9, None)
end()
