"""Two charts: who sends how much to whom, and what strategies cost.

Contract: `traffic_view` counts the moves of a TaskGraph; `costs_view` takes plain dicts and computes nothing
but their sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from einsummable.taskgraph.tasks import Move, TaskGraph, nbytes
from einsummable.views import amounts, legends
from einsummable.views.colours import CATEGORIES, INK, PAPER
from einsummable.views.drawing import Drawing, text_width
from einsummable.views.timelines import ticks

_SIZE = 12
_BLUE = "#0072b2"
_BARS = 420.0


def traffic_view(taskgraph: TaskGraph, *, hosts: Sequence[int] | None = None) -> dict[str, Any]:
    """Return the bytes that each site sends to each other site: ``bytes[source][target]``."""
    sites = taskgraph.sites
    sent = [[0] * sites for _ in range(sites)]
    for task in taskgraph.tasks:
        if isinstance(task, Move):
            sent[taskgraph.tasks[task.inputs[0]].site][task.site] += nbytes(task)
    out, total = [sum(row) for row in sent], sum(map(sum, sent))
    words = f"{amounts.nbytes(total)} between {amounts.many(sites, 'site')}"
    if total:
        into = [sum(row[k] for row in sent) for k in range(sites)]
        words += (
            f"; a site sends up to {amounts.nbytes(max(out))} and receives up to {amounts.nbytes(max(into))}"
        )
        if hosts is not None:
            apart = sum(n for a, row in enumerate(sent) for b, n in enumerate(row) if hosts[a] != hosts[b])
            words += f"; {amounts.nbytes(apart)} between hosts"
    hosts = list(hosts) if hosts is not None else None
    return {"kind": "traffic", "sites": sites, "hosts": hosts, "bytes": sent, "caption": words}


def costs_view(
    strategies: Sequence[Mapping[str, Any]], *, unit: str = "bytes", bound: float | None = None
) -> dict[str, Any]:
    """Return what strategies cost as a view.

    Parameters
    ----------
    strategies
        For each a ``name`` and its costs by name of the part, ``{"name": "EinDecomp", "join inputs": 1.2e9,
        "partial sums": 4e8}``, in the order in which they are stacked.
    unit
        ``"bytes"``, ``"seconds"``, or the name of what is counted.
    bound
        What no strategy can do better than; drawn as a tick.
    """
    rows = [
        {"name": str(s["name"]), "parts": [[k, float(v)] for k, v in s.items() if k != "name"]}
        for s in strategies
    ]
    for row in rows:
        row["total"] = sum(value for _, value in row["parts"])
    view = {"kind": "costs", "unit": unit, "bound": bound, "strategies": rows}
    return view | {"caption": _costs_caption(view)}


def _amount(value: float, unit: str) -> str:
    match unit:
        case "bytes":
            return amounts.nbytes(value)
        case "seconds":
            return amounts.seconds(value)
    return f"{amounts.nbytes(value).removesuffix('B').strip()} {unit}"


def _costs_caption(view: dict[str, Any]) -> str:
    rows, unit = view["strategies"], view["unit"]
    if not rows:
        return "no strategy to compare"
    first, rest = rows[0], rows[1:]
    words = f"{first['name']}: {_amount(first['total'], unit)}"
    if rest:
        best = min(rest, key=lambda r: r["total"])
        words += f"; the best of the others, {best['name']}: {_amount(best['total'], unit)}"
        words += f" ({best['total'] / first['total']:.2f} times)" if first["total"] else ""
    return words + (f"; lower bound {_amount(view['bound'], unit)}" if view["bound"] is not None else "")


# -------------------------------------------------------------------------------------- pictures


def draw(view: dict[str, Any]) -> Drawing:
    """Draw a view of `traffic_view` or `costs_view`."""
    return _draw_traffic(view) if view["kind"] == "traffic" else _draw_costs(view)


def _draw_traffic(view: dict[str, Any]) -> Drawing:
    sites, sent = view["sites"], view["bytes"]
    largest = max((n for row in sent for n in row), default=0)
    cell = max(min(520.0 / max(sites, 1), 64.0), 5.0)
    side = cell * sites
    every = max(1, ceil(24 / cell))
    colours = legends.site_colours(view)
    d = Drawing()
    chip = 8.0
    d.text(side / 2, -chip - 26, "to site", size=_SIZE, anchor="middle", muted=True)
    d.text(
        -chip - 18 - text_width(str(sites), _SIZE),
        side / 2 + 4,
        "from site",
        size=_SIZE,
        anchor="end",
        muted=True,
    )
    for k in range(sites):
        d.rect(k * cell, -chip - 3, cell, chip, fill=colours[k], stroke=PAPER, weight=0.5)
        d.rect(-chip - 3, k * cell, chip, cell, fill=colours[k], stroke=PAPER, weight=0.5)
        if k % every == 0:
            d.text((k + 0.5) * cell, -chip - 8, str(k), size=_SIZE, anchor="middle")
            d.text(-chip - 8, (k + 0.5) * cell + 4, str(k), size=_SIZE, anchor="end")
    for a, row in enumerate(sent):
        for b, n in enumerate(row):
            _draw_traffic_cell(d, a, b, n, cell, largest)
    d.rect(0, 0, side, side, stroke=INK, stroke_opacity=0.4)
    for k in range(1, sites):
        if view["hosts"] is not None and view["hosts"][k] != view["hosts"][k - 1]:
            d.line((0, k * cell), (side, k * cell), weight=2)
            d.line((k * cell, 0), (k * cell, side), weight=2)
    if largest:
        ramp = Drawing()
        for k in range(8):
            ramp.rect(k * 14, 0, 14, 14, fill=_BLUE, fill_opacity=_strength(largest * (k + 1) / 8, largest))
        ramp.rect(0, 0, 112, 14, stroke=INK, stroke_opacity=0.3)
        ramp.text(120, 12, f"0 to {amounts.nbytes(largest)}", size=_SIZE, muted=True)
        d.place(ramp, 0, side + 14)
    return d


def _strength(size: float, largest: float) -> float:
    # Never so strong that the page's text colour could not be read on it, on a white page or a black one.
    return 0.08 + 0.62 * size / largest


def _draw_traffic_cell(d: Drawing, a: int, b: int, size: int, cell: float, largest: int) -> None:
    x, y = b * cell, a * cell
    if a == b:
        d.rect(x, y, cell, cell, fill=INK, fill_opacity=0.1)
        return
    if not size:
        return
    strength = _strength(size, largest)
    if cell < 12:  # thousands of tooltips that nobody can hit would only make the picture heavy
        d.rect(x, y, cell, cell, fill=_BLUE, fill_opacity=strength)
        return
    with d.group(f"{amounts.nbytes(size)} from site {a} to site {b}", source=a, site=b):
        d.rect(x, y, cell, cell, fill=_BLUE, fill_opacity=strength, stroke=PAPER, weight=0.5)
        text = amounts.nbytes(size)
        lines = [text] if text_width(text, _SIZE) + 4 <= cell else text.split(" ")
        if max(text_width(line, _SIZE) for line in lines) + 4 <= cell and 15 * len(lines) <= cell:
            for k, line in enumerate(lines):
                dy = 4.3 + (k - (len(lines) - 1) / 2) * 14
                d.text(x + cell / 2, y + cell / 2 + dy, line, size=_SIZE, anchor="middle")


def _part_colours(view: dict[str, Any]) -> dict[str, str]:
    names = dict.fromkeys(name for row in view["strategies"] for name, _ in row["parts"])
    return {name: CATEGORIES[k % len(CATEGORIES)] for k, name in enumerate(names)}


def _draw_costs(view: dict[str, Any]) -> Drawing:
    rows, unit = view["strategies"], view["unit"]
    most = max([view["bound"] or 0.0, *(row["total"] for row in rows)], default=0.0)
    scale = _BARS / most if most else 0.0
    colours = _part_colours(view)
    d = Drawing()
    for k, row in enumerate(rows):
        y, x = k * 28.0, 0.0
        d.text(-10, y + 15, row["name"], size=_SIZE, anchor="end", bold=k == 0)
        for part, value in row["parts"]:
            width = value * scale
            if width > 0:
                with d.group(f"{row['name']}: {part} {_amount(value, unit)}"):
                    d.rect(x, y, width, 20, fill=colours[part], stroke=PAPER, weight=1 if width > 3 else 0)
            x += width
        d.text(x + 8, y + 15, _amount(row["total"], unit), size=_SIZE, bold=k == 0)
    bottom = len(rows) * 28.0 - 4
    d.line((0, -6), (0, bottom), stroke_opacity=0.5)
    if view["bound"] is not None:
        x = view["bound"] * scale
        with d.group(f"lower bound {_amount(view['bound'], unit)}"):
            d.line((x, -6), (x, bottom), dash="4 3", weight=1.5)
            d.text(x, -12, "lower bound", size=_SIZE, anchor="middle", muted=True)
    for mark in ticks(most, 4):
        d.line((mark * scale, bottom), (mark * scale, bottom + 4), stroke_opacity=0.5)
        d.text(mark * scale, bottom + 18, _tick(mark, unit), size=_SIZE, anchor="middle", muted=True)
    if len(colours) > 1:
        d.flow(legends.categories(list(colours.items())), 700, gap=16, top=d.box[3] + 10)
    return d


def _tick(mark: float, unit: str) -> str:
    if not mark:
        return "0"
    number, _, name = _amount(mark, unit).partition(" ")
    return f"{float(number):g} {name}".strip()


# ------------------------------------------------------------------------------------------ text


def text(view: dict[str, Any]) -> str:
    """Return the chart in characters."""
    return _traffic_text(view) if view["kind"] == "traffic" else _costs_text(view)


def _traffic_text(view: dict[str, Any]) -> str:
    sites, sent = view["sites"], view["bytes"]
    if sites > 12:
        rows = [f"site {a:<3} sends {amounts.nbytes(sum(row)):>8}" for a, row in enumerate(sent)]
        return "\n".join([view["caption"], *rows])
    cells = [[amounts.nbytes(n) if n else "·" for n in row] for row in sent]
    width = max([len(c) for row in cells for c in row] + [3])
    lines = [view["caption"], "from\\to  " + "  ".join(f"{k:>{width}}" for k in range(sites))]
    for a, row in enumerate(cells):
        lines.append(f"{a:>7}  " + "  ".join(f"{c:>{width}}" for c in row))
    return "\n".join(lines)


def _costs_text(view: dict[str, Any], columns: int = 40) -> str:
    rows, unit = view["strategies"], view["unit"]
    most = max((row["total"] for row in rows), default=0.0)
    marks = "█▒▓░▞▚"
    names = list(_part_colours(view))
    wide = max((len(row["name"]) for row in rows), default=0)
    lines = [view["caption"]]
    for row in rows:
        bar, reached = "", 0.0
        for part, value in row["parts"]:
            reached += value
            length = round(reached / most * columns) if most else 0
            bar += marks[names.index(part) % len(marks)] * (length - len(bar))
        lines.append(f"{row['name']:{wide}}  {bar:{columns}}  {_amount(row['total'], unit)}")
    if len(names) > 1:
        lines.append("  ".join(f"{marks[k % len(marks)]} {name}" for k, name in enumerate(names)))
    return "\n".join(lines)
