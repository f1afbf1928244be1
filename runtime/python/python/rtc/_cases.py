"""Arguments of other sizes and values, made of those that `get_inputs` gives."""

import math

from . import _arrays

#: Blocks that sizes are tried around.
BLOCKS = range(8, (1 << 14) + 1)


def sizes_of(shapes):
    """The sizes that are tried, largest first."""
    return sorted({s for shape in shapes for s in shape if s > 3}, reverse=True)


def edges(sizes, blocks, limit=12):
    """Pairs of a size and another that is tried in its place: those around a block."""
    blocks = [b for b in blocks if b in BLOCKS] or [64]
    cases = []
    # Each size in turn, and first those around the nearest block, so that a limit leaves out none of the sizes.
    for number in range(2):
        for step in (-1, 1, 0):
            for size in sizes:
                fitting = sorted(set(blocks), key=lambda b: (abs(math.log2(b / min(size, 1 << 14))), b))
                new = fitting[min(number, len(fitting) - 1)] + step
                if new != size and (size, new) not in cases:
                    cases.append((size, new))
    return cases[:limit]


def resized(inputs, size, new, seed, others=None):
    """The arguments with another size wherever it stands. What belongs together in them, such as the halves of a row or the
    same row of two tensors, stays together. `others`: further sizes and those in their place."""
    others = others or {}
    first = next(v for v in inputs if _arrays.is_array(v))
    generator = _arrays.generator(first, seed)
    order = _arrays.drawn(size, new, seed)
    made = []
    for value in inputs:
        if _arrays.is_array(value):
            shape = tuple(new if s == size else others.get(s, s) for s in value.shape)
            is_flat = len(shape) < 2 and _arrays.is_float(value)
            made.append(_arrays.like(value, shape, generator) if is_flat else _arrays.resized(value, shape, size, order))
        elif isinstance(value, int) and not isinstance(value, bool) and (value == size or value in others):
            made.append(new if value == size else others[value])
        else:
            made.append(value)
    return made


def smaller(inputs, size):
    """Sizes other than this one that are made smaller, as they are very large."""
    return {s: 64 for v in inputs if _arrays.is_array(v) for s in v.shape if s > 4096 and s != size}


def boundary_inputs(inputs, blocks, seed, limit=12):
    """Names and arguments of cases with sizes around blocks."""
    shapes = [v.shape for v in inputs if _arrays.is_array(v)]
    for size, new in edges(sizes_of(shapes), blocks, limit):
        yield f"size {size} -> {new}", resized(inputs, size, new, seed, smaller(inputs, size))


def redrawn(inputs, seed, again):
    """The arguments with other values, None if nothing would be other than it is. `again` gives those of another call of
    `get_inputs`; where that draws the same numbers, rows change places, the same in all tensors, and flat floats are drawn again.
    Places within a row, and those of matrices that are square, may have a meaning, such as a mask's, and stay."""
    drawn = again()
    arrays = [v for v in inputs if _arrays.is_array(v)]
    floats = lambda values: [v for v in values if _arrays.is_array(v) and _arrays.is_float(v)]
    if len(drawn) == len(inputs) and _same_shapes(drawn, inputs) and any(_arrays.raw(a) != _arrays.raw(b)
                                                                         for a, b in zip(floats(drawn), floats(inputs))):
        return drawn
    last = {v.shape[-1] for v in arrays}
    repeated = {s for v in arrays for s in v.shape if list(v.shape).count(s) > 1}
    generator, made, is_other = _arrays.generator(arrays[0], seed), [], False
    for value in inputs:
        if _arrays.is_array(value) and _arrays.is_float(value):
            if len(value.shape) < 2:
                value, is_other = _arrays.like(value, tuple(value.shape), generator), True
            else:
                for axis, size in enumerate(value.shape):
                    if size > 1 and size not in last | repeated:
                        value, is_other = _arrays.reordered(value, axis, _arrays.shuffled(size, seed)), True
        made.append(value)
    return made if is_other else None


def _same_shapes(first, second):
    """Whether two lists of arguments have arrays of the same shapes and types in the same places."""
    kind = lambda v: (tuple(v.shape), _arrays.dtype_name(v)) if _arrays.is_array(v) else None
    return [kind(v) for v in first] == [kind(v) for v in second]


def seed_all(seed):
    """Seeds the random numbers that functions of the user's file draw by default."""
    import random
    import sys
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    if _arrays.torch() is not None:
        _arrays.torch().manual_seed(seed)


def strided(inputs):
    """The arguments with rows that lie farther apart; None where no argument has rows."""
    views = [_arrays.strided(v) if _arrays.is_array(v) else None for v in inputs]
    if all(v is None for v in views):
        return None
    return [v if v is not None else given for v, given in zip(views, inputs)]


def made(inputs, case, again):
    """The arguments of a case as the judge describes it; `again` calls `get_inputs` once more."""
    if case["kind"] == "size":
        others = {int(size): new for size, new in case["others"].items()}
        return resized(inputs, case["size"], case["new"], case["seed"], {**smaller(inputs, case["size"]), **others})
    if case["kind"] == "values":
        seed_all(case["seed"])
        return redrawn(inputs, case["seed"], again)
    return strided(inputs)
