"""Host time of one warm launch with Triton, for comparison with `gpu_launches` of rtc-benches on the same machine."""

import statistics
import time

import torch
import triton
import triton.language as tl


@triton.jit
def four(x, y, n, m):
    pass


@triton.jit
def sixteen(x0, x1, x2, x3, x4, x5, x6, x7, n0, n1, n2, n3, n4, n5, n6, n7):
    pass


def measure(name, launch, batch=256, rounds=60):
    times = []
    for index in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(batch):
            launch()
        end = time.perf_counter()
        if index >= 10:
            times.append((end - start) / batch * 1e6)
    torch.cuda.synchronize()
    print(f"{name:36} {statistics.median(times):7.3f} us a call")


x = [torch.empty(64, device="cuda") for _ in range(8)]
print("triton", triton.__version__)
measure("triton, 4 arguments", lambda: four[(1,)](x[0], x[1], 64, 3, num_warps=1))
measure("triton, 16 arguments", lambda: sixteen[(1,)](*x, 64, 3, 2, 5, 6, 7, 9, 10, num_warps=1))
