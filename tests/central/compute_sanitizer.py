"""On a machine with a GPU: launches the planted mistakes of tests/filetests/planted under NVIDIA's compute-sanitizer.

    RTC_CENTRAL_EXPORT=FOLDER cargo test --test central planted      writes them, here or elsewhere
    python3 tests/central/compute_sanitizer.py FOLDER                prints a table: ours, and what each of its tools finds

Each tool watches several cases in one process, which prints the name of each before it is launched; if the process ends
early, another one goes on behind that case. Kernels that do not end are not launched. Needs Python alone.
"""
import ctypes, glob, json, os, shutil, subprocess, sys, threading
from concurrent.futures import ThreadPoolExecutor

TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]
# Processes for each tool, and seconds that one may take for a case.
SHARES = int(os.environ.get("SHARES", "4"))
PATIENCE = float(os.environ.get("PATIENCE", "20"))
ENDLESS = {"deadlock", "endless-loop"}
MARK = "#### "


def one(cuda, case):
    """Launches a case with memory of exactly the size that it has; unwritten memory stays unwritten."""

    def call(name, *args):
        status = getattr(cuda, name)(*args)
        if status:
            raise RuntimeError(f"{name}: {status}")

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
    for at in bases:
        call("cuMemFree_v2", ctypes.c_uint64(at))


def several(paths):
    """Launches cases one after the other; after a launch that failed the process ends, for its context is lost."""
    cuda = ctypes.CDLL("libcuda.so.1")
    for path in paths:
        case = json.load(open(path))
        print(MARK + case["name"], flush=True)
        try:
            one(cuda, case)
        except RuntimeError as error:
            print(f"{MARK}! {error}", flush=True)
            sys.exit(3)
    print(MARK, flush=True)


def launched(case):
    codes = set(" ".join(case["codes"]).split())
    return not ENDLESS & codes and bool(case["forms"]) and not any(isinstance(v, dict) for v in case["forms"][0]["sets"][0])


def watched(tool, paths):
    """What a tool says of each case: the first line of a report, nothing, or how it ended."""
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    names = [json.load(open(path))["name"] for path in paths]
    found, left = {}, list(zip(names, paths))
    while left:
        command = [program, "--tool", tool, "--print-limit", "0", "--destroy-on-device-error", "kernel"]
        command += [sys.executable, __file__, "--several", *[path for _, path in left]]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        current, reports, late, failed = None, {}, [], False

        def stop():
            late.append(current)
            process.kill()

        timer = threading.Timer(PATIENCE * 2, stop)
        timer.start()
        for line in process.stdout:
            if line.startswith(MARK):
                timer.cancel()
                timer = threading.Timer(PATIENCE, stop)
                timer.start()
                if line.startswith(MARK + "!"):
                    failed = True
                    continue
                current = line[len(MARK):].strip()
                reports.setdefault(current, [])
            elif line.startswith("=========") and current:
                reports[current].append(line[9:].strip())
        timer.cancel()
        process.wait()
        # Calls that fail because the launch did are no finding of their own.
        skipped = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "Program hit", "Host", "Saved", "at ", "by ", "in ", "Target", "and ")
        for name, lines in reports.items():
            lines = [line for line in lines if line and not line.startswith(skipped)]
            found[name] = lines[0] if lines else None
        done = {name for name in reports if name != current}
        if current == "":
            break
        if not failed:
            found[current or left[0][0]] = "did not end" if late else found.get(current) or "ended the process"
        done.add(current or left[0][0])
        left = [(name, path) for name, path in left if name not in done]
    return found


def main():
    if sys.argv[1] == "--several":
        return several(sys.argv[2:])
    cases = [(path, json.load(open(path))) for path in sorted(glob.glob(f"{sys.argv[1]}/*.json"))]
    paths = [path for path, case in cases if launched(case)]
    jobs = [(tool, paths[share::SHARES]) for tool in TOOLS for share in range(SHARES)]
    with ThreadPoolExecutor(len(jobs)) as pool:
        answers = list(pool.map(lambda job: watched(*job), jobs))
    rows = []
    for path, case in cases:
        codes = sorted(set(" ".join(case["codes"]).split()))
        found = None
        if path in paths:
            said = [(tool, answer[case["name"]]) for (tool, _), answer in zip(jobs, answers) if case["name"] in answer]
            found = [(tool, text) for tool, text in said if text]
        rows.append((case["name"], codes, found))
    table = ["| mistake | ours | compute-sanitizer |", "| --- | --- | --- |"]
    for name, codes, found in rows:
        theirs = "not launched" if found is None else "; ".join(f"{t}: {w}" for t, w in found) or "nothing"
        table.append(f"| {name.replace('_', ' ')} | {', '.join(codes) or 'nothing'} | {theirs.replace('|', '/')} |")
    where = os.environ.get("OUT")
    if where:
        with open(f"{where}/proof-sanitizer.md", "w") as file:
            file.write("\n".join(table) + "\n")
    run = [row for row in rows if row[2] is not None]
    ended = [row for row in run if not any(text == "did not end" for _, text in row[2])]
    seen = sum(any(text != "did not end" for _, text in row[2]) for row in run)
    ours = sum(bool(codes) for _, codes, _ in rows)
    print(f"{len(rows)} cases, {ours} with mistakes, all found by ours; {len(run)} launched, {len(ended)} to the end under")
    print(f"all tools; compute-sanitizer finds {seen}")
    more = [name for name, codes, found in rows if found and not codes]
    print("found by compute-sanitizer only:", ", ".join(more) or "none")
    for tool in TOOLS:
        print(f"{tool}: {sum(any(t == tool for t, _ in found or []) for _, _, found in rows)}")


if __name__ == "__main__":
    sys.exit(main())
