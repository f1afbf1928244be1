"""Names of `triton.language.extra.libdevice`."""

from ..core import FUNCTIONS

_KNOWN = {**FUNCTIONS["tl"], **FUNCTIONS.get("libdevice", {})}


def __getattr__(name):
    if name in _KNOWN:
        return _KNOWN[name]
    raise AttributeError(f"rtc has no `libdevice.{name}`")
