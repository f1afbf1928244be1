"""Where programs ask for Triton's cache; rtc keeps what it compiled in its own (`rtc cache`)."""

import base64

from .. import knobs


def default_cache_dir() -> str:
    """The directory that Triton would use."""
    return knobs.cache.dir


def triton_key() -> str:
    """What the results of the compiler depend on besides its input."""
    from ..compiler.compiler import triton_key
    return triton_key()


def _base32(key):
    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")


def __getattr__(name):
    raise AttributeError(f"rtc has no `triton.runtime.cache.{name}`: compiled kernels are kept in rtc's own cache, by content")
