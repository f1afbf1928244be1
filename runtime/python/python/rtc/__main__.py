"""`python -m rtc`: runs programs that import `triton` with this package in its place, and rtc's own commands.

    python -m rtc program.py [arguments]
    python -m rtc -m module [arguments]       such as  python -m rtc -m pytest tests/
    python -m rtc -c "import triton; .."
    python -m rtc --instrument DIR program.py [arguments]
                                              also writes a timeline of the first launch of each kernel into DIR
    python -m rtc verify | bench | precision FILE.py
    python -m rtc fix [--write] [--diff] [--check] FILE.py ..
                                              rewrites block pointers, which Triton has no longer
    python -m rtc doctor [--json]             what this machine has that rtc needs, and what to do where something is missing
    python -m rtc explain [NAME]              what an error means, or what a function takes and gives
    python -m rtc build | emit | run | tune | cache | mcp ..
                                              as the command `rtc`, which the package installs, too; rtc --help describes them
"""

import os
import runpy
import sys

from . import _as_triton

COMMANDS = {"verify": "_verify", "bench": "_bench", "precision": "_precision", "fix": "_fix"}
#: Commands that need nothing of Python. A program of such a name is `./run`.
OF_THE_COMPILER = ("build", "emit", "run", "tune", "explain-speed", "explore", "cache", "devices", "mcp")

#: Options before a program: their variable, and what follows them.
INSTRUMENT = {"--instrument": ("RTC_INSTRUMENT", "the folder for the timelines"),
              "--instrument-blocks": ("RTC_INSTRUMENT_BLOCKS", "the number of blocks that record")}


def console() -> int:
    """The command `rtc`: that of the executable, with this Python for `verify`, `bench` and `precision`."""
    return command(sys.argv[1:])


def command(words: list[str]) -> int:
    """Runs a command of the compiler; gives its exit status."""
    import signal
    from . import _rtc
    # Python would wait with its exception until the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _rtc.command(sys.executable, ["rtc", *words])


def doctor(words: list[str]) -> int:
    """Prints what this machine has; 1 where no device runs kernels."""
    if words not in ([], ["--json"]):
        print("error[usage]: python -m rtc doctor takes --json and nothing else", file=sys.stderr)
        return 2
    from . import _rtc
    found = f"{sys.executable} ({'.'.join(map(str, sys.version_info[:3]))}) has the package `rtc`"
    text, as_json, works = _rtc.doctor(found)
    print(as_json + "\n" if words else text, end="", flush=True)
    return 0 if works else 1


def explain(names: list[str]) -> int:
    """Prints what is said of a code or a name, or all codes."""
    if len(names) > 1 or names and names[0].startswith("-"):
        print("python -m rtc explain: give one name, or none for the list of all codes", file=sys.stderr)
        return 2
    from . import _rtc
    try:
        print(_rtc.explain(names[0] if names else None), end="", flush=True)
    except LookupError as error:
        print(f"error[unknown-code]: {error.args[0]}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The pipe is closed; the rest of the buffer is dropped.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return 0


def instrumented(arguments: list[str]) -> "list[str] | None":
    """What follows `--instrument DIR` and `--instrument-blocks N`, which are settings of the process; None where they are wrong."""
    while arguments and arguments[0].split("=")[0] in INSTRUMENT:
        name, _, value = arguments[0].partition("=")
        taken = 1
        if not value:
            value, taken = arguments[1] if len(arguments) > 1 else "", 2
        if not value or value.startswith("-"):
            print(f"python -m rtc {name}: {INSTRUMENT[name][1]} is missing", file=sys.stderr)
            return None
        os.environ[INSTRUMENT[name][0]] = value
        arguments = arguments[taken:]
    if not arguments:
        print("python -m rtc --instrument: the program is missing", file=sys.stderr)
        return None
    return arguments


def main() -> int:
    """Runs a program or a command by the arguments of the process; gives the exit status."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments else 2
    if arguments[0] in COMMANDS:
        import importlib
        return importlib.import_module(f"rtc.{COMMANDS[arguments[0]]}").main(arguments[1:])
    if arguments[0] in OF_THE_COMPILER:
        return command(arguments)
    if arguments[0] == "doctor":
        return doctor(arguments[1:])
    if arguments[0] == "explain":
        return explain(arguments[1:])
    program = instrumented(arguments)
    if program is None:
        return 2
    arguments = program
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_site")
    os.environ["RTC_AS_TRITON"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join([own, *filter(None, [os.environ.get("PYTHONPATH")])])
    # Programs that start others may tell them their own path instead.
    sys.path.insert(1, own)
    _as_triton.install()
    first = arguments[0]
    if first == "-m":
        if len(arguments) < 2:
            print("python -m rtc -m: the name of a module is missing", file=sys.stderr)
            return 2
        name, rest = arguments[1], arguments[2:]
        if name == "pytest":
            rest = ["-p", "rtc._pytest", *rest]
        sys.argv = [name, *rest]
        sys.path[0] = os.getcwd()
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        return 0
    if first == "-c":
        if len(arguments) < 2:
            print("python -m rtc -c: the program is missing", file=sys.stderr)
            return 2
        sys.argv = ["-c", *arguments[2:]]
        sys.path[0] = ""
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
        return 0
    if first.startswith("-"):
        print(f"python -m rtc: there is no option {first}", file=sys.stderr)
        return 2
    if not os.path.exists(first):
        print(f"python -m rtc: there is no file {first}", file=sys.stderr)
        return 2
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(first))
    runpy.run_path(first, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
