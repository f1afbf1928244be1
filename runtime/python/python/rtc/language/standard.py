"""Names of `triton.language.standard`: the functions of the kernel language."""

from .core import FUNCTIONS


def __getattr__(name):
    if name in FUNCTIONS["tl"]:
        return FUNCTIONS["tl"][name]
    raise AttributeError(f"rtc has no `triton.language.standard.{name}`")
