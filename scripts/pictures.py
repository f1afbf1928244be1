"""Draws the pictures of the README and the book: docs/images/NAME-{light,dark}.svg. What they show comes from rtc and its sources.

    RTC=target/release/rtc python3 scripts/pictures.py            writes them
    RTC=target/release/rtc python3 scripts/pictures.py --check    fails where one is out of date

`speed` and the table of the latest run in docs/performance/README.md are made of docs/images/speed.json, which a run on a GPU writes."""

import html
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IMAGES = os.path.join(ROOT, "docs", "images")
MATMUL = os.path.join(ROOT, "examples", "matmul", "matmul.rt")
#: A, B and C in fp16 with rows that lie side by side, tiles of 128 x 256 x 64 and of 128 x 128 x 32.
POINTERS = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, i32:16, 1, i32:16, 1, i32:16, 1"
HOPPER = ["--signature", POINTERS + ", 128, 256, 64, 8, None", "--num-warps", "8", "--arch", "sm_90a"]
AMPERE = ["--signature", POINTERS + ", 128, 128, 32, 8, None", "--arch", "sm_80"]

MODES = {
    "light": {"text": "#1f2328", "dim": "#59636e", "line": "#d1d9e0", "ground": "#f6f8fa", "rtc": "#d9541e", "other": "#a9b4c0",
              "ansi": {"91": "#cf222e", "31": "#cf222e", "94": "#0550ae", "96": "#1b7c83", "93": "#9a6700"}},
    "dark": {"text": "#e6edf3", "dim": "#9198a1", "line": "#3d444d", "ground": "#151b23", "rtc": "#f0763f", "other": "#6b7683",
             "ansi": {"91": "#ff7b72", "31": "#ff7b72", "94": "#79c0ff", "96": "#39c5cf", "93": "#d29922"}},
}
#: Fills that carry dark text in both modes.
FILLS = ["#8ec6ff", "#ffc48a", "#9fe0b4", "#d8b8f5", "#f7e08a", "#f5b3d0", "#9be3e8", "#cfd6de"]


