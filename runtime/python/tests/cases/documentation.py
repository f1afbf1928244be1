"""Runs the blocks of Python in the pages on the package."""

import os
import re
import tempfile
import unittest

REPOSITORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../..")
PAGES = ["docs/python.md", "runtime/python/README.md"]


class Documentation(unittest.TestCase):

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
