"""Compiled kernels."""

import collections
import os
import shutil
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable
from typing import Any

from .. import _rtc, knobs
from ..backends import backends
from ..backends.compiler import GPUTarget
from ..runtime.errors import PTXASError
from .source import ASTSource, Build

#: What Triton calls stages that rtc has under other names.
_NOT_OURS = {"ttir": "tile", "ttgir": "scheduled"}


class Stages(collections.abc.Mapping):
    """The texts of a kernel by stage: `ptx`, `llir`, `source`, `cubin` and `sass` (both by NVIDIA's tools), and rtc's own
    stages. They are made when they are asked for."""

    def __init__(self, kernel):
        self._kernel, self._made = kernel, {}

    def __getitem__(self, name):
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name):
        if name == "source":
            return self._kernel.fn.src
        if name == "cubin":
            return assemble(self["ptx"], self._kernel.metadata.arch, self._kernel.metadata.name)
        if name == "sass":
            return disassemble(self["cubin"])
        ready = self._kernel._ready
        if name == "llir":
            return ready.stage("llvm")
        if name in ready.stages():
            return ready.stage(name)
        if name in _NOT_OURS:
            raise KeyError(f"{name}: a stage of Triton's compiler; rtc's is `{_NOT_OURS[name]}` (rtc has {', '.join(self)})")
        raise KeyError(f"{name}: rtc has the stages {', '.join(self)}")

    def __iter__(self):
        return iter(["source", *_rtc.Ready.stages(), "llir", "cubin", "sass"])

    def __len__(self):
        return len(list(iter(self)))

    def __contains__(self, name):
        return name in list(iter(self))


def _tool(name):
    """A tool of NVIDIA's: `RTC_PTXAS` or `TRITON_PTXAS_PATH`, or the one on PATH."""
    for variable in (f"RTC_{name.upper()}", f"TRITON_{name.upper()}_PATH"):
        if os.environ.get(variable):
            return os.environ[variable]
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"{name} is needed for this and is not on PATH (RTC_{name.upper()} names it)")
    return found


def _assembler(arch):
    """The ptxas for a target: the one that is named, else one that is not known to make wrong code for it."""
    named = os.environ.get("RTC_PTXAS") or os.environ.get("TRITON_PTXAS_PATH")
    return named or _rtc.find_ptxas(arch) or _tool("ptxas")


_warned = set()


