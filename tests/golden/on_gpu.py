"""On a machine with a GPU and PyTorch: runs every golden launch with `rtc run --device cuda:0`.

    python3 tests/golden/on_gpu.py RTC

Applies each case's own tolerance; run it in the root of a checkout.
"""
import glob, json, os, subprocess, sys, torch
from concurrent.futures import ThreadPoolExecutor
from safetensors.torch import load_file
rtc = sys.argv[1]
def ulps(x, y):
    it = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    def key(t):
        b = t.contiguous().view(it).to(torch.int64) if it != torch.int64 else t.contiguous().view(it)
        m = -(1 << (8 * t.element_size() - 1))
        return torch.where(b < 0, m - b, b)
    return (key(x) - key(y)).abs()
def one(path):
    d = os.path.dirname(path); j = json.load(open(path)); src = [f for f in os.listdir(d) if f.endswith((".rt", ".py"))][0]
    if "cuda" not in j["golden"].get("devices", ["cuda"]): return path, "skip"
    out = f"/tmp/{path.replace('/', '_')}.st"
    r = subprocess.run([rtc, "run", f"{d}/{src}", "--launch", path, "--device", "cuda:0", "-o", out], capture_output=True, text=True)
    if r.returncode: return path, "rc %d %s" % (r.returncode, (r.stderr or r.stdout).strip().splitlines()[:3])
    got, inp = load_file(out), load_file(f"{d}/{j['tensors']}")
    for n, t in inp.items():
        if n.startswith("expect."): continue
        rule = j["golden"]["outputs"].get(n)
        want = inp["expect." + n] if rule else t
        rule = rule or {"exact": True}; x = got[n]
        if x.dtype != want.dtype or x.shape != want.shape: return path, f"{n}: type/shape"
        if x.numel() == 0: continue
        same = (x.contiguous().view(torch.uint8) == want.contiguous().view(torch.uint8)).reshape(*x.shape, -1).all(-1)
        if x.dtype.is_floating_point and x.element_size() > 1:
            ok = same | (x == want) | (x.isnan() & want.isnan())
            if "ulp" in rule: ok |= (ulps(x, want) <= rule["ulp"]) & x.isfinite() & want.isfinite()
            if "bound" in rule: a, b = x.double(), want.double(); ok |= (a - b).abs() <= rule["bound"] * (1 + b.abs())
        else: ok = same
        if not ok.all(): return path, f"{n}: {(~ok).sum()} of {ok.numel()} wrong, first {x[~ok][0]} want {want[~ok][0]} rule {rule}"
    return path, "ok"
paths = sorted(glob.glob("tests/golden/*/*.launch.json") + glob.glob("tests/seeds/*/*.launch.json"))
with ThreadPoolExecutor(12) as p: res = list(p.map(one, paths))
bad = [r for r in res if r[1] not in ("ok", "skip")]
for r in bad: print(r)
print(len(res), "launches,", sum(r[1] == "ok" for r in res), "ok,", len(bad), "bad")
