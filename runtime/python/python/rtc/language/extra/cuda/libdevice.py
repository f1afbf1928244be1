"""Names of `triton.language.extra.cuda.libdevice`."""

from ..libdevice import __getattr__  # noqa: F401
