"""The picture of a TaskGraph: a swim lane a site, time from left to right in steps of dependency.

Kernel calls are filled, aggregations diamonds, moves arrows across lanes as wide as their bytes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from einsummable.views import amounts, legends, links
from einsummable.views.colours import INK, PAPER, UNPLACED, ink_on
from einsummable.views.drawing import Drawing, Point, shorten, text_width
from einsummable.views.neighbours import fold_key
from einsummable.views.taskshapes import draw_arrow, draw_bow, draw_diamond, draw_fold, move_weight

_SIZE = 12
_ROW = 22.0
_GAP = 26.0
_LANE_PAD = 7.0
_WIDEST_NAME = 90.0
#: How much wider a gap gets for each move that crosses it.
_STEP, _WIDEST_GAP = 7.0, 130.0
#: How much wider it gets for each that comes back to the column it leaves.
_BOW = 9.0


def draw(view: dict[str, Any]) -> Drawing:
    """Draw a view of `taskgraph_view` task by task, or of `folding.fold`, and what its shapes mean."""
    d = draw_tasks(view)
    d.flow(keys(view), max(d.box[2], 640), gap=18, top=d.box[3] + 14)
    return d


def keys(view: dict[str, Any]) -> list[Drawing]:
    """Return a key for each shape of the picture."""
    return [_key(kind) for kind in dict.fromkeys(t["type"] for t in view["tasks"])]


def draw_tasks(view: dict[str, Any]) -> Drawing:
    """Draw the lanes."""
    tasks = view["tasks"]
    names = {node["id"]: node["name"] for node in view["nodes"]}
    spots, columns, lanes = _place(tasks, names, len(view["lanes"]))
    colours = lane_colours(view)
    d = Drawing()
    width = columns[-1] if columns else 0.0
    draw_lanes(d, view, lanes, width)
    _draw_wires(d, tasks, spots)
    _draw_moves(d, view, spots, colours)
    for task in tasks:
        if task["type"] != "Move":
            _draw_task(d, task, names[task["node"]], spots[task["id"]], colours[task["lane"]])
    return d


def lane_colours(view: dict[str, Any]) -> list[str]:
    """Return the colour of every lane: that of its first site, grey where one lane is all sites."""
    colours = legends.site_colours(view)
    if len(view["lanes"]) == 1 and view["sites"] > 1:
        return [UNPLACED]
    return [colours[members[0]] for members in view["lanes"]]


def draw_lanes(d: Drawing, view: dict[str, Any], lanes: list[tuple[float, float]], width: float) -> None:
    """Draw the background of every lane and its name with the colour of its sites."""
    colours = lane_colours(view)
    for k, (members, (top, bottom)) in enumerate(zip(view["lanes"], lanes, strict=True)):
        site = members[0] if len(members) == 1 else None
        name = f"site {members[0]}" if site is not None else f"sites {amounts.ranges(members)}"
        with d.group("", lane=k, name=name):
            d.rect(-4, top, width + 8, bottom - top, fill=INK, fill_opacity=0.045)
        with d.group(name, site=site, keys=" ".join(map(links.site_key, members))):
            middle = (top + bottom) / 2
            d.text(-26, middle + 4, name, size=_SIZE, anchor="end")
            d.rect(-20, middle - 5, 10, 10, fill=colours[k], stroke=INK, stroke_opacity=0.3)


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
    columns = _whole_folds(tasks)
    held = {i for members in columns for i in members}
    moved = True
    while moved:  # once, but where folds of a node have to be brought under each other
        moved = False
        for task in tasks:
            i = task["id"]
            levels[i] = max([levels[i], *(levels[j] + 1 for j in task["inputs"])])
        for members in columns:
            column = max(levels[i] for i in members)
            for i in members:
                moved |= levels[i] < column
                levels[i] = column
    for task in tasks:
        if not task["inputs"] and readers[task["id"]] and task["id"] not in held:
            levels[task["id"]] = min(levels[r] for r in readers[task["id"]]) - 1
    return levels


def _whole_folds(tasks: list[dict[str, Any]]) -> list[list[int]]:
    """Return the folds of each node of which nothing else is drawn, so that none leads to another of them."""
    by_node: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for task in tasks:
        by_node[task["node"]].append(task)
    whole = (these for these in by_node.values() if all(task["type"] == "Fold" for task in these))
    return [[task["id"] for task in these] for these in whole if any(task["arrows"] for task in these)]


def _place(
    tasks: list[dict[str, Any]], names: dict[int, str], lanes: int
) -> tuple[dict[int, _Spot], list[float], list[tuple[float, float]]]:
    """Return a spot for each task, the right ends of the columns, the top and bottom of the lanes."""
    levels = _levels(tasks)
    stacks: dict[tuple[int, int], list[int]] = defaultdict(list)
    for task, level in zip(tasks, levels, strict=True):
        stacks[level, task["lane"]].append(task["id"])
    widths = [_width(task, names[task["node"]]) for task in tasks]
    bowed = Counter(
        levels[task["id"]]
        for task in tasks
        for arrow in task.get("arrows", ())
        if levels[task["id"]] == levels[arrow["source"]]
    )
    columns, x = [], 0.0
    lefts = []
    for level in range(max(levels, default=-1) + 1):
        moves = sum(mine == level and t["type"] == "Move" for t, mine in zip(tasks, levels, strict=True))
        x += min(_STEP * moves + _BOW * bowed[level - 1], _WIDEST_GAP)
        lefts.append(x)
        x += max(w for w, mine in zip(widths, levels, strict=True) if mine == level) + _GAP
        columns.append(x - _GAP)
    depth = [
        max((len(s) for (_, mine), s in stacks.items() if mine == lane), default=1) for lane in range(lanes)
    ]
    bounds, y = [], 0.0
    for rows in depth:
        height = rows * _ROW + 2 * _LANE_PAD
        bounds.append((y, y + height))
        y += height + 6
    spots: dict[int, _Spot] = {}
    for (level, lane), members in sorted(stacks.items()):
        top, bottom = bounds[lane]
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
        case "Fold":
            return text_width(_folded_name(task, name), _SIZE) + 16
        case "Aggregate":
            return 20.0
        case "Move":
            return 8.0
    return 11.0


def _folded_name(task: dict[str, Any], name: str) -> str:
    name = shorten(name, _WIDEST_NAME, _SIZE)
    return f"{name} ×{amounts.count(task['calls'])}" if task["calls"] > 1 else name


def _reads(task: dict[str, Any]) -> list[int]:
    """Return what a task reads, also what is drawn further right."""
    return list(dict.fromkeys([*task["inputs"], *task.get("back", ())]))


def _draw_wires(d: Drawing, tasks: list[dict[str, Any]], spots: dict[int, _Spot]) -> None:
    """Draw what is read on a site itself as thin lines."""
    for task in tasks:
        if task["type"] == "Move":
            continue
        arriving = {arrow["source"] for arrow in task.get("arrows", ())}
        for j in _reads(task):
            if j in arriving:
                continue
            a, b = spots[j], spots[task["id"]]
            start, end = (a.x + a.width / 2, a.y), (b.x - b.width / 2, b.y)
            with d.group(wire=f"{j}-{task['id']}"):
                d.curve(_bend(start, end), stroke_opacity=0.4, weight=1)


def _bend(a: Point, b: Point) -> list[Point]:
    middle = (a[0] + b[0]) / 2
    return [a, (middle, a[1]), (middle, b[1]), b]


def _draw_moves(d: Drawing, view: dict[str, Any], spots: dict[int, _Spot], colours: list[str]) -> None:
    tasks = view["tasks"]
    moves = [task for task in tasks if task["type"] == "Move"]
    arrows = [(task, arrow) for task in tasks for arrow in task.get("arrows", ())]
    largest = max((m["bytes"] for m in (*moves, *(arrow for _, arrow in arrows))), default=0)
    bends = _bends(moves, spots)
    for task, arrow in sorted(arrows, key=lambda a: -a[1]["bytes"]):
        source, spot = spots[arrow["source"]], spots[task["id"]]
        start, tip = (source.x + source.width / 2, source.y), (spot.x - spot.width / 2, spot.y)
        weight, colour = move_weight(arrow["bytes"], largest), colours[tasks[arrow["source"]]["lane"]]
        with d.group(arrow["text"], wire=f"{arrow['source']}-{task['id']}", node=task["node"]):
            if source.x == spot.x:
                draw_bow(d, start, (spot.x + spot.width / 2, spot.y), weight, colour)
            else:
                draw_arrow(d, start, tip, weight, colour)
    for move in sorted(moves, key=lambda m: -m["bytes"]):
        (maker,) = _reads(move)
        source, spot = spots[maker], spots[move["id"]]
        weight = move_weight(move["bytes"], largest)
        with d.group(move["text"], node=move["node"], site=move["site"], **_named(move)):
            start = (source.x + source.width / 2, source.y)
            tip = (spot.x + 4, spot.y)
            draw_arrow(d, start, tip, weight, colours[tasks[maker]["lane"]], at=bends[move["id"]])


def _named(task: dict[str, Any]) -> dict[str, object]:
    """Return what tells a picture's elements apart: which item one is, and which tasks it stands for."""
    if task["id"] is None:  # in the key
        return {}
    members = task.get("members", [task["id"]])
    keys = " ".join(map(links.task_key, members))
    if task["type"] == "Fold":
        return {"item": task["id"], "keys": f"{fold_key(task)} {keys}"}
    return {"item": task["id"], "task": members[0], "keys": keys}