def rtc(*arguments, fails=False):
    command = [os.environ.get("RTC", "rtc"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=IMAGES)
    if (done.returncode != 0) != fails:
        sys.exit(f"pictures: {' '.join(command)} ended with status {done.returncode}:\n{done.stderr}")
    return done.stdout + done.stderr


class Picture:
    """An SVG of this size and mode, made of parts."""

    def __init__(self, width, height, mode, label):
        self.mode = MODES[mode]
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            f'aria-label="{html.escape(label)}">', f'<style>text {{ font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; '
            f'fill: {self.mode["text"]} }} .dim {{ fill: {self.mode["dim"]} }} .on {{ fill: #1f2328 }} .small {{ font-size: 11px }} '
            f'.bold {{ font-weight: 600 }} .mono {{ font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, monospace; white-space: pre }}</style>']

    def text(self, x, y, words, kind="", anchor="start"):
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{html.escape(words)}</text>')

    def box(self, x, y, width, height, fill, words="", kind="on small", stroke="none"):
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" fill="{fill}" stroke="{stroke}"/>')
        if words:
            self.text(x + width / 2, y + height / 2 + 4, words, kind, "middle")

    def line(self, x0, y0, x1, y1, colour=None, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<path d="M{x0:g} {y0:g}L{x1:g} {y1:g}" stroke="{colour or self.mode["line"]}" fill="none"{dashes}/>')

    def done(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def measured():
    """The run on a GPU: its facts, and rows with `ratio`, Triton's time divided by rtc's."""
    with open(os.path.join(IMAGES, "speed.json")) as file:
        data = json.load(file)
    for row in data["rows"]:
        row.setdefault("ratio", row["triton"] / row["rtc"] if "rtc" in row else None)
    data["card"] = re.sub(r"^NVIDIA (\w+).*", r"\1", data["gpu"])
    return data


#: The rows of the picture, slow and fast ones alike, with the words for them.
SHOWN = {"softmax 16384x1024 float16": "softmax, 16384 × 1024 fp16", "layer norm 16384x4096 float16": "layer norm, 16384 × 4096 fp16",
         "cross entropy 4096x128256 float16": "cross entropy, 4096 × 128256", "matmul 4096x4096x4096 float16": "matmul fp16, 4096³",
         "matmul 8192x8192x1024 float16": "matmul fp16, 8192² × 1024", "matmul 4096x4096x4096 float32": "matmul tf32, 4096³",
         "attention full 4x16x4096x64": "attention, 64 columns", "attention causal 4x16x4096x64": "attention, 64 columns, causal",
         "attention full 4x16x4096x128": "attention, 128 columns", "attention causal 4x16x4096x128": "attention, 128 columns, causal",
         "vLLM all": "83 launches of vLLM's kernels, mean"}


def speed(mode):
    """Speed relative to Triton, a bar for each kernel."""
    data = measured()
    ratios = {row["kernel"]: row["ratio"] for row in data["rows"]}
    left, width, top, step = 268, 720, 46, 27
    most = max(ratios[name] for name in SHOWN) * 1.12
    place = lambda value: left + (width - left - 60) * value / most
    height = top + step * len(SHOWN) + 34
    picture = Picture(width, height, mode, f"Speed relative to Triton {data['triton']}")
    picture.text(8, 22, f"Speed relative to Triton {data['triton']} on an {data['card']} (higher is better)", "bold")
    for i, (name, words) in enumerate(SHOWN.items()):
        y, ratio = top + step * i, ratios[name]
        picture.text(left - 10, y + 14, words, "", "end")
        picture.box(left, y + 2, place(ratio) - left, step - 10, picture.mode["rtc"])
        picture.text(place(ratio) + 6, y + 15, f"{ratio:.2f}×", "bold")
    picture.line(place(1), top - 6, place(1), top + step * len(SHOWN), picture.mode["text"], "3 3")
    picture.text(place(1), top - 10, "Triton", "dim small", "middle")
    picture.text(8, height - 10, f"{data['gpu']}, {data['date']}, commit {data['commit']}. Same source and configurations, same run.", "dim small")
    return picture.done()


def table():
    """The same run as two tables of the page on performance."""
    data = measured()
    out = [f"One {data['gpu']}, {data['date']}, commit {data['commit']}, Triton {data['triton']}, PyTorch {data['torch']}.", "",
           "| kernel | Triton, µs | rtc, µs | Triton / rtc |", "| --- | --- | --- | --- |"]
    out += [f"| {r['kernel']} | {r['triton']:g} | {r['rtc']:g} | {r['ratio']:.2f} |" for r in data["rows"] if "rtc" in r]
    out += ["", "Kernels of vLLM 0.11.0, geometric mean and least ratio of the launches of each group:", "",
            "| kernels | launches | Triton / rtc | least |", "| --- | --- | --- | --- |"]
    out += [f"| {r['kernel'].removeprefix('vLLM ')} | {r['launches']} | {r['ratio']:.2f} | {format(r['worst'], '.2f') if 'worst' in r else ''} |"
            for r in data["rows"] if "launches" in r]
    return "\n".join(out)


def sanitizer(mode):
    """A finding of the sanitizer, as the terminal shows it."""
    command = ["run", "race.py", "--launch", "race.json", "--sanitize", "race"]
    output = rtc(*command, "--color", "always", fails=True)
    lines = [f"$ rtc {' '.join(command)}"]
    # The first finding; what it says of PTX is for those who look at it.
    first = re.split(r"\n(?=\x1b\[1m\x1b\[\d+merror\[)", output)[0]
    lines += [re.sub(r", PTX line .*", "", line) for line in first.split("\n") if "seen " not in line]
    assert "global-race" in first and "written here before" in first, output
    wrapped = [part for line in lines for part in wrap(line, 100)]
    picture = Picture(820, 26 + 19 * len(wrapped), mode, "A race that rtc run --sanitize reports, with the lines of the source")
    picture.box(0.5, 0.5, 819, 25 + 19 * len(wrapped), picture.mode["ground"], stroke=picture.mode["line"])
    for i, line in enumerate(wrapped):
        spans, colour, bold = [], None, False
        for code, words in re.findall(r"(?:\x1b\[(\d*)m)?([^\x1b]*)", line):
            colour = picture.mode["ansi"].get(code, None if code == "0" else colour)
            bold = code == "1" or (bold and code != "0")
            if words:
                style = (f' fill="{colour}"' if colour else "") + (' font-weight="600"' if bold else "")
                style = style.replace(' fill="', ' style="fill:') if colour else style
                spans.append(f'<tspan{style}>{html.escape(words)}</tspan>')
        picture.parts.append(f'<text class="mono" x="14" y="{26 + 19 * i}" xml:space="preserve">{"".join(spans)}</text>')
    return picture.done()


def wrap(line, width):
    """The line in pieces of at most so many characters, which keep their colours."""
    out, shown, last = [""], 0, ""
    for escape, word in re.findall(r"(\x1b\[\d*m)|([^\x1b ]* ?)", line):
        if escape:
            last = "" if escape.endswith("[0m") else last + escape
            out[-1] += escape
        elif word:
            if shown + len(word.rstrip()) > width:
                out.append(last + "    ")
                shown = 4
            out[-1] += word
            shown += len(word)
    return out


def bases(text):
    """The bases of a layout, by what they count: `reg [[0, 1], [0, 2]]`."""
    found = re.findall(r"(reg|lane|warp|offset) (\[(?:\[[\d, ]*\](?:, )?)*\])", text)
    return {name: json.loads(list_) for name, list_ in found}


def at(list_, number, dims=2):
    """The place that a number has by its bits."""
    place = [0] * dims
    for bit, base in enumerate(list_):
        if number >> bit & 1:
            place = [a ^ b for a, b in zip(place, base)]
    return tuple(place)


def layout(mode):
    """Which lane of which warp holds which element of a tile."""
    text = rtc("emit", "tile.rt", "--signature", "*fp32:16, *fp32:16", "--stage", "laid")
    found = next(bases(line) for line in text.split("\n") if "shape [16, 32]" in line)
    owner = {}
    for warp in range(4):
        for lane in range(32):
            for register in range(1 << len(found["reg"])):
                places = (at(found["warp"], warp), at(found["lane"], lane), at(found["reg"], register))
                owner[tuple(a ^ b ^ c for a, b, c in zip(*places))] = (warp, lane, register)
    cell, top, left = 20, 56, 40
    picture = Picture(left + 32 * cell + 12, top + 16 * cell + 34, mode, "The layout of a tile of 16 x 32 elements over four warps")
    picture.text(8, 20, "A tile of 16 × 32 fp32 over 4 warps: the number is the lane", "bold")
    picture.text(8, 38, "Each lane holds 4 neighbours (16 bytes) in 4 registers, so a warp reads whole 128-byte lines.", "dim small")
    for row in range(16):
        picture.text(left - 8, top + cell * row + 14, str(row), "dim small", "end")
        column = 0
        while column < 32:
            warp, lane, _ = owner[row, column]
            end = column
            while end < 32 and owner[row, end][:2] == (warp, lane):
                end += 1
            picture.box(left + column * cell + 1, top + row * cell + 1, (end - column) * cell - 2, cell - 2, FILLS[warp], str(lane))
            column = end
    for warp in range(4):
        picture.box(left + 100 * warp, top + 16 * cell + 10, 14, 14, FILLS[warp])
        picture.text(left + 20 + 100 * warp, top + 16 * cell + 21, f"warp {warp}", "small")
    return picture.done()


def swizzle(mode):
    """Where the pieces of eight rows lie in shared memory, in order and swizzled."""
    text = rtc("emit", MATMUL, *HOPPER, "--stage", "scheduled")
    found = bases(re.search(r"^#s\d+ = shared\(shape \[128, 64\].*", text, re.M)[0])["offset"]
    cell, high, top = 42, 26, 74
    picture = Picture(2 * 8 * cell + 110, top + 8 * high + 16, mode, "Pieces of 16 bytes in shared memory, in order and swizzled")
    picture.text(8, 20, "Shared memory of a 64-column fp16 tile: the number is the column block (8 columns, 16 bytes)", "bold")
    picture.text(8, 38, "A column block read over 8 rows hits the same 4 banks 8 times without the swizzle, and all 32 banks with it.", "dim small")
    for side, (name, swizzled) in enumerate([("row by row", False), ("128-byte swizzle", True)]):
        left = 50 + side * (8 * cell + 40)
        picture.text(left, top - 8, name, "small")
        for row in range(8):
            if side == 0:
                picture.text(left - 8, top + high * row + 17, f"row {row}", "dim small", "end")
            for chunk in range(8):
                row_of, column = at(found, row * 64 + chunk * 8) if swizzled else (row, chunk * 8)
                assert row_of == row, "the swizzle moves pieces within a row"
                picture.box(left + chunk * cell + 1, top + high * row + 1, cell - 2, high - 2, FILLS[column // 8], str(column // 8))
    return picture.done()


def slots(text, buffer):
    """How many slots the ring of a buffer of this shape has."""
    return int(re.search(rf"alloc_shared .* : shared<{buffer}xf16, #\w+, (\d+)>", text)[1])


def pipeline(mode):
    """Copies and dots of a pipelined loop over time."""
    text = rtc("emit", MATMUL, *AMPERE, "--stage", "scheduled")
    ring = slots(text, "128x32")
    ahead = text.split("for_range")[0].count("copy_commit")
    unit, high, top, left, count = 74, 30, 66, 92, 6
    picture = Picture(left + unit * (count + ahead) + 20, top + 2 * high + 84, mode, "A software pipeline")
    picture.text(8, 20, f"A pipelined loop on sm_80: {ring} slots, copies are issued {ahead} iterations ahead", "bold")
    picture.text(8, 38, "Each colour is a slot of the ring in shared memory; a slot is filled again after the dot that read it.", "dim small")
    for row, name in enumerate(["cp.async", "tl.dot"]):
        picture.text(left - 10, top + row * (high + 6) + 20, name, "", "end")
    for i in range(count):
        picture.box(left + i * unit + 1, top, unit - 2, high, FILLS[i % ring], f"tile {i}")
        picture.box(left + (i + ahead) * unit + 1, top + high + 6, unit - 2, high, FILLS[i % ring], f"tile {i}")
    bottom = top + 2 * high + 18
    for start, end, name in [(0, ahead, "prologue"), (ahead, count, "steady state"), (count, count + ahead, "epilogue")]:
        picture.line(left + start * unit + 3, bottom, left + end * unit - 3, bottom, picture.mode["dim"])
        picture.text(left + (start + end) * unit / 2, bottom + 16, name, "dim small", "middle")
    picture.text(left, bottom + 40, "time →", "dim small")
    return picture.done()


def roles(mode):
    """Producer and consumer warps over time."""
    text = rtc("emit", MATMUL, *HOPPER, "--stage", "scheduled")
    ring = slots(text, "128x64")
    warps, registers = (json.loads(part) for part in re.search(r"warp_specialize \{warps = (\[.*?\]), registers = (\[.*?\])", text).groups())
    consumers = warps[1] // 4
    unit, high, top, left, tiles, steps = 40, 28, 92, 178, 2, 7
    total = tiles * steps
    picture = Picture(left + unit * (total + 3) + 16, top + (2 + consumers) * (high + 6) + 46, mode, "Producer and consumer warps over time")
    picture.text(8, 20, f"Producer and consumer warps on sm_90a: a ring of {ring} stages", "bold")
    picture.text(8, 38, f"{warps[0]} producer warp ({registers[0]} registers per thread) issues TMA copies, {warps[1]} consumer warps "
                 f"({registers[1]} registers) run wgmma.", "dim small")
    picture.text(8, 54, "The producer runs ahead by up to the length of the ring, and copies for the next output tile during the epilogue of this one.", "dim small")
    names = ["producer: TMA", *[f"consumer group {i}: wgmma" for i in range(consumers)], "epilogue: TMA store"]
    for row, name in enumerate(names):
        picture.text(left - 10, top + row * (high + 6) + 18, name, "small", "end")
    # A dot starts when its copy is done, one unit later; the first dot of a tile also waits for the epilogue before it.
    start, free, copies = 1, [0] * ring, 0
    for tile in range(tiles):
        for step in range(steps):
            slot = (tile * steps + step) % ring
            copies = max(copies, free[slot])
            picture.box(left + copies * unit + 1, top, unit - 2, high, FILLS[slot], str(slot))
            start = max(start, copies + 1)
            copies += 1
            for group in range(consumers):
                picture.box(left + start * unit + 1, top + (group + 1) * (high + 6), unit - 2, high, FILLS[slot], str(slot))
            start += 1
            free[slot] = start
        picture.box(left + start * unit + 1, top + (consumers + 1) * (high + 6), unit - 2, high, FILLS[7], f"C{tile}")
        start += 1
    picture.text(left, top + (2 + consumers) * (high + 6) + 20, "time → (numbers are stages of the ring; the lengths are not to scale)", "dim small")
    return picture.done()


def passes(mode):
    """All passes in order, by the groups of the pipeline."""
    words = {"tile": "shapes and types", "laid": "a layout for each tile", "schedule": "pipelines, producers",
             "place": "shared memory, barriers"}
    groups = {group: [] for group in words}
    with open(os.path.join(ROOT, "compiler", "passes", "src", "pipeline.rs")) as file:
        for line in file:
            if heading := re.match(r"    // (\w+): ", line):
                names = groups[heading[1]]
            elif found := re.match(r"    (?:\w+::)+(\w+)::PASS,", line):
                # A pass has the name of its file.
                names.append(found[1].replace("_", "-"))
    unit, high, top = 190, 22, 72
    picture = Picture(len(groups) * unit + 8, top + max(map(len, groups.values())) * high + 12, mode, "The passes in order")
    picture.text(8, 20, f"The {sum(map(len, groups.values()))} passes in order, top to bottom, left to right", "bold")
    for i, (group, names) in enumerate(groups.items()):
        picture.text(8 + i * unit, top - 26, group, "bold")
        picture.text(8 + i * unit, top - 10, words[group], "dim small")
        for row, name in enumerate(names):
            picture.box(8 + i * unit, top + row * high, unit - 14, high - 3, FILLS[i], name)
    return picture.done()

def schedule(mode):
    """The passes of scheduling as a flow: for loops whose warps are specialized, and for others."""
    with open(os.path.join(ROOT, "compiler", "passes", "src", "pipeline.rs")) as file:
        paths = re.findall(r"^    schedule::(?:(\w+)::)?(\w+)::PASS,", file.read(), re.M)
    # A folder of `schedule` is on one of the two ways; what is in none of these, on both.
    columns = {"partition": 0, "overlap": 0, "operands": 1, "pipeline": 1}
    both = {"hide_conversions": 2, "hide_operands": 2}
    unit, high, top, left, wide = 250, 26, 112, 8, 226
    ways = [[], [], []]
    for folder, name in paths:
        ways[both.get(name, columns.get(folder, 2))].append(name.replace("_", "-"))
    assert all(ways), "each way has passes"
    rows = max(len(ways[0]), len(ways[1]))
    height = top + (rows + len(ways[2])) * high + 42
    picture = Picture(left + 2 * unit + 240, height, mode, "The passes of scheduling, and the files that decide")
    picture.text(8, 20, "Scheduling: a kernel with layouts takes one of two ways", "bold")
    picture.text(8, 38, "All loads of the dots in its loops are boxes of tensors, the target has TMA and wgmma, a form fits: warps are specialized.", "dim small")
    picture.text(8, 54, "Otherwise all warps copy and compute.", "dim small")
    titles = [("specialized", "rings filled by a producer warp"), ("not specialized", "rings filled by all warps, or registers")]
    for column, (title, words) in enumerate(titles):
        x = left + column * unit
        picture.text(x, top - 24, title, "bold")
        picture.text(x, top - 8, words, "dim small")
        for row, name in enumerate(ways[column]):
            picture.box(x, top + row * high, wide, high - 4, FILLS[column], name)
    below = top + rows * high + 34
    picture.text(left, below - 10, "both", "bold")
    for row, name in enumerate(ways[2]):
        picture.box(left, below + row * high, 2 * unit - (unit - wide), high - 4, FILLS[2], name)
    x = left + 2 * unit
    helpers = [("access/", "which tile is a box, and why not"), ("access/refusal.rs", "codes and words of refusals"),
               ("schedule/partition/transfers.rs", "ways in which a producer brings tiles"), ("schedule/partition/config.rs", "partitions, their registers"),
               ("schedule/pipeline/expander.rs", "stages to prologue, loop, epilogue"), ("schedule/resources.rs", "shared memory of a trial"),
               ("dependence.rs", "which dots depend on which")]
    picture.text(x, top - 24, "used by passes", "bold")
    for row, (name, words) in enumerate(helpers):
        assert os.path.exists(os.path.join(ROOT, "compiler", "passes", "src", name)), name
        picture.text(x, top + row * 36 + 8, name, "small")
        picture.text(x, top + row * 36 + 22, words, "dim small")
    return picture.done()


def stages(mode):
    """What the expander makes of a loop whose operations have stages, from the plan of a matmul."""
    lines = [line for line in rtc("emit", MATMUL, *AMPERE, "--stage", "plan").split("\n") if line]
    first = next(i for i, line in enumerate(lines) if re.match(r"loop \w+$", line))
    count = next(i for i, line in enumerate(lines[first + 1:]) if not line.startswith("  "))
    steady = [line.strip() for line in lines[first + 1:first + 1 + count]]
    short = lambda line: re.sub(r"(?<=read )\S+ from | \(.*?\)|, by threads.*|, then .*|, f16 to.*", "", line)
    copies = [short(line) for line in steady if line.startswith("copy to")]
    reads = [short(line) for line in steady if line.startswith(("read", "dot"))]
    ahead = sum(line.startswith("copy to") for line in lines[:first]) // len(copies)
    assert copies and reads and ahead > 0
    unit, high, top = 190, 22, 92
    rows = max(len(copies) + len(reads) + 1, ahead * len(copies) + ahead - 1)
    picture = Picture(4 * unit + 24, top + rows * high + 22, mode, "Stages of operations, and the loop that the expander makes")
    picture.text(8, 20, f"Stages to a pipeline: copies have stage 0, what reads them has stage {ahead}", "bold")
    picture.text(8, 38, "In each step an operation of stage s is executed for the iteration s before that of stage 0. A colour is an iteration.", "dim small")
    titles = ["loop with stages", "prologue", "steady state, step i", "epilogue"]
    for column, title in enumerate(titles):
        picture.text(8 + column * unit, top - 12, title, "bold")
    row = lambda column, at, words, fill: picture.box(8 + column * unit, top + at * high, unit - 14, high - 4, fill, words)
    for at, (words, stage) in enumerate([*((copy, 0) for copy in copies), *((read, ahead) for read in reads)]):
        row(0, at, f"{words}: stage {stage}", FILLS[7])
    for step in range(ahead):
        for at, copy in enumerate(copies):
            row(1, step * (len(copies) + 1) + at, f"{copy}, iteration {step}", FILLS[step])
    row(2, 0, f"wait for copies of i - {ahead}", FILLS[0])
    for at, copy in enumerate(copies):
        row(2, 1 + at, f"{copy}, iteration i", FILLS[ahead])
    for at, read in enumerate(reads):
        row(2, 1 + len(copies) + at, read, FILLS[0])
    row(3, 0, "wait for all copies", FILLS[7])
    picture.text(8 + 3 * unit, top + high + 14, "(masked ends: the last copies", "dim small")
    picture.text(8 + 3 * unit, top + high + 28, "read nothing)", "dim small")
    return picture.done()


PICTURES = {"speed": speed, "sanitizer": sanitizer, "layout": layout, "swizzle": swizzle, "pipeline": pipeline,
            "producer-consumer": roles, "passes": passes, "schedule": schedule, "stages": stages}


def main():
    check = "--check" in sys.argv[1:]
    named = [name for name in sys.argv[1:] if not name.startswith("-")] or list(PICTURES)
    stale = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["RTC_CACHE_DIR"] = cache
        for name in named:
            for mode in MODES:
                path, drawn = os.path.join(IMAGES, f"{name}-{mode}.svg"), PICTURES[name](mode)
                if check:
                    old = open(path).read() if os.path.exists(path) else ""
                    stale += [os.path.relpath(path, ROOT)] if old != drawn else []
                else:
                    with open(path, "w") as file:
                        file.write(drawn)
    if "speed" in named:
        page = os.path.join(ROOT, "docs", "performance", "README.md")
        with open(page) as file:
            old = file.read()
        new = re.sub(r"(<!-- made: speed -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}\n{table()}\n\n{m[2]}", old, flags=re.S)
        if check:
            stale += ["docs/performance/README.md"] if old != new else []
        else:
            with open(page, "w") as file:
                file.write(new)
    if stale:
        sys.exit(f"out of date: {', '.join(stale)}; write them with `RTC=.. python3 scripts/pictures.py`, and look at them")


if __name__ == "__main__":
    main()
