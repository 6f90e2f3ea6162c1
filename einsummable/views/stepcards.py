"""The picture of a run step by step: a lane a site, a row a tensor, a card of digits a block.

Contract: everything is drawn as it is at the end, so that it stands by itself; whoever steps through shows
and hides groups and replaces the digits.  A card is a group with ``data-task``, its digits a group with
``data-cells`` that holds a rectangle and a text an element, in order; an arrow is one with ``data-move``.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from einsummable.views import amounts, legends
from einsummable.views.colours import INK, PAPER
from einsummable.views.drawing import Drawing, shorten, text_width

_SIZE = 12
_CELL = 22.0
_PAD = 8.0
_GAP = 14.0
#: A lane breaks its cards, and a card its panels, into rows of about this width.
_LANE, _CARD = 420.0, 360.0
_NAMES = 130.0


@dataclass(frozen=True, slots=True)
class _Spot:
    """The rectangle of a card."""

    x: float
    y: float
    width: float
    height: float


def draw(view: dict[str, Any]) -> Drawing:
    """Draw every block with its numbers, and the moves as arrows."""
    tasks = view["tasks"]
    names = {node["id"]: node for node in view["nodes"]}
    colours = legends.site_colours(view)
    cards = [_card(task, names[task["tensor"]]["name"], colours[task["site"]]) for task in tasks]
    rows = sorted({task["tensor"] for task in tasks})
    spots, lanes, bands = _place(tasks, cards, rows, view["sites"])
    d = Drawing()
    _draw_lanes(d, lanes, bands, colours)
    for row, (top, bottom) in zip(rows, bands, strict=True):
        _draw_name(d, names[row], top, bottom, lanes)
    for task in tasks:  # below the cards, so that an arrow that passes one crosses no digit
        if task["type"] == "Move":
            with d.group(task["words"], css="ein-flight", move=task["id"]):
                _draw_arrow(d, spots[task["inputs"][0]], spots[task["id"]])
    for task, card in zip(tasks, cards, strict=True):
        spot = spots[task["id"]]
        keys = f"task:{task['id']} node:{task['tensor']} site:{task['site']}"
        with d.group(task["words"], css="ein-card", task=task["id"], keys=keys):
            d.place(card, spot.x, spot.y)
    keys = [k for k, on in (("partial", any(t["partial"] for t in tasks)), ("result", True)) if on]
    d.flow([_key(k) for k in keys], 640, gap=18, top=d.box[3] + 14)
    return d


def _place(
    tasks: list[dict[str, Any]], cards: list[Drawing], rows: list[int], sites: int
) -> tuple[dict[int, _Spot], list[tuple[float, float]], list[tuple[float, float]]]:
    """Return a spot for each task, left and right of each lane, top and bottom of each tensor's band."""
    held: dict[tuple[int, int], list[int]] = defaultdict(list)
    for task in tasks:
        held[task["tensor"], task["site"]].append(task["id"])
    local: dict[int, tuple[float, float]] = {}
    sizes: dict[tuple[int, int], tuple[float, float]] = {}
    for key, members in held.items():
        x = y = tallest = widest = 0.0
        for i in members:
            _, _, width, height = cards[i].box
            if x and x + width > _LANE:
                x, y, tallest = 0.0, y + tallest + _GAP, 0.0
            local[i] = (x, y)
            x += width + _GAP
            tallest, widest = max(tallest, height), max(widest, x - _GAP)
        sizes[key] = (widest, y + tallest)
    lanes, x = [], 0.0
    for site in range(sites):
        width = max([w for (_, s), (w, _) in sizes.items() if s == site], default=0.0)
        width = max(width, 60.0) + 2 * _GAP
        lanes.append((x, x + width))
        x += width + 3 * _GAP
    bands, y = [], 0.0
    for row in rows:
        height = max(h for (r, _), (_, h) in sizes.items() if r == row)
        bands.append((y, y + height + 2 * _GAP))
        y += height + 2 * _GAP
    spots = {}
    for task in tasks:
        dx, dy = local[task["id"]]
        left, top = lanes[task["site"]][0] + _GAP, bands[rows.index(task["tensor"])][0] + _GAP
        _, _, width, height = cards[task["id"]].box
        spots[task["id"]] = _Spot(left + dx, top + dy, width, height)
    return spots, lanes, bands


def _draw_lanes(
    d: Drawing, lanes: list[tuple[float, float]], bands: list[tuple[float, float]], colours: tuple[str, ...]
) -> None:
    bottom = bands[-1][1] if bands else 40.0
    for site, (left, right) in enumerate(lanes):
        with d.group("", site=site, keys=f"site:{site}"):
            d.rect(left, 0, right - left, bottom, fill=INK, fill_opacity=0.04)
            d.rect(left, -7, right - left, 5, fill=colours[site])
            d.text((left + right) / 2, -16, f"site {site}", size=_SIZE + 1, anchor="middle", bold=True)
    for _, edge in bands[:-1]:
        d.line((lanes[0][0], edge), (lanes[-1][1], edge), stroke_opacity=0.15)


