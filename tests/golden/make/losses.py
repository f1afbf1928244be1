"""Losses: cross entropy, forward and backward."""
import torch
from core import Const, NAMES, case, cases, cdiv, generator, poison, random, with_tail

IGNORED = -100


@cases
def make_cross_entropy():
    # Logits lie within +-20 of each other, so that the arguments of `exp` are between -40 and 0: it is then within 32 ulp,
    # 2e-6, of the exponential, and so are the sum, its logarithm (as a difference) and the probabilities.
    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
    for name, rows, n, pad, dtype, labels in (("1x1", 1, 1, 0, f32, [0]), ("3x127", 3, 127, 0, f32, [126, 0, 64]), ("2x128", 2, 128, 0, f32, [127, IGNORED]),
                                              ("3x129", 3, 129, 2, f32, [128, IGNORED, 127]), ("4x1000", 4, 1000, 7, f16, [999, 0, IGNORED, 512]), ("2x300_bf16", 2, 300, 0, bf16, [299, 17]),
                                              ("all_ignored", 2, 140, 0, f32, [IGNORED, IGNORED]), ("no_rows", 0, 100, 0, f32, [])):
        g = generator("cross entropy" + name)
        x = (random(g, (max(rows, 1), n + pad), torch.float64) * 4).clamp(-20, 20).to(dtype)
        v = x[:rows, :n].double()
        label = torch.tensor(labels + [0] * (rows == 0), dtype=torch.int64)
        lse = v.logsumexp(1)
        loss = torch.nn.functional.cross_entropy(v, label[:rows], ignore_index=IGNORED, reduction="none")
        case("cross_entropy", f"forward_{name}", "cross_entropy_forward_kernel", [rows],
             dict(logits_ptr="x", labels_ptr="label", loss_ptr="loss", lse_ptr="lse", stride=n + pad, n=n, IGNORED=Const(IGNORED), BLOCK=Const(128)),
             dict(x=x, label=label, loss=poison((rows + 4,), f32), lse=poison((rows + 4,), f32)),
             dict(loss=with_tail(loss.float(), (rows + 4,)), lse=with_tail(lse.float(), (rows + 4,))), {"bound": 4e-7})
        dloss = random(g, (max(rows, 1),), f32)
        v.requires_grad_()
        (torch.nn.functional.cross_entropy(v, label[:rows], ignore_index=IGNORED, reduction="none") * dloss[:rows].double()).sum().backward()
        dx = poison((rows + 1, n + 3), dtype)
        # The sum of exponentials comes rounded to fp32: at most 20 in size, so its error is 1e-6 of a probability. A result
        # of 16 bits is rounded once more and may be the neighbour of the one expected.
        bound = {f32: 4e-7, f16: 1e-3, bf16: 8e-3}[dtype]
        case("cross_entropy", f"backward_{name}", "cross_entropy_backward_kernel", [rows, cdiv(n, 128)],
             dict(logits_ptr="x", labels_ptr="label", lse_ptr="lse", dloss_ptr="dloss", dlogits_ptr="dx", stride=n + pad, dstride=n + 3, n=n, IGNORED=Const(IGNORED), BLOCK=Const(128)),
             dict(x=x, label=label, lse=with_tail(lse.detach().float(), (rows + 4,)), dloss=dloss, dx=dx), dict(dx=with_tail(v.grad.to(dtype), dx.shape)), {"bound": bound})
