"""Functions of libraries of the device."""

from . import cuda, libdevice

__all__ = ["cuda", "libdevice"]
