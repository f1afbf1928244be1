"""`python -m rtc verify`, `bench` and `precision`."""

import ast
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

CONTRACTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "contracts")


#: What the JSON of `verify` has.
FIELDS = ["correct", "max_abs_diff", "max_rel_diff", "details", "sanitizer", "seed", "host_arithmetic", "non_contiguous", "coverage",
          "launches", "cases"]


def rtc(*arguments):
    return subprocess.run([sys.executable, "-m", "rtc", *arguments], capture_output=True, text=True, cwd=CONTRACTS)


def changed(name, old, new):
    """A contract with a change, as a file that goes with the test."""
    with open(os.path.join(CONTRACTS, name)) as file:
        text = file.read()
    assert old in text, (name, old)
    file = tempfile.NamedTemporaryFile("w", suffix=".py")
    file.write(text.replace(old, new))
    file.flush()
    return file


class Verify(unittest.TestCase):

    def test_a_right_kernel(self):
        done = rtc("verify", "gelu.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(list(found), FIELDS)
        self.assertTrue(found["correct"] and 0 < found["max_abs_diff"] < 1e-5)
        self.assertIn("6 further cases", found["details"])
        self.assertIn("size 1000 -> 257", done.stderr)

    def test_outputs_are_poisoned(self):
        with changed("gelu.py", "element_ty), mask=i < n)", "element_ty), mask=i < n - 5)") as file:
            done = rtc("verify", file.name)
        self.assertEqual(done.returncode, 1)
        self.assertFalse(json.loads(done.stdout)["correct"])
        self.assertIn("5 are NaN where the reference is not", done.stdout)
        self.assertIn("#####", done.stderr)

    def test_masks_that_are_missing_show_at_the_edges(self):
        with changed("abs.py", "mask=i < n)), mask=i < n)", "mask=i < n)), mask=i < (n + 7) // 8 * 8)") as file:
            done = rtc("verify", file.name)
        self.assertEqual(done.returncode, 1)
        self.assertIn("out-of-bounds", done.stderr)

    def test_races_are_wrong(self):
        clean = {"checks": "all", "cases": 1, "findings": [], "skipped": None}
        done = rtc("verify", "total.py")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(json.loads(done.stdout)["sanitizer"], clean)
        # The emulator runs one block after the other, so that the result is right.
        with changed("total.py", "tl.atomic_add(o, tl", "tl.store(o, tl.load(o) + tl") as file:
            done = rtc("verify", file.name)
            found = json.loads(done.stdout)
            self.assertEqual((done.returncode, found["correct"], found["sanitizer"]["cases"]), (1, False, 1), done.stdout + done.stderr)
            (finding,) = found["sanitizer"]["findings"]
            self.assertEqual(finding["case"], "get_inputs()")
            self.assertRegex(finding["text"], r"(?s)not ordered with the .* by another block.*:11")
            self.assertIn("not ordered with", done.stderr)
            self.assertEqual(json.loads(rtc("verify", file.name, "--sanitize=memory").stdout)["correct"], True)
            done = rtc("verify", file.name, "--no-sanitize")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual((found["correct"], found["sanitizer"]), (True, None))

    def test_what_the_sanitizer_runs(self):
        for words, checks in [(("--sanitize", "total.py"), "all"), (("total.py", "--sanitize", "race,memory"), "race,memory")]:
            found = json.loads(rtc("verify", *words).stdout)["sanitizer"]
            self.assertEqual((found["checks"], found["findings"], found["skipped"]), (checks, [], None))
            self.assertGreater(found["cases"], 2)
        # What cannot be checked is no mistake of the kernel.
        done = rtc("verify", "total.py", "--sanitize-limit", "0.01")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = json.loads(done.stdout)["sanitizer"]
        self.assertEqual((found["cases"], found["findings"]), (0, []))
        self.assertIn("longer than 0.01 seconds", found["skipped"])
        for words in [("--sanitize=everything",), ("--sanitize", "--no-sanitize")]:
            done = rtc("verify", "total.py", *words)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        # A kernel that is tuned runs with its first configuration.
        tuned = '@triton.autotune([triton.Config({"BLOCK": n}) for n in (64, 32)], key=["n"])\n@triton.jit\ndef total'
        with changed("total.py", "@triton.jit\ndef total", tuned) as file, open(file.name) as source:
            text = source.read().replace(", BLOCK=64)", ")").replace("tl.atomic_add(o, tl", "tl.store(o, tl.load(o) + tl")
            with open(file.name, "w") as target:
                target.write(text.replace("key=[\"n\"]", "key=[\"n\"], reset_to_zero=[\"o\"]"))
            found = json.loads(rtc("verify", file.name).stdout)
        self.assertEqual((found["correct"], found["sanitizer"]["cases"]), (False, 1), found)

    def test_tolerances_are_those_given(self):
        self.assertEqual(rtc("verify", "gelu.py", "--rtol", "1e-12", "--atol", "1e-12").returncode, 1)
        self.assertEqual(rtc("verify", "gelu.py", "--rtol", "-1").returncode, 2)

    def test_dropout(self):
        done = rtc("verify", "dropout.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("draws random numbers (dropout)", done.stdout)
        with changed("dropout.py", "> p, v", "> 2 * p, v") as file:
            self.assertEqual(rtc("verify", file.name).returncode, 1)

    def test_a_result_of_another_kind(self):
        with changed("gelu.py", ".astype(x.dtype)", "") as file:
            done = rtc("verify", file.name)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the dtype is float32, that of the reference float64", done.stdout)

    def test_what_is_wrong_with_a_file_is_said(self):
        for old, new, text in [
            ("def get_inputs", "def inputs", "has no `get_inputs`"),
            ("def reference_fn(x)", "def reference_fn(x, y)", "`reference_fn` does not take the 1 arguments"),
            ("    return [np.random", "    return 3\n    return [np.random", "it must give a list"),
            ("    return [np.random", "    return np.ones(4)\n    return [np.random", "gives ndarray; it must give a list"),
            ("    return [np.random", "    return []\n    return [np.random", "gives an empty list; it must give a list"),
            ("import triton\n", "import triton, sys; sys.exit(5)\n", "ended the process with the status 5 while it was imported"),
            ("    return o\n", "    raise SystemExit(0)\n", "`kernel_fn` ended the process with the status 0"),
            ("](x, o,", "]([x], o,", ".py:17): kernel `gelu`, argument `x`"),
            ("standard_normal(N)", "standard_normal(0)", "has no elements"),
            ("0.5 * x * (1", "x * np.nan * (1", "the reference gives NaN"),
            ("BLOCK=256)", "BLOCK=255)", "`kernel_fn` raised CompilationError"),
            ("import numpy as np", "import numpy as np, torch_that_is_not", "`torch_that_is_not`, which is not installed"),
            ("return o\n", "return 'o'\n", "gives str; a tensor"),
        ]:
            with changed("gelu.py", old, new) as file:
                done = rtc("verify", file.name)
            text_there = text in done.stderr
            self.assertTrue(done.returncode == 1 and text_there, (new, done.returncode, done.stdout, done.stderr))
        self.assertEqual(rtc("verify", "nowhere.py").returncode, 1)
        self.assertEqual(rtc("verify").returncode, 2)

    def test_files_that_cannot_be_written(self):
        for words in [("verify", "gelu.py", "--record", "gelu.py/x"), ("bench", "gelu.py", "--iterations", "1", "--plots", "gelu.py/x"),
                      ("precision", "gelu.py", "--dtype", "float32", "-o", "gelu.py/x")]:
            done = rtc(*words)
            self.assertTrue(done.returncode == 1 and "error[io]: gelu.py/x: Not a directory" in done.stderr, done.stderr)

    def test_each_size_is_tried(self):
        done = rtc("verify", "product.py")
        for size in (64, 96):
            self.assertIn(f"WRONG size {size} -> 33", done.stderr)
        # A range of 31 elements is no kernel.
        self.assertIn("REFUSED size 32 -> 31: refused: CompilationError", done.stderr)
        found = json.loads(done.stdout)
        known = {of["size"]: of for of in found["coverage"]}
        self.assertEqual(sorted(known), [32, 64, 96])
        self.assertEqual(known[32]["at"], [[0, 1], [1, 0]])
        self.assertEqual([of["value"] for of in known[32]["refused"]][:2], [31, 33])
        # The size after the largest block, and one that is larger than any that a test would have.
        self.assertIn(33, known[96]["wrong"])
        self.assertGreater(max(known[96]["wrong"]), 2048)

    def test_a_large_size_that_is_drawn_fits_no_block(self):
        from rtc._judge.plan import MOST, Plan
        for seed in range(64):
            for rows, columns in ((64, 96), (4, MOST[False])):
                plan = Plan([{"shape": [rows, columns]}], [32], seed, False, 0.0)
                first = plan.larger(columns)[0].new
                self.assertTrue(first % 2 == 1 and first != columns, (seed, columns, first))

    def test_launches_of_compiled_kernels(self):
        new = ("    k = gelu.warmup(x, o, x.size, BLOCK=256, grid=(1,))\n    assert k.n_regs > 0\n"
               "    k[(triton.cdiv(x.size, 256),)](x, o, x.size, 256)")
        with changed("gelu.py", "    gelu[(triton.cdiv(x.size, 256),)](x, o, x.size, BLOCK=256)", new) as file:
            done = rtc("verify", file.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("size 1000 -> 257", done.stderr)
        self.assertNotIn("no kernel was launched", done.stdout)

    def test_other_sizes_keep_what_belongs_together(self):
        """A kernel that reads the left half of rows whose halves are equal."""
        halves = [("return [np", "h = np"), ("(N).astype(np.float32)]", "((N, 24)).astype(np.float32)\n    return [np.concatenate((h, h), 1)]"),
                  ("get_inputs(N=1000)", "get_inputs(N=9)"), ("tl.load(x + i,", "tl.load(x + i // 48 * 48 + i % 24,")]
        with open(os.path.join(CONTRACTS, "gelu.py")) as file:
            text = file.read()
        for old, new in halves:
            assert old in text, old
            text = text.replace(old, new)
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            text = text.replace("def kernel_fn(x):", "def kernel_fn(x):\n    if not x.flags.c_contiguous:\n        raise RuntimeError('strides')")
            file.write(text.replace("def reference_fn(x):", "def reference_fn(x):\n    if x.shape[1] != 48:\n        raise RuntimeError('48 columns')"))
            file.flush()
            done = rtc("verify", file.name, "--fixed", "48")
            only = rtc("verify", file.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("ok    size 9 -> 255", "ok    size 9 -> 257", "-     size 48 -> 255: outside: RuntimeError: 48 columns"):
            self.assertIn(words, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["non_contiguous"], {"verdict": "refused", "reason": "RuntimeError: strides"})
        # A size that is the only one is no evidence, but where the caller knows of it.
        self.assertEqual(only.returncode, 1, only.stderr)
        self.assertIn("the reference accepts only size 48", only.stdout)
        self.assertEqual([of["size"] for of in json.loads(only.stdout)["coverage"] if of["fixed"]], [48])

    def test_what_fails_for_another_size_alone(self):
        for new, text in [("    if x.size == 255:\n        o = o.nothing", "error[call]: size 1000 -> 255: `kernel_fn` raised AttributeError"),
                          ("    if x.size == 255:\n        x = x * 2", "results for get_inputs() are right")]:
            with changed("gelu.py", "    gelu[(", f"{new}\n    gelu[(") as file:
                done = rtc("verify", file.name)
            self.assertTrue(done.returncode == 1 and text in done.stderr, done.stderr)

    def test_recorded_results_are_complete(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(rtc("verify", "gelu.py", "--record", folder).returncode, 0)
            place = os.path.join(folder, "launch_0")
            self.assertEqual(sorted(os.listdir(place)), ["LAUNCH.json", "expected.safetensors", "inputs.safetensors", "rtc_m0.py"])
            with open(os.path.join(place, "LAUNCH.json")) as file:
                launch = json.load(file)
            self.assertEqual((launch["grid"], launch["golden"]["rtol"]), ([4], 1e-5))


    def test_functions_in_tuples_are_recorded(self):
        with tempfile.TemporaryDirectory() as folder:
            done = rtc("verify", "steps.py", "--record", folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            done = rtc("verify", "--golden", folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_recorded_results_are_replayed(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(rtc("verify", "gelu.py", "--record", folder).returncode, 0)
            for device in ("emulator", "interpreter"):
                done = rtc("verify", "--golden", folder, "--device", device)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("check      o: 1000 elements", done.stdout)
                self.assertIn("golden     1 of 1 launches have expected results; all are right", done.stdout)
            source = os.path.join(folder, "launch_0", "rtc_m0.py")
            for old, new, text in [("0.5 * v", "0.75 * v", "error[wrong-result]"), ("tl.store", "nothing", "error[compile]")]:
                with open(source) as file:
                    right = file.read()
                with open(source, "w") as file:
                    file.write(right.replace(old, new))
                done = rtc("verify", "--golden", folder)
                self.assertTrue(done.returncode == 1 and text in done.stderr, done.stderr)
                with open(source, "w") as file:
                    file.write(right)
            for name, text in [("expected.safetensors", "No such file"), ("inputs.safetensors", "No such file")]:
                os.remove(os.path.join(folder, "launch_0", name))
                done = rtc("verify", "--golden", folder)
                self.assertTrue(done.returncode == 1 and "error[golden]" in done.stderr and text in done.stderr, done.stderr)
            with open(os.path.join(folder, "launch_0", "LAUNCH.json"), "w") as file:
                file.write('{"golden": {"file": 3}}')
            done = rtc("verify", "--golden", folder)
            self.assertTrue(done.returncode == 1 and "error[launch-file]" in done.stderr, done.stderr)
            done = rtc("verify", "--golden", os.path.join(folder, "launch_0"))
            self.assertTrue(done.returncode == 1 and "no folder in it has a LAUNCH.json" in done.stderr, done.stderr)
        self.assertEqual(rtc("verify", "--golden", "nowhere").returncode, 1)
        self.assertEqual(rtc("verify", "gelu.py", "--golden", "nowhere").returncode, 2)
        self.assertEqual(rtc("verify", "--golden", "nowhere", "--device", "abacus").returncode, 2)

    def test_tensors_on_two_devices(self):
        stub = ("import sys, types\ntorch = types.ModuleType('torch')\nclass Tensor:\n    def __init__(self, place):\n"
                "        self.device, self.shape = types.SimpleNamespace(type=place), (4,)\n"
                "torch.Tensor = Tensor\nsys.modules['torch'] = torch\n")
        with changed("gelu.py", "def get_inputs(", stub + "def get_inputs(*_, **__):\n    return [Tensor('cuda'), Tensor('cpu')]\ndef former(") as file:
            for command in ("verify", "bench", "precision"):
                done = rtc(command, file.name)
                text = "`get_inputs` gives tensors on cpu and cuda; put all of them on one device"
                self.assertTrue(done.returncode == 1 and text in done.stderr, done.stderr)

    def test_graphs_are_refused(self):
        """What a replay writes is in no journal: capture and replay are refused."""
        stub = ("import sys, types\ntorch = types.ModuleType('torch')\ntorch.Tensor = type('Tensor', (), {})\nclass CUDAGraph:\n"
                "    def capture_begin(self):\n        pass\n    def replay(self):\n        pass\ntorch.cuda = types.SimpleNamespace(CUDAGraph=CUDAGraph)\ntorch.utils = types.SimpleNamespace(deterministic=types.SimpleNamespace(fill_uninitialized_memory=False))\n"
                "torch.__getattr__ = lambda name: lambda *_, **__: False\nsys.modules['torch'] = torch\n")
        for call, code, text in [("CUDAGraph().capture_begin()", "no-verdict", "captures its launches in a CUDA graph"),
                                 ("CAPTURED.replay()", "no-verdict", "or replays one"),
                                 ("CUDAGraph()", None, "")]:
            new = stub + f"CAPTURED = CUDAGraph()\nCAPTURED.capture_begin()\ndef kernel_fn(*inputs):\n    {call}\n    return wrapped(*inputs)\n\n\ndef wrapped("
            with changed("gelu.py", "def kernel_fn(", new) as file:
                done = rtc("verify", file.name, "--no-boundary", "--no-sanitize")
            found = json.loads(done.stdout)
            self.assertEqual((done.returncode, found.get("error", {}).get("code")), (1 if code else 0, code), done.stderr)
            self.assertIn(text, done.stdout)

    def test_graphs_are_refused_before_a_file_can_keep_their_functions(self):
        """A package in the place of PyTorch, of which the file takes functions while it is imported."""
        graphs = ("class _CUDAGraph:\n    def capture_begin(self):\n        pass\n    def replay(self):\n        pass\n"
                  "class CUDAGraph(_CUDAGraph):\n    def replay(self):\n        super().replay()\n")
        package = ("import types\nfrom . import cuda\nTensor = type('Tensor', (), {})\n"
                   "utils = types.SimpleNamespace(deterministic=types.SimpleNamespace(fill_uninitialized_memory=False))\n"
                   "def __getattr__(name):\n    if name.startswith('__'):\n        raise AttributeError(name)\n    return lambda *_, **__: False\n")
        with open(os.path.join(CONTRACTS, "gelu.py")) as file:
            gelu = file.read()
        for at_import, call in [("CUDAGraph().capture_begin()", ""), ("kept = CUDAGraph.replay", "kept(CUDAGraph())"),
                                ("kept = CUDAGraph.__mro__[1].replay", "kept(CUDAGraph())"), ("", "")]:
            with self.subTest(at_import=at_import), tempfile.TemporaryDirectory() as folder:
                os.makedirs(os.path.join(folder, "torch", "cuda"))
                new = f"import torch\nfrom torch.cuda import CUDAGraph\n{at_import}\ndef kernel_fn(*inputs):\n    {call}\n    return wrapped(*inputs)\n\n\ndef wrapped("
                for name, text in [("torch/__init__.py", package), ("torch/cuda/__init__.py", "from .graphs import CUDAGraph\n"),
                                   ("torch/cuda/graphs.py", graphs), ("replaying.py", gelu.replace("def kernel_fn(", new))]:
                    with open(os.path.join(folder, name), "w") as file:
                        file.write(text)
                done = rtc("verify", os.path.join(folder, "replaying.py"), "--no-boundary", "--no-sanitize")
            code = json.loads(done.stdout).get("error", {}).get("code")
            self.assertEqual((done.returncode, code), (1, "no-verdict") if at_import else (0, None), done.stdout + done.stderr)

    def test_views_that_are_not_contiguous(self):
        with changed("gelu.py", "standard_normal(N).astype(np.float32)", "standard_normal(2 * N).astype(np.float32)[::2]") as file:
            done = rtc("verify", file.name)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("some inputs are not contiguous", done.stdout)
        self.assertFalse(json.loads(done.stdout)["correct"])
        # Rows that are not adjacent are tried by themselves.
        for new, verdict, status in [("", "right", 0), ("x = x[:]", "wrong", 1), ("assert x.flags.c_contiguous", "refused", 0)]:
            with changed("abs.py", "x = x.copy()", new or "x = x.copy()") as file:
                done = rtc("verify", file.name)
            self.assertEqual((done.returncode, json.loads(done.stdout)["non_contiguous"]["verdict"]), (status, verdict), done.stderr)
            self.assertEqual("inputs whose rows are not adjacent give wrong results" in done.stdout, verdict == "wrong")


class Bench(unittest.TestCase):

    def test_fields_and_plots(self):
        with tempfile.TemporaryDirectory() as folder:
            done = rtc("bench", "gelu.py", "--sweep", "N=256..1024", "--plots", folder, "--iterations", "2")
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            for name in ("kernel_time_ms", "reference_time_ms", "speedup", "warmup_iters", "benchmark_iters"):
                self.assertIn(name, found)
            # About 20 operations for each element; loads and stores of 4 bytes each.
            self.assertEqual((found["bytes"], found["flops_of"]), (8000, "threads"))
            self.assertTrue(10 * 1000 < found["flops"] < 80 * 1000, found["flops"])
            self.assertEqual(found["intensity"], found["flops"] / 8000)
            # Of an emulator, a speed-up would mean nothing.
            self.assertIsNone(found["speedup"])
            self.assertEqual([row["N"] for row in found["sweep"]], [256, 512, 1024])
            for name in ("times.svg", "sweep.svg"):
                xml.dom.minidom.parse(os.path.join(folder, name))

    def test_products_are_counted(self):
        done = rtc("bench", "product.py", "--iterations", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["flops"], found["flops_of"]), (2 * 64 * 96 * 32, "products"))

    def test_a_file_that_triton_cannot_run(self):
        with changed("gelu.py", "import triton\n", 'import triton\nassert "rtc" in triton.__file__\n') as file:
            done = rtc("bench", file.name, "--iterations", "1", "--against", "triton")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertIsNone(found["triton_time_ms"])
        self.assertIn("Error", found["triton_error"])
        self.assertIn(f"note: Triton could not run {file.name}: {found['triton_error']}", done.stderr)

    def test_trials_of_a_search_are_no_launches(self):
        tuned = '@triton.autotune([triton.Config({"BLOCK": n}) for n in (128, 256)], key=["n"])\n@triton.jit\ndef gelu'
        with changed("gelu.py", "@triton.jit\ndef gelu", tuned) as file, tempfile.TemporaryDirectory() as folder:
            with open(file.name) as source:
                text = source.read()
            with open(file.name, "w") as source:
                source.write(text.replace("256),)]", "256) * 2,)]").replace(", BLOCK=256)", ")"))
            done = rtc("verify", file.name, "--record", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.listdir(folder), ["launch_0"])

    def test_a_kernel_is_tuned_once(self):
        tuned = ('def said(args):\n    print("trial", args["n"], file=__import__("sys").stderr)\n\n'
                 '@triton.autotune([triton.Config({"BLOCK": n}, pre_hook=said) for n in (128, 256)], key=["n"])\n@triton.jit\ndef gelu')
        with changed("gelu.py", "@triton.jit\ndef gelu", tuned) as file:
            with open(file.name) as source:
                text = source.read()
            with open(file.name, "w") as source:
                source.write(text.replace("256),)]", "256) * 2,)]").replace(", BLOCK=256)", ")"))
            done = rtc("verify", file.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "`gelu` ran at these sizes with the configuration that was found for get_inputs.*BLOCK: (128|256), num_warps: 4")
        # Two configurations are timed, more than once, at the given size; at each other there is the launch alone.
        trials = [line for line in done.stderr.splitlines() if line.startswith("trial")]
        self.assertGreater(trials.count("trial 1000"), 5)
        others = [line for line in trials if line != "trial 1000"]
        self.assertTrue(len(others) == len(set(others)) >= 3, others)

    def test_a_wrong_kernel_is_not_timed(self):
        with changed("gelu.py", "0.5 * v", "0.6 * v") as file:
            done = rtc("bench", file.name)
        self.assertEqual(done.returncode, 1)
        self.assertIn("so it is not timed", done.stderr)
        self.assertNotIn("kernel_time_ms", done.stdout)

    def test_a_sweep_that_is_none(self):
        self.assertEqual(rtc("bench", "gelu.py", "--sweep", "N=4..2").returncode, 2)
        self.assertEqual(rtc("bench", "gelu.py", "--iterations", "0").returncode, 2)


class Json(unittest.TestCase):
    """With `--json`, standard output is one object, however a command ends."""

    def error(self, *words, status, json=True):
        done = rtc(*words, *(["--json"] if json else []))
        self.assertEqual(done.returncode, status, (words, done.stdout, done.stderr))
        found = read(done.stdout)
        self.assertEqual(sorted(found["error"]), ["code", "message"])
        self.assertIn(f"error[{found['error']['code']}]: ", done.stderr)
        return found

    def test_errors(self):
        for command in ("verify", "bench", "precision"):
            with self.subTest(command=command):
                self.assertEqual(self.error(command, "--nothing", status=2)["error"]["code"], "usage")
                self.assertEqual(self.error(command, status=2)["error"]["code"], "usage")
                self.assertEqual(self.error(command, "gelu.py", "--rtol", "-1", status=2)["error"]["code"], "usage")
                self.assertEqual(self.error(command, "nowhere.py", status=1)["error"]["code"], "io")
                for old, new, part in [
                    ("BLOCK=256)", "BLOCK=255)", "CompilationError"),
                    (", mask=i < n)\n\n", ")\n\n", "KernelFault"),
                    ("def get_inputs", "def inputs", "has no `get_inputs`"),
                ]:
                    with changed("gelu.py", old, new) as file:
                        self.assertIn(part, self.error(command, file.name, status=1)["error"]["message"])

    def test_json_is_the_default_of_two(self):
        self.error("verify", "nowhere.py", status=1, json=False)
        self.error("bench", "nowhere.py", status=1, json=False)
        self.assertEqual(rtc("precision", "nowhere.py").stdout, "")

    def test_a_wrong_kernel(self):
        with changed("gelu.py", "0.5 * v", "0.6 * v") as file:
            found = self.error("bench", file.name, status=1)
        self.assertEqual((found["correct"], found["error"]["code"]), (False, "wrong-result"))

    def test_what_the_file_prints(self):
        with changed("gelu.py", "    return o\n", "    print('hello')\n    return o\n") as file:
            for words in [("verify", "--no-boundary", "--no-sanitize"), ("bench", "--iterations", "1"), ("precision", "--dtype", "float32")]:
                done = rtc(words[0], file.name, "--json", *words[1:])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("error", read(done.stdout))
                self.assertIn("hello", done.stderr)

    def test_recorded_results(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(rtc("verify", "gelu.py", "--record", folder, "--no-boundary", "--no-sanitize").returncode, 0)
            found = read(rtc("verify", "--golden", folder, "--json").stdout)
            self.assertEqual((found["correct"], found["launches"], found["replayed"][0]["checks"][0]["wrong"]), (True, 1, 0))
        self.assertEqual(self.error("verify", "--golden", folder, status=1)["error"]["code"], "golden")
        self.assertEqual(rtc("verify", "--golden", folder).stdout, "")


def read(text):
    """The one object that is all of a text."""
    assert text.count("\n") == 1, text
    return json.loads(text)


class Explain(unittest.TestCase):

    def test_names_and_codes(self):
        for names, part in [(["routing"], "cuBLAS"), (["tl.dot"], "input_precision"), (["shape-mismatch"], "broadcast"), ([], "bad-shape")]:
            done = rtc("explain", *names)
            self.assertTrue(done.returncode == 0 and part in done.stdout and not done.stderr, (names, done))
        done = rtc("explain", "rooting")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("error[unknown-code]: there is no code or function `rooting`; did you mean `routing`?", done.stderr)
        self.assertEqual(rtc("explain", "tl.dot", "tl.sum").returncode, 2)

    def test_fix(self):
        kernel = ("import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef f(x, n):\n"
                  "    p = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))\n    tl.store(p, 1)\n")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "old.py")
            with open(path, "w") as file:
                file.write(kernel)
            shown = rtc("fix", path)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertIn("+    p_i0 = tl.arange(0, 16).to(tl.int64)\n", shown.stdout)
            self.assertEqual(rtc("fix", "--check", path).returncode, 1)
            self.assertEqual(rtc("fix", "--write", path).returncode, 0)
            with open(path) as file:
                self.assertEqual(file.read(), kernel[:kernel.index("    p")] +
                                 "    p_i0 = tl.arange(0, 16).to(tl.int64)\n    tl.store(x + p_i0, 1)\n")
            self.assertEqual(rtc("fix", "--check", path).returncode, 0)
            left = rtc("fix", os.path.join(folder, "missing.py"))
            self.assertEqual(left.returncode, 1)
            self.assertIn("missing.py", left.stderr)


class Precision(unittest.TestCase):

    def test_the_report(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "eco_report.txt")
            done = rtc("precision", "abs.py", "-o", out, "--plots", folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(out) as file:
                self.assertEqual(file.read(), done.stdout)
        for part in ("[Configuration]:", "MERE threshold: 1.220703e-04", "Small value threshold: 1.000000e-07", "[Precision standards]:",
                     "int32/int64/int16/int8: equal", "Tests: 12, passed: 12, failed: 0", "[Error metrics]:", "Maximum absolute error: ",
                     "[Judgment]:", "  Overall: True"):
            self.assertIn(part, done.stdout)
        self.assertEqual(done.stdout.splitlines()[0], "=" * 80)

    def test_all_dtypes(self):
        done = rtc("precision", "abs.py", "--dtype", "all")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        names = "float16 bfloat16 float32 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()
        self.assertIn("[Judgment]:\n  MERE < threshold: True\n  MARE < 10 x threshold: True\n"
                      + "".join(f"  {name}: True\n" for name in names) + "  Overall: True", done.stdout)
        self.assertIn("Tests: 48, passed: 48, failed: 0", done.stdout)
        self.assertNotIn("Not tested", done.stdout)
        # A mistake with negative numbers is seen where there are some.
        with changed("abs.py", "tl.abs(tl.load(x + i, mask=i < n))", "tl.maximum(tl.load(x + i, mask=i < n), 0)") as file:
            done = rtc("precision", file.name, "--dtype", "int8", "--dtype", "uint8")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("  int8: False\n  uint8: True\n  Overall: False", done.stdout)
        # What the wrapper cannot do is told, not judged.
        with changed("abs.py", "    out = ", "    assert x.dtype != bool, 'no truth values'\n    out = ") as file:
            done = rtc("precision", file.name, "--dtype", "all")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"  Not tested: bool: `kernel_fn` raised AssertionError .*: no truth values")
        self.assertIn("Tests: 44, passed: 44, failed: 0", done.stdout)

    def test_dropout_is_measured_where_both_keep(self):
        done = rtc("precision", "dropout.py", "--dtype", "float32")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("draws random numbers (dropout)", done.stdout)
        self.assertNotIn("of which the algorithm", done.stdout)
        # A reference whose random numbers follow from where its argument lies.
        with changed("dropout.py", "default_rng().random", "default_rng(x.__array_interface__['data'][0]).random") as file:
            for command in ("precision", "verify"):
                done = rtc(command, file.name, *(["--dtype", "float32"] if command == "precision" else []))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with changed("dropout.py", "v / (1 - p)", "v / (1.01 - p)") as file:
            self.assertEqual(rtc("precision", file.name, "--dtype", "float32").returncode, 1)
        with changed("dropout.py", "> p, v", "> 2 * p, v") as file:
            done = rtc("precision", file.name, "--dtype", "float32")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the dropped shares differ", done.stdout)

    def test_bins_of_the_histogram(self):
        from rtc._precision import ulp_bins, ulp_label
        bins = ulp_bins([0.0, 0.4, 0.6, 4.2, 5, 8, 9, 33, 65, 40000, 1e9]).tolist()
        self.assertEqual(bins, [0, 0, 1, 4, 8, 8, 16, 64, 128, 65536, 65536])
        self.assertEqual([ulp_label(u) for u in (0, 4, 8, 64, 128, 65536)], ["0", "4", "5-8", "33-64", "to 128", "more"])
        with tempfile.TemporaryDirectory() as folder:
            rtc("precision", "softmax_fp16.py", "--dtype", "float32", "--plots", folder)
            with open(os.path.join(folder, "ulp_float32.svg")) as file:
                self.assertIn(">to 4096<", file.read())

    def test_every_dtype(self):
        for dtype in ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]:
            with changed("abs.py", "standard_normal((4, 50)).astype(np.float32)", f"integers(0, 100, (4, 50)).astype(np.{dtype})") as file:
                done = rtc("precision", file.name)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("Elements that differ: 0 of 200", done.stdout)

    def test_the_line_that_loses_most_bits(self):
        done = rtc("precision", "softmax_fp16.py", "--json", "--dtype", "float32")
        self.assertEqual(done.returncode, 1)
        found = json.loads(done.stdout)
        self.assertFalse(found["passed"])
        second = found["second_oracle"]["float32"]
        with open(os.path.join(CONTRACTS, "softmax_fp16.py")) as file:
            line = 1 + file.read().split("\n").index("    s = tl.sum(h, axis=0)")
        self.assertEqual(second["worst_line"]["line"], line)
        self.assertLess(second["algorithm"], 1e-6)
        self.assertGreater(second["mare"], 1e-4)

    def test_accumulators_of_the_type_of_elements(self):
        done = rtc("precision", "accumulator.py", "--json", "--dtype", "float16")
        second = json.loads(done.stdout)["second_oracle"]["float16"]
        with open(os.path.join(CONTRACTS, "accumulator.py")) as file:
            lines = file.read().split("\n")
        # The loop that adds in fp16 loses most, which shows only against sums in fp64.
        self.assertEqual(second["worst_line"]["line"], 1 + lines.index("    for start in range(0, n, BLOCK):"), second)
        self.assertGreater(second["mare"], 1e-5)
        self.assertLess(second["algorithm"], 1e-6)

    def test_texts_in_fp64(self):
        from rtc import _widen

        def widened(statement, at=0, before=()):
            text = "def f(x):\n" + "".join(f"    {line}\n" for line in [*before, statement])
            body = [_widen.Statement(node, node.lineno) for node in ast.parse(text).body[0].body]
            return _widen.cut(text, body, at).split("\n", 1)[1].rstrip("\n")

        for given, expected in [
            ("a = tl.zeros([4], x.dtype.element_ty)", "a = tl.zeros([4], __wide_type(x.dtype.element_ty))"),
            # An edit in an edit.
            ("a = tl.load(x + tl.load(y, other=tl.float16))", "a = __wide(tl.load(x + __wide(tl.load(y, other=tl.float64))))"),
            ("a = tl.load(x + tl.load(y)).dtype.element_ty", "a = __wide_type(__wide(tl.load(x + __wide(tl.load(y)))).dtype.element_ty)"),
            ("tl.zeros([4], tl.load(x).type.element_ty)", "tl.zeros([4], __wide_type(__wide(tl.load(x)).type.element_ty))"),
            # Types of memory and of bits stay.
            ("p = x.to(tl.pointer_type(tl.float32))", "p = x.to(tl.pointer_type(tl.float32))"),
            ("p = x.to(tl.pointer_type(x.dtype.element_ty))", "p = x.to(tl.pointer_type(x.dtype.element_ty))"),
            ("a = tl.load(x.to(tl.pointer_type(tl.float32)))", "a = __wide(tl.load(x.to(tl.pointer_type(tl.float32))))"),
            ("a = b.to(tl.float32, bitcast=True)", "a = __wide(b.to(tl.float32, bitcast=True))"),
            ("a = b.to(tl.float32, bitcast=False)", "a = b.to(tl.float64, bitcast=False)"),
            ("if x.dtype.element_ty == tl.float16: a = 1", "if x.dtype.element_ty == tl.float16: a = 1"),
        ]:
            with self.subTest(given=given):
                self.assertEqual(widened(given), f"    {expected}")
        self.assertEqual(widened("tl.load(a)", 1, ["a = x"]), "    a = x\n    a = __wide(a)\n    __wide(tl.load(a))")

    def test_the_second_oracle_keeps_options_of_the_launch(self):
        import numpy as np

        from rtc import _as_triton, _rtc, _widen
        from rtc._contract import load
        from rtc._record import Recorder
        _as_triton.install()
        contract = load(os.path.join(CONTRACTS, "accumulator.py"))
        kernel, x = contract.module.sums, np.ones((2, 32), np.float16)
        with Recorder(keep=True) as recorder:
            kernel[(2,)](x, np.empty(2, np.float32), 32, BLOCK=16, num_warps=2, num_stages=5, enable_fp_fusion=False)
            _rtc.set_device("interpreter")
            try:
                self.assertEqual(_widen.run(recorder.launches[0], 0, ["o"])["o"].tolist(), [32, 32])
            finally:
                _rtc.set_device("auto")
        specs = [json.loads(launch.compiled._ready.spec()) for launch in recorder.launches]
        self.assertEqual(len(specs), 2)
        for spec in specs:
            self.assertIs(spec["options"].get("enable_fp_fusion"), False, spec)
        options = [(launch.compiled.metadata.num_warps, launch.compiled.metadata.num_stages) for launch in recorder.launches]
        self.assertEqual(options, [(2, 5), (2, 5)])

    def test_without_a_reference(self):
        with changed("softmax_fp16.py", "def reference_fn", "def another") as file:
            done = rtc("precision", file.name, "--dtype", "float32")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("Maximum relative error (MARE): 4.0", done.stdout)
        self.assertIn("line 11 loses most bits", done.stdout)

    def test_a_wrong_option(self):
        done = rtc("precision", "abs.py", "--dtype", "float8")
        text = "--dtype takes all, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int8, int16, int32, int64, uint8, uint16"
        self.assertTrue(done.returncode == 2 and text in done.stderr, done.stderr)

    def test_a_wrapper_that_only_knows_arrays_of_numpy(self):
        with changed("gelu.py", "return o\n", "return o.astype(np.float64).astype(x.dtype)\n") as file:
            done = rtc("precision", file.name)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("Not tested: bfloat16: `kernel_fn` raised TypeError", done.stdout)
            self.assertIn("  float16: True\n  float32: True\n  Overall: True", done.stdout)
            self.assertEqual(list(json.loads(rtc("precision", file.name, "--json").stdout)["not_tested"]), ["bfloat16"])
            done = rtc("precision", file.name, "--dtype", "bfloat16")
        self.assertTrue(done.returncode == 1 and "`kernel_fn` raised TypeError" in done.stderr, done.stdout + done.stderr)
        # What is wrong with the kernel is no matter of arrays.
        with changed("abs.py", "    tl.store", "    tl.static_assert(x.dtype.element_ty != tl.bfloat16)\n    tl.store") as file:
            done = rtc("precision", file.name)
        self.assertTrue(done.returncode == 1 and "static_assert" in done.stderr, done.stdout + done.stderr)

    def test_the_worst_element_is_shown(self):
        with changed("gelu.py", "0.5 * v", "0.501 * v") as file:
            done = rtc("precision", file.name, "--dtype", "float32")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"Where it is largest: -?\d\.\d{6}e.\d\d instead of -?\d\.\d{6}e.\d\d")
