"""Where programs ask for Triton's cache; rtc keeps what it compiled in its own (`rtc cache`)."""

from .. import knobs


def default_cache_dir():
    """The directory that Triton would use."""
    return knobs.cache.dir


def __getattr__(name):
    raise AttributeError(f"rtc has no `triton.runtime.cache.{name}`: compiled kernels are kept in rtc's own cache, by content")
