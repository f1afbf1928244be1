"""`rtc verify --golden DIR`: replays recorded launches and compares with their recorded results."""

import json
import os

from . import _rtc
from ._contract import Problem
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
    tensors = [_read(os.path.join(place, name)) for name in (inputs, expected)]
    try:
        return _rtc.replay(modules, text, *tensors, *bounds)
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


def verify_golden(folder):
    """Replays all launches of a directory; the exit status."""
    places, checked, wrong = launches(folder), 0, []
    for place in places:
        done = replay(place)
        if done is None:
            continue
        checked += 1
        device, compared = done
        print(f"launch     {place} on {device}")
        for name, words, count in compared:
            print(f"check      {name}: {words}")
            if count:
                wrong.append(f"{place}: `{name}` in {count} elements")
    if wrong:
        raise Problem("wrong-result", f"{folder}: the results differ from the reference: {'; '.join(wrong)}")
    print(f"golden     {checked} of {len(places)} launches have expected results; all are right")
    return 0
