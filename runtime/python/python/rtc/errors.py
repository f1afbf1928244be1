"""The root of this package's exceptions."""


class TritonError(Exception):
    """The root of all exceptions of this package."""
