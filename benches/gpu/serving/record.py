"""Keeps the launches that a library makes, with their arguments, so that each can be repeated and timed alone."""

import functools
import time

import torch

#: Elements of a tensor that are compared, at most, and launches of one kernel in a case.
SAMPLED, REPEATED = 1 << 20, 2


def tensors_of(values, name=""):
    """The tensors among arguments, those of descriptors and tuples too, by name."""
    for key, value in values:
        key = f"{name}{key}"
        base = getattr(value, "base", value)
        if isinstance(base, torch.Tensor) and not isinstance(value, torch.Tensor):
            yield key, base
        elif isinstance(value, torch.Tensor):
            yield key, value
        elif isinstance(value, tuple | list):
            yield from tensors_of(enumerate(value), f"{key}.")


def sampled(tensor):
    """Some elements of a tensor, as plain numbers."""
    tensor = tensor.detach()
    if not tensor.is_contiguous():
        tensor = tensor.contiguous() if tensor.numel() <= SAMPLED * 16 else tensor.reshape(-1)
    flat = tensor.view(-1)
    if flat.numel() > SAMPLED:
        step = flat.numel() / SAMPLED
        at = (torch.arange(SAMPLED, device=flat.device, dtype=torch.float64) * step).long()
        at = (at + (at * 7919) % max(int(step), 1)).clamp(max=flat.numel() - 1)
        flat = flat.view(torch.uint8)[at] if flat.element_size() == 1 else flat[at]
        if tensor.element_size() == 1:
            flat = flat.view(tensor.dtype)
    return flat.clone()


def bits(tensor):
    """The bytes, to compare without regard to NaN."""
    return tensor.view(torch.uint8)


def kernel_name(kernel):
    """The name of the function under autotuners and heuristics; of a method, with that of its class."""
    while hasattr(kernel, "configs") or hasattr(kernel, "values") or not hasattr(kernel, "arg_names"):
        kernel = kernel.fn
    return getattr(kernel, "fn", kernel).__qualname__


def names_of(kernel):
    """The names of its parameters."""
    while not hasattr(kernel, "arg_names") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return list(getattr(kernel, "arg_names", []))


class Launch:
    """A launch that can be repeated."""

    def __init__(self, kernel, name, again, named):
        self.kernel, self.name, self.again = kernel, name, again
        self.tensors = dict(tensors_of(named.items()))
        self.error, self.seconds, self.written, self.kept = None, 0.0, {}, {}

    def restore(self):
        """Integers that it writes become what they were before."""
        for tensor, before in self.kept.values():
            tensor.copy_(before)


class Recorder:
    """Sees all launches of a process; `watch` keeps those of a call."""

    def __init__(self, synchronize, only_compile):
        self.synchronize, self.only_compile, self.compared, self.launches, self.busy = synchronize, only_compile, True, None, False
        self.counts, self.around, self.also = {}, lambda begins: None, {}

    def install(self):
        """From now on every launch comes by here."""
        from triton.runtime import autotuner, jit
        classes = [jit.JITFunction, autotuner.Autotuner, autotuner.Heuristics]
        try:
            from triton.runtime.interpreter import InterpretedFunction
            classes.append(InterpretedFunction)
        except ImportError:
            pass
        for cls in classes:
            self.replace(cls, cls.__getitem__)

    def replace(self, cls, original):
        """Has launches of this kind of kernel come by."""
        recorder = self

        def launcher(kernel, grid):
            if recorder.launches is None or recorder.busy:
                return original(kernel, grid)

            def launch(*args, **kwargs):
                run = functools.partial(kernel.run, grid=grid, warmup=True) if recorder.only_compile else original(kernel, grid)
                return recorder.keep(kernel, lambda: run(*args, **kwargs), args, kwargs)
            return launch
        cls.__getitem__ = launcher

    def watch(self, call):
        """The launches that a call makes, and the exception in its own code, if any."""
        self.launches, self.counts = [], {}
        try:
            call()
        except Exception as error:  # the case has failed, launches before stay
            return self.launches, error
        finally:
            launches, self.launches = self.launches, None
        return launches, None

    def keep(self, kernel, again, args, kwargs):
        """Makes a launch and keeps it, and what it writes."""
        name = kernel_name(kernel)
        self.counts[name] = self.counts.get(name, 0) + 1
        if self.counts[name] > REPEATED:
            return again()
        launch = Launch(kernel, name, again, dict(zip(names_of(kernel), args)) | kwargs | self.also)
        self.launches.append(launch)
        self.busy = True
        try:
            before = {key: sampled(t) for key, t in launch.tensors.items()} if self.compared else {}
            whole = {key: t.clone() for key, t in launch.tensors.items() if not t.is_floating_point() and t.numel() <= 1 << 24 and not self.only_compile}
            begun = time.perf_counter()
            self.around(True)
            result = again()
            self.around(False)
            launch.seconds = time.perf_counter() - begun
            self.synchronize()
            for key, t in launch.tensors.items() if self.compared else ():
                after = sampled(t)
                if not torch.equal(bits(after), bits(before[key])):
                    launch.written[key] = after
                    if key in whole:
                        launch.kept[key] = (t, whole[key])
        except Exception as error:  # reported in its row; the next launches go on with what is there
            launch.error, result = error, None
        finally:
            self.busy = False
            self.around(False)
        return result
