"""The process of one peer for `suite.py`: prepares an entry, compares its result with PyTorch's, launches it on request.

    python benches/gpu/worker.py PEER               (`python -m rtc benches/gpu/worker.py rtc` for rtc)

Requests come as JSON on standard input, one a line, and answers go to standard output: `prepare` with `make` and `arguments`,
`launch`, `drop`, `facts`. What libraries print goes to standard error.
"""

import json
import os
import sys

#: Launches for the choice of a configuration, and for one request.
TRIED, LAUNCHED = 5, 2
#: Cycles that the GPU sleeps before a launch, so that it does not wait for the host: about a millisecond. The first call of a compiled
#: PyTorch program after a pause takes some hundred microseconds.
AHEAD = 2_000_000


class Bench:
    """Launches and times what is prepared."""

    def __init__(self, peer):
        import launches
        import torch
        self.torch, self.launches, self.peer = torch, launches, peer
        if not torch.cuda.is_available():
            raise RuntimeError("there is no GPU that PyTorch can use")
        torch.backends.cuda.matmul.allow_tf32 = True
        self.flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        self.call = None

    def times(self, call, count):
        """Microseconds of launches, the second-level cache emptied before each."""
        torch, events = self.torch, []
        for _ in range(count):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(AHEAD)
            self.flush.zero_()
            start.record()
            call()
            end.record()
            events.append((start, end))
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 for start, end in events]

    def is_right(self, prepared, call):
        """Whether a launch writes what PyTorch computes."""
        torch = self.torch
        if prepared.output is not None:
            prepared.output.fill_(float("nan"))
        result = call()
        result = prepared.output if prepared.output is not None else result
        torch.cuda.synchronize()
        relative, absolute = prepared.tolerance
        return torch.allclose(result.float(), prepared.want().float(), rtol=relative, atol=absolute)

    def prepare(self, make, arguments):
        """Compiles, compares and chooses the fastest configuration."""
        self.torch.manual_seed(0)
        prepared = getattr(self.launches, make)(self.peer, *arguments)
        best, reasons = None, []
        for configuration, call in prepared.calls:
            try:
                if not self.is_right(prepared, call):
                    reasons.append(f"{configuration}: differs from PyTorch")
                    continue
                time = sorted(self.times(call, TRIED))[TRIED // 2]
                best = min(best or (time, configuration, call), (time, configuration, call), key=lambda found: found[0])
            except Exception as error:  # a configuration that does not fit
                reasons.append(f"{configuration}: {type(error).__name__}: {str(error)[:200]}")
        wrong = [reason for reason in reasons if "differs" in reason]
        if best is None or wrong:
            return {"failed": (wrong or reasons or ["it has no configuration"])[0]}
        self.call = best[2]
        return {"configuration": best[1], "bytes": prepared.bytes, "flops": prepared.flops}

    def drop(self):
        """Frees the memory of the entry."""
        self.call = None
        self.torch.cuda.empty_cache()
        return {}

    def facts(self):
        """The GPU."""
        return {"gpu": self.torch.cuda.get_device_name()}


def main():
    """Answers requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    bench = None
    for line in sys.stdin:
        request = json.loads(line)
        what = request.pop("do")
        try:
            bench = bench or Bench(sys.argv[1])
            if what == "launch":
                answer = {"us": bench.times(bench.call, LAUNCHED)}
            else:
                answer = getattr(bench, what)(**request)
        except Exception as error:  # reported in the row of the entry
            kind = type(error).__name__
            answer = {"failed": str(error) if kind == "NotOffered" else f"{kind}: {str(error)[:300]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
