"""Liger-Kernel: activations, rotary embeddings, attention, mixtures of experts, with their gradients, at small shapes."""

from session import *  # noqa: F403

sys.path.insert(0, SOURCES + "/Liger-Kernel/src")
DT = (torch.bfloat16, torch.float32, torch.float16)


ng = lambda x: x.detach()
SI, FG = op("swiglu", "LigerSiLUMulFunction", "LigerFusedGateUpSiLUMulFunction")
sw = importlib.import_module("liger_kernel.ops.swiglu")
GE = op("geglu", "LigerGELUMulFunction")
RS = op("relu_squared", "LigerReLUSquaredFunction")
for dt in DT:
    for H in (256, 1431, 8192):
        with case(f"swiglu {dt} {H}"):
            backward(SI.apply(RG(2, 8, H, dt=dt) * 1, RG(2, 8, H, dt=dt) * 1, 1.0, 1.0))
            backward(SI.apply(RG(2, 8, H, dt=dt) * 1, RG(2, 8, H, dt=dt) * 1, 0.5, 0.25))
        with case(f"swiglu packed {dt} {H}"):
            backward(FG.apply(RG(16, 2 * H, dt=dt) * 1, False))
        with case(f"geglu {dt} {H}"):
            backward(GE.apply(RG(2, 8, H, dt=dt) * 1, RG(2, 8, H, dt=dt) * 1))
        with case(f"relu2 {dt} {H}"):
            backward(RS.apply(RG(2, 8, H, dt=dt) * 1))
    should = sw._should_tile
    sw._should_tile = lambda n: True
    with case(f"swiglu tiled {dt}"):
        backward(SI.apply(RG(2, 8, 8192, dt=dt) * 1, RG(2, 8, 8192, dt=dt) * 1, 1.0, 1.0))
        backward(SI.apply(RG(2, 8, 5000, dt=dt) * 1, RG(2, 8, 5000, dt=dt) * 1, 0.5, 1.0))
    sw._should_tile = should
SM = op("softmax", "LigerSoftmaxFunction")
sm = importlib.import_module("liger_kernel.ops.softmax")
for dt in DT:
    for H in (64, 1000, 4096):
        with case(f"softmax {dt} {H}"):
            backward(SM.apply(RG(4, 8, H, dt=dt) * 1))
    cs = sm.calculate_settings
    sm.calculate_settings = lambda n: (1024, 4)
    with case(f"softmax multi {dt}"):
        backward(SM.apply(RG(4, 3000, dt=dt) * 1))
    sm.calculate_settings = cs
SP = op("sparsemax", "LigerSparsemaxFunction")
for dt in (torch.float32, torch.bfloat16):
    for H in (32, 1000):
        with case(f"sparsemax {dt} {H}"):
            backward(SP.apply(RG(8, H, dt=dt) * 1, -1))
EM = op("experimental.embedding", "LigerEmbeddingFunction")
for dt in DT:
    with case(f"embedding {dt}"):
        backward(EM.apply(RG(100, 192, dt=dt) * 1, RI(100, 4, 9)))
        backward(EM.apply(RG(100, 64, dt=dt) * 1, RI(100, 4, 9, dt=torch.int32)))
