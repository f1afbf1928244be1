"""Tuning on a Ray cluster of two nodes of this machine, with the emulator's counters for a clock."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock as mock

import numpy as np
from ray.cluster_utils import Cluster

import rtc
import rtc.language as tl
from rtc import _arrays, _cluster, knobs

KERNEL = """\
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({'BLOCK': b}, num_warps=w) for b in (64, 1024) for w in (1, 4)], key=['n'])
@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2.0 * tl.load(x + i, mask=i < n), mask=i < n)
"""
N = 3000
LAUNCH = {"spec": {"args": [{"name": "x", "type": "*fp32", "divisible_by": 16}, {"name": "y", "type": "*fp32", "divisible_by": 16},
                            {"name": "n", "type": "i32"}]},
          "grid": ["cdiv(n, BLOCK)"], "args": {"x": {"tensor": "x"}, "y": {"tensor": "y"}, "n": N}, "tensors": "in.safetensors"}


@rtc.jit
def scaled(x, out, count, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, FACTOR * tl.load(x + i, mask=i < n), mask=i < n)
    tl.atomic_add(count, 1)


def part_on(node):
    """The process that runs a part on a node; None while there is none."""
    raylet = str(node.all_processes["raylet"][0].process.pid)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline") as file:
                words = file.read().split("\0")
            with open(f"/proc/{pid}/environ") as file:
                variables = dict(line.split("=", 1) for line in file.read().split("\0") if "=" in line)
            if "--shard" in words and variables.get("RAY_RAYLET_PID") == raylet:
                return int(pid)
    return None


class OnCluster(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="rtc-cluster-")
        os.chdir(cls.folder.name)
        with open("k.py", "w") as file:
            file.write(KERNEL)
        with open("launch.json", "w") as file:
            json.dump(LAUNCH, file)
        values = np.arange(N, dtype=np.float32)
        tensors = {name: ((N,), "float32", data.tobytes()) for name, data in (("x", values), ("y", 0 * values))}
        with open("in.safetensors", "wb") as file:
            file.write(_arrays.safetensors(tensors))
        # Ray gives way to all other processes of the machine.
        os.environ["RAY_worker_niceness"] = "0"
        cls.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        cls.second = cls.cluster.add_node(num_cpus=1)

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        cls.cluster.shutdown()
        cls.folder.cleanup()

    def setUp(self):
        # What an earlier test timed is not taken from the cache.
        self.cache = tempfile.TemporaryDirectory(prefix="rtc-cache-")

    def tearDown(self):
        self.cache.cleanup()

    def tune(self, *words, status=0):
        done = subprocess.run([sys.executable, "-m", "rtc", "tune", "k.py", "--launch", "launch.json", "--clock", "counters", *words],
                              capture_output=True, text=True, env={**os.environ, "RTC_CACHE_DIR": self.cache.name})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def entries(self, name):
        with open(name) as file:
            return json.load(file)["entries"]

    def one_machine(self):
        self.tune("--no-cache", "-o", "alone.json")
        return self.entries("alone.json")[0]

    def assert_same(self, found, expected):
        def times(entry):
            return {json.dumps([r["values"], r["options"]], sort_keys=True): r["milliseconds"] for r in entry["records"]}
        self.assertEqual(times(found), times(expected))
        # Of two that are as fast either may win.
        winner = json.dumps([found["winner"]["values"], found["winner"]["options"]], sort_keys=True)
        self.assertEqual(times(found)[winner], min(times(found).values()))

    def test_1_a_process_that_hangs_costs_a_retry(self):
        stopped = []

        def stop_one():
            while not stopped:
                pid = part_on(self.second)
                if pid:
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)
                time.sleep(0.01)

        watch = threading.Thread(target=stop_one)
        watch.start()
        done = self.tune("--cluster", self.cluster.address, "--fresh", "--part-limit", "10", "-o", "hung.json")
        watch.join()
        self.assertIn("tuning on 2 x emulator (sm_90a)", done.stdout)
        self.assertIn("is tried again: it took longer than 10 seconds", done.stderr)
        [entry] = self.entries("hung.json")
        self.assert_same(entry, self.one_machine())
        self.assertFalse(os.path.exists(f"/proc/{stopped[0]}"), "the process that hung is still there")

    def test_2_autotune_asks_the_cluster(self):
        configs = [rtc.Config({"BLOCK": block}, num_warps=warps) for block in (32, 512) for warps in (1, 4)]
        kernel = rtc.autotune(configs=configs, key=["n"], reset_to_zero=["count"])(
            rtc.heuristics({"FACTOR": lambda args: 2 if args["BLOCK"] > 32 else 3})(scaled))
        x, out, count = np.ones(N, np.float32), np.zeros(N, np.float32), np.zeros(1, np.int32)
        grid = lambda meta: (rtc.cdiv(N, meta["BLOCK"]),)
        said = io.StringIO()
        with mock.patch.object(type(kernel), "_bench", side_effect=AssertionError("it was timed here")), \
                knobs.autotuning.scope(), contextlib.redirect_stderr(said):
            knobs.autotuning.cluster = self.cluster.address
            kernel[grid](x, out, count, N)
        self.assertEqual(said.getvalue(), "")
        timings = {(c.kwargs["BLOCK"], c.num_warps): times[0] for c, times in kernel.configs_timings.items()}
        self.assertEqual(len(timings), 4)
        self.assertGreater(len(set(timings.values())), 1, timings)
        best = kernel.best_config
        self.assertEqual(timings[best.kwargs["BLOCK"], best.num_warps], min(timings.values()))
        # The launch itself is the only one that this process made.
        self.assertEqual(count[0], rtc.cdiv(N, best.kwargs["BLOCK"]))
        np.testing.assert_array_equal(out, np.full(N, 2.0 if best.kwargs["BLOCK"] > 32 else 3.0))
        # Hooks are Python of this process: such a kernel is tuned here, and the reason is given.
        hooked = rtc.autotune(configs=configs, key=["n"], pre_hook=lambda args, reset_only=False: None,
                              do_bench=lambda call, quantiles: [1.0] * 3)(
            rtc.heuristics({"FACTOR": lambda args: 2})(scaled))
        with knobs.autotuning.scope(), contextlib.redirect_stderr(said):
            knobs.autotuning.cluster = self.cluster.address
            hooked[grid](x, out, count, N)
        self.assertIn("`scaled` is tuned here alone: hooks run in this process", said.getvalue())
        self.assertEqual(len(hooked.configs_timings), 4)

    def test_3_the_page_is_right(self):
        page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../docs/tools/tune-many.md")
        with open(page) as file:
            text = file.read()

        def block(after):
            return re.search(re.escape(after) + r".*?^```\w+\n(.*?)^```", text, re.S | re.M)[1]

        os.makedirs("examples/softmax", exist_ok=True)
        shutil.copy(os.path.join(os.path.dirname(page), "../../examples/softmax/inputs.safetensors"), "examples/softmax")
        for name in ("softmax_tuned.py", "softmax_launch.json"):
            with open(name, "w") as file:
                file.write(block(f"<!-- file: {name} -->"))
        with open("page.py", "w") as file:
            file.write(block("<!-- run: cluster -->"))
        variables = {**os.environ, "RAY_ADDRESS": self.cluster.address, "RTC_CACHE_DIR": self.cache.name}
        words = block("`auto` is the cluster that this machine belongs to.").split()
        self.assertEqual(words[:2], ["rtc", "tune"])
        for started in (["-m", *words], ["page.py"]):
            done = subprocess.run([sys.executable, *started], capture_output=True, text=True, env=variables)
            self.assertEqual((done.returncode, "cluster]" in done.stderr), (0, False), done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^BLOCK: \d+, num_warps: 4")
        self.assertEqual(len(self.entries("tuned-on-cluster.json")[0]["records"]), 4)

    def test_4_mistakes_end_it_at_once(self):
        with open("k.py", "w") as file:
            file.write(KERNEL.replace("'BLOCK': b", "'BLOK': b"))
        try:
            text = self.tune("--cluster", self.cluster.address, status=1).stderr
        finally:
            with open("k.py", "w") as file:
                file.write(KERNEL)
        self.assertIn("`double` has no parameter `BLOK`", text)
        text = self.tune("--cluster", "127.0.0.1:1", status=1).stderr
        self.assertIn("error[cluster]: there is no cluster at `127.0.0.1:1`", text)

    def test_5_a_node_that_dies_costs_a_retry(self):
        killed = []

        def kill_node():
            while not killed:
                pid = part_on(self.second)
                if pid:
                    # So that the part has not ended when its node does.
                    os.kill(pid, signal.SIGSTOP)
                    self.cluster.remove_node(self.second, allow_graceful=False)
                    killed.append(pid)
                time.sleep(0.01)

        watch = threading.Thread(target=kill_node)
        watch.start()
        done = self.tune("--cluster", self.cluster.address, "--fresh", "-o", "killed.json")
        watch.join()
        self.assertRegex(done.stderr, r"part \d/4 of emulator \(sm_90a\) is tried again: its worker on .* is lost")
        [entry] = self.entries("killed.json")
        self.assert_same(entry, self.one_machine())
        # The process ends with its worker, and that one when it misses its node.
        end = time.monotonic() + 20
        while os.path.exists(f"/proc/{killed[0]}") and time.monotonic() < end:
            time.sleep(0.1)
        self.assertFalse(os.path.exists(f"/proc/{killed[0]}"), "the process of the dead node is still there")

    def test_6_nodes_of_two_kinds_keep_their_results_apart(self):
        other = self.cluster.add_node(num_cpus=1, labels={_cluster.LABEL: "sm_80"})
        try:
            done = self.tune("--cluster", self.cluster.address, "--fresh", "-o", "kinds.json")
        finally:
            self.cluster.remove_node(other)
        self.assertIn("tuning on 1 x emulator (sm_80)", done.stdout)
        found = {entry["arch"]: entry for entry in self.entries("kinds.json")}
        self.assertEqual(sorted(found), ["sm_80", "sm_90a"])
        self.assert_same(found["sm_90a"], self.one_machine())
        self.assertEqual(len(found["sm_80"]["records"]), 4)
        self.assertNotEqual([r["milliseconds"] for r in found["sm_80"]["records"]],
                            [r["milliseconds"] for r in found["sm_90a"]["records"]])


if __name__ == "__main__":
    unittest.main()
