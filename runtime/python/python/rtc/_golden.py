"""`rtc verify --golden DIR`: replays recorded launches and compares with their recorded results."""

import json
import os
import sys

from . import _rtc
from ._contract import Problem
from ._limit import STEPS
from .errors import TritonError


def launches(folder):
    """The folders of a directory that hold a launch."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise Problem("golden", f"{folder}: {error.strerror}") from None
    found = [os.path.join(folder, name) for name in names if os.path.isfile(os.path.join(folder, name, "LAUNCH.json"))]
    if not found:
        raise Problem("golden", f"{folder}: no folder in it has a LAUNCH.json; `rtc verify FILE.py --record DIR` writes them")
    return found


def replay(place):
    """Replays a launch. Gives its device and what was compared; nothing where no results were recorded."""
    path = os.path.join(place, "LAUNCH.json")
    text = _read(path).decode()
    try:
        launch = json.loads(text)
        golden = launch.get("golden")
        if golden is None:
            return None
        bounds = float(golden["rtol"]), float(golden["atol"])
        expected, inputs = golden["file"], launch.get("tensors")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Problem("launch-file", f"{path}: {type(error).__name__}: {error}") from None
    sources = sorted(name for name in os.listdir(place) if name.startswith("rtc_m") and name.endswith(".py"))
    modules = [(name[:-3], os.path.join(place, name), _read(os.path.join(place, name)).decode()) for name in sources]
    given, wanted = (_read(os.path.join(place, name)) for name in (inputs, expected))
    try:
        return _rtc.replay(modules, text, given, wanted, *bounds)
    except TritonError as error:
        raise Problem("compile", f"{path}: {error}") from error
    except (ValueError, RuntimeError) as error:
        raise Problem("golden", f"{path}: {error}") from error


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, TypeError) as error:
        raise Problem("golden", f"{path}: {getattr(error, 'strerror', None) or error}") from None


def verify_golden(folder, as_json):
    """Replays all launches of a directory; the exit status, and text or JSON."""
    places, replayed, lines, wrong = launches(folder), [], [], []
    for place in places:
        with STEPS.at(place):
            done = replay(place)
        if done is None:
            continue
        device, compared = done
        lines.append(f"launch     {place} on {device}")
        lines += [f"check      {name}: {words}" for name, words, _ in compared]
        wrong += [f"{place}: `{name}` in {count} elements" for name, _, count in compared if count]
        replayed.append({"launch": place, "device": device, "checks": [{"tensor": n, "details": w, "wrong": c} for n, w, c in compared]})
    found = {"correct": not wrong, "launches": len(places), "replayed": replayed}
    if wrong:
        print("\n".join(lines), file=sys.stderr)
        raise Problem("wrong-result", f"{folder}: the results differ from the reference: {'; '.join(wrong)}", found=found)
    if as_json:
        return 0, json.dumps(found)
    return 0, "\n".join([*lines, f"golden     {len(replayed)} of {len(places)} launches have expected results; all are right"])
