"""Keywords that name a parameter of the kernel and an option of launches, on every path of a launch. The driver and PyTorch
are stubs, so that launches that are recognized by their form are tested, too."""

import json
import unittest

import stub_torch

stub_torch.install()

import rtc
import rtc.language as tl
from rtc.backends.compiler import GPUTarget
from rtc.compiler import ASTSource
from stub_torch import Tensor, launched

X = Tensor(4096)
#: A parameter for each option that Triton does not have, with values that these options do not take or that are not their
#: defaults, and one for two of Triton's.
OURS = dict(warp_specialize=False, structure="ring", plan="none", overlap_launches=0, max_instructions=2.5)
SHARED = dict(num_warps=8, num_stages=2)


@rtc.jit
def kernel(x, warp_specialize: tl.constexpr, structure: tl.constexpr, plan: tl.constexpr, overlap_launches, max_instructions,
           num_warps: tl.constexpr, num_stages: tl.constexpr, BLOCK: tl.constexpr = 64):
    tl.static_assert(structure == "ring")
    value = 1.0 if warp_specialize else 2.0
    tl.store(x + tl.arange(0, BLOCK), value + overlap_launches + max_instructions + num_warps + num_stages)


@rtc.jit
def fill(x):
    tl.store(x, 1.0)


def fresh():
    return rtc.jit(kernel.fn)


def options(compiled):
    """The options that a kernel was compiled with."""
    return json.loads(compiled._ready.spec())["options"]


class Options(unittest.TestCase):
    def holds(self, compiled):
        """Only Triton's own options were taken from the keywords."""
        made = options(compiled)
        self.assertEqual((made["num_warps"], made["num_stages"]), (8, 2))
        self.assertFalse(set(OURS) & set(made), made)

    def test_launches(self):
        own = fresh()
        for repeat in range(4):
            self.holds(own[(1,)](X, **OURS, **SHARED))
        params = launched()[0]
        # Another number of a form that is known: a new value, not a new kernel.
        again = own[(1,)](X, **{**OURS, "max_instructions": 3.5}, **SHARED)
        self.holds(again)
        self.assertNotEqual(launched()[0], params)
        self.assertEqual(len(own._compiled_kernels), 1)

    def test_an_option_without_a_parameter_of_its_name(self):
        @rtc.jit
        def plain(x, structure: tl.constexpr):
            tl.store(x, 1.0)

        made = options(plain[(1,)](X, structure="ring", warp_specialize=False, max_instructions=1000))
        self.assertEqual((made["warp_specialize"], made["max_instructions"]), (False, 1000))
        with self.assertRaisesRegex(TypeError, "`structure`"):
            fill[(1,)](X, structure="ring")

    def test_run_and_warmup(self):
        self.holds(fresh().run(X, grid=(1,), warmup=False, **OURS, **SHARED))
        self.holds(fresh().run(X, grid=(1,), warmup=True, **OURS, **SHARED))
        self.holds(fresh().warmup(X, grid=(1,), **OURS, **SHARED))

    def test_hooks(self):
        hooked, seen = fresh(), []
        hooked.add_pre_run_hook(lambda *args, **kwargs: seen.append(kwargs["structure"]))
        self.holds(hooked[(1,)](X, **OURS, **SHARED))
        rtc.knobs.runtime.launch_enter_hook = lambda metadata: seen.append("entered")
        try:
            self.holds(fresh()[(1,)](X, **OURS, **SHARED))
        finally:
            rtc.knobs.runtime.launch_enter_hook = None
        self.assertEqual(seen, ["ring", "entered"])

    def test_autotuned(self):
        def bench(call, quantiles):
            call()
            return [1.0] * 3

        configs = [rtc.Config({**OURS, "BLOCK": block}, **SHARED) for block in (64, 128)]
        search = rtc.autotune(configs=configs, key=[], do_bench=bench)(fresh())
        for repeat in range(3):
            self.holds(search[(1,)](X))
        for compiled in search.warmup(X, grid=(1,)):
            self.holds(compiled)

    def test_heuristics(self):
        computed = {name: lambda args, value=value: value for name, value in {**OURS, **SHARED}.items()}
        for repeat in range(2):
            self.holds(rtc.heuristics(computed)(fresh())[(1,)](X))
        self.holds(rtc.heuristics(computed)(fresh()).warmup(X, grid=(1,)))

    def test_a_compiled_kernel_is_launched_with_its_options(self):
        compiled = fill[(1,)](X, warp_specialize=False, enable_fp_fusion=False, maxnreg=64)
        self.assertIs(compiled[(1,)](X), compiled)

    def test_compiled_ahead(self):
        signature = {"x": "*fp32", "overlap_launches": "i32", "max_instructions": "fp32"}
        constants = {name: value for name, value in {**OURS, **SHARED, "BLOCK": 64}.items() if name not in signature}
        source = ASTSource(kernel, {**signature, **dict.fromkeys(constants, "constexpr")}, constants)
        made = rtc.compile(source, target=GPUTarget("cuda", 90, 32), options={**OURS, **SHARED, "enable_fp_fusion": False})
        self.assertEqual(made._build.spec["options"], {**SHARED, "enable_fp_fusion": False})
        self.assertEqual(made.metadata.num_warps, 8)


if __name__ == "__main__":
    unittest.main()
