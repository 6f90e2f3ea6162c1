"""The picture of a large TaskGraph: a column a node, a lane a site, counts in place of tasks.

What moves is drawn in the gap before the node that reads it, from the lane it leaves to the lane it reaches;
partial results between the node's kernel calls and its aggregations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from einsummable.views import amounts, lanes, links
from einsummable.views.colours import INK, ink_on
from einsummable.views.drawing import Drawing, shorten, text_width
from einsummable.views.taskshapes import draw_arrow, draw_diamond, move_weight

_SIZE = 12
_BOX = 42.0
_LANE = 26.0
_GAP = 18.0
_CROSSED_GAP = 92.0
#: About so many flows are drawn, the largest before each node; the others are told in words.
_FLOWS = 1200


#: In words it is the same as a small one.
text = lanes.text


@dataclass(frozen=True, slots=True)
class _Column:
    """Where a node is drawn: its gap, its box, and its diamonds (None: it aggregates nothing)."""

    gap: float
    box: float
    diamond: float | None
    end: float


def draw(view: dict[str, Any]) -> Drawing:
    """Draw a view of `taskgraph_view` by node and lane, and say what its shapes mean."""
    d = draw_tasks(view)
    y = d.box[3] + 22
    for k, line in enumerate(words(view)):
        d.text(0, y + 18 * k, line, size=_SIZE, muted=True)
    return d


def words(view: dict[str, Any]) -> list[str]:
    """Return what the shapes of the picture mean, and what is left out of it."""
    told = ["boxes count kernel calls, diamonds are aggregations; arrows are moves, as wide as their bytes"]
    hidden = _largest(_crossing(view))[1]
    if hidden:
        size = amounts.nbytes(sum(f["bytes"] for f in hidden))
        told.append(f"{amounts.many(len(hidden), 'smaller flow')} of {size} not drawn")
    return told


def _crossing(view: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the flows from one lane to another, the largest first."""
    return sorted((f for f in view["flows"] if f["from"] != f["to"]), key=lambda f: -f["bytes"])


def draw_tasks(view: dict[str, Any]) -> Drawing:
    """Draw the lanes."""
    flows = _crossing(view)
    columns = _columns(view, flows)
    bounds = [(k * (_LANE + 4), k * (_LANE + 4) + _LANE) for k in range(len(view["lanes"]))]
    colours = lanes.lane_colours(view)
    d = Drawing()
    lanes.draw_lanes(d, view, bounds, max((c.end for c in columns.values()), default=0.0))
    for node in view["nodes"]:
        if node["id"] in columns:
            _draw_heading(d, node, columns[node["id"]])
    drawn, _ = _largest(flows)
    for flow in drawn:
        _draw_flow(d, flow, view, columns, bounds, colours, drawn)
    for cell in view["cells"]:
        if cell["node"] in columns:
            _draw_cell(d, cell, view, columns[cell["node"]], bounds[cell["lane"]], colours)
    return d


