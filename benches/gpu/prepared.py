"""What a peer prepares for an entry of `plan.py`."""

from dataclasses import dataclass
from typing import Callable

COMPILERS = ("rtc", "triton")


class NotOffered(Exception):
    """A peer does not compute an entry; the message has the reason and begins with `not`."""


@dataclass
class Prepared:
    """The calls of a peer by their configurations, and what they should compute."""

    calls: list                 # (configuration, function)
    want: Callable
    tolerance: tuple
    output: object = None       # that the calls write; otherwise they return the result
    bytes: int = 0
    flops: int = 0
