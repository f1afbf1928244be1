"""Kernels that use globals, which the test changes."""


@rtc.jit
def times(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) * FACTOR)


@rtc.jit
def times_of_list(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) * FACTORS[0])


@rtc.jit
def times_of_module(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) * settings.FACTOR)


def of_closure():
    factors = [2.0]

    @rtc.jit
    def kernel(x, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(x + i, tl.load(x + i) * factors[0])

    return kernel, factors
