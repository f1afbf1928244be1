"""Tables and plots: SVG that reads in light and dark, without any library."""

import html
import math

#: One colour for each line, told apart on white and on black.
COLOURS = ["#2a7de1", "#d9541e", "#1f9e57", "#a34fd0", "#b8860b", "#d0397b", "#0e9aa7", "#7a7a7a"]
WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 84, 28, 40, 56

STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #222 } .title { font-size: 14px; font-weight: 600 }
.axis { stroke: #888; fill: none } .grid { stroke: #888; stroke-opacity: .25; fill: none } .ground { fill: #fff }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .ground { fill: #16181c } }
</style>"""


def _number(value):
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def columns(bench):
    """The heads of a table."""
    unit = f" ({bench.ylabel})" if bench.ylabel else ""
    return [*bench.x_names, *[f"{name}{unit}" for name in bench.line_names]]


def table(bench, rows):
    """A table of what was measured, as text."""
    body = [[str(i), *map(_number, x), *[_number(line[0]) for line in row]] for i, (x, row) in enumerate(rows)]
    heads = ["", *columns(bench)]
    widths = [max(len(line[i]) for line in [heads, *body]) for i in range(len(heads))]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(line, widths)) for line in [heads, *body])


def csv(bench, rows):
    """The same as comma-separated values."""
    lines = [",".join(columns(bench))]
    lines += [",".join([*map(_number, x), *[_number(line[0]) for line in row]]) for x, row in rows]
    return "\n".join(lines) + "\n"


def ticks(low, high, log):
    """Round numbers between two."""
    if log:
        base = 2 if high / low < 300 else 10
        first, last = math.floor(math.log(low, base)), math.ceil(math.log(high, base))
        step = max(1, (last - first) // 8)
        return [base ** e for e in range(first, last + 1, step) if low * 0.999 <= base ** e <= high * 1.001] or [low, high]
    if high == low:
        return [low]
    rough = (high - low) / 6
    scale = 10 ** math.floor(math.log10(rough))
    step = next(m * scale for m in (1, 2, 2.5, 5, 10) if m * scale >= rough)
    first = math.ceil(low / step)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def shown(value):
    """A number on an axis."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    mantissa, exponent = math.frexp(value)
    if mantissa == 0.5 and not 1e-3 < value < 1e6:
        return f"2^{exponent - 1}"
    return f"{value:.3g}"


class Axes:
    """The frame of a plot: places of numbers, axes, title."""

    def __init__(self, title, xlabel, ylabel, xs, ys, x_log=False, y_log=False):
        self.x_log, self.y_log = x_log and min(xs) > 0, y_log and min(ys) > 0
        self.x_low, self.x_high = min(xs), max(xs)
        self.y_low, self.y_high = (min(ys) if self.y_log else min(0.0, min(ys))), max(ys)
        if self.x_high == self.x_low:
            self.x_high = self.x_low + 1
        if self.y_high == self.y_low:
            self.y_high = self.y_low + 1
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">',
            STYLE, f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>',
            f'<text class="title" x="{WIDTH / 2}" y="22" text-anchor="middle">{html.escape(title)}</text>',
            f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{html.escape(xlabel)}</text>',
            f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">{html.escape(ylabel)}</text>']
        for value in ticks(self.x_low, self.x_high, self.x_log):
            x = self.x(value)
            self.parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
                              f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{shown(value)}</text>')
        for value in ticks(self.y_low, self.y_high, self.y_log):
            y = self.y(value)
            self.parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
                              f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{shown(value)}</text>')
        self.parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')

    @staticmethod
    def _share(value, low, high, log):
        if log:
            return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
        return (value - low) / (high - low)

    def x(self, value):
        return LEFT + self._share(value, self.x_low, self.x_high, self.x_log) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        return HEIGHT - BOTTOM - self._share(value, self.y_low, self.y_high, self.y_log) * (HEIGHT - TOP - BOTTOM)

    def legend(self, names):
        for i, name in enumerate(names):
            y = TOP + 14 + 18 * i
            self.parts.append(f'<path stroke="{COLOURS[i % len(COLOURS)]}" stroke-width="3" d="M{LEFT + 12} {y - 4}h20"/>'
                              f'<text x="{LEFT + 38}" y="{y}">{html.escape(str(name))}</text>')

    def finish(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def lines(bench, rows):
    """The plot of a report: a line for each of its lines, with a band from its least to its greatest value."""
    xs = [float(x[0]) for x, _ in rows]
    ys = [float(v) for _, row in rows for line in row for v in line if v is not None and math.isfinite(v)] or [0.0]
    axes = Axes(bench.plot_name, bench.xlabel or bench.x_names[0], bench.ylabel, xs, ys, bench.x_log, bench.y_log)
    for i, _ in enumerate(bench.line_names):
        colour = COLOURS[i % len(COLOURS)]
        points = [(x, row[i]) for x, (_, row) in zip(xs, rows) if row[i][0] is not None and math.isfinite(row[i][0])]
        band = [(x, v) for x, v in points if len(v) > 2 and v[1] is not None and v[2] is not None]
        if band:
            path = [f"{axes.x(x):.1f} {axes.y(v[1]):.1f}" for x, v in band]
            path += [f"{axes.x(x):.1f} {axes.y(v[2]):.1f}" for x, v in reversed(band)]
            axes.parts.append(f'<path fill="{colour}" fill-opacity=".2" d="M{"L".join(path)}Z"/>')
        if points:
            line = "L".join(f"{axes.x(x):.1f} {axes.y(v[0]):.1f}" for x, v in points)
            axes.parts.append(f'<path fill="none" stroke="{colour}" stroke-width="2" d="M{line}"/>')
            axes.parts += [f'<circle fill="{colour}" r="2.5" cx="{axes.x(x):.1f}" cy="{axes.y(v[0]):.1f}"/>' for x, v in points]
    axes.legend(bench.line_names)
    return axes.finish()


def bars(title, ylabel, names, values, colours=COLOURS):
    """A bar for each name, with its value above it."""
    axes = Axes(title, "", ylabel, [0, len(names)], [0.0, *[v * 1.1 for v in values]])
    axes.parts = [p for p in axes.parts if 'text-anchor="middle">' not in p or "title" in p or "rotate" in p]
    width = (WIDTH - LEFT - RIGHT) / len(names)
    for i, (name, value) in enumerate(zip(names, values)):
        x, y = LEFT + width * i, axes.y(value)
        axes.parts.append(f'<rect fill="{colours[i % len(colours)]}" x="{x + width * .2:.1f}" y="{y:.1f}" width="{width * .6:.1f}" '
                          f'height="{HEIGHT - BOTTOM - y:.1f}"/><text x="{x + width / 2:.1f}" y="{y - 6:.1f}" '
                          f'text-anchor="middle">{shown(value) if value == int(value) else format(value, ".4g")}</text>'
                          f'<text x="{x + width / 2:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{html.escape(str(name))}</text>')
    return axes.finish()


def roofline(points, rate, peak):
    """Operations per second over operations per byte, below what memory (`rate`, TB/s) and the tensor cores (`peak`, TFLOP/s)
    allow. `points`: name, operations per byte, TFLOP/s."""
    ridge = peak / rate
    xs = [min(ridge / 8, *[x / 2 for _, x, _ in points]), max(ridge * 8, *[x * 2 for _, x, _ in points])]
    ys = [min(xs[0] * rate, *[y / 2 for *_, y in points]), max(peak * 1.5, *[y * 1.2 for *_, y in points])]
    axes = Axes("Roofline", "operations per byte", "TFLOP/s", xs, ys, x_log=True, y_log=True)
    roof = [(xs[0], xs[0] * rate), (ridge, peak), (xs[1], peak)]
    path = "L".join(f"{axes.x(x):.1f} {axes.y(y):.1f}" for x, y in roof)
    axes.parts.append(f'<path class="axis" stroke-width="2" d="M{path}"/>')
    middle = (xs[0] * ridge) ** 0.5
    axes.parts.append(f'<text x="{axes.x(middle) - 8:.1f}" y="{axes.y(middle * rate) - 8:.1f}" text-anchor="end">{shown(round(rate, 2))} TB/s</text>'
                      f'<text x="{WIDTH - RIGHT - 8}" y="{axes.y(peak) - 8:.1f}" text-anchor="end">{shown(float(f"{peak:.3g}"))} TFLOP/s</text>')
    for i, (name, x, y) in enumerate(points):
        axes.parts.append(f'<circle fill="{COLOURS[i % len(COLOURS)]}" r="{max(2, 7 - 2 * i)}" cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}"/>')
    axes.legend([name for name, *_ in points])
    return axes.finish()
