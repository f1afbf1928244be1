"""Files with `kernel_fn`, `reference_fn` and `get_inputs`: reading them, and saying what is wrong with them."""

import argparse
import contextlib
import importlib.util
import inspect
import json
import os
import sys
import traceback
from typing import Any

from . import _arrays
from ._limit import STEPS, TimeLimit, limited

#: Exit status: the input is at fault, the command line is, rtc is.
INPUT, USAGE, BUG = 1, 2, 3
PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Problem(Exception):
    """Something is wrong with the input; the text says what."""

    def __init__(self, code, message, status=INPUT, found=None):
        super().__init__(message)
        #: Of a problem in another process: its answer.
        self.said: dict[str, Any] = {}
        # `found`: what JSON has beside the error.
        self.code, self.status, self.found = code, status, found


class Contract:
    """What a file exports."""

    def __init__(self, module, path, needed=("kernel_fn", "reference_fn", "get_inputs")):
        self.module, self.path = module, path
        missing = [name for name in needed if not hasattr(module, name)]
        if missing:
            raise Problem("contract", f"{path} has no {', '.join(f'`{n}`' for n in missing)}; a file to verify exports "
                          "`kernel_fn` (the wrapper), `reference_fn` (the same in PyTorch or numpy, with the same arguments) and "
                          "`get_inputs()` (a list of fresh arguments)")
        self.kernel: Any = getattr(module, "kernel_fn", None)
        self.reference: Any = getattr(module, "reference_fn", None)
        self.make_inputs: Any = getattr(module, "get_inputs", None)
        for name in needed:
            if not callable(getattr(module, name)):
                raise Problem("contract", f"`{name}` of {path} is {getattr(module, name)!r}, not a function")

    def inputs(self, **sizes):
        """Fresh arguments."""
        made = guarded("get_inputs", lambda: self.make_inputs(**sizes))
        if not isinstance(made, (list, tuple)) or not made:
            what = f"an empty {type(made).__name__}" if isinstance(made, (list, tuple)) else type(made).__name__
            raise Problem("contract", f"`get_inputs` gives {what}; it must give a list of at least one argument, as `return [x]`")
        places = {_arrays.place(v) for v in made if _arrays.is_array(v)}
        if len(places) > 1:
            raise Problem("contract", f"`get_inputs` gives tensors on {' and '.join(sorted(places))}; put all of them on one device")
        for number, value in enumerate(made):
            if _arrays.is_array(value) and _arrays.size(value) == 0:
                raise Problem("contract", f"argument {number} of `get_inputs` has no elements (shape {tuple(value.shape)}); there is "
                              "nothing to compare")
        for name, function in (("kernel_fn", self.kernel), ("reference_fn", self.reference)):
            if function is None:
                continue
            try:
                inspect.signature(function).bind(*made)
            except (TypeError, ValueError) as error:
                raise Problem("contract", f"`{name}` does not take the {len(made)} arguments of `get_inputs`: {error}; `kernel_fn` and "
                              "`reference_fn` take the same arguments") from None
        return list(made)


def guarded(name, call):
    """Calls a function of the file; an exception becomes a problem with the place in the file."""
    try:
        with STEPS.at(name, counts=False):
            return call()
    except Problem:
        raise
    except SystemExit as error:
        raise Problem("call", f"`{name}` ended the process with the status {error.code}") from error
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if not f.filename.startswith(PACKAGE)]
        place = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
        raise Problem("call", f"`{name}` raised {type(error).__name__}{place}: {error}") from error


def refuses(error):
    """Whether an exception says that arguments are not taken: one of those classes, a kernel that cannot be compiled for
    them, or a `raise` outside of this package."""
    from .compiler.errors import CompilationError
    from .runtime.errors import AutotunerError, OutOfResources
    if isinstance(error, (AssertionError, ValueError, NotImplementedError, CompilationError, OutOfResources, AutotunerError)):
        return True
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    return bool(frames) and not frames[-1].filename.startswith(PACKAGE) and (frames[-1].line or "").startswith("raise ")


def load(path, needs_reference=True):
    """Reads a file with the functions of a command."""
    needed = ("kernel_fn", "reference_fn", "get_inputs") if needs_reference else ("kernel_fn", "get_inputs")
    return Contract(load_module(path), path, needed)


def load_module(path):
    """Imports a file."""
    if not os.path.exists(path):
        raise Problem("io", f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    if spec is None:
        raise Problem("io", f"{path} is not a file of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        hint = "; install PyTorch, or write the reference with numpy" if error.name == "torch" else ""
        raise Problem("import", f"{path} imports `{error.name}`, which is not installed{hint}") from error
    except SystemExit as error:
        raise Problem("import", f"{path} ended the process with the status {error.code} while it was imported") from error
    except Problem:
        raise
    except Exception as error:
        raise Problem("import", f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def results(value, name):
    """The arrays that a function gives, as a list."""
    if value is None:
        return []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [item for part in value for item in results(part, name)]
    if _arrays.is_array(value):
        return [value]
    if isinstance(value, (int, float, bool)) or hasattr(value, "item"):
        import numpy as np
        return [np.asarray([value.item() if hasattr(value, "item") else value])]
    raise Problem("contract", f"`{name}` gives {type(value).__name__}; a tensor, or a list of tensors, is needed")


class Parser(argparse.ArgumentParser):
    """Options of a command, whose mistakes are problems."""

    def error(self, message):
        self.print_usage(sys.stderr)
        raise Problem("usage", message, USAGE)


def run_command(options, words, work, json_by_default=True):
    """Parses the words of a command and runs it; the exit status comes back. `work` takes the arguments and gives the exit
    status and the text for standard output. What the user's file prints goes to standard error instead. Problems go to
    standard error and, where JSON is asked for, to standard output as an object with `error`."""
    as_json = json_by_default or any(len(word) > 3 and "--json".startswith(word) for word in words)
    out = sys.stdout

    def failed(code, message, status, found=None):
        print(f"error[{code}]: {message}", file=sys.stderr)
        if as_json:
            print(json.dumps({**(found or {}), "error": {"code": code, "message": message}}), file=out)
        return status

    def out_of_time(seconds):
        return failed("time-limit", STEPS.told(seconds), INPUT, STEPS.found())

    seconds = 0
    try:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                arguments = options.parse_args(words)
                seconds = getattr(arguments, "time_limit", 0)
                with limited(seconds, lambda: out_of_time(seconds)):
                    status, text = work(arguments)
            print(text, file=out)
            return status
        except Problem as problem:
            return failed(problem.code, str(problem), problem.status, problem.found)
        except TimeLimit:
            return out_of_time(seconds)
        except KeyboardInterrupt:
            return failed("interrupted", "the command was interrupted", 130)
        except BrokenPipeError:
            raise
        except OSError as error:
            # Files that are written; what functions of the user's file raise is a problem already.
            return failed("io", f"{error.filename or 'a file'}: {error.strerror or error}", INPUT)
        except Exception:
            traceback.print_exc()
            return failed("internal", "this is a bug of rtc", BUG)
    except BrokenPipeError:
        return 141
