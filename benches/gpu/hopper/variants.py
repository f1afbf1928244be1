"""The kernels that are built and timed: of each kind the structures that were fastest on an H200."""

from .attention import Attention
from .gemm import Gemm
from .gemm_tf32 import GemmTf32

DEFERRED = dict(defer=True, in_flight=0)
PLAIN = dict(overlap=False, pingpong=False)


def _products(suffix, **types):
    return [Gemm("deferred" + suffix, **DEFERRED, **types), Gemm("deferred_even" + suffix, even=True, **DEFERRED, **types)]


ALL = _products("_f16") + _products("_bf16", dtype="bf16", out="bf16") + [
    GemmTf32("tf32"),
    Attention("attention_128"), Attention("attention_128_causal", causal=True),
    Attention("attention_128_plain_causal", causal=True, **PLAIN),
    Attention("attention_64", d=64), Attention("attention_64_causal", d=64, causal=True),
    Attention("attention_64_wide", d=64, consumers=3, regs=(32, 160), **PLAIN),
]
