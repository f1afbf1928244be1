"""The operations on floats that a wrapper asks for: those of products as PyTorch counts them in the reference, or else what
rtc's emulator counts in the launches themselves."""

import json
import math

from . import _arrays, _rtc
from ._record import Description, Recorder
from ._verify import copies

#: Programs that the emulator runs of a launch, and how many bytes of tensors it is given: at most, and where programs share
#: the work among themselves, so that a few of them do all of it.
PROGRAMS, BYTES, SHARED_BYTES = 8, 4 << 30, 16 << 20


def of_kernel(contract, inputs):
    """The operations of a wrapper's products and of its threads; None where nothing counts them."""
    with Recorder(keep=True) as recorder:
        contract.kernel(*copies(inputs))
    try:
        return _of_launches(recorder.launches)
    except Exception:  # the times are what was asked for
        return None


def of_reference(contract, inputs):
    """The operations of the reference's products (matrices, convolutions, attention), as PyTorch counts them; None where there
    are none, or no PyTorch."""
    torch = _arrays.torch() if any(_arrays.is_tensor(v) for v in inputs) else None
    if torch is None:
        return None
    try:
        from torch.utils.flop_counter import FlopCounterMode
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            contract.reference(*copies(inputs))
        return counter.get_total_flops() or None
    except Exception:  # a reference that cannot run so is not counted
        return None


def _of_launches(launches):
    """The operations of launches: those of products and those of threads; None where the emulator would take too long."""
    products = threads = 0
    for launch in launches:
        size = sum(len(data) for *_, data in launch.before.values())
        is_shared = "num_programs" in launch.compiled._ready.stage("tile")
        if size > (SHARED_BYTES if is_shared else BYTES):
            return None
        made, few = Description(launch), 1
        if not is_shared:
            # Those along the first axis that has any; the others do the same as they.
            few = max(few, min(PROGRAMS, next((n for n in launch.grid if n > 1), 1)))
            axis = next((at for at, n in enumerate(launch.grid) if n > 1), 0)
            made.launch["grid"] = [few if at == axis else 1 for at in range(len(launch.grid))]
        found = _rtc.count_flops(made.modules, json.dumps(made.launch), _arrays.safetensors(made.tensors))
        scale = 1 if is_shared else math.prod(launch.grid) / few
        products, threads = products + found[0] * scale, threads + found[1] * scale
    return (round(products), round(threads)) if launches else None
