"""Runs the blocks of Python in the pages on the package."""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../..")
CONTRACTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "contracts")
DOCS = os.path.join(REPOSITORY, "docs")
PAGES = sorted(glob.glob(os.path.join(DOCS, "python/*.md")))
PAGES += [os.path.join(DOCS, "start/python.md"), os.path.join(REPOSITORY, "runtime/python/README.md")]


def read(page):
    with open(os.path.join(DOCS, page)) as file:
        return file.read()


def run(block):
    """Runs a program; gives its names."""
    # Kernels need a file.
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(block)
    scope = {}
    try:
        exec(compile(block, file.name, "exec"), scope)
    finally:
        os.unlink(file.name)
    return scope


class Documentation(unittest.TestCase):

    def test_output_is_as_it_is_shown(self):
        text = read("tools/verify.md") + read("tools/precision.md")
        blocks = re.findall(r"^```console\n\$ rtc (.*?)\n(.*?)^```", text, re.S | re.M)
        self.assertEqual(len(blocks), 2)
        for command, shown in blocks:
            done = subprocess.run([sys.executable, "-m", "rtc", *command.split()], capture_output=True, text=True, cwd=CONTRACTS)
            # Times differ.
            self.assertEqual(*(re.sub(r'"seconds": [0-9.]+', '"seconds": 0', text) for text in (done.stdout, shown)))

    def test_the_example_is_the_file(self):
        shown = re.search(r"`gelu\.py`.*?^```python\n(.*?)^```", read("tools/verify.md"), re.S | re.M)[1]
        with open(os.path.join(CONTRACTS, "gelu.py")) as file:
            self.assertEqual(file.read(), shown)
        # Times differ; the fields do not. Those after `device` are of a GPU.
        fields = list(json.loads(re.search(r"^```json\n(.*?)^```", read("tools/bench.md"), re.S | re.M)[1]))
        done = subprocess.run([sys.executable, "-m", "rtc", "bench", "gelu.py"], capture_output=True, text=True, cwd=CONTRACTS)
        found = json.loads(done.stdout)
        self.assertEqual(list(found), [name for name in fields if name in found])
        self.assertEqual(list(found)[:5], fields[:5])

    def test_the_example_of_the_readme_runs(self):
        blocks = re.findall(r"^```python\n(.*?)^```", read("../README.md"), re.S | re.M)
        self.assertEqual(len(blocks), 1)
        out = run(blocks[0])["out"]
        self.assertEqual(out.shape, (64, 1000))
        self.assertLess(abs(out.sum(axis=1) - 1).max(), 1e-5)
        self.assertGreater(out.min(), 0)

    def test_blocks_of_python_run(self):
        ran = 0
        for page in PAGES:
            for block in re.findall(r"^```python\n(.*?)^```", read(page), re.S | re.M):
                ran += 1
                self.assertEqual(run(block)["out"][10], 11, page)
        self.assertGreaterEqual(ran, 4)
