"""Which memory the launches of a case wrote, and whether a result is a part of it."""

import re

import numpy as np

from . import wire

#: Names of element types as metadata has them, and as arrays do.
TYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2",
         "i1": "bool", "u1": "bool", **{f"{s}{b}": f"{'u' if s == 'u' else ''}int{b}" for s in "iu" for b in (8, 16, 32, 64)}}
#: The share of elements that no launch has changed that is no evidence against a result: a sum that rounds to what was there.
SHARE = 0.01


class Argument:
    """Memory that a launch was given: its elements as bits, before the launch and after, and which of them a launch has changed."""

    def __init__(self, of, block, launch):
        self.name, self.written, self.launch, self.item = of["name"], of["written"], launch, of["item"]
        self.block = block
        found = re.search(r"(?:\*k?|tensordesc<)(\w+)", of["type"] if isinstance(of["type"], str) else "")
        self.dtype = TYPES.get(found[1]) if found else None
        shape, strides, address = of["shape"], of["strides"], of["address"]
        if shape is None or strides is None:
            count = (block.start + block.length - address) // self.item
            shape, strides = [count], [1]
        self.shape = tuple(shape)
        view = lambda data: _view(data, block.start, address, self.shape, strides, self.item)
        self.before, self.after = view(block.before), view(block.after)
        changed = _view(block.launched.view(np.uint8), block.start, address, self.shape, strides, self.item)
        self.changed = None if changed is None else changed != 0
        #: Where what it held before came from.
        self.origin = "launch" if block.known is not None and _same(view(block.known), self.before) else None

    def values(self, bits):
        """The elements as an array of their type."""
        return wire.to_numpy({"dtype": self.dtype, "shape": list(bits.shape), "item": self.item}, np.ascontiguousarray(bits).tobytes())


class Block:
    """Memory of a launch that belongs together."""

    def __init__(self, head, before, after, earlier):
        self.start, self.length, self.before, self.after = head["start"], head["bytes"], before, after
        same = next((b for b in earlier if (b.start, b.length) == (self.start, self.length)), None)
        self.known = same.after if same is not None else None
        # Of each byte, whether a launch has put there what it holds.
        self.launched = np.zeros(self.length, bool) if same is None else same.launched & (same.after == before)
        self.launched |= before != after

    def overlaps(self, other):
        return self.start < other.start + other.length and other.start < self.start + self.length


class Memory:
    """The memory that the launches of a case were given and wrote. `inputs`: descriptions and elements of the arguments of the case."""

    def __init__(self, records, inputs):
        self.blocks, self.arguments, self.launches = [], [], []
        self._inputs = [(described, np.frombuffer(data, _bits(described["item"]))) for described, data in inputs]
        for number, (head, data) in enumerate(records):
            self._add(number, head, np.frombuffer(data, np.uint8))

    def _add(self, number, head, data):
        at, given = 0, []
        for of in head["blocks"]:
            before = data[at:at + of["bytes"]]
            at += of["bytes"]
            after = before
            if of["changed"]:
                after = data[at:at + of["bytes"]]
                at += of["bytes"]
            block = Block(of, before, after, self.blocks)
            self.blocks = [b for b in self.blocks if not b.overlaps(block)] + [block]
            given += [Argument(argument, block, number) for argument in of["arguments"]]
        for argument in given:
            argument.origin = argument.origin or self._origin(argument)
        self.arguments = [a for a in self.arguments if a.before is not None] + given
        self.launches.append({"kernel": head["kernel"], "grid": head["grid"], "config": head["config"], "device": head["device"],
                              "outputs": sorted({a.name for a in given if a.written}),
                              "given": {a.name: a.origin for a in sorted(given, key=lambda a: a.name)}})

    def _origin(self, argument):
        """Where the elements come from: an input, a fill, or else the host."""
        if argument.before is None:
            return "unknown"
        held = argument.before.reshape(-1)
        for described, bits in self._inputs:
            if bits.dtype == held.dtype and bits.size == held.size and (np.array_equal(bits, held) or _same_set(bits, held)):
                return "input"
        return "fill" if held.size == 0 or bool((held == held[0]).all()) else "host"

    def problem(self, described, data, alone):
        """Why a result is none of a launch; None if it is one, or an argument that is given back beside other results."""
        claimed = np.frombuffer(data, _bits(described["item"]))
        if claimed.size == 0:
            return None
        if self.launches and not alone and any(np.array_equal(bits, claimed) for _, bits in self._inputs):
            return None
        block = next((b for b in self.blocks if b.start <= described["address"] < b.start + b.length), None)
        if block is not None and described["strides"] is not None:
            place = (block.start, described["address"], tuple(described["shape"]), described["strides"], described["item"])
            held = _view(block.after, *place)
            if held is not None and np.array_equal(held.reshape(-1), claimed):
                return self._left_out(claimed, _view(block.launched.view(np.uint8), *place).reshape(-1) != 0, described)
        for argument in reversed(self.arguments):
            if argument.written and argument.after is not None and _is_copy(argument, described, claimed):
                return self._left_out(argument.after.reshape(-1), argument.changed.reshape(-1), described)
        was_written = block is not None and any(a.written and a.block is block for a in self.arguments)
        return "no launch wrote what it holds" + (": the host changed the memory after the launch" if was_written else "")

    def _left_out(self, bits, changed, described):
        """Whether elements that no launch has changed hold more than a fill or an input."""
        left = ~changed
        count = int(left.sum())
        if count == 0:
            return None
        if count == bits.size:
            return "no launch changed any of its elements"
        held = bits[left]
        if count <= SHARE * bits.size or np.unique(held[:1 << 20]).size <= 2:
            return None
        for of, given in self._inputs:
            if given.dtype == bits.dtype and given.size == bits.size and np.array_equal(given[left], held):
                return None
        return f"no launch changed {count} of its {bits.size} elements, which hold what the host put there"

    def holding(self, is_result):
        """A launch and an argument that the host prepared and that holds the result before the launch, if there is one."""
        for argument in self.arguments:
            if argument.origin == "host" and argument.dtype is not None and is_result(argument.values(argument.before)):
                return argument
        return None


