"""Notes the launches of a wrapper: which kernels they were of, and the arguments, for goldens and for judging."""

import contextlib
import json
import os
from typing import Any

from . import _arrays
from .language.core import KernelFunction
from .runtime.autotuner import Autotuner
from .runtime.jit import JITFunction


def functions_among(arguments):
    """The functions among arguments and in their tuples, each once, in the order in which specifications number them."""
    found = []

    def look(value):
        value = getattr(value, "value", value)
        if isinstance(value, (JITFunction, KernelFunction)):
            if not any(value is known for known in found):
                found.append(value)
        elif isinstance(value, (tuple, list)):
            for item in value:
                look(item)

    for argument in arguments:
        look(argument)
    return found


class Launch:
    """One launch: its kernel, grid, arguments and options, with copies of the tensors as they were before."""

    def __init__(self, kernel, compiled, grid, arguments, before, options):
        self.kernel, self.compiled, self.grid, self.arguments, self.before = kernel, compiled, grid, arguments, before
        self.options = options


class Recorder:
    """While it is active, launches are noted, but for the trials of a search; with `keep`, with copies of the tensors."""

    def __init__(self, keep=False):
        self.keep, self.launches, self._trials = keep, [], 0

    def __enter__(self):
        recorder, launch, self._tune = self, JITFunction._launch, Autotuner._tune

        def tune(*args, **kwargs):
            recorder._trials += 1
            try:
                return recorder._tune(*args, **kwargs)
            finally:
                recorder._trials -= 1

        # What `kernel[grid](..)`, `kernel.run(..)` and launches of compiled kernels come to.
        def noted(kernel, grid, warmup, args, kwargs=None, options=None):
            if recorder._trials:
                return launch(kernel, grid, warmup, args, kwargs, options)
            names = set(kernel.arg_names)
            own = {name: value for name, value in (kwargs or {}).items() if name in names}
            bound = kernel.signature.bind(*args, **own)
            bound.apply_defaults()
            arguments = dict(bound.arguments)
            before = {n: _whole(v) for n, v in arguments.items() if _arrays.is_array(v)} if recorder.keep and not warmup else {}
            sizes = grid(dict(arguments)) if callable(grid) else grid
            compiled = launch(kernel, sizes, warmup, args, kwargs, options)
            if not warmup:
                given = {name: value for name, value in (kwargs or {}).items() if name not in names}
                # `num_warps` may come from a keyword that names a parameter as well.
                known = {"num_warps": compiled.metadata.num_warps, **given, **(options or {})}
                recorder.launches.append(Launch(kernel, compiled, tuple(int(s) for s in sizes), arguments, before, known))
            return compiled

        def launcher(kernel: Any, grid: Any) -> Any:
            return lambda *args, **kwargs: kernel.run(*args, grid=grid, warmup=False, **kwargs)

        JITFunction._launch, Autotuner._tune, JITFunction.__getitem__ = noted, tune, launcher
        return self

    def __exit__(self, *exception):
        Autotuner._tune = self._tune
        del JITFunction._launch, JITFunction.__getitem__

    def has_dots(self):
        """Whether a kernel multiplies matrices."""
        return any("dot" in launch.compiled._ready.stage("tile") for launch in self._distinct())

    def blocks(self):
        """The numbers above 1 that kernels were given as constexprs."""
        found = set()
        for launch in self.launches:
            values = launch.compiled.rtc_metadata["constexprs"].values()
            found |= {v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 1}
        return sorted(found)

    def _distinct(self):
        return {id(launch.compiled): launch for launch in self.launches}.values()


