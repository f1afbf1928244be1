import numpy as np
import triton
from softmax import reference as reference_fn
from softmax import softmax_kernel
from softmax_checked import get_inputs


def kernel_fn(x):
    n_rows, n_cols = x.shape
    x = np.ascontiguousarray(x)
    y = np.empty_like(x)
    softmax_kernel[(n_rows,)](x, y, n_cols, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return y
