"""On a machine with a GPU: launches the planted mistakes of tests/filetests/planted under NVIDIA's compute-sanitizer.

    RTC_CENTRAL_EXPORT=FOLDER cargo test --test central planted      writes them, here or elsewhere
    python3 tests/central/compute_sanitizer.py FOLDER [PROCESSES]    prints a table: ours, and what each of its tools finds

Kernels that do not end are not launched. Needs Python alone.
"""
import ctypes, glob, json, os, shutil, subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor

TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]
DEADLINE = time.time() + float(os.environ.get("SECONDS_LIMIT", "1e9"))
ENDLESS = {"deadlock", "endless-loop"}


def one(path):
    """Launches a case with memory of exactly the size that it has; what nobody wrote stays so."""
    case = json.load(open(path))
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *args):
        status = getattr(cuda, name)(*args)
        if status:
            print(f"{name}: {status}")
            sys.exit(3)

    device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    bases = []
    for _, size, text in case["tensors"]:
        at = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(max(size, 1)))
        bases.append(at.value)
        if text:
            call("cuMemcpyHtoD_v2", at, bytes.fromhex(text), ctypes.c_size_t(size))
    form = next((f for f in case["forms"] if f["target"] == "sm_90a"), case["forms"][0])
    call("cuModuleLoadData", ctypes.byref(module), form["ptx"].encode() + b"\0")
    call("cuModuleGetFunction", ctypes.byref(function), module, form["symbol"].encode())
    if form["shared"] > 48 * 1024:
        call("cuFuncSetAttribute", function, 8, ctypes.c_int(form["shared"]))
    block = bytearray(form["bytes"])
    for (at, size), value in zip(form["params"], form["sets"][0]):
        number = value >> 40 if size == 8 else 0
        if 0 < number <= len(bases):
            value = bases[number - 1] + (value & ((1 << 40) - 1))
        block[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    data = (ctypes.c_uint8 * max(len(block), 1)).from_buffer_copy(bytes(block) or b"\0")
    length = ctypes.c_size_t(len(block))
    extra = (ctypes.c_void_p * 5)(1, ctypes.cast(data, ctypes.c_void_p), 2, ctypes.cast(ctypes.byref(length), ctypes.c_void_p), 0)
    call("cuLaunchKernel", function, *form["grid"], form["threads"], 1, 1, form["shared"], None, None, extra)
    call("cuCtxSynchronize")


def fitting(codes):
    """The tools that look for what was planted."""
    words = " ".join(codes)
    kinds = [("memcheck", ("bound", "misaligned", "overrun", "overflow")), ("initcheck", ("uninit",)),
             ("racecheck", ("race", "same-place", "await", "write-under", "fence")), ("synccheck", ("barrier", "lanes", "meet", "mbarrier"))]
    return [tool for tool, some in kinds if any(word in words for word in some)]


def judged(path, tools):
    case = json.load(open(path))
    codes = " ".join(case["codes"]).split()
    found = []
    if ENDLESS & set(codes) or not case["forms"] or any(isinstance(v, dict) for v in case["forms"][0]["sets"][0]):
        return case["name"], codes, None
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    for tool in fitting(codes) if tools is None else [t for t in TOOLS if t not in fitting(codes)]:
        if time.time() > DEADLINE:
            return case["name"], codes, None
        command = [program, "--tool", tool, "--print-limit", "3", sys.executable, __file__, "--one", path]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=12)
        except subprocess.TimeoutExpired:
            found.append((tool, "did not end"))
            continue
        lines = [l[9:].strip() for l in done.stdout.splitlines() if l.startswith("=========")]
        # Calls that fail because the launch did are no finding of their own.
        lines = [l for l in lines if l and not l.startswith(("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "Program hit", "Host", "Saved", "at", "by", "in", "Target"))]
        if lines:
            found.append((tool, lines[0]))
    return case["name"], codes, found


def main():
    if sys.argv[1] == "--one":
        return one(sys.argv[2])
    paths = sorted(glob.glob(f"{sys.argv[1]}/*.json"))
    with ThreadPoolExecutor(int(sys.argv[2]) if len(sys.argv) > 2 else 12) as pool:
        # First the tools that look for what was planted, then the others as far as the time goes.
        first = list(pool.map(lambda path: judged(path, None), paths))
        then = list(pool.map(lambda path: judged(path, TOOLS), paths))
    rows = [(n, c, None if f is None else f + (g or [])) for (n, c, f), (_, _, g) in zip(first, then)]
    print(f"{sum(g is not None for _, _, g in then)} cases were launched under all tools")
    seen = sum(bool(found) for _, _, found in rows)
    run = [row for row in rows if row[2] is not None]
    table = ["| mistake | ours | compute-sanitizer |", "| --- | --- | --- |"]
    for name, codes, found in rows:
        theirs = "not launched" if found is None else "; ".join(f"{t}: {w}" for t, w in found) or "nothing"
        table.append(f"| {name.replace('_', ' ')} | {', '.join(sorted(set(codes))) or 'nothing'} | {theirs.replace('|', '/')} |")
    where = os.environ.get("OUT")
    if where:
        with open(f"{where}/proof-sanitizer.md", "w") as file:
            file.write("\n".join(table) + "\n")
    ours = sum(bool(codes) for _, codes, _ in rows)
    print(f"{len(rows)} cases, {ours} with mistakes, all found by ours; {len(run)} launched, compute-sanitizer finds {seen}")
    more = [name for name, codes, found in rows if found and not codes]
    print("found by compute-sanitizer only:", ", ".join(more) or "none")
    for name, codes, found in rows:
        print(f"{name[:44]:44} {','.join(sorted(set(codes)))[:30]:30} {'-' if found is None else ','.join(t for t, _ in found) or 'nothing'}")


if __name__ == "__main__":
    sys.exit(main())
