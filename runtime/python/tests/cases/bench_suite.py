"""`benches/gpu/suite.py` without a GPU: the plan, the turns of the peers' processes, and the page of recorded results."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.normpath(os.path.join(HERE, "../../../../benches/gpu"))
sys.path.insert(0, FOLDER)

import page
import plan
import suite

#: A process that answers as worker.py does, and notes its launches in a file. Its first word says how it behaves.
WORKER = '''
import json, sys
kind, name, log = sys.argv[1:]
for line in sys.stdin:
    request = json.loads(line)
    what = request["do"]
    answer = {}
    if what == "prepare":
        answer = {"configuration": "BM=64", "bytes": 8, "flops": 1000}
        if kind == "wrong":
            answer = {"failed": "BM=64: differs from PyTorch"}
    if what == "launch":
        if kind == "dies":
            sys.exit(3)
        with open(log, "a") as file:
            file.write(name + " ")
        answer = {"us": [{"rtc": 10.0, "triton": 12.5}.get(name, 5.0)]}
    if what == "facts":
        answer = {"gpu": "NVIDIA H200"}
    print(json.dumps(answer), flush=True)
'''

RESULTS = {
    "format": 1, "gpu": "NVIDIA H200", "date": "2026-11-26", "commit": "abc1234",
    "peers": {"rtc": {"title": "rtc", "version": "0.1.0"}, "triton": {"title": "Triton", "version": "3.6.0"},
              "pytorch": {"title": "PyTorch", "version": "2.11.0"}, "fa3": {"title": "FlashAttention-3", "version": None}},
    "rows": [
        {"group": "matmul", "name": "matmul <64>", "us": {"rtc": 100.0, "triton": 125.0, "pytorch": 80.0},
         "quartiles": {"rtc": [99.0, 101.0]}, "configuration": {"rtc": "BM=128"}, "flops": 50_000_000_000,
         "status": {"rtc": "timed", "triton": "timed", "pytorch": "timed"}},
        {"group": "attention", "name": "attention full", "us": {"rtc": 50.0, "triton": 2000.0}, "quartiles": {}, "configuration": {},
         "status": {"rtc": "timed", "triton": "timed", "pytorch": "not run: no time was left", "fa3": "not installed"}},
        {"group": "attention", "name": "attention causal", "us": {"triton": 70.0}, "quartiles": {}, "configuration": {},
         "status": {"rtc": "BM=64: differs from PyTorch", "triton": "timed", "fa3": "not installed"}},
    ],
}


def run(*words, **options):
    return subprocess.run([sys.executable, os.path.join(FOLDER, "suite.py"), *words], capture_output=True, text=True, **options)


class Plan(unittest.TestCase):
    def test_every_group_has_entries_with_both_compilers(self):
        entries = plan.entries()
        self.assertEqual({entry.group for entry in entries}, set(plan.GROUPS))
        for entry in entries:
            self.assertLessEqual({"rtc", "triton"}, set(entry.peers))
            self.assertLessEqual(set(entry.peers), set(plan.PEERS))
        names = [entry.name for entry in entries]
        self.assertEqual(len(names), len(set(names)))

    def test_entries_are_prepared_by_functions_of_launches(self):
        # It imports PyTorch, so that its text is read.
        text = ""
        for name in ("launches.py", "row_launches.py"):
            with open(os.path.join(FOLDER, name)) as file:
                text += file.read()
        for entry in plan.entries():
            found = re.search(rf"^def {entry.make}\(peer, (.*)\):$", text, re.M)
            self.assertIsNotNone(found, entry.make)
            self.assertEqual(len(found[1].split(", ")), len(entry.arguments), entry.make)

    def test_each_peer_has_a_colour(self):
        self.assertEqual(set(page.COLOURS), set(plan.PEERS))

    def test_the_picture_of_the_readme_is_made_of_entries(self):
        root = os.path.join(FOLDER, "../..")
        sys.path.insert(0, os.path.join(root, "scripts"))
        import pictures
        names = {entry.name for entry in plan.entries()}
        self.assertEqual([name for name in pictures.SHOWN if name not in names], ["vLLM all"])

    def test_it_is_listed_without_a_gpu(self):
        done = run("--plan", "--only", "^fp8")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertIn("Blockwise fp8 matrix multiplication:", lines)
        self.assertNotIn("Row kernels:", lines)
        self.assertTrue(any("4096x7168x16384" in line and "rtc, triton, deepgemm" in line for line in lines), done.stdout)
        # A module that exists nowhere.
        self.assertEqual(plan.Peer("x", ("json", "no_such_module"), "x").missing(), "no_such_module")
        self.assertIsNone(plan.Peer("x", ("json",), "x").missing())

    def test_mistakes_on_the_command_line(self):
        self.assertIn("there is no peer cublas; there are rtc, triton", run("--plan", "--peers", "cublas").stderr)
        self.assertIn("no regular expression", run("--plan", "--only", "(").stderr)
        self.assertIn("cannot read", run("--from", "/nowhere.json").stderr)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("[]")
            file.flush()
            done = run("--from", file.name)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has not the format 1", done.stderr)


class Turns(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.script = os.path.join(self.folder.name, "stub.py")
        self.log = os.path.join(self.folder.name, "log")
        with open(self.script, "w") as file:
            file.write(WORKER)

    def measured(self, missing=(), rounds=4, **kinds):
        command_of = lambda name: [sys.executable, self.script, kinds.get(name, "good"), name, self.log]
        team = suite.Team(command_of, {name: "module" if name in missing else None for name in plan.PEERS})
        self.addCleanup(team.end)
        entry = plan.Entry("attention", "attention", "attention", (1,), ("rtc", "triton", "fa3"))
        results = suite.measured([entry], team, rounds, 60)
        with open(self.log) as file:
            return results, file.read().split()

    def test_peers_launch_in_turn(self):
        results, launched = self.measured(rounds=3)
        self.assertEqual(launched, ["rtc", "triton", "fa3", "triton", "fa3", "rtc", "fa3", "rtc", "triton"])
        row = results["rows"][0]
        self.assertEqual(row["us"], {"rtc": 10.0, "triton": 12.5, "fa3": 5.0})
        self.assertEqual((row["flops"], row["configuration"]["rtc"]), (1000, "BM=64"))
        self.assertEqual(results["gpu"], "NVIDIA H200")
        self.assertEqual(suite.failures(results), [])

    def test_a_missing_a_wrong_and_a_dying_peer_cost_their_own_column(self):
        results, launched = self.measured(missing=("fa3",), rtc="wrong")
        row = results["rows"][0]
        self.assertEqual(row["status"], {"rtc": "BM=64: differs from PyTorch", "fa3": "not installed", "triton": "timed"})
        self.assertEqual((row["us"], set(launched)), ({"triton": 12.5}, {"triton"}))
        self.assertEqual(suite.failures(results), ["attention"])
        self.assertIsNone(results["peers"]["fa3"]["version"])
        results, _ = self.measured(triton="dies")
        row = results["rows"][0]
        self.assertEqual(row["status"]["triton"], "its process ended with status 3")
        self.assertEqual(row["us"], {"rtc": 10.0, "fa3": 5.0})

    def test_no_entry_begins_after_the_time(self):
        team = suite.Team(lambda name: [], {name: None for name in plan.PEERS})
        results = suite.measured(plan.entries()[:2], team, 1, -1)
        self.assertEqual(results["rows"][0]["status"]["rtc"], "not run: no time was left")
        self.assertEqual(suite.failures(results), [])


class Page(unittest.TestCase):
    def test_times_ratios_and_what_is_missing(self):
        text = page.page(RESULTS)
        self.assertIn("NVIDIA H200, 2026-11-26, commit abc1234", text)
        self.assertIn("matmul &lt;64&gt;", text)
        self.assertNotIn("matmul <64>", text)
        # 125 / 100 and 80 / 100; 50 GFLOP in 100 us.
        self.assertIn('<td class="good">1.25</td><td class="bad">0.80</td><td>500 TFLOP/s</td>', text)
        self.assertIn('title="quartiles 99 to 101; BM=128">100.0</td>', text)
        self.assertIn('<td class="dim" title="not installed">not installed</td>', text)
        self.assertIn('<td class="bad" title="BM=64: differs from PyTorch">', text)
        self.assertIn("<td>FlashAttention-3</td><td>not installed</td>", text)
        self.assertIn("40.00 ▸", text)

    def test_it_is_one_file_with_plots_for_light_and_dark(self):
        text = page.page(RESULTS)
        plots = [ElementTree.fromstring(plot) for plot in re.findall(r"<svg.*?</svg>", text, re.S)]
        # A bar for each peer with a time beside that of rtc, and its colour in the legend.
        self.assertEqual([len(plot.findall(".//rect/title")) for plot in plots], [2, 1])
        self.assertEqual([len(plot.findall(".//rect")) for plot in plots], [4, 2])
        self.assertNotRegex(text, r"(href|src)=")
        self.assertNotRegex(text, r"https?://|@import|url\(")
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertNotIn("<script", text)

    def test_a_group_without_ratios_has_no_plot(self):
        rows = [row for row in RESULTS["rows"] if row["name"] == "attention causal"]
        text = page.page({**RESULTS, "rows": rows})
        self.assertIn("No row has the times of rtc and of a peer.", text)

    def test_recorded_results_are_rendered_and_give_the_figures_of_the_readme(self):
        with tempfile.TemporaryDirectory() as folder:
            path = lambda name: os.path.join(folder, name)
            with open(path("results.json"), "w") as file:
                json.dump(RESULTS, file)
            old = {"gpu": "NVIDIA H100", "date": "2026-01-01", "commit": "old", "triton": "3.5", "torch": "2.9",
                   "rows": [{"kernel": "matmul <64>", "rtc": 1, "triton": 1}, {"kernel": "vLLM all", "ratio": 1.1}]}
            with open(path("speed.json"), "w") as file:
                json.dump(old, file)
            done = run("--from", path("results.json"), "--html", path("out/page.html"), "--speed", path("speed.json"))
            # A wrong result of rtc is a failure also where it is only rendered.
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("rtc was not timed in 1 rows: attention causal", done.stderr)
            with open(path("out/page.html")) as file:
                self.assertEqual(file.read(), page.page(RESULTS))
            with open(path("speed.json")) as file:
                speed = json.load(file)
        self.assertEqual((speed["gpu"], speed["date"], speed["triton"], speed["torch"]), ("NVIDIA H200", "2026-11-26", "3.6.0", "2.11.0"))
        rows = {row["kernel"]: row for row in speed["rows"]}
        self.assertEqual((rows["matmul <64>"]["rtc"], rows["matmul <64>"]["triton"]), (100.0, 125.0))
        # A row of another run keeps its date.
        self.assertEqual((rows["vLLM all"]["date"], rows["vLLM all"]["commit"]), ("2026-01-01", "old"))
        self.assertEqual(set(rows), {"matmul <64>", "attention full", "vLLM all"})


class Tiles(unittest.TestCase):
    """`benches/gpu/tiles.py` and `functions.py`."""

    def test_kernels_give_what_their_references_do(self):
        script = os.path.join(FOLDER, "tiles.py")
        done = subprocess.run([sys.executable, "-m", "rtc", script, "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^1\d\d cases, 1 without a reference, 0 wrong")

    def test_wrong_and_refused_kernels_are_reported(self):
        import beside
        rows = [{"name": "copy", "refused": {}, "differs": True, "faults": {}, "us": {"rtc": 2.0, "triton": 1.0}},
                {"name": "sort", "refused": {"triton": "no sort"}, "differs": False, "faults": {}, "us": {}}]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(beside.report(rows, 1.0, "kernels"), 1)
            for faults, status in (({"triton": "by 17"}, 0), ({"rtc": "by 3"}, 1), ({"rtc": "by 3", "triton": "by 3"}, 1)):
                rows[0]["faults"] = faults
                self.assertEqual(beside.report(rows, 1.0, "kernels"), status)
        for part in ("0.50 copy", "refused by triton: sort: no sort", "1 kernels, geometric mean 0.500, 1 slower",
                     "results differ: copy: which is right is not known", "results differ: copy: triton: by 17"):
            self.assertIn(part, out.getvalue())
        self.assertTrue(beside.differ([1.0, 2.0], [1.0, 2.1], 1e-2) and not beside.differ([1.0, 2.0], [1.0, 2.1], 1e-2, share=0.5))


if __name__ == "__main__":
    unittest.main()
