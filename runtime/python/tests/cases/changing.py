"""A kernel that uses a global, which the test changes."""


@rtc.jit
def times(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) * FACTOR)