@contextlib.contextmanager
def tuned_before(searches=True):
    """While it is active, kernels with `autotune` that were tuned keep their configuration for other sizes, too. Gives a
    dictionary that is filled with those: by name, as text. Without `searches`, others take the first that pruning leaves."""
    tune, taken = Autotuner._tune, {}

    def keep(tuner, key, args, nargs, kwargs):
        if not tuner.cache and searches:
            return tune(tuner, key, args, nargs, kwargs)
        configs, known = tuner._pruned(nargs, kwargs), next(iter(tuner.cache.values()), None)
        tuner.cache[key] = known if known in configs else configs[0]
        taken[tuner.base_fn.__name__] = str(known or tuner.cache[key])
        tuner.pre_hook({**nargs, **kwargs, **tuner.cache[key].all_kwargs()}, reset_only=True)

    Autotuner._tune = keep
    try:
        yield taken
    finally:
        Autotuner._tune = tune


def _whole(value):
    """The bytes from a tensor's first element to the end of its memory, as (elements, dtype, bytes)."""
    if _arrays.is_tensor(value):
        t = _arrays.torch()
        storage = value.untyped_storage()
        count = storage.nbytes() // value.element_size() - value.storage_offset()
        flat = t.empty(0, dtype=value.dtype, device=value.device).set_(storage, value.storage_offset(), (count,), (1,))
        return count, _arrays.dtype_name(value), _arrays.raw(flat)
    if not value.flags["C_CONTIGUOUS"]:
        raise ValueError("arrays of numpy that are not contiguous cannot be recorded")
    return value.size, _arrays.dtype_name(value), value.tobytes()


class Description:
    """A launch as files have it: modules (name, file, text), LAUNCH.json, tensors, and those that are expected."""

    def __init__(self, launch, expected=(), tolerances=()):
        functions = functions_among(launch.arguments.values())
        self.modules = [tuple(module) for module in launch.kernel._gathered(functions).modules]
        spec = json.loads(launch.compiled._ready.spec())
        constants = {arg["name"] for arg in spec["args"] if "constexpr" in arg}
        self.tensors, self.wanted = {}, {}
        arguments: dict[str, object] = {}
        names, bounds = {}, []
        for name, value in launch.arguments.items():
            if name in constants:
                continue
            if _arrays.is_array(value):
                own = names.setdefault(_arrays.address(value), name)
                arguments[name] = {"tensor": own}
                if own == name:
                    count, dtype, data = launch.before[name]
                    self.tensors[name] = ((count,), dtype, data)
                for (result, reference), bound in zip(expected, tolerances):
                    same = _arrays.address(result) == _arrays.address(value) and _arrays.is_contiguous(result)
                    if same and self.tensors[own][0] == (_arrays.size(result),):
                        self.wanted[own] = ((_arrays.size(result),), _arrays.dtype_name(result), _arrays.raw(reference))
                        bounds.append(bound)
            elif isinstance(value, (bool, int)) or hasattr(value, "__index__"):
                arguments[name] = value if isinstance(value, bool) else int(value)
            elif isinstance(value, float):
                arguments[name] = value
            else:
                raise ValueError(f"argument `{name}` of `{launch.kernel.__name__}` ({type(value).__name__}) cannot be recorded")
        self.launch = {"spec": spec, "grid": list(launch.grid), "args": arguments, "tensors": "inputs.safetensors"}
        if self.wanted:
            self.launch["golden"] = {"file": "expected.safetensors", "rtol": max(b[0] for b in bounds),
                                     "atol": max(b[1] for b in bounds)}


def write(folder, launches, expected, tolerances):
    """Writes launches as folders that `rtc run` and `rtc verify --golden` take. `expected`: pairs of a result and its
    reference, of which those are kept that a launch was given. Gives how many results are checked."""
    checked = 0
    for number, launch in enumerate(launches):
        made = Description(launch, expected, tolerances)
        place = os.path.join(folder, f"launch_{number}")
        os.makedirs(place, exist_ok=True)
        files = {f"{name}.py": text.encode() for name, _, text in made.modules}
        files["inputs.safetensors"] = _arrays.safetensors(made.tensors)
        if made.wanted:
            checked += len(made.wanted)
            files["expected.safetensors"] = _arrays.safetensors(made.wanted)
        files["LAUNCH.json"] = json.dumps(made.launch, indent=1).encode()
        for name, content in files.items():
            with open(os.path.join(place, name), "wb") as file:
                file.write(content)
    return checked
