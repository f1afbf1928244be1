"""attorch: multi-head attention at the head sizes that its tests leave out."""

from session import *  # noqa: F403

sys.path.insert(0, SOURCES + "/attorch")
from attorch.multi_head_attention_kernels import _attention

for dt in (torch.float16, torch.bfloat16):
    for d in (16, 32, 64, 128):
        for causal in (False, True):
            for sp in (False, True):
                with case(f"mha {dt} {d} {causal} {sp}"):
                    q, k, v = (torch.randn(2, 4, 256, d).to(dt).requires_grad_() for _ in range(3))
                    o = _attention.apply(q, k, v, causal, 0.3, sp)
                    o.backward(torch.randn_like(o))
end()