def assemble(ptx: str, arch: str, name: str = "kernel") -> bytes:
    """Machine code of PTX, by NVIDIA's assembler. One that may make wrong code of it is warned of, once in a process."""
    ptxas = _assembler(arch)
    warning = None if ptxas in _warned else _rtc.ptxas_defect(ptxas, name, arch, ptx)
    if warning:
        _warned.add(ptxas)
        print(warning, file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
        with open(source, "w") as file:
            file.write(ptx)
        done = subprocess.run([ptxas, f"--gpu-name={arch}", source, "-o", out], capture_output=True, text=True)
        if done.returncode:
            raise PTXASError(done.stderr)
        with open(out, "rb") as file:
            return file.read()


def disassemble(cubin: bytes) -> str:
    """The text of machine code."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run([_tool("cuobjdump"), "-sass", file.name], capture_output=True, text=True, check=True).stdout


def _shown_name(fn, spec, symbol):
    """The name of a compiled kernel: what the function given as `repr` makes of the specialization, or its own."""
    if fn._repr is None:
        return symbol
    signature = {arg["name"]: arg.get("type", "constexpr") for arg in spec["args"]}
    constants = {arg["name"]: arg["constexpr"] for arg in spec["args"] if "constexpr" in arg}
    return fn._repr(types.SimpleNamespace(signature=signature, constants=constants))


class CompiledKernel:
    """A kernel that is compiled for arguments of some kinds. `ready` is loaded; `compile` has a `Build` instead, which is
    loaded when it is needed."""

    def __init__(self, src, ready, build=None):
        self.src = src if hasattr(src, "fn") and isinstance(src, ASTSource) else ASTSource.of(src)
        self._build = build if build is not None else Build(loaded=ready)
        data, spec = self._build.metadata, self._build.spec
        target = self._build.target or GPUTarget("cuda", int("".join(c for c in data["arch"] if c.isdigit())), 32)
        options = spec["options"]
        fields = {"hash": self._build.key, "name": _shown_name(self.fn, spec, data["symbol"]), "num_warps": data["num_warps"],
                  "num_ctas": data["num_ctas"], "num_stages": options.get("num_stages", 3), "shared": data["shared_bytes"],
                  "arch": data["arch"], "target": target, "global_scratch_size": data["global_scratch_bytes"],
                  "global_scratch_align": data["global_scratch_align"], "cluster_dims": tuple(data["cluster"]),
                  "threads_per_block": data["threads_per_block"], "tmem_size": 0, "warp_size": 32,
                  "profile_scratch_size": 0, "profile_scratch_align": 1,
                  "launch_cooperative_grid": data.get("launch_cooperative_grid", False),
                  "launch_pdl": data.get("launch_pdl", False)}
        self.metadata: Any = collections.namedtuple("KernelMetadata", sorted(fields))(**fields)
        self.hash, self.name = fields["hash"], fields["name"]

    def __getstate__(self):
        return {**self.__dict__, "metadata": self.metadata._asdict()}

    def __setstate__(self, state):
        fields = state["metadata"]
        self.__dict__.update(state, metadata=collections.namedtuple("KernelMetadata", fields)(**fields))

    fn = property(lambda self: self.src.fn)
    _ready = property(lambda self: self._build.loaded())
    _data = property(lambda self: self._build.metadata)

    @property
    def asm(self) -> Stages:
        """The texts of the compiler's stages."""
        made = self._build.stages
        if made is None:
            made = self._build.stages = Stages(self)
        return made

    @property
    def kernel(self) -> bytes:
        """Its machine code, by NVIDIA's assembler."""
        return self.asm["cubin"]

    @property
    def packed_metadata(self) -> tuple[int, ...]:
        """Warps, blocks of a cluster, bytes of shared memory, and the cluster."""
        m = self.metadata
        return m.num_warps, m.num_ctas, m.shared, *m.cluster_dims

    #: What Triton's launcher is given; rtc's kernels know both themselves.
    module = property(lambda self: self._ready)
    function = property(lambda self: self._ready)

    def _init_handles(self):
        """Loads it."""
        self._build.loaded()

    @property
    def run(self) -> Callable[..., None]:
        """Launches, as Triton's launcher does: the grid, a stream, what belongs to the kernel, hooks, and an argument for
        each parameter."""
        launch = self._ready.launch

        def run(x, y, z, stream, function, metadata, launch_metadata, enter, exit, *args):
            if enter is not None and _is_set(enter):
                enter(launch_metadata)
            launch((x, y, z), stream, args)
            if exit is not None and _is_set(exit):
                exit(launch_metadata)

        return run

    def launch_metadata(self, grid: tuple[int, ...], stream: int, *args: Any) -> "LazyDict | None":
        """What hooks of launches are told, if there is one."""
        return self._launch_metadata(grid, stream, args) if _is_set(knobs.runtime.launch_enter_hook) else None

    def _usage(self):
        """Registers, bytes of local memory, threads of a block. Where nothing assembles the kernel, as on the CPU: what a thread
        of such a block can have at most."""
        return self._ready.usage() or (min(255, 65536 // (32 * self.metadata.num_warps)), 0, 1024)

    n_regs = property(lambda self: self._usage()[0])
    n_spills = property(lambda self: self._usage()[1] // 4)
    n_max_threads = property(lambda self: self._usage()[2])

    @property
    def rtc_metadata(self) -> dict[str, Any]:
        """The metadata as `rtc build` writes it."""
        return self._data

    def _launch_metadata(self, grid, stream, args):
        told = LazyDict({"name": self.name, "function": self.function, "stream": stream, "grid": grid,
                         "num_warps": self.metadata.num_warps})
        if self.fn.launch_metadata is not None:
            told.add(self.fn.launch_metadata, (grid, self.metadata, dict(zip(self.fn.arg_names, args))))
        return told

    def __getitem__(self, grid):
        options = self._build.spec["options"]

        def launch(*args, stream=None):
            known = dict(options)
            missing = self.fn.arg_names[len(args):]
            constants = dict(self._ready.signature())
            for name in missing:
                if name not in constants:
                    raise TypeError(f"{self.name}: the launch gives nothing for `{name}`")
            if missing:
                values = self._data["constexprs"]
                args = (*args, *[values[name] for name in missing])
            return self.fn._launch(grid, False, args, None, known)

        return launch

    def __getattr__(self, name):
        raise AttributeError(f"rtc: compiled kernels have no `{name}`")


def _is_set(hook):
    return hook is not None and getattr(hook, "calls", True)


def compile(src: ASTSource, target: GPUTarget | None = None, options: dict[str, Any] | None = None,
            _env_vars: Any = None) -> CompiledKernel:
    """Compiles a kernel for what `src`, an `ASTSource`, says of its arguments; nothing is loaded."""
    if not isinstance(src, ASTSource):
        raise TypeError(f"rtc compiles kernels of Python (ASTSource), not {type(src).__name__}: Triton's IR is no input of rtc")
    if target is None:
        from ..runtime.driver import driver
        target = driver.active.get_current_target()
    backend = make_backend(target)
    options = {**src.parse_options(), **dict(options or {})}
    return CompiledKernel(src, None, Build.of(src, target, backend.arch, options))


def make_backend(target: GPUTarget) -> Any:
    """The back end for a target."""
    fitting = [b.compiler for b in backends.values() if b.compiler.supports_target(target)]
    if len(fitting) != 1:
        raise RuntimeError(f"rtc has no back end for {target}: it has cuda and, on its emulator, cpu")
    return fitting[0](target)


def triton_key() -> str:
    """What the results of the compiler depend on besides its input."""
    return f"rtc-{_rtc.compiler_version}-{_rtc.build_id}"


class LazyDict:
    """What hooks of launches are told."""

    def __init__(self, data):
        self.data, self.extras = data, []

    def get(self) -> dict[str, Any]:
        """The whole, for which functions are called that kernels give as `launch_metadata`."""
        for call, args in self.extras:
            self.data = {**self.data, **call(*args)}
        return self.data

    def add(self, call: Callable[..., dict[str, Any]], args: tuple[Any, ...]) -> None:
        """Adds what a function gives for these arguments, when it is asked for."""
        self.extras.append((call, args))


def __getattr__(name):
    raise AttributeError(f"rtc has no `triton.compiler.{name}`")