def _bends(moves: list[dict[str, Any]], spots: dict[int, _Spot]) -> dict[int, float]:
    """Return where on its way each move turns, so that those into one column turn side by side."""
    columns: dict[float, list[dict[str, Any]]] = defaultdict(list)
    for move in moves:
        columns[spots[move["id"]].x].append(move)
    bends = {}
    for members in columns.values():
        # Those that rise turn late from top to bottom, those that fall early: fewer cross.
        members.sort(key=lambda m: _turn(spots[_reads(m)[0]], spots[m["id"]]))
        for k, move in enumerate(members):
            bends[move["id"]] = 0.2 + 0.6 * (k + 0.5) / len(members)
    return bends


def _turn(source: _Spot, target: _Spot) -> tuple[bool, float]:
    falls = target.y > source.y
    return falls, -source.y if falls else source.y


def _draw_task(d: Drawing, task: dict[str, Any], name: str, spot: _Spot, colour: str) -> None:
    title = task["text"]
    if task["type"] != "Fold":
        size = f"{amounts.shape(task['shape'])}, {amounts.nbytes(task['bytes'])}"
        title += f"\n{size}, site {task['site']}"
    x, y, half = spot.x, spot.y, spot.width / 2
    with d.group(title, node=task["node"], site=task["site"], **_named(task)):
        match task["type"]:
            case "Fold":
                computes = task["calls"] or task.get("kinds", {}).get("Aggregate")
                draw_fold(d, (x, y), spot.width, _folded_name(task, name), colour if computes else PAPER)
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


_NAMES = {
    "Fold": "all that a site does for a node",
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
        width = 26.0 if kind in ("Apply", "Fused", "Fold", "Read") else 20.0
        task = {"type": kind, "text": "", "shape": [], "bytes": 0, "site": None, "id": None, "node": None}
        task["calls"] = 1
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
