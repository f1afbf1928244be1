"""`autotune` and `heuristics`: values of constexprs that are found at a launch."""

import builtins
import functools
import inspect
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import _advice, _rtc, knobs
from ..tools.tensor_descriptor import TensorDescriptor
from .errors import AutotunerError, CompileTimeAssertionFailure, OutOfResources, PTXASError
from .jit import JITFunction, KernelInterface, MockTensor

# A first look at a configuration takes so many milliseconds; one this many times as slow as the fastest is not looked at again.
_LOOK_MS = 10
_NEAR = 1.2


class Config:
    """Values for constexprs, and options of a launch."""

    def __init__(self, kwargs: Mapping[str, Any], num_warps: int = 4, num_stages: int = 3, num_ctas: int = 1,
                 maxnreg: int | None = None, pre_hook: Callable[..., object] | None = None,
                 ir_override: str | None = None) -> None:
        self.kwargs, self.num_warps, self.num_stages, self.num_ctas = kwargs, num_warps, num_stages, num_ctas
        self.maxnreg, self.pre_hook, self.ir_override = maxnreg, pre_hook, ir_override

    def __setstate__(self, state):
        self.__init__(**{"kwargs": {}, **state})  # type: ignore[misc]

    def _options(self):
        options = {"num_warps": self.num_warps, "num_ctas": self.num_ctas, "num_stages": self.num_stages,
                   "maxnreg": self.maxnreg, "ir_override": self.ir_override}
        return {name: value for name, value in options.items() if value is not None}

    def all_kwargs(self) -> dict[str, Any]:
        """All of it as keyword arguments of a launch."""
        return {**self.kwargs, **self._options()}

    def __str__(self):
        parts = [f"{name}: {value}" for name, value in self.kwargs.items()]
        parts += [f"{name}: {getattr(self, name)}" for name in ("num_warps", "num_ctas", "num_stages", "maxnreg")]
        return ", ".join(parts)

    def __hash__(self):
        return hash((*self.all_kwargs().items(), self.pre_hook))

    def __eq__(self, other):
        mine = (*self.all_kwargs().items(), self.pre_hook)
        return isinstance(other, Config) and mine == (*other.all_kwargs().items(), other.pre_hook)


