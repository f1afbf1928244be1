"""Triton's compiled part, as far as programs use it: `libtriton.nvidia.cublas`."""


def __getattr__(name):
    raise AttributeError(f"rtc has no `triton._C.{name}`")
