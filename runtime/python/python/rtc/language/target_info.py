"""Names of `triton.language.target_info`."""

from .core import FUNCTIONS


def __getattr__(name):
    known = FUNCTIONS.get("tl.target_info", {})
    if name in known:
        return known[name]
    raise AttributeError(f"rtc has no `triton.language.target_info.{name}`")
