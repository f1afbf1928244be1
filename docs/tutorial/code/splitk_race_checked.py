from matmul import inputs
from splitk_race import splitk

kernel_fn = splitk


def reference_fn(a, b):
    return a.astype("float32") @ b.astype("float32")


def get_inputs():
    return inputs(48, 40, 300)
