"""Runs at the start of the Python processes that `python -m rtc` starts: they import rtc as `triton`, too."""

import importlib.util
import os
import sys

_own = os.path.dirname(os.path.abspath(__file__))
if os.environ.get("RTC_AS_TRITON") == "1":
    try:
        from rtc import _as_triton
        _as_triton.install()
    except ImportError:
        pass
# The module of this name that stands behind this one.
_path = [folder for folder in sys.path if os.path.abspath(folder or ".") != _own]
_spec = importlib.machinery.PathFinder.find_spec("sitecustomize", _path)
if _spec is not None and _spec.loader is not None:
    _spec.loader.exec_module(importlib.util.module_from_spec(_spec))
