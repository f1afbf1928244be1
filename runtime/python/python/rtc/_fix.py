"""`python -m rtc fix`: programs rewritten for versions of Triton without block pointers."""

import argparse
import os
import sys

from . import _rtc


def main(arguments):
    """Shows what would change, or changes it, as `rtc fix` does."""
    parser = argparse.ArgumentParser(prog="python -m rtc fix", description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--write", action="store_true", help="write the changes to the files")
    way.add_argument("--check", action="store_true",
                     help="write nothing; exit status 1 if a file would change or has block pointers that cannot be rewritten")
    parser.add_argument("--diff", action="store_true", help="show the changes, also with --write or --check")
    given = parser.parse_args(arguments)
    color = sys.stderr.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    failed = False
    for path in given.files:
        try:
            with open(path, encoding="utf-8", newline="") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            print(f"error[io]: {path}: {error}", file=sys.stderr)
            return 1
        new, diff, left = _rtc.fix(path, text, color)
        if new != text:
            if given.write:
                with open(path, "w", encoding="utf-8", newline="") as file:
                    file.write(new)
            if given.diff or not (given.write or given.check):
                print(diff, end="")
        for message in left:
            print(message.rstrip(), file=sys.stderr)
        failed |= given.check and (new != text or bool(left))
    return int(failed)
