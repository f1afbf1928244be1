"""Memory without content is filled, so that what a kernel leaves out is found."""

import contextlib
import functools
import sys
import warnings

from . import _arrays


@contextlib.contextmanager
def poisoned():
    """Fills memory that is allocated without content with NaN or the largest integer. numpy's functions that allocate take the
    types of `_narrow` meanwhile, so that wrappers that say `x.dtype` run with them, too."""
    t = _arrays.torch()
    np = sys.modules.get("numpy")
    saved = {}
    if np is not None:
        from ._narrow import allocated

        def filled(name, make):
            @functools.wraps(make)
            def made(*args, **kwargs):
                array = allocated(name, make, args, kwargs)
                if not name.startswith("empty"):
                    return array
                if array.dtype.kind == "f" or "float" in str(array.dtype):
                    array.fill(np.nan)
                elif array.dtype.kind in "iu":
                    array.fill(np.iinfo(array.dtype).max)
                return array
            return made
        saved = {name: getattr(np, name) for name in ("empty", "empty_like", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like")}
        for name, make in saved.items():
            setattr(np, name, filled(name, make))
    before = None
    if t is not None:
        before = t.are_deterministic_algorithms_enabled(), t.is_deterministic_algorithms_warn_only_enabled()
        fill = t.utils.deterministic.fill_uninitialized_memory
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            t.use_deterministic_algorithms(True, warn_only=True)
        t.utils.deterministic.fill_uninitialized_memory = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, make in saved.items():
            setattr(np, name, make)
        if before is not None:
            t.use_deterministic_algorithms(before[0], warn_only=before[1])
            t.utils.deterministic.fill_uninitialized_memory = fill
