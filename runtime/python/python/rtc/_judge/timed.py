"""What `rtc bench` asks of the processes of the judge: timed calls, and numbers about the device and the work."""

from .. import _arrays, _rtc
from .._bench import moved
from .._contract import guarded, results
from .._record import Recorder


class Timed:
    """Calls of one function on the same arguments. `clock` was made before the user's file was read."""

    def __init__(self, name, function, inputs, clock):
        self.name, self.function, self.inputs, self.clock = name, function, inputs, clock
        clock.prepare(inputs)

    def call(self):
        return guarded(self.name, lambda: self.function(*self.inputs))

    def warm_up(self, times):
        for _ in range(times):
            self.call()
        self.clock.synchronize()

    def once(self):
        """Milliseconds of one call by the events of a GPU; None on the CPU, where the judge has its own clock."""
        if self.clock.torch is None:
            self.call()
            return None
        return self.clock.once(self.call)

    def refill(self, inputs):
        """Puts other values into the arguments, where they lie."""
        self.inputs = [_refilled(old, new) for old, new in zip(self.inputs, inputs)]


def _refilled(old, new):
    if not (_arrays.is_array(old) and _arrays.is_array(new) and old.shape == new.shape and old.dtype == new.dtype):
        return new
    if _arrays.is_tensor(old):
        old.copy_(new)
    else:
        old[...] = new
    return old


def device_of(launches):
    """The device of launches."""
    return launches[0].compiled._ready.device() if launches else "none"


def begun(timed, times):
    """Warms up, and gives what the first call tells: the device, and the bytes of all tensors."""
    with Recorder() as recorder:
        made = timed.call()
    timed.warm_up(times - 1)
    return {"bytes": moved(timed.inputs, results(made, timed.name)), "device": device_of(recorder.launches), "gpu": timed.clock.torch is not None}


class quiet:
    """No launch of the block is recorded in the journal, as it would cost time."""

    def __enter__(self):
        _rtc.journal_trials(True)

    def __exit__(self, *_):
        _rtc.journal_trials(False)


def rates(clock, dtype, of_products):
    """Bytes per second of a copy, and operations per second that the device can do; None on the CPU."""
    return {"rate": clock.rate(), "peak": clock.peak(dtype) if of_products else clock.thread_peak()}
