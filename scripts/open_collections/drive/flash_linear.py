"""flash-attention's Triton linear layer with its activations. Its own file: it needs stand-ins for modules gone from Triton."""

from session import *  # noqa: F403

F = SOURCES + "/flash-attention/"
package("flash_attn", F + "flash_attn")
stand_in("flash_attn_2_cuda", "fused_dense_lib", "dropout_layer_norm", "flash_attn_3", "aiter")


def R(*s, dt=torch.float16, g=True):
    return torch.randn(*s, device="cuda").to(dt).requires_grad_(g)


po = package("triton.ops", "/nowhere")
mp = package("triton.ops.matmul_perf_model", "/nowhere")
mp.early_config_prune = lambda c, *a, **k: c
mp.estimate_matmul_time = lambda *a, **k: 1.0
with case("import linear"):
    from flash_attn.ops.triton import linear as L
for dt in (torch.float16, torch.bfloat16):
    for act in ("id", "gelu", "gelu_approx", "squared_relu"):
        for M, K, N in ((128, 256, 512), (33, 100, 70)):
            for bias in (True, False):
                with case(f"linear {act} {dt}"):
                    L.triton_linear_act(
                        R(M, K, dt=dt, g=False),
                        R(N, K, dt=dt, g=False),
                        R(N, dt=dt, g=False) if bias else None,
                        act,
                        save_act_input=bias,
                    )
            with case(f"dgrad {act}"):
                L.triton_dgrad_act(R(M, K, dt=dt, g=False), R(K, N, dt=dt, g=False), act, R(M, N, dt=dt, g=False))
end()
