"""unsloth's kernels: all wrappers with their gradients, and its grouped GEMM."""

from session import *  # noqa: F403

U = SOURCES + "/unsloth/unsloth"
import transformers.models.llama.modeling_llama
import transformers.models.mllama.modeling_mllama

stand_in("unsloth_zoo", "bitsandbytes", "fbgemm_gpu", "pandas")
torch._C._cuda_getCurrentRawStream = lambda i: 0


class Dev:
    idx = 0

    def __init__(self, *a):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *a):
        return False


torch.cuda.device = Dev
package("unsloth", U, DEVICE_TYPE="cuda")
dt = package(
    "unsloth.device_type",
    U,
    DEVICE_TYPE="cuda",
    DEVICE_TYPE_TORCH="cuda",
    DEVICE_COUNT=1,
    ALLOW_PREQUANTIZED_MODELS=True,
    is_hip=lambda: False,
    is_mps=lambda: False,
    get_device_type=lambda: "cuda",
)
dt.__getattr__ = lambda n: (_ for _ in ()).throw(AttributeError(n)) if n.startswith("__") else Anything(n)
package("unsloth.kernels", U + "/kernels")
b = package("unsloth.bnb_availability", U)
b.native_kernels_ready = lambda *a, **k: False
DT = (torch.float16, torch.bfloat16, torch.float32)
with case("import utils"):
    import unsloth.kernels.utils
with case("import geglu"):
    from unsloth.kernels import geglu
with case("import swiglu"):
    from unsloth.kernels import swiglu
for dt in DT:
    with case(f"geglu/swiglu {dt}"):
        for f in (geglu.geglu_exact_forward_kernel, geglu.geglu_approx_forward_kernel):
            f(R(2, 16, 1024, dt=dt), R(2, 16, 1024, dt=dt))
        for f in (geglu.geglu_exact_backward_kernel, geglu.geglu_approx_backward_kernel):
            f(R(32, 1024, dt=dt), R(32, 1024, dt=dt), R(32, 1024, dt=dt))
        swiglu.swiglu_fg_kernel(R(2, 16, 1024, dt=dt), R(2, 16, 1024, dt=dt))
        swiglu.swiglu_DWf_DW_dfg_kernel(R(32, 1024, dt=dt), R(32, 1024, dt=dt), R(32, 1024, dt=dt))
with case("long"):
    for f in (
        geglu._exact_forward_kernel,
        geglu._approx_forward_kernel,
        geglu._exact_backward_kernel,
        geglu._approx_backward_kernel,
        swiglu._fg_kernel,
        swiglu._DWf_DW_dfg_kernel,
    ):
        f.warmup(R(64), R(64), R(64), 1 << 33, BLOCK_SIZE=1024, LONG_INDEXING=1, grid=(1,))
with case("import ce"):
    from unsloth.kernels import cross_entropy_loss as ce
for dt in DT:
    for V in (32000, 128256, 256000):
        for cap in (0, 30.0):
            for sc in (0, 0.5):
                with case(f"ce {dt} {V} {cap} {sc}"):
                    x = R(4, V, dt=dt, g=True)
                    l = ce.Fast_CrossEntropyLoss.apply(x * 1, torch.randint(0, V, (4,)), cap, sc)
                    l.sum().backward()
with case("import rms"):
    from unsloth.kernels import rms_layernorm as rl
for dt in DT:
    for gm in (False, True):
        for H in (512, 4096, 3000):
            with case(f"rms {dt} {gm} {H}"):
                x = R(2, 8, H, dt=dt, g=True)
                w = R(H, dt=dt)
                o = rl.Fast_RMS_Layernorm.apply(x, w, 1e-06, gm)
                o.backward(torch.randn_like(o))
with case("import ln"):
    from unsloth.kernels import layernorm as ln
for dt in DT:
    for H in (512, 3000):
        with case(f"ln {dt} {H}"):
            x = R(2, 8, H, dt=dt, g=True)
            o = ln.Fast_Layernorm.apply(x, R(H, dt=dt), R(H, dt=dt), 1e-06)
            o.backward(torch.randn_like(o))
with case("import rope"):
    from unsloth.kernels import rope_embedding as rp
