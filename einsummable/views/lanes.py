"""The picture of a TaskGraph: a swim lane a site, time from left to right in steps of dependency.

Kernel calls are filled, aggregations diamonds, moves arrows across lanes as wide as their bytes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from einsummable.views import amounts, legends
from einsummable.views.colours import INK, PAPER, ink_on
from einsummable.views.drawing import Drawing, Point, shorten, text_width

_SIZE = 12
_ROW = 22.0
_GAP = 26.0
_LANE_PAD = 7.0
_WIDEST_NAME = 90.0
#: How much wider a gap gets for each move that crosses it.
_STEP, _WIDEST_GAP = 7.0, 130.0


def draw(view: dict[str, Any]) -> Drawing:
    """Draw a view of `taskgraph_view` task by task."""
    tasks = view["tasks"]
    names = {node["id"]: node["name"] for node in view["nodes"]}
    spots, columns, lanes = _place(tasks, names, len(view["lanes"]))
    colours = legends.site_colours(view)
    d = Drawing()
    width = columns[-1] if columns else 0.0
    draw_lanes(d, view, lanes, width)
    _draw_wires(d, tasks, spots)
    _draw_moves(d, view, spots, colours)
    for task in tasks:
        if task["type"] != "Move":
            _draw_task(d, task, names[task["node"]], spots[task["id"]], colours[task["site"]])
    keys = [_key(kind) for kind in dict.fromkeys(t["type"] for t in tasks)]
    d.flow(keys, max(width, 640), gap=18, top=d.box[3] + 14)
    return d


def draw_lanes(d: Drawing, view: dict[str, Any], lanes: list[tuple[float, float]], width: float) -> None:
    """Draw the background of every lane and its name with the colour of its sites."""
    colours = legends.site_colours(view)
    for members, (top, bottom) in zip(view["lanes"], lanes, strict=True):
        site = members[0] if len(members) == 1 else None
        name = f"site {members[0]}" if site is not None else f"sites {amounts.ranges(members)}"
        with d.group("", site=site):
            d.rect(-4, top, width + 8, bottom - top, fill=INK, fill_opacity=0.045)
            middle = (top + bottom) / 2
            d.text(-26, middle + 4, name, size=_SIZE, anchor="end")
            d.rect(-20, middle - 5, 10, 10, fill=colours[members[0]], stroke=INK, stroke_opacity=0.3)


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a task is drawn: its centre and its width."""

    x: float
    y: float
    width: float


def _levels(tasks: list[dict[str, Any]]) -> list[int]:
    """Return the column of each task: longest paths, but what nothing precedes stands next to its reader."""
    levels = [0] * len(tasks)
    readers: list[list[int]] = [[] for _ in tasks]
    for task in tasks:
        for j in task["inputs"]:
            readers[j].append(task["id"])
            levels[task["id"]] = max(levels[task["id"]], levels[j] + 1)
    for task in tasks:
        if not task["inputs"] and readers[task["id"]]:
            levels[task["id"]] = min(levels[r] for r in readers[task["id"]]) - 1
    return levels


def _place(
    tasks: list[dict[str, Any]], names: dict[int, str], lanes: int
) -> tuple[dict[int, _Spot], list[float], list[tuple[float, float]]]:
    """Return a spot for each task, the right ends of the columns, the top and bottom of the lanes."""
    levels = _levels(tasks)
    stacks: dict[tuple[int, int], list[int]] = defaultdict(list)
    for task, level in zip(tasks, levels, strict=True):
        stacks[level, task["site"]].append(task["id"])
    widths = [_width(task, names[task["node"]]) for task in tasks]
    columns, x = [], 0.0
    lefts = []
    for level in range(max(levels, default=-1) + 1):
        moves = sum(mine == level and t["type"] == "Move" for t, mine in zip(tasks, levels, strict=True))
        x += min(_STEP * moves, _WIDEST_GAP)
        lefts.append(x)
        x += max(w for w, mine in zip(widths, levels, strict=True) if mine == level) + _GAP
        columns.append(x - _GAP)
    depth = [
        max((len(s) for (_, site), s in stacks.items() if site == lane), default=1) for lane in range(lanes)
    ]
    bounds, y = [], 0.0
    for rows in depth:
        height = rows * _ROW + 2 * _LANE_PAD
        bounds.append((y, y + height))
        y += height + 6
    spots: dict[int, _Spot] = {}
    for (level, site), members in sorted(stacks.items()):
        top, bottom = bounds[site]
        # Near what they read, in an order that crosses few lines.
        members.sort(key=lambda i: (_mean([spots[j].y for j in tasks[i]["inputs"] if j in spots]), i))
        first = (top + bottom) / 2 - (len(members) - 1) / 2 * _ROW
        for k, i in enumerate(members):
            centre = lefts[level] + (columns[level] - lefts[level]) / 2
            spots[i] = _Spot(centre, first + k * _ROW, widths[i])
    return spots, columns, bounds


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _width(task: dict[str, Any], name: str) -> float:
    match task["type"]:
        case "Apply" | "Fused" | "Read":
            return text_width(shorten(name, _WIDEST_NAME, _SIZE), _SIZE) + 12
        case "Aggregate":
            return 20.0
        case "Move":
            return 8.0
    return 11.0


