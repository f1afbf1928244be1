"""Compares what launches wrote, and sums up all rows."""

import collections
import math
import re

#: Formats of eight bits: a value between two of them is rounded either way. So many elements may differ; of fp8 numbers more, if
#: by one step, which is a fourteenth of the largest value.
ROUNDED, STEPS, STEP = 4e-3, 5e-2, 0.0725


def short(message):
    """The first lines of a message on one."""
    return re.sub(r"\s+", " ", re.sub(r"\x1b\[[0-9;]*m", "", message))[:160]


def difference(a, b):
    """The largest difference of two tensors relative to the largest value, and the share of elements that differ by 1 % of it."""
    import torch
    if a.shape != b.shape:
        return math.inf, 1.0
    if a.numel() == 0 or torch.equal(a.view(torch.uint8), b.view(torch.uint8)):
        return 0.0, 0.0
    a, b = a.double(), b.double()
    both = (a.isnan() & b.isnan()) | (a == b)
    apart = torch.where(both, 0.0, (a - b).abs())
    finite = a[a.isfinite()]
    scale = max(float(finite.abs().max()) if finite.numel() else 0.0, 1e-30)
    apart = torch.nan_to_num(apart, nan=math.inf) / scale
    return float(apart.max()), float((apart > 1e-2).double().mean())


def differences(files, tolerance):
    """For each launch of a case how far the results are apart: keys of its row."""
    import torch
    if len(files) < 2:
        return []
    found, loaded = [], [torch.load(path) for path in files]
    for written, other in zip(*loaded):
        row = {"difference": 0.0, "agrees": True, "written": sorted(set(written) | set(other))}
        for key in row["written"]:
            if key not in written or key not in other:
                row.update(difference=math.inf, agrees=False, where=f"{key} is written by one alone")
                continue
            most, share = difference(written[key], other[key])
            byte, eight = written[key].element_size() == 1, written[key].dtype == torch.float8_e4m3fn
            right = most <= tolerance or byte and share <= ROUNDED or eight and most <= STEP and share <= STEPS
            if most > row["difference"]:
                row.update(difference=most, share=share)
            if not right:
                row.update(agrees=False, where=f"{key}: {most:.2e}, {100 * share:.2f} % of the elements")
        if not row["written"]:
            row["difference"] = None    # through addresses, or values that were there before
        found.append(row)
    return found


def ratio(row):
    """Triton's time by rtc's: in a graph where both were timed so, for there the host takes no part."""
    times = row["graph"] if len(row.get("graph", {})) == 2 else row.get("us", {})
    return times["triton"] / times["rtc"] if {"triton", "rtc"} <= set(times) and times["rtc"] else None


def geometric(values):
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def summary(suite, facts):
    """Prints what all rows say together."""
    rows = [row for row in suite.rows if row.get("kernel")]
    timed = [row for row in rows if ratio(row)]
    print(f"\n{facts.get('gpu')}, torch {facts.get('torch')}: {len(rows)} launches of {len({r['kernel'] for r in rows})} kernels, "
          f"{len(timed)} timed of {len({r['kernel'] for r in timed})} kernels")
    by_family = collections.defaultdict(list)
    for row in timed:
        by_family[row["family"]].append(row)
    for family, own in by_family.items():
        print(f"  {family:<20} {len(own):4} launches, Triton/rtc {geometric([ratio(r) for r in own]):.3f}")
    if timed:
        total = {peer: sum(row["us"][peer] for row in timed if len(row["us"]) == 2) for peer in ("triton", "rtc")}
        single = [row["us"]["triton"] / row["us"]["rtc"] for row in timed if len(row["us"]) == 2]
        graphs = [ratio(row) for row in timed if len(row["graph"]) == 2]
        print(f"Triton/rtc: geometric mean {geometric([ratio(r) for r in timed]):.3f} (single launches {geometric(single):.3f}, "
              f"short ones in graphs {geometric(graphs):.3f}); total time {total['triton'] / max(total['rtc'], 1e-9):.3f}; "
              f"rtc is at least as fast in {sum(ratio(r) >= 1 for r in timed)}")
        print("worst:")
        for row in sorted(timed, key=ratio)[:10]:
            print(f"  {ratio(row):6.3f} {row['kernel']} {row['case']}: Triton {row['us']['triton']} us, rtc {row['us']['rtc']} us")
    seconds = {peer: sum(row["compile"].get(peer, 0) for row in rows) for peer in suite.options.peers}
    print("first launches, which compile: " + ", ".join(f"{peer} {seconds[peer]:.1f} s" for peer in suite.options.peers))
    wrong = [row for row in rows if not row.get("agrees", True)]
    if wrong:
        print(f"{len(wrong)} launches differ:")
        for row in wrong:
            print(f"  {row['kernel']} {row['case']}: {row.get('where')}")
    failures = collections.defaultdict(list)
    for row in suite.rows:
        for peer, message in row["failed"].items():
            failures[peer, row.get("kernel") or row["family"], short(message)].append(row["case"])
    if failures:
        print(f"{len(failures)} failures:")
        for (peer, what, message), cases in failures.items():
            print(f"  {peer} {what} ({len(cases)} of {', '.join(sorted(set(cases)))[:80]}): {message}")
