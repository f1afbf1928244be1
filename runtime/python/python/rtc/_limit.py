"""The time limit of `verify`, `bench` and `precision`, and what a command has done when it is reached."""

import contextlib
import os
import signal
import sys
import threading
import time

#: Seconds that a command may take.
LIMIT = 600.0
#: Seconds after which a process is ended that does not notice: it waits for a GPU, say, on which a kernel never ends.
GRACE = 5.0


class TimeLimit(BaseException):
    """The time is over. No `Exception`, so that the user's functions do not catch it."""


class Steps:
    """What a command has done, and what it is at."""

    def __init__(self):
        self.ran, self.running = [], []

    def forget(self):
        """Starts again."""
        self.ran.clear()
        self.running.clear()

    @contextlib.contextmanager
    def at(self, name, counts=True):
        """A step, which has run once it ends; gives a dictionary for what is known of it by then. One that does not count is
        shown only while it runs."""
        self.running.append(name)
        began, facts = time.perf_counter(), {}
        try:
            yield facts
        except TimeLimit:
            raise       # what was running is told
        except BaseException:
            self.running.pop()
            raise
        self.running.pop()
        if counts:
            self.ran.append({"step": name, "seconds": round(time.perf_counter() - began, 3), **facts})

    def found(self):
        """For JSON: the steps that are done, and the one that is not."""
        return {"ran": list(self.ran), "running": ": ".join(self.running) or None}

    def told(self, seconds):
        """The message of the error."""
        ran = ", ".join(step["step"] for step in self.ran) or "nothing"
        return (f"the command took longer than {seconds:g} seconds, at {': '.join(self.running) or 'its start'}; what ran: {ran}; "
                "give it more by --time-limit SECONDS (0: no limit), or smaller inputs")


#: Those of this process.
STEPS = Steps()


@contextlib.contextmanager
def limited(seconds, failed):
    """Raises `TimeLimit` in what runs here after so many seconds; 0: never. Where that is not noticed, `failed` is called, which
    tells of it and gives the exit status, and the process ends."""
    STEPS.forget()
    is_main = threading.current_thread() is threading.main_thread()
    if not seconds or not hasattr(signal, "setitimer") or not is_main:
        yield
        return

    def over(*_):
        raise TimeLimit

    def end():
        status = failed()
        for stream in (sys.__stdout__, sys.__stderr__):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(status)

    watch = threading.Timer(seconds + GRACE, end)
    watch.daemon = True
    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    watch.start()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        watch.cancel()
