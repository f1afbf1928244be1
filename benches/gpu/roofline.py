"""A roofline: how much each kernel computes a second over how much it computes for each byte, below what the device can."""

import html

from rtc._plot import COLOURS, Axes

#: Each compiler has a colour.
WHO = dict(zip(("rtc", "triton", "library"), COLOURS))
#: Operations a second on the axis are counted in these.
TERA = 1e12


def svg(found, limits, device):
    """The picture. Kernels that only move memory count an operation for each four bytes."""
    points = []
    for row in found:
        flops = row["flops"] or row["bytes"] / 4
        points += [(flops / row["bytes"], flops / ms * 1e3 / TERA, who, row["name"]) for who, ms in row["ms"].items() if who in WHO]
    if not points:
        return '<svg xmlns="http://www.w3.org/2000/svg"></svg>\n'
    rate, peak = limits["copy"] / TERA, max([rate / TERA for name, rate in limits.items() if name != "copy"], default=None)
    xs = [min(x for x, *_ in points) / 2, max(x for x, *_ in points) * 2]
    ys = [min(y for _, y, *_ in points) / 2, 2 * max([y for _, y, *_ in points] + ([peak] if peak else []))]
    axes = Axes(device, "operations for each byte of memory", "TFLOP/s", xs, ys, x_log=True, y_log=True)
    bend = min(peak / rate, xs[1]) if peak else xs[1]
    roof = [(x, x * rate) for x in (max(xs[0], ys[0] / rate), bend)] + ([(xs[1], peak)] if peak and bend < xs[1] else [])
    path = "L".join(f"{axes.x(x):.1f} {axes.y(y):.1f}" for x, y in roof)
    axes.parts.append(f'<path class="axis" stroke-width="2" d="M{path}"/>')
    for x, y, who, name in points:
        axes.parts.append(f'<circle cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" r="4" fill="{WHO[who]}" fill-opacity=".8">'
                          f"<title>{html.escape(f'{name}, {who}: {y:.2f} TFLOP/s')}</title></circle>")
    axes.legend(list(WHO))
    return axes.finish()
