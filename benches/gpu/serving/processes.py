"""The processes of both compilers: requests and answers with a limit of time; one that ended is started again."""

import json
import os
import select
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    """No answer, or one that says why there is none."""


class Worker:
    """The process of a compiler."""

    def __init__(self, peer, options):
        words = ["-m", "rtc"] if peer == "rtc" else []
        given = {"vllm": os.path.abspath(options.vllm), "small": options.small, "configs": options.configs, "compile": options.compile}
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        environment.setdefault("OMP_NUM_THREADS", "2")
        if peer == "triton" and options.small and not options.compile and not os.path.exists("/dev/nvidiactl"):
            environment["TRITON_INTERPRET"] = "1"
        errors = open(os.path.join(options.log, f"{peer}.log"), "a") if getattr(options, "log", None) else subprocess.DEVNULL
        self.process = subprocess.Popen([sys.executable, *words, os.path.join(HERE, "worker.py"), peer, json.dumps(given)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, bufsize=0)
        self.buffer = b""

    def ask(self, limit, **request):
        """The answer to a request within so many seconds; the process is ended if there is none."""
        try:
            self.process.stdin.write((json.dumps(request) + "\n").encode())
        except (BrokenPipeError, ValueError):
            raise Failed(f"its process ended with status {self.process.wait()}") from None
        end = time.time() + limit
        while b"\n" not in self.buffer:
            found, _, _ = select.select([self.process.stdout], [], [], max(end - time.time(), 0))
            if not found:
                self.process.kill()
                self.process.wait()
                raise Failed(f"longer than {limit:g} s")
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                raise Failed(f"its process ended with status {self.process.wait()}")
            self.buffer += part
        line, _, self.buffer = self.buffer.partition(b"\n")
        answer = json.loads(line)
        if answer.get("fatal"):
            self.process.wait()
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer

    def end(self):
        """Ends the process."""
        try:
            self.process.stdin.close()
            self.process.wait(timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


class Team:
    """One process of each compiler."""

    #: What starting a process may take, in seconds, beside what a request may.
    STARTING = 120

    def __init__(self, options):
        self.options, self.workers = options, {}

    def lives(self, peer):
        """Whether its process runs."""
        return peer in self.workers and self.workers[peer].process.poll() is None

    def ask(self, peer, what, limit, **request):
        """The answer, or the failure."""
        try:
            if not self.lives(peer):
                self.workers[peer] = Worker(peer, self.options)
                self.workers[peer].ask(self.STARTING, do="facts")
            return self.workers[peer].ask(limit, do=what, **request)
        except Failed as error:
            return error

    def both(self, what, limit, each=None, **request):
        """The answers of all compilers, which work at the same time."""
        answers = {}

        def one(peer):
            answers[peer] = self.ask(peer, what, limit, **request, **(each or {}).get(peer, {}))
        threads = [threading.Thread(target=one, args=(peer,)) for peer in self.options.peers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {peer: answers.get(peer, Failed("no answer")) for peer in self.options.peers}

    def facts(self):
        """The GPU."""
        for peer in self.workers:
            answer = self.ask(peer, "facts", 30)
            if not isinstance(answer, Failed):
                return answer
        return {}

    def end(self):
        """Ends all processes."""
        for worker in self.workers.values():
            worker.end()