def _draw_wires(d: Drawing, tasks: list[dict[str, Any]], spots: dict[int, _Spot]) -> None:
    """Draw what is read on a site itself as thin lines."""
    for task in tasks:
        if task["type"] == "Move":
            continue
        for j in dict.fromkeys(task["inputs"]):
            a, b = spots[j], spots[task["id"]]
            start, end = (a.x + a.width / 2, a.y), (b.x - b.width / 2, b.y)
            d.curve(_bend(start, end), stroke_opacity=0.4, weight=1)


def _bend(a: Point, b: Point) -> list[Point]:
    middle = (a[0] + b[0]) / 2
    return [a, (middle, a[1]), (middle, b[1]), b]


def move_weight(size: int, largest: int) -> float:
    """Return how wide the arrow of `size` bytes is: the area tells the bytes, the thinnest is still seen."""
    return 1.2 + 5.8 * (size / largest) ** 0.5 if largest else 1.2


def _draw_moves(d: Drawing, view: dict[str, Any], spots: dict[int, _Spot], colours: tuple[str, ...]) -> None:
    tasks = view["tasks"]
    moves = [task for task in tasks if task["type"] == "Move"]
    largest = max((m["bytes"] for m in moves), default=0)
    bends = _bends(moves, spots)
    for move in sorted(moves, key=lambda m: -m["bytes"]):
        source, spot = spots[move["inputs"][0]], spots[move["id"]]
        weight = move_weight(move["bytes"], largest)
        colour = colours[tasks[move["inputs"][0]]["site"]]
        with d.group(move["text"], task=move["id"], node=move["node"], site=move["site"]):
            start = (source.x + source.width / 2, source.y)
            draw_arrow(d, start, (spot.x + 4, spot.y), weight, colour, at=bends[move["id"]])


def _bends(moves: list[dict[str, Any]], spots: dict[int, _Spot]) -> dict[int, float]:
    """Return where on its way each move turns, so that those into one column turn side by side."""
    columns: dict[float, list[dict[str, Any]]] = defaultdict(list)
    for move in moves:
        columns[spots[move["id"]].x].append(move)
    bends = {}
    for members in columns.values():
        # Those that rise turn late from top to bottom, those that fall early: fewer cross.
        members.sort(key=lambda m: _turn(spots[m["inputs"][0]], spots[m["id"]]))
        for k, move in enumerate(members):
            bends[move["id"]] = 0.2 + 0.6 * (k + 0.5) / len(members)
    return bends


def _turn(source: _Spot, target: _Spot) -> tuple[bool, float]:
    falls = target.y > source.y
    return falls, -source.y if falls else source.y


def draw_arrow(
    d: Drawing,
    start: Point,
    tip: Point,
    weight: float,
    colour: str,
    *,
    at: float = 0.5,
    strength: float = 0.9,
) -> None:
    """Draw a move: a band in the colour of the site it comes from, edged so that it is seen on any page.

    `at` is the part of the way after which it turns, `strength` its opacity.
    """
    head = 6 + weight * 0.8
    end = (tip[0] - head * 0.8, tip[1])
    turn = start[0] + (end[0] - start[0]) * at
    points = [start, (turn, start[1]), (turn, end[1]), end]
    d.curve(points, stroke=INK, weight=weight + 1.2, stroke_opacity=0.35 * strength)
    d.curve(points, stroke=colour, weight=weight, stroke_opacity=strength)
    d.arrow_head(tip, (1, 0), size=head, fill=colour, stroke=INK, stroke_opacity=0.4)


