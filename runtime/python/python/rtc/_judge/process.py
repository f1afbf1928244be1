"""The processes that the judge asks, and the journal of the candidate's launches."""

import contextlib
import hashlib
import hmac
import io
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile

from . import wire
from .._contract import Problem

#: Bytes of the journal's key, and of the code of a record.
KEY = CODE = 32


class Process:
    """A process that runs functions of the user's file."""

    def __init__(self, role, path, device):
        given, self._commands = os.pipe()
        self._answers, told = os.pipe()
        words = [sys.executable, "-m", "rtc._judge.side", role, path, device or "", str(given), str(told)]
        # The output of the file goes to standard error.
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=2, pass_fds=(given, told))
        os.close(given)
        os.close(told)
        self._out, self._in = os.fdopen(self._commands, "wb"), os.fdopen(self._answers, "rb")
        self.running = ""

    def ask(self, do, what, parts=(), **head):
        """Sends a command; `what` is the function that it runs, for messages."""
        self.running = what
        with contextlib.suppress(BrokenPipeError):
            wire.send(self._out, {"do": do, **head}, parts)

    def answer(self):
        """The answer to the command: its head and parts; a problem there is raised here."""
        found = wire.receive(self._in)
        if found is None:
            self._process.kill() if self._process.poll() is None and not self._ends() else None
            raise Problem("call", f"the process of `{self.running}` {ended(self._process.wait())} before it had answered")
        head, parts = found
        if "problem" in head:
            problem = Problem(head["problem"]["code"], head["problem"]["message"], head["problem"]["status"])
            problem.said = head["problem"]
            raise problem
        return head, parts

    def _ends(self):
        """Whether the process ends by itself, now that it has closed its pipe."""
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self):
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        for file in (self._in, self._out):
            with contextlib.suppress(OSError):
                file.close()


def ended(status):
    """How a process ended, in words."""
    if status >= 0:
        return f"ended with the status {status}"
    with contextlib.suppress(ValueError):
        return f"ended by {signal.Signals(-status).name}"
    return f"ended by the signal {-status}"


class Journal:
    """The records of launches that the extension module writes in the candidate's process."""

    def __init__(self):
        self._key = secrets.token_bytes(KEY)
        self.path: str | None
        descriptor, self.path = tempfile.mkstemp(prefix="rtc-journal-")
        self._file = os.fdopen(descriptor, "r+b", buffering=0)
        self._file.write(self._key)
        self._number = 0

    def opened(self):
        """The other process has the file; from now on it has no name."""
        if self.path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.path)
        self.path = None

    def records(self):
        """The records since the last call: heads and bytes."""
        found = []
        self._file.seek(0)
        written = io.BytesIO(self._file.readall())
        while (lengths := written.read(wire.LENGTHS.size)):
            count, total = wire.LENGTHS.unpack(lengths) if len(lengths) == wire.LENGTHS.size else (0, 0)
            head, data, code = written.read(count), written.read(total), written.read(CODE)
            expected = hmac.new(self._key, lengths + head + data, hashlib.sha256).digest()
            record = json.loads(head) if hmac.compare_digest(code, expected) else {}
            if record.get("number") != self._number:
                raise Problem("call", "the journal of launches was changed by something other than launches")
            self._number += 1
            found.append((record, data))
        # No launch runs meanwhile: the candidate has answered.
        self._file.seek(0)
        self._file.truncate()
        return found

    def close(self):
        self._file.close()
        self.opened()