mm = op("experimental.mm_int8int2", "matmul", "pack_weights", "unpack_weights")
with case("int8int2", 120):
    for M, K, Nn in ((128, 1024, 256), (100, 2048, 192)):
        mm[0](RI(100, M, K, dt=torch.int8), RI(255, K // 4, Nn, dt=torch.uint8))
RO = op("rope", "LigerRopeFunction")


def cs(b, L, D, dt):
    return (R(b, L, D, dt=dt), R(b, L, D, dt=dt))


for dt in DT:
    for h, kv, D in ((8, 8, 64), (6, 2, 128), (5, 1, 40)):
        with case(f"rope {dt} {h} {kv} {D}"):
            backward(RO.apply(RG(2, h, 33, D, dt=dt) * 1, RG(2, kv, 33, D, dt=dt) * 1, *cs(1, 33, D, dt)))
            backward(RO.apply(RG(2, h, 16, D, dt=dt) * 1, RG(2, kv, 16, D, dt=dt) * 1, *cs(2, 16, D, dt)))
QW = op("qwen2vl_mrope", "LigerQwen2VLMRopeFunction")
for dt in DT:
    for h, kv, D, sec in ((8, 4, 128, (16, 24, 24)), (3, 1, 64, (8, 12, 12))):
        with case(f"mrope {dt} {h} {D}"):
            backward(
                QW.apply(
                    RG(2, h, 16, D, dt=dt) * 1,
                    RG(2, kv, 16, D, dt=dt) * 1,
                    R(3, 2, 16, D, dt=dt),
                    R(3, 2, 16, D, dt=dt),
                    list(sec),
                )
            )
L4 = op("llama4_rope", "LigerLlama4RopeFunction")
for dt in DT:
    for h, kv, D in ((8, 8, 64), (6, 2, 128)):
        with case(f"llama4 rope {dt} {D}"):
            backward(
                L4.apply(
                    RG(2, 33, h, D, dt=dt) * 1,
                    RG(2, 33, kv, D, dt=dt) * 1,
                    torch.polar(torch.ones(33, D // 2, device="cuda"), torch.rand(33, D // 2, device="cuda")),
                )
            )
NA = op("fused_neighborhood_attention", "LigerFusedNeighborhoodAttentionFunction")
for dt in DT:
    for L, D, ks, di in ((32, 32, 7, 1), (100, 24, 5, 2), (64, 64, 3, 1)):
        with case(f"na {dt} {L} {D}"):
            backward(
                NA.apply(RG(2, 3, L, D, dt=dt) * 1, RG(2, 3, L, D, dt=dt) * 1, RG(2, 3, L, D, dt=dt) * 1, ks, di, None)
            )
MT = op("multi_token_attention", "LigerMultiTokenAttentionFunction")
for dt in DT:
    for sp in (False, True):
        if sp and dt != torch.float32:
            continue
        with case(f"mta {dt} {sp}"):
            backward(MT.apply(RG(2, 4, 32, 32, dt=dt) * 1, RG(4, 4, 3, 3, dt=dt), RG(4, dt=dt), 1, 1, 1, 1, sp))
AR = op("attn_res", "LigerAttnResFunction")
for dt in DT:
    for n, D in ((4, 256), (7, 1023)):
        with case(f"attn_res {dt} {n}"):
            backward(AR.apply(RG(n, 2, 8, D, dt=dt) * 1, RG(D, dt=dt), RG(D, dt=dt), 1e-06))
MC, MP, MQ = op("mhc", "LigerMHCCoeffsFunction", "LigerMHCPreFunction", "LigerMHCPostResFunction")
mhc = importlib.import_module("liger_kernel.ops.mhc")
f32 = torch.float32
for dt in DT:
    for HC, C, tm in ((4, 64, 5), (2, 96, 20), (8, 128, 3)):
        with case(f"mhc {dt} {HC} {C}"):
            M = HC * HC + 2 * HC
            pre, post, res = MC.apply(
                RG(2, 16, HC, C, dt=dt) * 1,
                R(HC * C, M, dt=f32, std=0.1).to(dt).requires_grad_(),
                R(M, dt=f32, std=0.1).requires_grad_(),
                *(torch.tensor(0.5, device="cuda").requires_grad_() for _ in range(3)),
                True,
                tm,
                1e-06,
                0.0001,
                1e-06,
                2.0,
            )
            backward((pre, post, res))
            x = RG(2, 16, HC, C, dt=dt)
            backward(MP.apply(x, ng(pre).requires_grad_()))
            backward(MQ.apply(x, RG(2, 16, C, dt=dt) * 1, ng(post).requires_grad_(), ng(res).requires_grad_()))
        with case(f"mhc nohist {dt} {HC}"):
            mhc.mhc_sinkhorn_bwd(
                R(32, M, dt=f32),
                R(M, dt=f32),
                torch.ones(1, device="cuda"),
                R(32, HC, HC, dt=f32),
                tmax=tm,
                sinkhorn_eps=1e-06,
            )
MO = op("fused_moe", "LigerFusedMoEFunction")
meta = op("fused_moe", "compute_routing_metadata")
for dt in (torch.bfloat16, torch.float32, torch.float16):
    for Tn, E, H, I, K in ((64, 8, 128, 64, 2), (77, 4, 256, 192, 3)):
        with case(f"moe {dt} {Tn}", 240):
            idx = torch.stack([torch.randperm(E, device="cuda")[:K] for _ in range(Tn)]).to(torch.int32)
            w = R(Tn, K, dt=torch.float32).softmax(-1).to(dt).requires_grad_()
            fm = importlib.import_module("liger_kernel.ops.fused_moe")
            real = fm.compute_routing_metadata

            def stub(top, E_, *a):
                with contextlib.suppress(Exception):
                    real(top, E_, *a)
                TK = top.numel()
                i = lambda n: torch.zeros(n, dtype=torch.int32)
                return (i(E_), i(E_ + 1), i(TK), i(TK), i(TK), i(8), i(8))

            # Its kernels compute indices, which are needed where kernels run.
            fm.compute_routing_metadata = stub if recorder.__name__ == "recorder" else real
            try:
                backward(
                    MO.apply(
                        RG(Tn, H, dt=dt) * 1,
                        R(E, 2 * I, H, dt=dt, std=0.1).requires_grad_(),
                        R(E, H, I, dt=dt, std=0.1).requires_grad_(),
                        idx,
                        w,
                    )
                )
            finally:
                fm.compute_routing_metadata = real
ML = op("mlp", "LigerMLPFunction")
for dt in (torch.bfloat16, torch.float16):
    for B, S, D, Hd in ((2, 128, 256, 512), (1, 100, 192, 320)):
        with case(f"mlp {dt} {S}", 240):
            backward(
                ML.apply(
                    RG(B, S, D, dt=dt) * 1,
                    R(Hd, D, dt=dt, std=0.1).requires_grad_(),
                    R(Hd, D, dt=dt, std=0.1).requires_grad_(),
                    R(D, Hd, dt=dt, std=0.1).requires_grad_(),
                    1.0,
                    1.0,
                )
            )
        with case(f"mlp inference {dt} {S}", 240):
            ML.apply(
                R(B, S, D, dt=dt),
                R(Hd, D, dt=dt, std=0.1),
                R(Hd, D, dt=dt, std=0.1),
                R(D, Hd, dt=dt, std=0.1),
                0.5,
                0.25,
            )
end()
