"""Tensors of PyTorch, arrays of numpy and those of `_narrow`, looked at in one way."""

import functools
import sys


def torch():
    """PyTorch, if the program has loaded it."""
    return sys.modules.get("torch")


def is_tensor(value):
    """Whether a value is a tensor of PyTorch."""
    return torch() is not None and isinstance(value, torch().Tensor)


def is_narrow(value):
    """Whether a value is an array of floats that numpy lacks."""
    narrow = sys.modules.get(f"{__package__}._narrow")
    return narrow is not None and isinstance(value, narrow.NarrowArray)


def is_array(value):
    """Whether a value is a tensor or an array."""
    return is_tensor(value) or is_narrow(value) or (hasattr(value, "__array_interface__") and hasattr(value, "astype") and getattr(value, "ndim", 0) > 0)


def dtype_name(value):
    """The name of the dtype, such as `float16`."""
    return str(value.dtype).rsplit(".", 1)[-1]


def is_float(value):
    """Whether the elements are floats."""
    return "float" in dtype_name(value)


def _by_bits(function):
    """Has a function of arrays that only moves elements take arrays of floats that numpy lacks, too."""

    @functools.wraps(function)
    def made(value, *args, **kwargs):
        if not is_narrow(value):
            return function(value, *args, **kwargs)
        found = function(value.base, *args, **kwargs)
        return None if found is None else value.dtype.from_bits(found)

    return made


@_by_bits
def copy(value):
    """A copy with the same strides."""
    if not is_tensor(value):
        if min(value.strides, default=0) < 0 or value.flags["C_CONTIGUOUS"]:
            return value.copy(order="K")
        import numpy as np
        span = value.itemsize + sum((n - 1) * s for n, s in zip(value.shape, value.strides) if n)
        made = np.ndarray(value.shape, value.dtype, np.zeros(span, np.uint8), strides=value.strides)
        made[...] = value
        return made
    made = torch().empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    return made.copy_(value.detach()).requires_grad_(value.requires_grad)


@_by_bits
def moved(value):
    """A copy that begins elsewhere in its memory, also modulo large powers of two."""
    if not is_contiguous(value):
        return copy(value)
    if is_tensor(value):
        made = torch().empty(value.numel() + 64, dtype=value.dtype, device=value.device)[64:].view(value.shape)
        return made.copy_(value.detach())
    import numpy as np
    made = np.empty(value.size + 64, value.dtype)[64:].reshape(value.shape)
    made[...] = value
    return made


def wide(value):
    """The elements in double precision, one after the other; integers and truth values too."""
    if is_tensor(value):
        value = value.detach().reshape(-1)
        return (value.float() if "float8" in dtype_name(value) else value).double()
    import numpy as np
    return value.reshape(-1).astype(np.float64)


def size(value):
    """The number of elements."""
    return value.numel() if is_tensor(value) else value.size


def place(value):
    """The kind of device: `cuda` or `cpu`."""
    return value.device.type if is_tensor(value) else "cpu"


def is_contiguous(value):
    """Whether the elements lie row after row."""
    return value.is_contiguous() if is_tensor(value) else bool(value.flags["C_CONTIGUOUS"])


def address(value):
    """Where the elements begin."""
    return value.data_ptr() if hasattr(value, "data_ptr") else value.__array_interface__["data"][0]


def item_bytes(value):
    """The bytes of an element."""
    return value.element_size() if is_tensor(value) else value.itemsize


def like(value, shape, generator):
    """Random elements of another shape that look like those of `value`."""
    import math
    numbers = wide(value)
    count = max(math.prod(shape), 1)
    if is_tensor(value):
        t = torch()
        if value.dtype == t.bool:
            return t.rand(shape, generator=generator).to(value.device) > 0.5
        if is_float(value):
            mean, spread = float(numbers.mean()), float(numbers.std()) if size(value) > 1 else 1.0
            made = t.randn(shape, generator=generator, dtype=t.float64) * (spread or 0.0) + mean
            if float(numbers.min()) >= 0:
                made = made.abs()
            return made.to(t.float32).to(value.dtype).to(value.device) if "float8" in dtype_name(value) else made.to(value.dtype).to(value.device)
        low, high = int(numbers.min()), int(numbers.max())
        return t.randint(low, high + 1, tuple(shape), generator=generator).to(value.dtype).to(value.device)
    import numpy as np
    if not is_narrow(value) and value.dtype == np.bool_:
        return generator.random(shape) > 0.5
    if is_float(value):
        spread = float(numbers.std()) if size(value) > 1 else 1.0
        made = generator.standard_normal(shape) * spread + float(numbers.mean())
        made = abs(made) if float(numbers.min()) >= 0 else made
        return value.dtype(made) if is_narrow(value) else made.astype(value.dtype)
    return generator.integers(int(numbers.min()), int(numbers.max()) + 1, shape).astype(value.dtype) if count else value[:0]


