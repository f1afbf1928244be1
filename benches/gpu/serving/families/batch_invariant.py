"""Operations whose results do not depend on the other rows of a batch."""

import torch
from case import case

NAME = "vllm.model_executor.determinism.batch_invariant"


@case("{kind} {m}x{n}x{k} {dtype}", kind__m__n__k__dtype=[
    ("product", 64, 4096, 4096, "bfloat16"), ("product", 4096, 4096, 4096, "bfloat16"), ("product", 2048, 14336, 4096, "bfloat16"),
    ("product", 2048, 4096, 4096, "float16"), ("by descriptors", 4096, 4096, 4096, "bfloat16"), ("by descriptors", 64, 4096, 4096, "bfloat16")])
def product(make, kind, m, n, k, dtype):
    """`matmul_persistent` and `matmul_descriptor_persistent`."""
    module = make.module(NAME)
    m, n, k = make.least(m, 40), make.least(n, 256), make.least(k, 256)
    dtype = getattr(torch, dtype)
    a, b = make.randn(m, k, dtype=dtype), make.randn(n, k, dtype=dtype).t()
    if kind == "by descriptors":
        make.module("vllm.triton_utils.allocation").set_triton_allocator(torch.device(make.device))
    return lambda: (module.matmul_persistent if kind == "product" else module.matmul_descriptor_persistent)(a, b)


@case("batches {batch} of {m}x{n}x{k}", batch__m__n__k=[(32, 512, 512, 128), (16, 64, 512, 128)])
def batches(make, batch, m, n, k):
    """`bmm_batch_invariant`."""
    module = make.module(NAME)
    batch, m = make.least(batch, 2), make.least(m, 40)
    a, b = make.randn(batch, m, k), make.randn(batch, k, make.least(n, 64))
    return lambda: module.bmm_batch_invariant(a, b)


@case("{kind} {rows} x {columns}", kind__rows__columns=[
    ("softmax", 64, 128256), ("softmax", 4096, 4096), ("log softmax", 64, 128256), ("rms norm", 4096, 4096), ("rms norm", 64, 8192), ("mean", 4096, 4096)])
def rows(make, kind, rows, columns):
    """Softmax, norm and mean of rows."""
    module = make.module(NAME)
    x = make.randn(make.least(rows, 6), make.least(columns, 300))
    weight = make.randn(x.shape[1])
    calls = {"softmax": lambda: module.softmax(x), "log softmax": lambda: module.log_softmax(x), "mean": lambda: module.mean_dim(x, 1),
             "rms norm": lambda: module.rms_norm_batch_invariant(x, weight)}
    return calls[kind]
