"""Messages between the judge and the processes that it asks: a head in JSON, and parts in bytes. Nothing is unpickled but in the
candidate's process, which is given the arguments so."""

import io
import json
import pickle
import struct

from .. import _arrays

LENGTHS = struct.Struct("<QQ")


def send(file, head, parts=()):
    """Sends a message."""
    text = json.dumps({**head, "parts": [len(part) for part in parts]}).encode()
    file.write(LENGTHS.pack(len(text), sum(map(len, parts))))
    file.write(text)
    for part in parts:
        file.write(part)
    file.flush()


def receive(file):
    """The head and the parts of the next message; None where there is none, or none that can be read."""
    lengths = file.read(LENGTHS.size)
    if len(lengths) != LENGTHS.size:
        return None
    count, total = LENGTHS.unpack(lengths)
    text, body = file.read(count), file.read(total)
    if len(text) != count or len(body) != total:
        return None
    try:
        head = json.loads(text)
        ends = head.pop("parts")
        parts, at = [], 0
        for length in ends:
            parts.append(body[at:at + length])
            at += length
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return (head, parts) if at == total else None


def _strides(value):
    """Strides in elements; None where they are no such number."""
    if _arrays.is_tensor(value):
        return list(value.stride())
    item = _arrays.item_bytes(value)
    strides = value.base.strides if _arrays.is_narrow(value) else value.strides
    return None if any(stride % item for stride in strides) else [stride // item for stride in strides]


def describe(value):
    """What an array is, for JSON, and its elements one after the other."""
    kind = "torch" if _arrays.is_tensor(value) else "narrow" if _arrays.is_narrow(value) else "numpy"
    if kind == "numpy" and type(value.dtype.type).__module__ != "builtins" and value.dtype.type.__module__ == "ml_dtypes":
        kind = "ml_dtypes"
    # Arrays of `_narrow` have an address, and their elements are their bits.
    described = {"kind": kind, "dtype": _arrays.dtype_name(value), "shape": list(value.shape), "strides": _strides(value),
                 "item": _arrays.item_bytes(value), "address": _arrays.address(value)}
    if kind == "torch":
        described |= {"device": str(value.device), "requires_grad": bool(value.requires_grad)}
    return described, _arrays.raw(value)


def to_numpy(described, data):
    """The array that was described, by numpy and `_narrow`; None for elements that they do not have."""
    import numpy as np

    from .. import _narrow
    name, shape = described["dtype"], tuple(described["shape"])
    try:
        if name in _narrow.TYPES:
            bits = np.frombuffer(data, np.uint16 if described["item"] == 2 else np.uint8)
            return _narrow.TYPES[name].from_bits(bits.reshape(shape))
        return np.frombuffer(data, np.dtype(name)).reshape(shape)
    except (TypeError, ValueError):
        return None


def rebuild(described, data):
    """The array that was described, of the library that it was of, with its strides."""
    import numpy as np
    shape, strides = tuple(described["shape"]), described["strides"]
    if described["kind"] == "torch":
        import torch
        flat = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
        made = flat.view(getattr(torch, described["dtype"])).reshape(shape).to(described["device"])
        made = _tensor_with_strides(torch, made, shape, strides)
        return made.requires_grad_(True) if described["requires_grad"] else made
    if described["kind"] == "narrow":
        from .. import _narrow
        bits = np.frombuffer(bytearray(data), np.uint16 if described["item"] == 2 else np.uint8).reshape(shape)
        return _narrow.TYPES[described["dtype"]].from_bits(_with_strides(np, bits, shape, strides))
    if described["kind"] == "ml_dtypes":
        import ml_dtypes
        dtype = np.dtype(getattr(ml_dtypes, described["dtype"]))
    else:
        dtype = np.dtype(described["dtype"])
    return _with_strides(np, np.frombuffer(bytearray(data), dtype).reshape(shape), shape, strides)


def _tensor_with_strides(torch, made, shape, strides):
    kept = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)
    source = made[kept]
    held = torch.empty_strided(tuple(source.shape), tuple(max(s, 1) if n < 2 else s for n, s in zip(source.shape, strides)),
                               dtype=made.dtype, device=made.device)
    return held.copy_(source).as_strided(shape, tuple(strides))


def _with_strides(np, made, shape, strides):
    compact = made.strides
    if strides is None or tuple(s * made.itemsize for s in strides) == compact or made.size == 0:
        return made
    span = 1 + sum((n - 1) * abs(s) for n, s in zip(shape, strides))
    held = np.zeros(span, made.dtype)
    first = sum((n - 1) * -s for n, s in zip(shape, strides) if s < 0)
    view = np.lib.stride_tricks.as_strided(held[first:], shape, tuple(s * made.itemsize for s in strides), writeable=True)
    view[...] = made
    return view


class _Pickler(pickle.Pickler):
    """Pickles arguments; arrays among them go by number, so that one that is given twice stays one."""

    def __init__(self, file, arrays, numbers):
        super().__init__(file, protocol=4)
        self.arrays, self.numbers = arrays, numbers

    def persistent_id(self, value):
        if not _arrays.is_array(value):
            return None
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.arrays)
            self.arrays.append(value)
        return self.numbers[id(value)]


def pack(arguments):
    """Arguments for another process: a head and parts. What cannot be handed over is made there, by `get_inputs`."""
    arrays, numbers, pickles = [], {}, []
    for argument in arguments:
        file = io.BytesIO()
        try:
            _Pickler(file, arrays, numbers).dump(argument)
            pickles.append(file.getvalue())
        except (pickle.PicklingError, TypeError, AttributeError, ValueError):
            pickles.append(b"")
    described = [describe(value) for value in arrays]
    top = [numbers.get(id(argument)) if _arrays.is_array(argument) else None for argument in arguments]
    head = {"arguments": len(pickles), "arrays": [of for of, _ in described], "top": top}
    return head, [*pickles, *(data for _, data in described)]


def unpack(head, parts, own):
    """The arguments; `own` gives those of `get_inputs` here."""
    count = head["arguments"]
    arrays = [rebuild(described, data) for described, data in zip(head["arrays"], parts[count:])]

    def one(number, data):
        if not data:
            return own()[number]
        reader = pickle.Unpickler(io.BytesIO(data))
        reader.persistent_load = lambda at: arrays[at]
        return reader.load()

    return [one(number, data) for number, data in enumerate(parts[:count])]
