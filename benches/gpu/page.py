"""Results of `suite.py` as one HTML page: plots as inline SVG, light and dark, nothing from the network."""

import html
import math

import plan

#: A colour for each peer, in both modes.
COLOURS = {"rtc": "#e0632b", "triton": "#8a97a5", "pytorch": "#4a8fd6", "cudnn": "#5b6ee1", "fa3": "#3fa37b", "deepgemm": "#a06fd0", "quack": "#c9a227", "flashmla": "#d06f9c",
           "humming": "#5b9aa0"}

STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --dim: #59636e; --line: #d1d9e0; --ground: #ffffff; --good: #1a7f37; --bad: #cf222e }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --dim: #9198a1; --line: #3d444d; --ground: #0d1117; --good: #3fb950; --bad: #ff7b72 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground); max-width: 1000px; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; font-size: 13px; margin: .5rem 0 1.5rem; width: 100% }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .5rem; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left; white-space: normal }
.dim, small { color: var(--dim) } .good { color: var(--good) } .bad { color: var(--bad) }
svg { width: 100%; height: auto } svg text { font: 12px system-ui, sans-serif; fill: var(--text) } svg .dim { fill: var(--dim) }
svg .axis { stroke: var(--line) } svg .one { stroke: var(--text); stroke-dasharray: 3 3 }
"""


def ratio(row, peer):
    """The time of a peer divided by that of rtc."""
    times = row["us"]
    return times[peer] / times["rtc"] if peer in times and times.get("rtc") else None


def mean(values):
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def peers_of(rows):
    """The peers of rows, in the order of the plan."""
    return [name for name in plan.PEERS if any(name in row["status"] or name in row["us"] for row in rows)]


def bars(rows, title):
    """A bar for each row and peer: how much longer the peer takes than rtc."""
    others = [name for name in peers_of(rows) if name != "rtc"]
    points = [(row["name"], [(name, ratio(row, name)) for name in others if ratio(row, name)]) for row in rows]
    points = [(name, found) for name, found in points if found]
    if not points:
        return '<p class="dim">No row has the times of rtc and of a peer.</p>'
    left, width, thick = 300, 960, 12
    most = max(max(value for _, value in found) for _, found in points)
    # One row in which a peer is many times slower must not hide the others.
    most = min(max(most, 1.2) * 1.1, 4)
    place = lambda value: left + (width - left - 60) * min(value, most) / most
    parts, y = [], 24
    for name, found in points:
        parts.append(f'<text x="{left - 8}" y="{y + thick * len(found) / 2 + 4:g}" text-anchor="end">{html.escape(name)}</text>')
        for peer, value in found:
            cut = " ▸" if value > most else ""
            parts.append(f'<rect x="{left}" y="{y}" width="{place(value) - left:.1f}" height="{thick - 2}" rx="2" fill="{COLOURS[peer]}">'
                         f"<title>{html.escape(f'{name}: {plan.PEERS[peer].title} takes {value:.3f} times as long as rtc')}</title></rect>"
                         f'<text x="{place(value) + 5:.1f}" y="{y + thick - 3}" class="dim">{value:.2f}{cut}</text>')
            y += thick
        y += 8
    legend, x = [], left
    for peer in others:
        if any(name == peer for _, found in points for name, _ in found):
            words = plan.PEERS[peer].title
            legend.append(f'<rect x="{x}" y="{y + 6}" width="10" height="10" fill="{COLOURS[peer]}"/><text x="{x + 14}" y="{y + 15}">{html.escape(words)}</text>')
            x += 30 + 7 * len(words)
    one = f'<path class="one" d="M{place(1):.1f} 18V{y}"/><text x="{place(1):.1f}" y="12" text-anchor="middle" class="dim">rtc</text>'
    label = html.escape(f"{title}: times of peers divided by that of rtc")
    return f'<svg viewBox="0 0 {width} {y + 24}" role="img" aria-label="{label}">{"".join([*parts, one, *legend])}</svg>'


def cell(row, peer):
    """The time of a peer, or why there is none."""
    status = row["status"].get(peer)
    if peer in row["us"]:
        low, high = row["quartiles"].get(peer, (None, None))
        title = [f"quartiles {low:g} to {high:g}"] if low is not None else []
        title += [str(row["configuration"][peer])] if row["configuration"].get(peer) else []
        return f'<td title="{html.escape("; ".join(title))}">{row["us"][peer]:.1f}</td>'
    if status is None:
        return '<td class="dim"></td>'
    kind = "dim" if status.startswith("not ") else "bad"
    return f'<td class="{kind}" title="{html.escape(status)}">{html.escape(status[:40])}</td>'


def rate(row):
    """What rtc reaches."""
    time = row["us"].get("rtc")
    if not time:
        return ""
    return f"{row['flops'] / time / 1e6:.0f} TFLOP/s" if row.get("flops") else f"{row['bytes'] / time / 1e6:.2f} TB/s" if row.get("bytes") else ""


def table(rows):
    """The times of all peers in microseconds, and the ratios."""
    peers = peers_of(rows)
    others = [name for name in peers if name != "rtc" and any(ratio(row, name) for row in rows)]
    title = lambda name: html.escape(plan.PEERS[name].title)
    head = [*(f"<th>{title(name)}, µs</th>" for name in peers), *(f"<th>{title(name)} / rtc</th>" for name in others), "<th>rtc reaches</th>"]
    out = [f"<table><tr><th>kernel</th>{''.join(head)}</tr>"]
    for row in rows:
        shares = []
        for name in others:
            value = ratio(row, name)
            kind = "" if value is None else "good" if value >= 1.02 else "bad" if value < 0.98 else ""
            shares.append(f'<td class="{kind}">{"" if value is None else f"{value:.2f}"}</td>')
        cells = "".join(cell(row, name) for name in peers)
        out.append(f"<tr><td>{html.escape(row['name'])}</td>{cells}{''.join(shares)}<td>{rate(row)}</td></tr>")
    means = [mean([value for row in rows if (value := ratio(row, name))]) for name in others]
    if others:
        out.append(f'<tr><th>geometric mean</th>{"<td></td>" * len(peers)}{"".join(f"<th>{value:.2f}</th>" for value in means)}<td></td></tr>')
    return "\n".join([*out, "</table>"])


def page(results):
    """The page."""
    known = [name for name in plan.PEERS if name in results["peers"]]
    versions = [f"<tr><td>{html.escape(results['peers'][name]['title'])}</td><td>{html.escape(results['peers'][name]['version'] or 'not installed')}</td></tr>"
                for name in known]
    facts = f"{results.get('gpu') or 'unknown GPU'}, {results['date']}, commit {results['commit']}"
    parts = [f"<h1>Speed of kernels</h1><p>{html.escape(facts)}. One process for each peer, launches in turn, results compared with "
             f"PyTorch's. Ratios above 1: rtc is faster.</p><table><tr><th>peer</th><th>version</th></tr>{''.join(versions)}</table>"]
    for group, heading in plan.GROUPS.items():
        rows = [row for row in results["rows"] if row["group"] == group]
        if rows:
            parts.append(f'<h2 id="{group}">{html.escape(heading)}</h2>{bars(rows, heading)}{table(rows)}')
    return ('<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>Speed of kernels: {html.escape(facts)}</title><style>{STYLE}</style>\n{chr(10).join(parts)}\n</html>\n")
