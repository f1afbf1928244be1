"""Which sizes are tried: those around blocks, larger ones, and others where those are not taken."""

import random

from .. import _cases

#: Elements of all arguments that a case may have: in the emulator, and on a GPU.
MOST = {False: 1 << 20, True: 1 << 25}
#: Seconds that a case may take in comparison with the first.
SECONDS = 1.0


class Size:
    """A size that is tried in the place of another."""

    def __init__(self, size, new, others=None):
        self.size, self.new, self.others = size, new, others or {}

    @property
    def name(self):
        return f"size {self.size} -> {self.new}"


class Plan:
    """The shapes of the arguments of `get_inputs`, and the sizes that follow from them."""

    def __init__(self, arrays, blocks, seed, gpu, seconds):
        self.shapes = [of["shape"] for of in arrays]
        self.sizes, self.blocks, self.gpu, self.seconds = _cases.sizes_of(self.shapes), blocks, gpu, seconds
        self._random = random.Random(seed)

    def edges(self):
        """Sizes around blocks."""
        return [Size(size, new) for size, new in _cases.edges(self.sizes, self.blocks)]

    def larger(self, size):
        """Sizes that are larger than any that a test would have, drawn at random: an odd one, which no block divides, then those
        that larger and larger powers of two divide."""
        least = 2 * max(size, 1024, *[b for b in self.blocks if b <= 1 << 14]) + 1
        drawn = self._random.randrange(least, 2 * least, 2)
        if self._elements(size, drawn, {}) > MOST[self.gpu] and self._elements(size, drawn, self._small(size)) > MOST[self.gpu]:
            drawn = self._random.randrange(size // 2 | 1, size, 2)
        steps = (1, 16, 64, 256, 1024)
        values = dict.fromkeys([*(-(-drawn // step) * step for step in steps), 1 << drawn.bit_length()])
        return [Size(size, new, self._others(size, new)) for new in values]

    def substitutes(self, size):
        """Sizes that a kernel takes that does not take any around its blocks: multiples, parts, powers of two."""
        step = next((b for b in sorted(self.blocks) if 8 <= b and size % b == 0), 16)
        power = 1 << (size - 1).bit_length()
        values = dict.fromkeys((2 * size, size // 2, size + step, size - step, 2 * power, power, power // 2, size + 1))
        return [Size(size, new) for new in values if new > 1 and new != size]

    def _elements(self, size, new, others):
        total = 0
        for shape in self.shapes:
            count = 1
            for s in shape:
                count *= new if s == size else others.get(s, s)
            total += count
        return total

    def _small(self, size):
        """The other sizes, at most 64."""
        return {s: 64 for s in self.sizes if s > 64 and s != size}

    def _others(self, size, new):
        """The other sizes, smaller where the case would take too long."""
        longer = self.seconds * new / size
        return self._small(size) if self._elements(size, new, {}) > MOST[self.gpu] or longer > SECONDS else {}
