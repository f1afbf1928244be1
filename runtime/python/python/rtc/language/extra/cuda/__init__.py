"""Names of `triton.language.extra.cuda`."""

from .. import libdevice  # noqa: F401
from ...core import FUNCTIONS


def __getattr__(name):
    known = FUNCTIONS.get("tl.extra.cuda", {})
    if name in known:
        return known[name]
    raise AttributeError(f"rtc has no `triton.language.extra.cuda.{name}`")
