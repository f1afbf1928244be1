"""Runs the blocks of Python in the pages on the package."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../..")
CONTRACTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "contracts")
PAGES = ["docs/python.md", "runtime/python/README.md"]


class Documentation(unittest.TestCase):

    def test_output_is_as_it_is_shown(self):
        with open(os.path.join(REPOSITORY, "docs/verify.md")) as file:
            blocks = re.findall(r"^```console\n\$ rtc (.*?)\n(.*?)^```", file.read(), re.S | re.M)
        self.assertEqual(len(blocks), 2)
        for command, shown in blocks:
            done = subprocess.run([sys.executable, "-m", "rtc", *command.split()], capture_output=True, text=True, cwd=CONTRACTS)
            self.assertEqual(done.stdout, shown)

    def test_the_example_is_the_file(self):
        with open(os.path.join(REPOSITORY, "docs/verify.md")) as file:
            page = file.read()
        shown = re.search(r"`gelu\.py`.*?^```python\n(.*?)^```", page, re.S | re.M)[1]
        with open(os.path.join(CONTRACTS, "gelu.py")) as file:
            self.assertEqual(file.read(), shown)
        # Times differ; the fields do not. Those after `device` are of a GPU.
        fields = list(json.loads(re.search(r"^```json\n(.*?)^```", page, re.S | re.M)[1]))
        done = subprocess.run([sys.executable, "-m", "rtc", "bench", "gelu.py"], capture_output=True, text=True, cwd=CONTRACTS)
        found = json.loads(done.stdout)
        self.assertEqual(list(found), [name for name in fields if name in found])
        self.assertEqual(list(found)[:5], fields[:5])

    def test_blocks_of_python_run(self):
        for page in PAGES:
            with open(os.path.join(REPOSITORY, page)) as file:
                blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.S | re.M)
            self.assertTrue(blocks, page)
            for block in blocks:
                # Kernels need a file.
                with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
                    file.write(block)
                scope = {}
                try:
                    exec(compile(block, file.name, "exec"), scope)
                finally:
                    os.unlink(file.name)
                self.assertEqual(scope["out"][10], 11)
