"""Liger-Kernel: the normalizations of liger_kernel.ops, with their gradients, at small shapes."""

from session import *  # noqa: F403

sys.path.insert(0, SOURCES + "/Liger-Kernel/src")
DT = (torch.bfloat16, torch.float32, torch.float16)


RMS = op("rms_norm", "LigerRMSNormFunction")
for dt in DT:
    for H in (512, 1023, 4096):
        for mode, off in (("llama", 0.0), ("gemma", 1.0), ("none", 0.0)):
            with case(f"rms {dt} {H} {mode}"):
                backward(RMS.apply(RG(2, 16, H, dt=dt) * 1, RG(H, dt=dt), 1e-06, off, mode, True, None))
    for mode in ("llama", "gemma", "none"):
        with case(f"rms block {dt} {mode}"):
            backward(RMS.apply(RG(32768, 64, dt=dt) * 1, RG(64, dt=dt), 1e-06, 0.0, mode, False, None))
    with case(f"rms noweight {dt}"):
        backward(RMS.apply(RG(4, 300, dt=dt) * 1, None, 1e-06, 0.0, "llama", True, None))
        backward(RMS.apply(RG(32768, 64, dt=dt) * 1, None, 1e-06, 0.0, "llama", False, None))
LN = op("layer_norm", "LigerLayerNormFunction")
for dt in DT:
    for H in (64, 1023, 4096):
        with case(f"ln {dt} {H}"):
            backward(LN.apply(RG(3, 8, H, dt=dt) * 1, RG(H, dt=dt), RG(H, dt=dt), 1e-06))
GN = op("group_norm", "LigerGroupNormFunction")
for dt in DT:
    for C, G, W in ((16, 4, 64), (6, 3, 130), (8, 8, 32)):
        with case(f"gn {dt} {C} {W}"):
            backward(GN.apply(RG(2, C, W, dt=dt) * 1, RG(C, dt=dt), RG(C, dt=dt), C, G, 1e-06))
FA = op("fused_add_rms_norm", "LigerFusedAddRMSNormFunction")
for dt in DT:
    for H in (256, 1023):
        for mode, off in (("llama", 0.0), ("gemma", 1.0), ("none", 0.0)):
            for ip in (False, True):
                with case(f"farms {dt} {H} {mode} {ip}"):
                    backward(
                        FA.apply(RG(4, 8, H, dt=dt) * 1, RG(4, 8, H, dt=dt) * 1, RG(H, dt=dt), 1e-06, off, mode, ip)
                    )
PN = op("poly_norm", "LigerPolyNormFunction")
for dt in DT:
    for H in (512, 1023):
        with case(f"poly {dt} {H}"):
            backward(
                PN.apply(
                    RG(4, 8, H, dt=dt) * 1,
                    RG(3, dt=dt),
                    torch.tensor(0.5, device="cuda", dtype=dt).requires_grad_(),
                    1e-06,
                    True,
                )
            )
MR = op("modulated_rms_norm", "LigerModulatedRMSNormFunction")
for dt in DT:
    for rows in (1, 4, 32):
        for sh in (True, False):
            for mode in ("llama", "none", "gemma"):
                with case(f"modrms {dt} {rows} {sh} {mode}"):
                    backward(
                        MR.apply(
                            RG(32, 256, dt=dt) * 1,
                            RG(256, dt=dt) if mode != "none" else None,
                            RG(rows, 256, dt=dt),
                            RG(rows, 256, dt=dt) if sh else None,
                            1e-06,
                            0.0,
                            mode,
                            True,
                        )
                    )
DY = op("dyt", "LigerDyTFunction")
for dt in DT:
    for H, b in ((1023, True), (4096, False)):
        with case(f"dyt {dt} {H}", 120):
            backward(DY.apply(RG(2, 8, H, dt=dt) * 1, RG(1, dt=dt), RG(H, dt=dt), RG(H, dt=dt) if b else None))
end()