def _draw_task(d: Drawing, task: dict[str, Any], name: str, spot: _Spot, colour: str) -> None:
    size = f"{amounts.shape(task['shape'])}, {amounts.nbytes(task['bytes'])}"
    title = f"{task['text']}\n{size}, site {task['site']}"
    x, y, half = spot.x, spot.y, spot.width / 2
    with d.group(title, task=task["id"], node=task["node"], site=task["site"]):
        match task["type"]:
            case "Apply" | "Fused":
                d.rect(
                    x - half, y - 9, spot.width, 18, radius=4, fill=colour, stroke=INK, stroke_opacity=0.45
                )
                name = shorten(name, _WIDEST_NAME, _SIZE)
                d.text(x, y + 4.3, name, size=_SIZE, anchor="middle", fill=ink_on(colour))
            case "Read":
                d.rect(x - half, y - 8, spot.width, 16, fill=PAPER, stroke=INK, stroke_opacity=0.5)
                d.text(x, y + 4.3, shorten(name, _WIDEST_NAME, _SIZE), size=_SIZE, anchor="middle")
            case "Aggregate":
                draw_diamond(d, x, y, colour)
            case "Slice":
                d.rect(x - 4, y - 4, 8, 8, fill=PAPER, stroke=INK, stroke_opacity=0.6)
            case _:
                d.rect(x - 5, y - 5, 10, 10, fill=PAPER, stroke=INK, stroke_opacity=0.6)
                d.line((x, y - 5), (x, y + 5), stroke_opacity=0.6)
                d.line((x - 5, y), (x + 5, y), stroke_opacity=0.6)


def draw_diamond(d: Drawing, x: float, y: float, colour: str) -> None:
    """Draw an aggregation."""
    d.polygon(
        [(x - 10, y), (x, y - 10), (x + 10, y), (x, y + 10)], fill=colour, stroke=INK, stroke_opacity=0.6
    )


_NAMES = {
    "Read": "part of an input",
    "Apply": "kernel call",
    "Fused": "kernel calls of several nodes, of which the last is named",
    "Aggregate": "aggregation",
    "Move": "move, as wide as its bytes",
    "Slice": "piece of a block",
    "Assemble": "pieces put together",
}


def _key(kind: str) -> Drawing:
    d = Drawing()
    grey = "#9a9a9a"
    if kind == "Move":
        draw_arrow(d, (0, 9), (30, 9), 4, grey)
        x = 36.0
    else:
        width = 26.0 if kind in ("Apply", "Fused", "Read") else 20.0
        task = {"type": kind, "text": "", "shape": [], "bytes": 0, "site": None, "id": None, "node": None}
        _draw_task(d, task, "", _Spot(width / 2, 9, width), grey)
        x = width + 6
    d.text(x, 13, _NAMES[kind], size=_SIZE, muted=True)
    return d


def text(view: dict[str, Any]) -> str:
    """Return a line a node: its kernel calls in each lane, its aggregations, and what moves of it."""
    lanes = len(view["lanes"])
    head = [
        "node",
        "kernel calls" + (" by site" if lanes == view["sites"] else " by group of sites"),
        "aggregations",
        "moved",
    ]
    rows = [head]
    for node in view["nodes"]:
        cells = {c["lane"]: c["tasks"] for c in view["cells"] if c["node"] == node["id"]}
        calls = [cells.get(lane, {}).get("Apply", 0) for lane in range(lanes)]
        shown = " ".join(map(str, calls)) if any(calls) else "input"
        aggregates = sum(c.get("Aggregate", 0) for c in cells.values())
        flows = [f for f in view["flows"] if f["node"] == node["id"]]
        moved = amounts.nbytes(sum(f["bytes"] for f in flows))
        moved += f" in {amounts.many(sum(f['moves'] for f in flows), 'move')}" if flows else ""
        rows.append([node["tensor"], shown, str(aggregates or ""), moved if flows else ""])
    widths = [max(len(row[c]) for row in rows) for c in range(4)]
    lines = ["  ".join(f"{word:{w}}" for word, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([view["caption"], *lines])