class Autotuner(_rtc.Tuned, KernelInterface):
    """A kernel whose configuration is the fastest of several, found for each key."""

    def __init__(self, fn, arg_names, configs, key, reset_to_zero, restore_value, pre_hook=None, post_hook=None,
                 prune_configs_by=None, warmup=None, rep=None, use_cuda_graph=False, do_bench=None, cache_results=False):
        self.configs = configs or [Config({})]
        self.keys, self.cache, self.arg_names = key, {}, arg_names
        self.reset_to_zero, self.restore_value = list(reset_to_zero or []), list(restore_value or [])
        self.restore_copies = {}
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        self.pre_hook = pre_hook or self._reset
        self.post_hook = post_hook or self._restore
        prune = prune_configs_by or {}
        self.perf_model, self.configs_top_k = prune.get("perf_model"), prune.get("top_k", 1.0)
        self.early_config_prune = prune.get("early_config_prune")
        self.fn = self.base_fn = fn
        while not inspect.isfunction(self.base_fn):
            self.base_fn = self.base_fn.fn
        self.__name__, self.__doc__, self.__module__ = self.base_fn.__name__, self.base_fn.__doc__, self.base_fn.__module__
        self._do_bench, self.num_warmups, self.num_reps = do_bench, warmup, rep
        self.use_cuda_graph, self.cache_results = use_cuda_graph, cache_results or knobs.autotuning.cache
        self.best_config = self.configs_timings = self.bench_time = None
        self._lock, self._trial = threading.RLock(), None
        self._has_hooks = pre_hook is not None or post_hook is not None

    def __deepcopy__(self, memo):
        return self

    # ---- hooks

    def _reset(self, nargs, reset_only=False):
        for name in self.reset_to_zero:
            value = nargs[name]
            value.zero_() if hasattr(value, "zero_") else value.fill(0)
        if not reset_only:
            self.restore_copies = {name: _copy(nargs[name]) for name in self.restore_value}

    def _restore(self, nargs, exception):
        for name, saved in self.restore_copies.items():
            value = nargs[name]
            value.copy_(saved) if hasattr(value, "copy_") else value.__setitem__(..., saved)
        self.restore_copies = {}

    @property
    def _is_bench_chosen(self):
        return self.use_cuda_graph or any(own is not None for own in (self._do_bench, self.num_warmups, self.num_reps))

    @property
    def do_bench(self) -> Callable[..., Any]:
        """The function that times a configuration: it takes a call and quantiles, and gives milliseconds."""
        if self._do_bench is not None:
            return self._do_bench
        from .. import testing
        given = {n: v for n, v in (("warmup", self.num_warmups), ("rep", self.num_reps)) if v is not None}
        if self.use_cuda_graph and testing.has_gpu():
            given.pop("warmup", None)
            return lambda call, quantiles: testing.do_bench_cudagraph(call, quantiles=quantiles, **given)
        return lambda call, quantiles: testing.do_bench(call, quantiles=quantiles, **given)

    # ---- tuning

    def _bench(self, args, nargs, config, meta, do_bench):
        conflicts = meta.keys() & config.kwargs.keys()
        if conflicts:
            raise ValueError(f"Conflicting meta-parameters: {', '.join(conflicts)}. "
                             "Make sure that you don't re-define auto-tuned symbols.")
        current = {**meta, **config.all_kwargs()}
        full = {**nargs, **current}

        def call():
            if config.pre_hook:
                config.pre_hook(full)
            self.pre_hook(full)
            try:
                self._trial = self.fn.run(*args, **current)
            except Exception as error:
                try:
                    self.post_hook(full, exception=error)
                finally:
                    raise
            self.post_hook(full, exception=None)

        try:
            return do_bench(call, quantiles=(0.5, 0.2, 0.8))
        except (OutOfResources, CompileTimeAssertionFailure, PTXASError) as error:
            if knobs.autotuning.print:
                print(f"Autotuning failed with {error}")
            return [float("inf")] * 3

    def _tuning_key(self, nargs, kwargs):
        every = {**nargs, **kwargs}
        named = {name: value for name, value in every.items() if name in self.arg_names}
        key = [named[name] for name in self.keys if name in named]
        return tuple(key + [str(value.dtype) for value in named.values() if hasattr(value, "dtype")])

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launches with the best configuration, found first if the key is new."""
        nargs = dict(zip(self.arg_names, args))
        config, key = self.configs[0], None
        if len(self.configs) > 1:
            key = self._tuning_key(nargs, kwargs)
            if key not in self.cache:
                # Other threads that launch the kernel wait for what is found.
                with self._lock:
                    if key not in self.cache:
                        self._tune(key, args, nargs, kwargs)
            config = self.cache[key]
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook({**nargs, **kwargs, **config.all_kwargs()})
        launched = self.fn.run(*args, **kwargs, **config.all_kwargs())
        self._keep(args, kwargs, key, config)
        return launched

    def _keep(self, args, kwargs, key, config):
        """Lets launches like this one pass by Python."""
        own_run, is_known = type(self).run is Autotuner.run, type(self.fn) in (JITFunction, Heuristics)
        if own_run and is_known and config.pre_hook is None and len(args) <= len(self.arg_names):
            given = {name: value for name, value in kwargs.items() if name not in ("grid", "warmup")}
            in_key = [name in self.keys for name in (*self.arg_names[:len(args)], *given)]
            self._remember(self.fn, (args, given), in_key, (key, config), config.all_kwargs())

    def _compile(self, configs, args, nargs, kwargs):
        """Compiles the configurations at the same time. What goes wrong is passed over: the trial meets it again."""
        kernel = self.fn
        while isinstance(kernel, Heuristics):
            kernel = kernel.fn
        if len(configs) < 2 or not isinstance(kernel, JITFunction):
            return
        # The block of a descriptor is part of what is compiled, and hooks set it.
        has_descriptors = any(isinstance(value, TensorDescriptor) for value in [*nargs.values(), *kwargs.values()])

        def calls():
            for config in configs:
                given = {**kwargs, **config.all_kwargs()}
                try:
                    if config.pre_hook and has_descriptors:
                        config.pre_hook({**nargs, **given})
                    fn = self.fn
                    while isinstance(fn, Heuristics):
                        given, fn = fn._computed(args, given), fn.fn
                except Exception:
                    continue
                yield tuple(args), {name: value for name, value in given.items() if name not in ("grid", "warmup")}

        kernel._prepare(calls())

    def _tune(self, key, args, nargs, kwargs):
        configs = self._pruned(nargs, kwargs)
        began = time.time()
        timings = self._timings_of_cluster(configs, args, nargs, kwargs) if knobs.autotuning.cluster else {}
        left = [config for config in configs if config not in timings]
        if left:
            self._compile(left, args, nargs, kwargs)
            timings |= self._timings(left, lambda config, do_bench: self._bench(args, nargs, config, kwargs, do_bench))
        if knobs.autotuning.print:
            for config in configs:
                print(f"Autotuning kernel {self.base_fn.__name__} with config {config}: {timings[config]}")
        self.bench_time = time.time() - began
        if not self._has_hooks and not any(config.pre_hook for config in configs) and self._trial is not None:
            _advice.on_tuning(self._trial, [*self.reset_to_zero, *self.restore_value])
        self._trial = None
        best = builtins.min(timings, key=lambda config: _listed(timings[config]))
        self.configs_timings = timings
        self.pre_hook({**nargs, **kwargs, **best.all_kwargs()}, reset_only=True)
        self.cache[key] = best
        if knobs.autotuning.print:
            print(f"Triton autotuning for function {self.base_fn.__name__},\nwith key as {key},\nfinished after "
                  f"{self.bench_time:.2f}s,\nbest config selected: {best};")

    def _timings(self, configs, bench):
        """The times of all configurations. Without a timing function, a first look at each tells those that are far
        from the fastest, and only the others are timed as `do_bench` does."""
        from .. import testing
        if self._is_bench_chosen or len(configs) < 3 or not testing.has_gpu():
            return {config: bench(config, self.do_bench) for config in configs}
        look = functools.partial(testing.do_bench, warmup=_LOOK_MS / 5, rep=_LOOK_MS)
        timings = {config: bench(config, look) for config in configs}
        limit = builtins.min(_listed(times)[0] for times in timings.values()) * _NEAR
        return {config: bench(config, self.do_bench) if times[0] <= limit else times for config, times in timings.items()}

    def _timings_of_cluster(self, configs, args, nargs, kwargs):
        """The times that machines of a Ray cluster found; those of other configurations are found here."""
        from .. import _autotune_cluster
        return _autotune_cluster.timings(self, knobs.autotuning.cluster, configs, args, nargs, kwargs)

    def _pruned(self, nargs, kwargs):
        """The configurations that are worth a try."""
        configs = self.configs
        if self.early_config_prune:
            configs = self.early_config_prune(configs, nargs, **kwargs)
            if not configs:
                raise AutotunerError("No valid autotuner configs after pruning. `early_config_prune` should return at least one config.")
        if self.perf_model:
            top = self.configs_top_k
            if isinstance(top, float) and top <= 1.0:
                top = int(len(self.configs) * top)
            elif not isinstance(top, int):
                raise TypeError("Error while pruning configs, top_k must be either 1) a float <= 1.0 or 2) an int")
            if len(configs) > top:
                model = {c: self.perf_model(**nargs, **kwargs, **c.all_kwargs()) for c in configs}
                configs = sorted(model, key=lambda c: model[c])[:top]
        return configs

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        """Compiles all configurations."""
        nargs = dict(zip(self.arg_names, args))
        configs = self._pruned(nargs, kwargs)
        self._compile(configs, [MockTensor.wrap_dtype(arg) for arg in args], nargs, kwargs)
        return [self.fn.warmup(*args, **kwargs, **config.all_kwargs()) for config in configs]


def _copy(value):
    return value.clone() if hasattr(value, "clone") else value.copy()


def _listed(times):
    return list(times) if isinstance(times, (list, tuple)) else [times]


def _expect_kernel(name, fn):
    """Refuses what is not a kernel yet."""
    if not hasattr(fn, "arg_names"):
        raise TypeError(f"`{name}` takes a kernel, not {fn!r}: the order of decorators is `@triton.autotune`, then `@triton.heuristics`, "
                        "then `@triton.jit` (rtc explain autotuning-order)")


def autotune(configs: Sequence[Config], key: Sequence[str], prune_configs_by: Mapping[str, Any] | None = None,
             reset_to_zero: Sequence[str] | None = None, restore_value: Sequence[str] | None = None,
             pre_hook: Callable[..., object] | None = None, post_hook: Callable[..., object] | None = None,
             warmup: int | None = None, rep: int | None = None, use_cuda_graph: bool = False,
             do_bench: Callable[..., Any] | None = None, cache_results: bool = False) -> Callable[[KernelInterface], Autotuner]:
    """Has a kernel launched with the fastest of several configurations, found again for each value of the arguments `key`."""

    def decorator(fn):
        _expect_kernel("autotune", fn)
        return Autotuner(fn, fn.arg_names, configs, key, reset_to_zero, restore_value, pre_hook=pre_hook,
                         post_hook=post_hook, prune_configs_by=prune_configs_by, warmup=warmup, rep=rep,
                         use_cuda_graph=use_cuda_graph, do_bench=do_bench, cache_results=cache_results)

    return decorator


class Heuristics(KernelInterface):
    """A kernel with values that are computed of its arguments."""

    def __init__(self, fn, arg_names, values):
        self.fn, self.values, self.arg_names = fn, values, arg_names
        self.__name__, self.__doc__ = getattr(fn, "__name__", None), fn.__doc__

    def _computed(self, args, kwargs):
        every = {**dict(zip(self.arg_names, args)), **kwargs}
        for name, compute in self.values.items():
            kwargs[name] = every[name] = compute({**every})
        return kwargs

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the values, then launches."""
        return self.fn.run(*args, **self._computed(args, kwargs))

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        """Compiles for such arguments."""
        return self.fn.warmup(*args, **self._computed(args, kwargs))


def heuristics(values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> Callable[[KernelInterface], Heuristics]:
    """Gives parameters values that functions compute of the arguments, by name."""

    def decorator(fn):
        _expect_kernel("heuristics", fn)
        return Heuristics(fn, fn.arg_names, values)

    return decorator