for dt in DT:
    for D in (64, 128):
        with case(f"rope {dt} {D}"):
            q = R(2, 33, 8, D, dt=dt, g=True)
            o = rp.Fast_RoPE_Embedding.apply(q * 1, R(64, D, dt=dt), R(64, D, dt=dt))
            o.backward(torch.randn_like(o))
        for idx in (None, torch.zeros(2 * 33, dtype=torch.int32)):
            with case(f"ropeqk {dt} {D} {idx is None}"):
                q, k = (R(2, 8, 33, D, dt=dt, g=True), R(2, 2, 33, D, dt=dt, g=True))
                o = rp.Fast_RoPE_Embedding_QK.apply(q * 1, k * 1, R(64, D, dt=dt), R(64, D, dt=dt), idx)
                (o[0].float().sum() + o[1].float().sum()).backward()
with case("import fp8"):
    from unsloth.kernels import fp8
with case("fp8"):
    for bs in (64, 128):
        fp8.weight_dequant_kernel[1,](
            R(256, 256, dt=torch.float8_e4m3fn),
            R(4, 4, dt=torch.float32),
            R(256, 256, dt=torch.bfloat16),
            256,
            256,
            BLOCK_SIZE=bs,
        )
    for dt in DT:
        fp8.act_quant(R(16, 512, dt=dt))
    for M, N, K in ((64, 256, 512), (33, 250, 384)):
        fp8.w8a8_block_fp8_matmul_triton(
            R(M, K, dt=torch.float8_e4m3fn),
            R(N, K, dt=torch.float8_e4m3fn),
            R(M, -(-K // 128), dt=torch.float32),
            R(-(-N // 128), -(-K // 128), dt=torch.float32),
            [128, 128],
        )
G = U + "/kernels/moe"
package("unsloth.kernels.moe", G)
with case("import gg"):
    from unsloth.kernels.moe.grouped_gemm import interface as gi
with case("warn"):
    gi._FUSED_MUL_WARN = True
with case("tma"):
    gi.supports_tma = lambda: True
    gi.log_kernel_info = lambda *a, **k: None
for dt in (torch.bfloat16, torch.float16):
    for px, py, fm in (
        (False, False, False),
        (True, False, False),
        (False, True, False),
        (False, True, True),
    ):
        for tma in (False, True):
            for bs in (32, 64):
                E, topk, T, K, N = (8, 2, 64, 256, 128)
                X = R(T if px else T * topk, K, dt=dt)
                W = R(E, N, K, dt=dt)
                ms = torch.full((E,), T * topk // E, dtype=torch.int32)
                gidx = torch.arange(T * topk, dtype=torch.int32)
                kw = dict(
                    gather_indices=gidx,
                    permute_x=px,
                    permute_y=py,
                    BLOCK_SIZE_M=bs,
                    BLOCK_SIZE_N=bs,
                    BLOCK_SIZE_K=bs,
                )
                with case(f"gg fwd {dt} {px} {py} {fm} {tma} {bs}"):
                    gi.grouped_gemm_forward(
                        X,
                        W,
                        topk,
                        ms,
                        topk_weights=R(T * topk, dt=dt) if fm else None,
                        fuse_mul_post=fm,
                        use_tma_load_w=tma,
                        use_tma_load_x=tma and (not px),
                        use_tma_store=tma and (not py),
                        **kw,
                    )
                if fm:
                    continue
                dY = R(T * topk, N, dt=dt)
                with case(f"gg dX {dt} {px} {py} {tma} {bs}"):
                    gi.grouped_gemm_dX(
                        dY,
                        W,
                        gidx,
                        ms,
                        topk,
                        BLOCK_SIZE_M=bs,
                        BLOCK_SIZE_N=bs,
                        BLOCK_SIZE_K=bs,
                        permute_x=px,
                        permute_y=py,
                        use_tma_load_w=tma,
                        use_tma_load_dy=tma and (not py),
                        use_tma_store=tma and (not px),
                    )
                with case(f"gg dW {dt} {px} {py} {tma} {bs}"):
                    gi.grouped_gemm_dW(
                        X,
                        dY,
                        ms,
                        gidx,
                        topk,
                        BLOCK_SIZE_M=bs,
                        BLOCK_SIZE_N=bs,
                        BLOCK_SIZE_K=bs,
                        permute_x=px,
                        permute_y=py,
                        use_tma_load_x=tma and (not px),
                        use_tma_load_dy=tma and (not py),
                        use_tma_store=tma,
                    )
end()
