"""A plugin of pytest: tests that import `triton` get this package, also in the processes that pytest-xdist starts."""

from . import _as_triton

_as_triton.install()
