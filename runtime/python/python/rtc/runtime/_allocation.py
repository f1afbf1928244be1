"""Allocators of scratch memory. rtc allocates it by itself; what a program sets is kept and not asked."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any


class NullAllocator:
    """The allocator of a program that has set none."""

    def __call__(self, size, alignment, stream):
        raise RuntimeError("rtc allocates scratch memory by itself; no allocator is set")


_NULL_ALLOCATOR = NullAllocator()
_allocator: ContextVar[Callable[..., Any]] = ContextVar("_allocator", default=_NULL_ALLOCATOR)
_profile_allocator = ContextVar("_profile_allocator", default=_NULL_ALLOCATOR)


def set_allocator(allocator: Callable[..., Any]) -> None:
    """Sets the allocator of scratch memory."""
    _allocator.set(allocator)


def set_profile_allocator(allocator):
    """Sets the allocator of memory for profiles."""
    _profile_allocator.set(allocator)
