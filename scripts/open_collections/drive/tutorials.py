"""Triton's tutorials: each module, then its wrappers at more shapes."""

from session import *  # noqa: F403

stand_in("tabulate", "matplotlib")
import triton.profiler

T = SOURCES + "/triton-cpu/python/tutorials/"


def load(f):
    s = importlib.util.spec_from_file_location("tut_" + f[:2], T + f)
    m = importlib.util.module_from_spec(s)
    sys.modules[s.name] = m
    with case(f, 120):
        s.loader.exec_module(m)
    return m


load("01-vector-add.py")
m = load("02-fused-softmax.py")
with case("02b"):
    m.softmax(torch.randn(128, 1024))
    m.softmax(torch.randn(64, 4096))
m = load("03-matrix-multiplication.py")
with case("03b"):
    m.matmul(R(512, 512), R(512, 512), "leaky_relu")
    m.matmul(R(512, 512, dt=torch.float8_e5m2), R(512, 512, dt=torch.float8_e5m2).T)
    m.matmul(R(500, 300), R(300, 200))
load("04-low-memory-dropout.py")
load("05-layer-norm.py")
m = load("06-fused-attention.py")
for d in (64, 128):
    for causal in (True, False):
        for ws in (False, True):
            for dt in (torch.float16, torch.bfloat16):
                with case(f"06 {d} {causal} {ws} {dt}"):
                    q, k, v = (R(1, 2, 256, d, dt=dt, g=True) for _ in range(3))
                    o = m.attention(q, k, v, causal, 0.5, ws)
                    o.backward(torch.randn_like(o))
        with case(f"06 fp8 {d} {causal}"):
            q, k, v = (R(1, 2, 256, d, dt=torch.float8_e5m2) for _ in range(3))
            m.attention(q, k, v.permute(0, 1, 3, 2).contiguous().permute(0, 1, 3, 2), causal, 0.5, False)
load("07-extern-functions.py")
load("08-grouped-gemm.py")
m = load("09-persistent-matmul.py")
for dt in (torch.float16, torch.float8_e4m3fn):
    a, b = (R(256, 128, dt=dt), R(256, 128, dt=dt))
    for n, ws in (
        ("matmul", 0),
        ("matmul_persistent", 0),
        ("matmul_tma", 1),
        ("matmul_tma_persistent", 1),
        ("matmul_descriptor_persistent", 1),
    ):
        for w in [False, True] if ws else [None]:
            with case(f"09 {n} {dt} {w}"):
                f = getattr(m, n)
                f(a, b.T) if not ws else f(a, b, w)
m = load("10-block-scaled-matmul.py")
for t in ("mxfp4", "nvfp4", "mxfp8", "mixed"):
    with case("10 " + t):
        r = m.initialize_block_scaled(512, 512, 512, t, compute_reference=False)
        r = r[:-1] if r[-1] is None else r
        a_desc, a_scale, b_desc, b_scale, rm, rn, rk, cfg = r[:8]
        m.block_scaled_matmul(a_desc, a_scale, b_desc, b_scale, torch.float16, 512, 512, 512, rm, rn, rk, cfg)
m = load("11-programmatic-dependent-launch.py")
for p in (True, False):
    with case("11"):
        m.add(torch.rand(4096), torch.rand(4096), p)
end()
