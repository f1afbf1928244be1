"""What `suite.py` times: entries in groups, each with the peers that compute the same. It needs neither PyTorch nor a GPU."""

import importlib.metadata
import importlib.util
from dataclasses import dataclass

#: The groups in the order of the page, with their headings.
GROUPS = {
    "rows": "Row kernels",
    "rows-backward": "Row kernels, backward",
    "matmul": "Matrix multiplication",
    "attention": "Attention, forward",
    "backward": "Attention, backward",
    "fp8": "Blockwise fp8 matrix multiplication",
    "flex": "flex_attention of PyTorch",
    "engine": "Kernels of serving engines",
}


@dataclass(frozen=True)
class Peer:
    """A compiler or library, which runs in a process of its own."""

    title: str
    modules: tuple              # that its process imports
    package: str                # whose version is reported
    words: tuple = ()           # of Python, before the script

    def missing(self):
        """The first module that is not installed."""
        for name in self.modules:
            try:
                if importlib.util.find_spec(name) is None:
                    return name
            except (ImportError, ValueError):
                return name
        return None

    def version(self):
        """The version of its package."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return "unknown"


#: By the name that is used in files and on the command line. With `-m rtc` the module `triton` is that of rtc.
PEERS = {
    "rtc": Peer("rtc", ("torch", "rtc"), "rtc-triton", ("-m", "rtc")),
    "triton": Peer("Triton", ("torch", "triton"), "triton"),
    "pytorch": Peer("PyTorch (cuBLAS, cuDNN)", ("torch",), "torch"),
    "cudnn": Peer("cuDNN", ("torch",), "nvidia-cudnn-cu13"),
    "fa3": Peer("FlashAttention-3", ("torch", "fa3_fwd_interface"), "fa3-fwd"),
    "deepgemm": Peer("DeepGEMM", ("torch", "deep_gemm"), "sgl-deep-gemm"),
    "quack": Peer("QuACK", ("torch", "quack"), "quack-kernels"),
    "humming": Peer("Humming", ("torch", "humming"), "humming-kernels"),
    "flashmla": Peer("FlashMLA", ("torch", "flash_mla"), "sgl-flash-mla"),
}

#: The compilers of Triton's language, which get the same source and the same configurations.
COMPILERS = ("rtc", "triton")


@dataclass(frozen=True)
class Entry:
    """One kernel at one size."""

    group: str
    name: str
    make: str                   # the function of launches.py that prepares it
    arguments: tuple
    peers: tuple


def _sizes(sizes):
    return "x".join(map(str, sizes))


def entries():
    """All entries, in order."""
    own = (*COMPILERS, "pytorch")
    out = [Entry("rows", f"add {1 << 28}", "add", (1 << 28,), own)]
    rows = [("softmax", m, n, t) for m, n in ((16384, 1024), (16384, 4096), (8192, 32768)) for t in ("float16", "float32")]
    rows += [("rms_norm", 16384, n, "float16") for n in (4096, 8192)]
    rows += [("layer_norm", 16384, n, "float16") for n in (4096, 12288)]
    rows += [("cross_entropy", 4096, n, "float16") for n in (32000, 128256)]
    for kernel, m, n, dtype in rows:
        name = f"{kernel.replace('_', ' ')} {m}x{n} {dtype}"
        out.append(Entry("rows", name, "rows", (kernel, m, n, dtype), (*own, "quack")))
    for m, n in ((4096, 65536), (1024, 262144)):
        out.append(Entry("rows", f"softmax {m}x{n} float16", "long_rows", (m, n, "float16"), (*own, "quack")))
    out.append(Entry("rows", "cross entropy 1024x262144 float16", "rows", ("cross_entropy", 1024, 262144, "float16"), (*own, "quack")))
    for kind, sizes in (("rms_norm", (4096, 8192)), ("layer_norm", (4096, 12288))):
        for n in sizes:
            name = f"{kind.replace('_', ' ')} backward 16384x{n} bfloat16"
            out.append(Entry("rows-backward", name, "norm_backward", (kind, 16384, n, "bfloat16"), (*own, "quack")))
    for m, n in ((4096, 32000), (4096, 128256)):
        name = f"cross entropy backward {m}x{n} bfloat16"
        out.append(Entry("rows-backward", name, "cross_entropy_backward", (m, n, "bfloat16"), (*COMPILERS, "quack")))
    products = [((4096, 4096, 4096), "float16"), ((8192, 8192, 8192), "float16"), ((8192, 8192, 1024), "float16"),
                ((4096, 11008, 4096), "float16"), ((4096, 4096, 4096), "bfloat16"), ((4096, 4096, 4096), "float32")]
    out += [Entry("matmul", f"matmul {_sizes(sizes)} {dtype}", "matmul", (*sizes, dtype), own) for sizes, dtype in products]
    # The shape, how many heads share one of keys, and whether backward is timed, too.
    shapes = [((4, 16, 4096, 64), 1, True), ((4, 16, 4096, 128), 1, True), ((1, 16, 16384, 128), 1, True),
              ((16, 16, 1024, 128), 1, False), ((1, 16, 32768, 128), 1, False), ((4, 64, 4096, 128), 8, False),
              ((4, 16, 4096, 256), 1, False)]
    for shape, share, backward in shapes:
        for causal in (False, True):
            mask = "causal" if causal else "full"
            shared = f", {share} heads for one," if share > 1 else ""
            name = f"attention {mask}{shared} {_sizes(shape)}"
            out.append(Entry("attention", name, "attention", (*shape, causal, share), (*own, "cudnn", "fa3")))
            if backward:
                out.append(Entry("backward", f"backward {mask} {_sizes(shape)}", "backward", (*shape, causal), (*own, "cudnn")))
    # Shapes of DeepSeek-V3: output, hidden and expert projections, prefill and decode.
    for sizes in ((4096, 7168, 2048), (4096, 4096, 7168), (4096, 7168, 16384), (4096, 24576, 1536), (64, 7168, 2048), (128, 4096, 7168)):
        out.append(Entry("fp8", f"fp8 by blocks {_sizes(sizes)}", "block_fp8", sizes, (*COMPILERS, "deepgemm")))
    for d in (64, 128):
        for mask in ("full", "causal", "window"):
            out.append(Entry("flex", f"flex {mask} 4x16x4096x{d}", "flex", (4, 16, 4096, d, mask), COMPILERS))
    for d in (64, 128):
        for mask in ("full", "causal", "window", "documents"):
            out.append(Entry("flex", f"flex backward {mask} 4x16x4096x{d}", "flex_backward", (4, 16, 4096, d, mask), COMPILERS))
    # Tokens, experts, experts of a token, hidden and expert size: Mixtral and Qwen3-MoE, decode and prefill.
    for tokens, experts, top, hidden, size in ((16, 8, 2, 4096, 14336), (2048, 8, 2, 4096, 14336), (64, 128, 8, 2048, 768), (4096, 128, 8, 2048, 768)):
        name = f"fused MoE {tokens} tokens, {experts} experts, {hidden}x{size}"
        out.append(Entry("engine", name, "moe", (tokens, experts, top, hidden, size), COMPILERS))
    for m in (1, 16, 64, 512, 4096):
        out.append(Entry("engine", f"int4 weights {m}x8192x8192", "int4", (m, 8192, 8192), (*COMPILERS, "humming")))
    for batch, length in ((64, 4096), (128, 8192)):
        out.append(Entry("engine", f"MLA decode {batch}x{length}", "mla_decode", (batch, length), (*COMPILERS, "flashmla")))
    return out


def shown(chosen):
    """The plan as text: the peers with what is missing, then each entry with its peers."""
    lines = ["Peers:"]
    for name in dict.fromkeys(name for entry in chosen for name in entry.peers):
        missing = PEERS[name].missing()
        lines.append(f"  {name:<10} {f'not installed ({missing})' if missing else PEERS[name].version()}")
    for group, heading in GROUPS.items():
        found = [entry for entry in chosen if entry.group == group]
        if found:
            lines.append(f"{heading}:")
        lines += [f"  {entry.name:<46} {', '.join(entry.peers)}" for entry in found]
    return "\n".join(lines)
