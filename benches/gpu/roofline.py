"""A roofline: how much each kernel computes a second over how much it computes for each byte, below what the device can."""

import html
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 440, 64, 20, 44, 52
COLOURS = {"rtc": "#2a7de1", "triton": "#d9541e", "library": "#1f9e57"}
STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #222 } .title { font-size: 14px; font-weight: 600 }
.axis { stroke: #888; fill: none } .roof { stroke: #888; stroke-width: 2; fill: none } .ground { fill: #fff }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .ground { fill: #16181c } }
</style>"""


def svg(found, limits, device):
    """The picture. Kernels that only move memory count an operation for each four bytes."""
    points = []
    for row in found:
        flops = row["flops"] or row["bytes"] / 4
        points += [(flops / row["bytes"], flops / ms * 1e3, who, row["name"]) for who, ms in row["ms"].items()]
    if not points:
        return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"></svg>\n'
    low_x, high_x = min(p[0] for p in points) / 2, max(p[0] for p in points) * 2
    top = max([p[1] for p in points] + [rate for name, rate in limits.items() if name != "copy"])
    low_y, high_y = min(p[1] for p in points) / 2, top * 2

    def x(value):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / low_x) / math.log(high_x / low_x)

    def y(value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(value / low_y) / math.log(high_y / low_y)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">', STYLE,
           f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>',
           f'<text class="title" x="{LEFT}" y="20">{html.escape(device)}</text>',
           f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>',
           f'<text x="{(WIDTH + LEFT) / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">operations for each byte of memory</text>',
           f'<text transform="translate(16 {HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">operations a second</text>']
    for exponent in range(math.ceil(math.log10(low_x)), math.floor(math.log10(high_x)) + 1):
        out.append(f'<text x="{x(10 ** exponent):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{10.0 ** exponent:g}</text>')
    for exponent in range(math.ceil(math.log10(low_y)), math.floor(math.log10(high_y)) + 1):
        text = f"{10 ** (exponent - 12):g} T" if exponent >= 12 else f"{10 ** (exponent - 9):g} G"
        out.append(f'<text x="{LEFT - 6}" y="{y(10 ** exponent) + 4:.1f}" text-anchor="end">{text}</text>')
    peak = max([rate for name, rate in limits.items() if name != "copy"], default=None)
    bend = peak / limits["copy"] if peak else high_x
    start = max(low_x, low_y / limits["copy"])
    roof = f"M{x(start):.1f} {y(start * limits['copy']):.1f}L{x(min(bend, high_x)):.1f} {y(min(bend, high_x) * limits['copy']):.1f}"
    out.append(f'<path class="roof" d="{roof}{f"H{x(high_x):.1f}" if bend < high_x else ""}"/>')
    for at_x, at_y, who, name in points:
        out.append(f'<circle cx="{x(at_x):.1f}" cy="{y(at_y):.1f}" r="4" fill="{COLOURS[who]}" fill-opacity=".8">'
                   f"<title>{html.escape(f'{name}, {who}: {at_y / 1e12:.2f} T a second')}</title></circle>")
    for i, (who, colour) in enumerate(COLOURS.items()):
        out.append(f'<circle cx="{WIDTH - 90}" cy="{TOP + 8 + 18 * i}" r="4" fill="{colour}"/>'
                   f'<text x="{WIDTH - 80}" y="{TOP + 12 + 18 * i}">{who}</text>')
    return "\n".join(out) + "\n</svg>\n"
