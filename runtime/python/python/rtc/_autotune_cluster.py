"""`autotune` on a Ray cluster: each configuration is a launch as a file has it, which `rtc tune` times on a machine of the cluster.

Only GPUs of the model that the program itself uses decide for it. What a configuration took is kept by content in the cache of
the machine that timed it and in the store that machines share."""

import json
import math
import sys

from . import _arrays, _cluster, _record, _rtc
from .runtime.jit import JITFunction

#: Seconds that one configuration may take.
LIMIT = 120.0
#: Values of constexprs that a configuration hands to another machine.
PLAIN = (bool, int, float, str, type(None))


class Local(Exception):
    """This tuning cannot be handed to other machines; the text has the reason."""


def timings(tuner, address, configs, args, nargs, kwargs):
    """The times of configurations; those that no machine timed are left out."""
    try:
        launches, kind, files = _described(tuner, configs, args, nargs, kwargs)
        is_counted = kind[0] == "emulator"
        with _cluster.Cluster(None if address == "local" else address, is_counted, kind[1]) as cluster:
            if kind not in cluster.kinds():
                there = ", ".join(_cluster.shown(other) for other in cluster.kinds())
                raise Local(f"this program uses {_cluster.shown(kind)}, the cluster has {there}")
            common = cluster.ray.put(files)
            clock = ["--clock", "counters", "--arch", kind[1]] if is_counted else []
            parts = []
            for config, own in launches:
                words = ["rtc_m0.py", "--launch", "LAUNCH.json", "--shard", "1/1", *clock]
                parts.append(_cluster.Part(f"`{tuner.base_fn.__name__}` with {config}", words, kind, common, own))
            results = cluster.run(parts, LIMIT)
    except (Local, _cluster.ClusterError) as error:
        print(f"warning[cluster]: `{tuner.base_fn.__name__}` is tuned here alone: {error}", file=sys.stderr, flush=True)
        return {}
    # Times of the emulator's counters do not compare with those of this process's clock.
    if is_counted and len(results) < len(parts):
        return {}
    found = {}
    for (config, _), part in zip(launches, parts):
        if part.name in results:
            time = _cluster.first_milliseconds(results[part.name].results)
            found[config] = [math.inf if time is None else time] * 3
    return found


def _described(tuner, configs, args, nargs, kwargs):
    """Each configuration with its files, the kind of device that the program uses, and the files that all have."""
    if tuner._has_hooks or any(config.pre_hook for config in configs):
        raise Local("hooks run in this process")
    if tuner._do_bench is not None:
        raise Local("`do_bench` runs in this process")
    heuristics, kernel = [], tuner.fn
    while not isinstance(kernel, JITFunction):
        if not hasattr(kernel, "_computed"):
            raise Local(f"it is wrapped in a {type(kernel).__name__}")
        heuristics.append(kernel)
        kernel = kernel.fn
    base = None
    given = []
    for config in configs:
        words = {**kwargs, **config.all_kwargs()}
        for layer in heuristics:
            words = layer._computed(args, words)
        words.pop("warmup", None)
        given.append((config, words))
    for config, words in given:
        try:
            compiled = kernel.run(*args, warmup=True, **words)
        except Exception:       # another configuration may compile
            continue
        base = _launch(kernel, compiled, args, words)
        break
    if base is None:
        raise Local("no configuration compiles")
    try:
        made = _record.Description(base)
    except ValueError as error:
        raise Local(str(error)) from error
    device = compiled._ready.device()
    kind = _cluster.named(device), _rtc.device_arch() if device.startswith("cuda") else _rtc.host_arch()
    (_, _, text), *others = made.modules
    files = {f"{name}.py": body.encode() for name, _, body in others}
    files["inputs.safetensors"] = _arrays.safetensors(made.tensors)
    return [(config, _files(tuner, made, text, config, nargs, words)) for config, words in given], kind, files


def _launch(kernel, compiled, args, words):
    names = set(kernel.arg_names)
    bound = kernel.signature.bind(*args, **{name: value for name, value in words.items() if name in names})
    bound.apply_defaults()
    arguments = dict(bound.arguments)
    try:
        before = {name: _record._whole(value) for name, value in arguments.items() if _arrays.is_array(value)}
    except ValueError as error:
        raise Local(str(error)) from error
    return _record.Launch(kernel, compiled, (1, 1, 1), arguments, before, {})


def _files(tuner, made, text, config, nargs, words):
    """What tells a configuration from the others: its LAUNCH.json, and the kernel with its options."""
    launch = json.loads(json.dumps(made.launch))
    spec = launch["spec"]
    for arg in spec["args"]:
        name = arg["name"]
        if "constexpr" in arg and name in words:
            value = getattr(words[name], "value", words[name])
            if not isinstance(value, PLAIN):
                raise Local(f"`{name}` is a {type(value).__name__}")
            arg["constexpr"] = value
    options = {name: value for name, value in config._options().items() if name != "ir_override"}
    spec["options"] = {**{n: v for n, v in spec["options"].items() if n not in options}, **options}
    grid = words["grid"]
    sizes = [int(size) for size in (grid({**nargs, **words}) if callable(grid) else grid)]
    launch["grid"] = sizes + [1] * (3 - len(sizes))
    constants = {arg["name"] for arg in spec["args"] if "constexpr" in arg}
    lists = {"key": [name for name in tuner.keys if name in tuner.arg_names and name not in constants],
             "reset_to_zero": tuner.reset_to_zero, "restore_value": tuner.restore_value}
    given = ", ".join(f"{name}={value!r}" for name, value in options.items())
    further = ", ".join(f"{name}={value!r}" for name, value in lists.items())
    decorated = f"@triton.autotune(configs=[triton.Config({{}}, {given})], {further})\n@triton.jit"
    return {"LAUNCH.json": json.dumps(launch).encode(), "rtc_m0.py": text.replace("@triton.jit", decorated, 1).encode()}
