"""What can go wrong, as exceptions."""

import re
from collections.abc import Iterable

from ..errors import TritonError


class InterpreterError(TritonError):
    """An error of Triton's interpreter, which rtc does not have; its own interpreter raises `KernelFault`."""


class OutOfResources(TritonError):
    """A kernel or a launch needs more of a resource than the device has."""

    def __init__(self, required: int, limit: int, name: str, text: str | None = None) -> None:
        self.required, self.limit, self.name, self.text = required, limit, name, text

    def __str__(self) -> str:
        text = f"out of resource: {self.name}, Required: {self.required}, Hardware limit: {self.limit}. " \
               "Reducing block sizes or `num_stages` may help."
        return f"{text}\n{self.text}" if self.text else text

    def __reduce__(self):
        return type(self), (self.required, self.limit, self.name, self.text)


class PTXASError(TritonError):
    """The driver, or NVIDIA's assembler, refuses a kernel."""

    def __init__(self, error_message=None):
        self.error_message = error_message

    def __str__(self):
        return f"PTXAS error: {self.error_message or ''}"


class AutotunerError(TritonError):
    """Autotuning has nothing to choose from."""

    def __str__(self):
        return f"Autotuner error: {super().__str__()}"


class KernelFault(TritonError, RuntimeError):
    """A kernel did wrong on the emulator or the interpreter; the text has the line of the source."""


class InternalError(TritonError, RuntimeError):
    """A bug of the compiler."""


class CompilationError(TritonError):
    """A kernel that the compiler refuses; the text shows where and says what to write."""

    def __init__(self, message: str, codes: Iterable[str] = (), lines: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.message, self.codes, self.error_message = message, tuple(codes), "\n".join(lines)
        self.src = self.node = None

    def __str__(self):
        return self.message


class CompileTimeAssertionFailure(CompilationError):
    """A `static_assert` that does not hold."""


class UnsupportedLanguageConstruct(CompilationError):
    """A construct of Python that kernels cannot use."""


class MLIRCompilationError(TritonError):
    """The compiler's back end failed."""


def _compilation_error(codes, lines, text):
    """The exception of diagnostics with these codes."""
    for code, line in zip(codes, lines):
        if "resource" in code:
            return _out_of_resources(code, line, text)
    kind = CompileTimeAssertionFailure if any("assert" in code for code in codes) else CompilationError
    return kind("\n" + text, codes, lines)


def _out_of_resources(code, line, text):
    """The exception of a message that says how much is needed, and how much there is."""
    named = re.search(r"(\d[\d,]*) needed.*?(\d[\d,]*) available", line)
    numbers = named.groups() if named else re.findall(r"\d[\d,]*", line)
    required, limit = ([int(n.replace(",", "")) for n in numbers] + [0, 0])[:2]
    what = next((w for w in ("shared memory", "registers", "threads") if w in line), code)
    return OutOfResources(required, limit, what, text)


def _request_error(code, message):
    """The exception of a request that cannot be met."""
    if "resource" in code:
        return _out_of_resources(code, message, f"error[{code}]: {message}")
    if code in ("launch", "spec", "arch"):
        return OverflowError(message) if "fits no integer type" in message else TypeError(message)
    return CompilationError(f"error[{code}]: {message}", [code], [message])