def _draw_name(
    d: Drawing, node: dict[str, Any], top: float, bottom: float, lanes: list[tuple[float, float]]
) -> None:
    x, y = lanes[0][0] - 14, (top + bottom) / 2
    with d.group(node["formula"], node=node["id"], keys=f"node:{node['id']}"):
        d.text(x, y + 4, shorten(node["tensor"], _NAMES, 13, bold=True), size=13, anchor="end", bold=True)
        if node["formula"]:
            d.text(x, y + 21, shorten(node["formula"], _NAMES, _SIZE), size=_SIZE, anchor="end", muted=True)


# ------------------------------------------------------------------------------------------ cards


def _card(task: dict[str, Any], name: str, colour: str) -> Drawing:
    """Return the card of one block, its top left corner at the origin."""
    title = block_name(name, task["box"])
    digits = _digits(task, colour)
    note = f"{amounts.shape(task['shape'])} {'element' if prod(task['shape']) == 1 else 'elements'}"
    inner = max(text_width(title, _SIZE, bold=True), digits.box[2] if digits else text_width(note, _SIZE))
    low = digits.box[3] if digits else 16.0
    width, height = inner + 2 * _PAD, 22 + low + _PAD
    d = Drawing()
    d.rect(0, 0, width, height, radius=4, fill=PAPER)
    d.rect(0, 0, width, height, radius=4, fill=colour, fill_opacity=0.1)
    if task["partial"]:
        d.hatch(0, 0, width, height, step=9, stroke_opacity=0.16)
    d.rect(0, 0, width, height, radius=4, stroke=colour, weight=3 if task["result"] else 1.2)
    d.text(_PAD, 16, title, size=_SIZE, bold=True, halo=task["partial"])
    if digits is None:
        d.text(_PAD, 35, note, size=_SIZE, muted=True)
    else:
        d.place(digits, _PAD, 22)
    return d


def block_name(name: str, box: list[list[int]]) -> str:
    """Return how a reader calls a block: ``C[0:4, 0:3]``."""
    return name + (f"[{', '.join(f'{a}:{b}' for a, b in box)}]" if box else "")


def _digits(task: dict[str, Any], colour: str) -> Drawing | None:
    """Return the grid of the numbers of a block; None where they are not shown."""
    last = task["frames"][-1]["cells"]
    if last is None:
        return None
    words = [text for frame in task["frames"] for text in frame["cells"]]
    side = max([_CELL, *(text_width(w, _SIZE) + 9 for w in words)])
    *outer, rows, columns = [1, 1, *task["shape"]]
    width, height = columns * side, rows * _CELL
    across = max(1, int((_CARD + _PAD) // (width + _PAD)))
    panels = list(product(*map(range, outer)))
    several = len(panels) > 1
    d = Drawing()
    if not last:
        d.text(0, 14, "no elements", size=_SIZE, muted=True)
        return d
    values = iter(last)
    with d.group("", cells=task["id"]):
        for k in range(len(panels)):
            x = k % across * (width + _PAD)
            y = k // across * (height + _PAD)
            for row, column in product(range(rows), range(columns)):
                at = (x + column * side, y + row * _CELL)
                d.rect(*at, side, _CELL, fill=colour, fill_opacity=0.08, stroke=INK, weight=0.6)
                d.text(at[0] + side / 2, at[1] + 15.5, next(values), size=_SIZE, anchor="middle", halo=True)
    for k in range(len(panels) if several else 0):
        x, y = k % across * (width + _PAD), k // across * (height + _PAD)
        d.rect(x, y, width, height, stroke=INK, weight=1.6)
    return d


def _draw_arrow(d: Drawing, source: _Spot, target: _Spot) -> None:
    """Draw an arrow between two cards, from the sides that face each other."""
    y0, y1 = source.y + source.height / 2, target.y + target.height / 2
    right = target.x > source.x
    x0 = source.x + source.width if right else source.x
    x1 = target.x if right else target.x + target.width
    reach = max(abs(x1 - x0) / 2, 20.0) * (1 if right else -1)
    d.curve([(x0, y0), (x0 + reach, y0), (x1 - reach, y1), (x1 - (6 if right else -6), y1)], weight=2)
    d.arrow_head((x1, y1), (1 if right else -1, 0), 9)


def _key(what: str) -> Drawing:
    d = Drawing()
    d.rect(0, 1, 22, 16, radius=3, stroke=INK, weight=3 if what == "result" else 1.2)
    if what == "partial":
        d.hatch(0, 1, 22, 16, step=6, stroke_opacity=0.5)
    words = "partial result" if what == "partial" else "block of a result"
    d.text(29, 14, words, size=_SIZE, muted=True)
    return d


# ------------------------------------------------------------------------------------------ text


def text(view: dict[str, Any]) -> str:
    """Return every step in words, with the numbers of small blocks."""
    lines = [view["caption"]]
    for number, task in enumerate(view["tasks"], 1):
        lines.append(f"{number:>3}  {task['words']}")
        cells = task["frames"][-1]["cells"]
        if cells and len(cells) <= 64:
            lines += _grid_text(cells, task["shape"][-1] if task["shape"] else 1)
    return "\n".join(lines)


def _grid_text(cells: list[str], columns: int) -> list[str]:
    wide = max(map(len, cells))
    rows = [cells[k : k + columns] for k in range(0, len(cells), columns)]
    return ["       " + "  ".join(f"{c:>{wide}}" for c in row) for row in rows]
