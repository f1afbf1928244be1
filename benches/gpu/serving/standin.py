"""Imports single files of vLLM's sources without vLLM: a finder that loads what `WANTED` matches and gives permissive
stand-ins for all other modules of `vllm` and for the libraries that are not installed. No package's `__init__` runs.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
import types

import platform_standins

#: Modules that are loaded from the folder; all others of `vllm` are stand-ins.
WANTED = [re.compile(text + r"\Z") for text in (
    r"vllm\.v1\.kv_cache_interface", r"vllm\.v1\.attention\.backends\.utils",
    r"vllm\.envs", r"vllm\.scalar_type", r"vllm\.utils\.(math_utils|platform_utils)", r"vllm\.triton_utils\.(allocation|tensor_descriptor)",
    r"vllm\.model_executor\.layers\.fused_moe\.(fused_moe|config|utils|activation|moe_align_block_size|moe_fused_mul_sum|"
    r"deep_gemm_utils|prepare_megamoe)",
    r"vllm\.model_executor\.layers\.fused_moe\.experts\.(fused_batched_moe|batched_deep_gemm_moe|gpt_oss_triton_kernels_moe|"
    r"mxfp8_native_moe|trtllm_lora_moe)",
    r"vllm\.model_executor\.layers\.fused_moe\.router\.(dsv4_topk|base_router)",
    r"vllm\.model_executor\.layers\.quantization\.(awq_triton|utils\.\w+|compressed_tensors\.(triton_scaled_mm|compressed_tensors_embedding))",
    r"vllm\.model_executor\.layers\.mamba\.ops\.\w+", r"vllm\.model_executor\.layers\.mamba\.checkpoint",
    r"vllm\.model_executor\.layers\.mamba\.gdn\.olmo_gdn_linear_attn",
    r"vllm\.model_executor\.layers\.(lightning_attn|fused_embed_norm|fused_qk_norm_rope|activation|minimax_rms_norm\.rms_norm_tp)",
    r"vllm\.model_executor\.layers\.fusion\.\w+", r"vllm\.model_executor\.layers\.rotary_embedding\.(mrope\w*|packed_qk_rope|bailing_mrope)",
    r"vllm\.model_executor\.determinism\.\w+", r"vllm\.model_executor\.kernels\.(mhc\.triton|linear\.\w+\.\w+|attention\.dsa\.\w+)",
    r"vllm\.model_executor\.warmup\.jit_warmup(_triton_helper)?", r"vllm\.model_executor\.models\.(gemma4|qwen3_vl|deepencoder)",
    r"vllm\.third_party\.flash_linear_attention\.ops\.\w+", r"vllm\.kernels\.triton\.\w+",
    r"vllm\.lora\.ops\.triton_ops\.\w+",
    r"vllm\.v1\.attention\.ops\.(?!rocm|xpu|flydsl)\w+", r"vllm\.v1\.attention\.backends\.mla\.(sparse_utils|compressor_utils|indexer|sparse_swa)",
    r"vllm\.v1\.sample\.(rejection_sampler|ops\.topk_topp_triton)", r"vllm\.v1\.spec_decode\.(utils|fly)",
    r"vllm\.v1\.worker\.(block_table|mamba_utils|utils)", r"vllm\.v1\.worker\.gpu\.(?!model_runner)\w+",
    r"vllm\.v1\.worker\.gpu\.(sample|mm|metrics)\.\w+", r"vllm\.v1\.worker\.gpu\.spec_decode\.\w+(\.kernels|\.speculator)?",
    r"vllm\.v1\.watermarking\.prfs\.\w+", r"vllm\.v1\.pool\.flash_maxsim\.\w+", r"vllm\.v1\.kv_offload\.cpu\.swap_blocks_triton",
    r"vllm\.models\.\w+\.(common|nvidia)\.(ops|kernels|layernorm|activation|attention_ops|triton_ihc|engram)(\.third_party\.\w+)?(\.\w+)?",
    r"vllm\.models\.(flint|common)\.ops\.\w+", r"vllm\.models\.\w+\.(sparse_mla|compressor)",
)]
#: Packages that are often missing and that nothing here needs.
LIBRARIES = ("pybase64", "cbor2", "msgspec", "zmq", "openai", "cachetools", "blake3", "xgrammar", "regex", "psutil", "cloudpickle", "pydantic",
             "compressed_tensors", "flashinfer", "deep_gemm", "cutlass", "tilelang", "quack", "aiter", "transformers", "huggingface_hub",
             "torchvision", "PIL", "prometheus_client", "gguf", "ray", "tqdm", "requests", "aiohttp", "yaml", "mistral_common", "llguidance",
             "outlines_core", "diskcache", "fastapi", "tiktoken", "tokenizers", "safetensors", "scipy", "cuda", "apache_tvm_ffi", "tvm_ffi")


class Anything:
    """Whatever a module that is not loaded would hold: calls give the same, decorators give what they decorate."""

    def __init__(self, name="anything"):
        self.__dict__["__name__"] = self.__dict__["__qualname__"] = name

    def __call__(self, *args, **kwargs):
        """Something else, or what is decorated."""
        return args[0] if len(args) == 1 and not kwargs and (isinstance(args[0], type | types.FunctionType)) else Anything()

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Anything(name)

    def __mro_entries__(self, bases):
        return ()

    def __instancecheck__(self, value):
        return False

    def __subclasscheck__(self, value):
        return False

    def __iter__(self):
        return iter(())

    def __contains__(self, value):
        return False

    def __bool__(self):
        return False

    def __len__(self):
        return 0

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False

    def _itself(self, *_):
        return self

    __getitem__ = __or__ = __ror__ = __and__ = __add__ = __radd__ = __mul__ = __sub__ = _itself

    def _no(self, *_):
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _no


class Module(types.ModuleType):
    """A module in which every name is there."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        if full in sys.modules:
            return sys.modules[full]
        if self.__name__.split(".")[0] == "vllm" and (wanted(full) or full in platform_standins.MODULES):
            return importlib.import_module(full)
        return Anything(name)


def wanted(name):
    """Whether a module is loaded from the folder."""
    return any(pattern.match(name) for pattern in WANTED)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of `vllm`, and those of LIBRARIES that are missing."""

    def __init__(self, folder):
        self.folder = folder

    def file_of(self, name):
        """The file of a module; None for packages and modules that are not there."""
        path = os.path.join(self.folder, *name.split(".")) + ".py"
        return path if os.path.exists(path) else None

    def find_spec(self, name, path=None, target=None):
        """What `import` asks."""
        top = name.split(".")[0]
        if top == "vllm":
            if wanted(name) and name not in platform_standins.MODULES and self.file_of(name):
                return importlib.util.spec_from_file_location(name, self.file_of(name))
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        if top in LIBRARIES:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        """A stand-in."""
        return Module(spec.name)

    def exec_module(self, module):
        """Fills what has to have a meaning."""
        make = platform_standins.MODULES.get(module.__name__)
        if make:
            vars(module).update(make())


def install(folder):
    """From now on `import vllm..` finds the files of the folder. Installed libraries come first."""
    platform_standins.install_operations()
    sys.meta_path.append(Finder(os.path.abspath(folder)))