def _bits(item):
    return np.dtype(f"u{item}") if item in (1, 2, 4, 8) else np.dtype((np.void, item))


def _view(data, start, address, shape, strides, item):
    """Elements of an array in a block, as bits; None where they are not all in it. With bytes that are truth values, an element
    is other than 0 where one of its bytes is."""
    low = high = address - start
    for size, stride in zip(shape, strides):
        if size == 0:
            return np.zeros(shape, _bits(item))
        low, high = low + min(0, (size - 1) * stride * item), high + max(0, (size - 1) * stride * item)
    if low < 0 or high + item > data.size:
        return None
    return np.ndarray(shape, _bits(item), np.ascontiguousarray(data), address - start, tuple(s * item for s in strides))


def _same(first, second):
    return first is not None and second is not None and np.array_equal(first, second)


def _same_set(first, second):
    """Whether two arrays have the same elements in some order."""
    return first.size <= 1 << 24 and first.dtype.kind == "u" and np.array_equal(np.sort(first), np.sort(second))


def _is_copy(argument, described, claimed):
    """Whether a result has the elements that a launch left in an argument: in the same order or another, rounded to another type,
    or the first of each row."""
    held, flat = argument.after, argument.after.reshape(-1)
    if held.dtype == claimed.dtype:
        if flat.size == claimed.size:
            return bool(np.array_equal(flat, claimed)) or argument.item > 1 and _same_set(flat, claimed)
        shape = tuple(described["shape"])
        if len(shape) == held.ndim and all(n <= m for n, m in zip(shape, held.shape)):
            if np.array_equal(held[tuple(slice(0, n) for n in shape)].reshape(-1), claimed):
                return True
        if claimed.size >= 16 and argument.item * claimed.size <= flat.size * argument.item:
            return np.ascontiguousarray(flat).tobytes().find(claimed.tobytes()) >= 0
    if argument.dtype is None or argument.dtype == described["dtype"] and flat.size != 1 and claimed.size != 1:
        return False
    values, result = argument.values(flat), wire.to_numpy(described, claimed.tobytes())
    if values is None or result is None:
        return False
    values, result = (np.asarray(x, np.float64) for x in (values, result))
    if claimed.size == 1 and flat.size <= 64:
        return bool((values == result.reshape(-1)[0]).any())
    return flat.size == claimed.size and _is_rounded(values, result.reshape(-1), described)


def _is_rounded(values, result, described):
    """Whether values are those of an array of another type, rounded."""
    from .. import _narrow
    with np.errstate(all="ignore"):
        if described["dtype"] in _narrow.TYPES:
            rounded = np.asarray(_narrow.TYPES[described["dtype"]](values), np.float64)
        else:
            rounded = values.astype(np.dtype(described["dtype"])).astype(np.float64)
    return bool(np.array_equal(rounded, result, equal_nan=True))