def _largest(flows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the flows to draw, the largest first, and the others."""
    gaps: dict[tuple[int, bool], list[dict[str, Any]]] = {}
    for flow in flows:
        gaps.setdefault((flow["target"], flow["target"] == flow["node"]), []).append(flow)
    each = max(_FLOWS // max(len(gaps), 1), 40)
    drawn = [flow for members in gaps.values() for flow in members[:each]]
    hidden = [flow for members in gaps.values() for flow in members[each:]]
    return sorted(drawn, key=lambda f: -f["bytes"]), hidden


def _columns(view: dict[str, Any], flows: list[dict[str, Any]]) -> dict[int, _Column]:
    """Return the column of every node that computes or receives something."""
    kinds: dict[int, set[str]] = {}
    for cell in view["cells"]:
        kinds.setdefault(cell["node"], set()).update(cell["tasks"])
    arrives = {f["target"] for f in flows if f["target"] != f["node"]}
    partial = {f["node"] for f in flows if f["target"] == f["node"]}
    columns, x = {}, 0.0
    for node in view["nodes"]:
        i = node["id"]
        if not kinds[i] & {"Apply", "Aggregate"} and i not in arrives | partial:
            continue
        box = x + (_CROSSED_GAP if i in arrives else _GAP)
        end, diamond = box + _BOX, None
        if "Aggregate" in kinds[i] or i in partial:
            diamond = end + (_CROSSED_GAP if i in partial else _GAP) + 10
            end = diamond + 10
        columns[i] = _Column(x, box, diamond, end)
        x = end
    return columns


def _draw_heading(d: Drawing, node: dict[str, Any], column: _Column) -> None:
    title = f"{node['tensor']} = {node['formula']}" if node["formula"] else node["tensor"]
    with d.group(title, node=node["id"], keys=links.node_key(node["id"])):
        name = shorten(node["name"], column.end - column.gap, _SIZE, bold=True)
        d.text((column.box + column.end) / 2, -8, name, size=_SIZE, anchor="middle", bold=True)


def _draw_flow(
    d: Drawing,
    flow: dict[str, Any],
    view: dict[str, Any],
    columns: dict[int, _Column],
    bounds: list[tuple[float, float]],
    colours: list[str],
    drawn: list[dict[str, Any]],
) -> None:
    column, site = columns[flow["target"]], view["lanes"][flow["from"]][0]
    name = next(node["name"] for node in view["nodes"] if node["id"] == flow["node"])
    title = f"{amounts.nbytes(flow['bytes'])} of {name} in {amounts.many(flow['moves'], 'move')}"
    title += f" from {_lane(view, flow['from'])} to {_lane(view, flow['to'])}"
    start, end = column.gap, column.box
    if flow["target"] == flow["node"] and column.diamond is not None:
        start, end = column.box + _BOX, column.diamond - 10
    many = sum(f["target"] == flow["target"] for f in drawn) > 48
    source, target = (sum(bounds[flow[k]]) / 2 for k in ("from", "to"))
    # Lanes turn one after the other, so that what they send does not lie on one line.
    at = 0.25 + 0.5 * (flow["from"] + 0.5) / len(bounds)
    with d.group(title, node=flow["node"], target=flow["target"], site=site):
        weight = move_weight(flow["bytes"], drawn[0]["bytes"]) * (0.5 if many else 1)
        strength = 0.6 if many else 0.9
        colour = colours[flow["from"]]
        draw_arrow(d, (start, source), (end, target), weight, colour, at=at, strength=strength)


def _lane(view: dict[str, Any], lane: int) -> str:
    members = view["lanes"][lane]
    return f"site {members[0]}" if len(members) == 1 else f"sites {amounts.ranges(members)}"


def _draw_cell(
    d: Drawing,
    cell: dict[str, Any],
    view: dict[str, Any],
    column: _Column,
    bounds: tuple[float, float],
    colours: list[str],
) -> None:
    members, counts = view["lanes"][cell["lane"]], cell["tasks"]
    colour, y = colours[cell["lane"]], sum(bounds) / 2
    title = ", ".join(f"{n} {kind}" for kind, n in counts.items()) + f" on {_lane(view, cell['lane'])}"
    keys = links.keys(links.node_key(cell["node"]), *map(links.site_key, members))
    with d.group(title, node=cell["node"], site=members[0] if len(members) == 1 else None, keys=keys):
        if counts.get("Apply"):
            d.rect(column.box, y - 9, _BOX, 18, radius=4, fill=colour, stroke=INK, stroke_opacity=0.45)
            text = _count(counts["Apply"], _BOX)
            d.text(column.box + _BOX / 2, y + 4.3, text, size=_SIZE, anchor="middle", fill=ink_on(colour))
        if counts.get("Aggregate") and column.diamond is not None:
            draw_diamond(d, column.diamond, y, colour)
            if 1 < counts["Aggregate"] < 10:
                text = str(counts["Aggregate"])
                d.text(column.diamond, y + 4.3, text, size=_SIZE, anchor="middle", fill=ink_on(colour))


def _count(n: int, width: float) -> str:
    text = amounts.count(n)
    return text if text_width(text, _SIZE) <= width - 4 else f"{n / 1000:.0f}k"