def drawn(size, new, seed):
    """Which of `size` places stand in `new` ones: some of them in order, or all of them and more, drawn at random."""
    import random
    source = random.Random(seed)
    places = range(size)
    return sorted(source.sample(places, new)) if new <= size else [*places, *source.choices(places, k=new - size)]


def shuffled(size, seed):
    """The places of a dimension in another order."""
    import random
    places = list(range(size))
    random.Random(seed * 1000003 + size).shuffle(places)
    return places


@_by_bits
def reordered(value, axis, order):
    """The elements in another order along a dimension."""
    if not is_tensor(value):
        return value.take(order, axis)
    t = torch()
    made, dtype = value.detach(), value.dtype
    made = made.view(t.uint8) if "float8" in dtype_name(value) else made
    return made.index_select(axis, t.tensor(order, device=value.device)).view(dtype).requires_grad_(value.requires_grad)


def resized(value, shape, size, order):
    """The elements in another shape: along dimensions of `size` those at the places in `order`, along others the first ones.
    Integers keep the order that they have, as they may be offsets."""
    return _resized(value, shape, size, order if is_float(value) else sorted(order))


@_by_bits
def _resized(value, shape, size, kept):
    made = value.detach() if is_tensor(value) else value
    dtype = made.dtype
    if is_tensor(made) and "float8" in dtype_name(made):
        made = made.view(torch().uint8)
    for axis, (old, now) in enumerate(zip(value.shape, shape)):
        if old == now:
            continue
        places = kept if old == size else range(now)
        if is_tensor(made):
            made = made.index_select(axis, torch().tensor(list(places), device=made.device))
        else:
            made = made.take(list(places), axis)
    return made.contiguous().clone().view(dtype) if is_tensor(made) else made.copy()


def generator(value, seed):
    """Random numbers for `like`."""
    if is_tensor(value):
        return torch().Generator().manual_seed(seed)
    import numpy as np
    return np.random.default_rng(seed)


@_by_bits
def strided(value):
    """The same elements in rows that lie farther apart; None where that is no other tensor."""
    shape = tuple(value.shape)
    if len(shape) < 2 or shape[-1] < 2:
        return None
    larger = (*shape[:-1], shape[-1] + 3)
    if is_tensor(value):
        made = torch().zeros(larger, dtype=value.dtype, device=value.device)
        view = made[..., :shape[-1]]
        view.copy_(value.detach())
        return view
    import numpy as np
    made = np.zeros(larger, value.dtype)
    made[..., :shape[-1]] = value
    return made[..., :shape[-1]]


def cast(value, name):
    """A tensor or array as one of another dtype. numpy's become arrays of `ml_dtypes`, if the program has loaded that, or
    else of `_narrow`, where numpy lacks the dtype."""
    if is_tensor(value):
        return value.detach().to(getattr(torch(), name))
    from . import _narrow
    if name not in _narrow.TYPES:
        return value.astype(name)
    made = value if is_narrow(value) and value.dtype == name else _narrow.TYPES[name](value)
    theirs = getattr(sys.modules.get("ml_dtypes"), name, None)
    return made if theirs is None or is_narrow(value) else made.astype(theirs)


def read(like, data):
    """The array of the dtype of another whose bytes these are, in memory of the CPU."""
    if is_tensor(like):
        return torch().frombuffer(bytearray(data), dtype=like.dtype)
    import numpy as np
    if is_narrow(like):
        return like.dtype.from_bits(np.frombuffer(bytearray(data), like.base.dtype))
    return np.frombuffer(bytearray(data), like.dtype)


def raw(value):
    """The bytes of a contiguous array."""
    if is_tensor(value):
        t = torch()
        return value.detach().contiguous().reshape(-1).view(t.uint8).cpu().numpy().tobytes()
    return value.tobytes()


SAFETENSORS = {"float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "int8": "I8", "int16": "I16",
               "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "bool": "BOOL",
               "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}


def safetensors(tensors):
    """A file of tensors by name: shape, the dtype's name, bytes."""
    import json
    head, body, at = {}, [], 0
    for name, (shape, dtype, data) in sorted(tensors.items()):
        head[name] = {"dtype": SAFETENSORS[dtype], "shape": list(shape), "data_offsets": [at, at + len(data)]}
        body.append(data)
        at += len(data)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(body)
