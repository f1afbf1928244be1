"""The process of one compiler for `run.py`: makes the inputs of a case, compiles and launches its kernels, times them.

    python worker.py triton          python -m rtc worker.py rtc

Requests come as JSON on standard input, one a line, and answers go to standard output. On a machine without a GPU it runs on
tensors of the CPU, Triton through its interpreter and rtc in its emulator, or compiles alone; nothing can be timed then.
"""

import json
import os
import sys
import time
import traceback
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

#: Launches of one request, and in a graph.
LAUNCHED, IN_GRAPH = 2, 20


def few_configurations(most):
    """Autotuners get so many of their configurations, spread over all, the same with every compiler."""
    import triton
    autotune = triton.autotune

    def chosen(configs, key, **kwargs):
        configs = list(configs)
        if len(configs) > most:
            configs = [configs[(2 * i + 1) * len(configs) // (2 * most)] for i in range(most)]
        kwargs.pop("cache_results", None)
        return autotune(configs, key, **kwargs)
    triton.autotune = chosen


class Bench:
    """The case at hand."""

    def __init__(self, peer, options):
        self.options = options
        import torch
        self.torch, self.pretended = torch, None
        if not torch.cuda.is_available():
            sys.path.append(os.path.join(HERE, "..", "..", "..", "scripts", "open_collections"))
            import pretend
            if options["compile"]:
                pretend.fill = lambda tensor: None
            self.pretended = pretend.start()
            if peer == "triton":
                self.pretend_driver()
        torch.backends.cuda.matmul.allow_tf32 = True
        import standin
        standin.install(options["vllm"])
        few_configurations(options["configs"])
        torch.library.wrap_triton = lambda kernel: kernel
        torch.library.triton_op = lambda *a, **k: lambda f: f
        torch.compile = lambda f=None, **k: f if callable(f) else (lambda g: g)
        self.zeroed()
        import case
        import record
        self.case = case
        self.recorder = record.Recorder(torch.cuda.synchronize, options["compile"])
        self.recorder.install()
        if self.pretended and peer == "rtc":
            self.recorder.around = lambda begins: setattr(pretend, "launching", begins)
        self.cases = {(c.family, c.name): c for c in case.load()}
        self.flush = None if self.pretended else torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        self.launches, self.call = [], None

    def pretend_driver(self):
        """A driver for what libraries ask of Triton about the GPU."""
        import triton
        from triton.backends.compiler import GPUTarget
        target = GPUTarget("cuda", 90, 32)
        properties = {"max_shared_mem": 232448, "multiprocessor_count": 132, "warpSize": 32, "max_num_regs": 65536}
        driver = types.SimpleNamespace(
            get_current_target=lambda: target, get_current_device=lambda: 0, get_current_stream=lambda *_: 0, set_current_device=lambda *_: None,
            get_active_torch_device=lambda: self.torch.device("cuda"), get_device_interface=lambda: self.torch.cuda,
            utils=types.SimpleNamespace(get_device_properties=lambda *_: properties), get_benchmarker=lambda: lambda call, **_: [1.0] * 3)
        triton.runtime.driver.set_active(driver)

    def zeroed(self):
        """Memory without content is zeros, so that what a kernel does not write is equal in all processes."""
        torch, untouched = self.torch, self.options["compile"] and self.pretended
        filled = lambda tensor: tensor if untouched and tensor.numel() > 1 << 20 else tensor.zero_()
        for name in ("empty", "empty_like", "empty_strided"):
            original = getattr(torch, name)
            setattr(torch, name, lambda *a, original=original, **k: filled(original(*a, **k)))
        new_empty = torch.Tensor.new_empty
        torch.Tensor.new_empty = lambda *a, **k: filled(new_empty(*a, **k))

    def prepare(self, family, name, save=None):
        """Makes the inputs and launches; what the launches wrote goes to the file `save`."""
        torch = self.torch
        self.drop()
        torch.manual_seed(1)
        begun = time.perf_counter()
        make = self.case.Make(self.options["small"], self.options["compile"] and bool(self.pretended))
        chosen = self.cases[family, name]
        call = chosen.function(make, **chosen.arguments)
        made = time.perf_counter() - begun
        self.recorder.compared, self.recorder.also = save is not None, dict(make.also)
        self.call = call    # kernels may reach its memory through addresses
        self.launches, error = self.recorder.watch(call)
        if save:
            torch.save([{key: t.cpu() for key, t in launch.written.items()} for launch in self.launches], save)
        rows = []
        for launch in self.launches:
            fault = "" if launch.error is None else f"{type(launch.error).__name__}: {str(launch.error)[:1500]}"
            rows.append({"kernel": launch.name, "seconds": round(launch.seconds, 4), "error": fault})
            launch.written = {}
        answer = {"launches": rows, "made": round(made, 3), "wall": round(time.perf_counter() - begun, 3)}
        if error is not None:
            answer["error"] = self.message(error)
        elif not rows:
            answer["error"] = "it launched nothing"
        return answer

    def message(self, error):
        """What an exception says, and where it came from."""
        frames = traceback.extract_tb(error.__traceback__)
        where = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(frames[-4:]))
        return f"{type(error).__name__}: {str(error)[:1500]} ({where})"

    def broken(self):
        """Whether the context of the GPU is lost, so that the process has to end."""
        try:
            self.torch.cuda.synchronize()
        except Exception:
            return True
        return False

    def times(self, index):
        """Microseconds of launches, the second-level cache emptied before each."""
        torch, events, launch = self.torch, [], self.launches[index]
        if self.pretended:
            begun = time.perf_counter()
            launch.restore()
            self.recorder.around(True)
            launch.again()
            self.recorder.around(False)
            return {"us": [(time.perf_counter() - begun) * 1e6]}
        for _ in range(LAUNCHED):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            launch.restore()
            torch.cuda._sleep(500_000)      # the host gets ahead, so that no launch waits for it
            self.flush.zero_()
            start.record()
            launch.again()
            end.record()
            events.append((start, end))
        torch.cuda.synchronize()
        return {"us": [start.elapsed_time(end) * 1e3 for start, end in events]}

    def repeats(self, launch):
        """Whether a second launch leaves the integers that it writes as the first has left them."""
        launch.restore()
        launch.again()
        once = [tensor.clone() for tensor, _ in launch.kept.values()]
        launch.again()
        return all(self.torch.equal(a, b) for a, (b, _) in zip(once, launch.kept.values()))

    def graph(self, index):
        """Microseconds of one of 20 launches in a graph; none where launches must not follow each other."""
        torch, launch = self.torch, self.launches[index]
        if self.pretended or not self.repeats(launch):
            return {"us": None}
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            launch.again()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(IN_GRAPH):
                launch.again()
        found = []
        for _ in range(4):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            found.append(start.elapsed_time(end) * 1e3 / IN_GRAPH)
        return {"us": sorted(found[1:])[1]}

    def drop(self):
        """Frees the memory of a case."""
        self.launches, self.call = [], None
        if not self.pretended:
            self.torch.cuda.empty_cache()
        return {}

    def facts(self):
        """The GPU."""
        return {"gpu": self.torch.cuda.get_device_name(), "torch": self.torch.__version__}


def main():
    """Answers requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    options, bench = json.loads(sys.argv[2]), None
    for line in sys.stdin:
        request = json.loads(line)
        what, fatal = request.pop("do"), False
        try:
            bench = bench or Bench(sys.argv[1], options)
            answer = getattr(bench, what)(**request)
        except Exception as error:  # reported in the row of the case
            answer = {"failed": bench.message(error) if bench else f"{type(error).__name__}: {error}"}
            if not bench:
                traceback.print_exc()
        if bench and ("failed" in answer or "error" in str(answer)) and bench.broken():
            answer["fatal"] = fatal = True
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        if fatal:
            os._exit(1)


if __name__ == "__main__":
    main()
