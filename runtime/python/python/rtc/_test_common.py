"""The module `test_common` of tests of operators: random inputs and comparisons by dtype. `tensor.npu()` puts a tensor on the
device at hand. Under `python -m rtc`, `import test_common` gives this module unless there is another."""

import numpy as np

from . import _arrays
from ._compare import Comparison

RULES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-4), "bfloat16": (1e-2, 1e-2)}


def generate_numpy(shape, dtype):
    """Random numbers of a dtype."""
    random = np.random.default_rng()
    if dtype in ("float16", "float32", "float64", "bfloat16"):
        return random.standard_normal(shape).astype("float32" if dtype == "bfloat16" else dtype)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(np.bool_)
    info = np.iinfo(dtype)
    # The magnitude of the least integer does not fit the type.
    return random.integers(max(info.min + 1, -2000), min(info.max, 2000), shape).astype(dtype)


def validate_cmp(dtype, actual, expected):
    """Raises an AssertionError unless results agree as their dtype demands: floats within a tolerance, all others exactly."""
    rtol, atol = RULES.get(dtype, (0.0, 0.0))
    found = Comparison(actual, expected, rtol, atol)
    if not found.correct:
        raise AssertionError(f"{found.describe()}\n{found.picture()}")


def _npu(tensor, *args, **kwargs):
    torch = _arrays.torch()
    return tensor.to("cuda" if torch.cuda.is_available() else "cpu")


if _arrays.torch() is not None and not hasattr(_arrays.torch().Tensor, "npu"):
    _arrays.torch().Tensor.npu = _npu
