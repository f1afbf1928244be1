"""Products of matrices."""
import torch
from core import Const, NAMES, case, cases, cdiv, generator, poison, random, with_tail


@cases
def make_matmul():
    plain = (32, 32, 32)
    cases = [("fp16_1x1x1", torch.float16, 1, 1, 1, plain, {}), ("fp16_31x33x31", torch.float16, 31, 33, 31, plain, {}), ("fp16_32x32x32", torch.float16, 32, 32, 32, plain, {}), ("fp16_70x50x40", torch.float16, 70, 50, 40, plain, {}),
             ("fp16_64x32x16_tiles", torch.float16, 65, 50, 33, (64, 32, 16), {}), ("fp16_no_k", torch.float16, 20, 20, 0, plain, {}), ("fp16_no_rows", torch.float16, 0, 20, 20, plain, {}),
             ("fp16_transposed_b", torch.float16, 40, 33, 50, plain, {"b_transposed": True}), ("fp16_odd_strides", torch.float16, 33, 35, 37, plain, {"pad": 3}), ("fp16_8_warps", torch.float16, 70, 70, 40, (64, 64, 32), {"warps": 8}),
             ("bf16_70x50x40", torch.bfloat16, 70, 50, 40, plain, {}), ("tf32_70x50x40", torch.float32, 70, 50, 40, plain, {}), ("tf32_33x31x17", torch.float32, 33, 31, 17, (32, 32, 16), {}),
             ("ieee_33x31x17", torch.float32, 33, 31, 17, (32, 32, 16), {"precision": "ieee"}), ("int8_70x50x40", torch.int8, 70, 50, 40, plain, {}), ("int8_33x31x65", torch.int8, 33, 31, 65, (32, 32, 64), {})]
    for name, dtype, m, n, k, (bm, bn, bk), extra in cases:
        g = generator("matmul" + name)
        pad = extra.get("pad", 0)
        a, b = random(g, (m, k + pad), dtype), random(g, (n, k + pad) if extra.get("b_transposed") else (k, n + pad), dtype)
        precision = extra.get("precision", "tf32")
        if dtype == torch.float32 and precision == "tf32":
            # Values that tf32 holds exactly: the result then depends on the order of sums alone.
            a, b = ((t.view(torch.int32) & ~0x1FFF).view(torch.float32) for t in (a, b))
        if dtype == torch.float16: a, b = a * 0.5, b * 0.5
        av, bv = a[:, :k], b[:, :k].T if extra.get("b_transposed") else b[:, :n]
        stride_bk, stride_bn = (1, b.shape[1]) if extra.get("b_transposed") else (b.shape[1], 1)
        if dtype == torch.int8:
            want, acc, out_dtype = (av.long() @ bv.long()).int(), "i32", torch.int32
        else:
            out_dtype, acc = dtype, "fp32"
            want = (av.double() @ bv.double()).to(out_dtype)
        c = poison((m + 1, n + 5), out_dtype)
        bound = {torch.int32: {"exact": True}, torch.float16: {"bound": 1e-3}, torch.bfloat16: {"bound": 8e-3}, torch.float32: {"bound": 3e-6}}[out_dtype]
        case("matmul", name, "matmul_kernel", [cdiv(m, bm) * cdiv(n, bn)],
             dict(a_ptr="a", b_ptr="b", c_ptr="c", M=m, N=n, K=k, stride_am=a.shape[1], stride_ak=1, stride_bk=stride_bk, stride_bn=stride_bn, stride_cm=c.shape[1], stride_cn=1,
                  BLOCK_M=Const(bm), BLOCK_N=Const(bn), BLOCK_K=Const(bk), GROUP_M=Const(2), PRECISION=Const(precision), ACC=Const({"dtype": acc})),
             dict(a=a, b=b, c=c), dict(c=with_tail(want, c.shape)), bound, options={"num_warps": extra.get("warps", 4)})
