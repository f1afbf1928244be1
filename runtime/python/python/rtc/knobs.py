"""Settings, as `triton.knobs` has them: attributes of groups; variables of the environment give their first values."""

import contextlib
import os
import sys
from collections.abc import Callable

from . import _rtc

_TRUE = ("1", "true", "on", "yes", "y")


def _flag(name, default=False):
    text = os.environ.get(name)
    return default if text is None else text.lower() in _TRUE


class _Group:
    """Settings that belong together."""

    def __init__(self, **values):
        object.__setattr__(self, "_names", list(values))
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name, value):
        if name not in self._names:
            raise AttributeError(f"rtc has no setting `triton.knobs...{name}`; it has {', '.join(self._names)}")
        object.__setattr__(self, name, value)
        self._changed()

    def __getattr__(self, name):
        raise AttributeError(f"rtc has no setting `triton.knobs...{name}`")

    def _changed(self):
        pass

    @contextlib.contextmanager
    def scope(self):
        """Restores the settings at the end."""
        saved = {name: getattr(self, name) for name in self._names}
        try:
            yield self
        finally:
            for name, value in saved.items():
                setattr(self, name, value)


class HookChain:
    """Several hooks that are called in turn."""

    def __init__(self, reversed=False):
        self.calls, self.reversed = [], reversed

    def add(self, hook: Callable[..., object]) -> None:
        """Adds a hook, if it is not there."""
        if hook not in self.calls:
            self.calls.append(hook)
        runtime._changed()

    def remove(self, hook: Callable[..., object]) -> None:
        """Takes a hook out, if it is there."""
        if hook in self.calls:
            self.calls.remove(hook)
        runtime._changed()

    def __call__(self, *args, **kwargs):
        """Calls the hooks, the one that was added first first, or last."""
        for call in self.calls if not self.reversed else reversed(self.calls):
            call(*args, **kwargs)


class _Runtime(_Group):

    def _changed(self):
        active = [h for h in (self.launch_enter_hook, self.launch_exit_hook)
                  if h is not None and not (isinstance(h, HookChain) and not h.calls)]
        _rtc.set_hooked(bool(active))


runtime = _Runtime(debug=_flag("TRITON_DEBUG"), interpret=_flag("TRITON_INTERPRET"), launch_enter_hook=HookChain(),
                   launch_exit_hook=HookChain(reversed=True), jit_cache_hook=None, jit_post_compile_hook=None,
                   kernel_load_start_hook=HookChain(), kernel_load_end_hook=HookChain(reversed=True),
                   override_arch=os.environ.get("TRITON_OVERRIDE_ARCH"), add_stages_inspection_hook=None)
language = _Group(default_fp_fusion=_flag("TRITON_DEFAULT_FP_FUSION", True), fp32_default=os.environ.get("TRITON_F32_DEFAULT"))
compilation = _Group(always_compile=_flag("TRITON_ALWAYS_COMPILE"), use_ir_loc=None, enable_asan=False,
                     disable_line_info=_flag("TRITON_DISABLE_LINE_INFO"), store_binary_only=False, override=False,
                     dump_ir=False, instrumentation_mode="", listener=None, enable_experimental_consan=False)
autotuning = _Group(cache=_flag("TRITON_CACHE_AUTOTUNING"), print=_flag("TRITON_PRINT_AUTOTUNING"),
                    cluster=os.environ.get("RTC_AUTOTUNE_CLUSTER") or None)
cache = _Group(home_dir=os.environ.get("TRITON_HOME", os.path.expanduser("~")),
               dir=os.environ.get("TRITON_CACHE_DIR", os.path.expanduser("~/.triton/cache")))
nvidia = _Group(disable_ptxas_opt=False, mock_ptx_version=None, use_no_compile_launcher=False)
amd = _Group(use_buffer_ops=False)
proton = _Group(disable=True)
build = _Group(impl=None)
refresh_knobs = lambda: None


def report_finding(kernel: str, text: str) -> None:
    """What the emulator or the interpreter found in a launch, without ending it."""
    sys.stderr.write(f"warning: kernel `{kernel}`: {text}\n")
