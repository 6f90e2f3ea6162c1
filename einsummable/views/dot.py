"""Layouts by graphviz's ``dot``: only coordinates are taken from it, the drawing stays ours.

Contract: `lay_out` answers what `framed.lay_out` answers, or None where there is no ``dot``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from einsummable.views.framed import FRAME, FRAME_TITLE, Frame, Layout
from einsummable.views.layered import Edge, Point, Route, Size

#: Inches and points: dot takes the former for sizes and answers in the latter; a point is our pixel.
_INCH = 72.0


def lay_out(
    sizes: Sequence[Size], edges: Sequence[Edge], groups: Sequence[Sequence[int]] = ()
) -> Layout | None:
    """Return a layout of boxes of `sizes`, or None where ``dot`` is missing or fails."""
    import graphviz

    try:
        answer = graphviz.Source(_source(sizes, edges, groups)).pipe("json0", encoding="utf-8", quiet=True)
    except (graphviz.ExecutableNotFound, graphviz.CalledProcessError):
        return None
    return _layout(json.loads(answer), len(sizes), len(edges), len(groups))


def _source(sizes: Sequence[Size], edges: Sequence[Edge], groups: Sequence[Sequence[int]]) -> str:
    lines = [
        "digraph {",
        f"graph [rankdir=LR nodesep={20 / _INCH:.3f} ranksep={26 / _INCH:.3f}]",
        'node [shape=box fixedsize=true label=""]',
        "edge [arrowhead=none]",
    ]
    for i, (width, height) in enumerate(sizes):
        lines.append(f"n{i} [width={width / _INCH:.3f} height={height / _INCH:.3f}]")
    for g, members in enumerate(groups):
        title = _blank(20, FRAME_TITLE - 10)
        inside = " ".join(f"n{i}" for i in members)
        lines.append(f"subgraph cluster_{g} {{ margin={FRAME:.0f} label={title} {inside} }}")
    for e, edge in enumerate(edges):
        label = f" label={_blank(*edge.label)}" if edge.label[0] else ""
        lines.append(f'n{edge.source} -> n{edge.target} [comment="{e}"{label}]')
    return "\n".join([*lines, "}"])


def _blank(width: float, height: float) -> str:
    """Return a label without text that takes up room: dot measures text otherwise than browsers do."""
    size = f"width='{width:.0f}' height='{height:.0f}'"
    return f"<<table border='0' fixedsize='true' {size}><tr><td></td></tr></table>>"


def _layout(answer: dict, boxes: int, edges: int, groups: int) -> Layout:
    def point(text: str) -> Point:
        x, y = (float(v) for v in text.split(","))
        return x, -y  # dot's y grows upwards

    objects = {thing["name"]: thing for thing in answer.get("objects", [])}
    routes: list[Route | None] = [None] * edges
    for edge in answer.get("edges", []):
        points = tuple(point(p) for p in edge["pos"].split() if p[1] != ",")
        routes[int(edge["comment"])] = Route(
            points, point(edge["lp"]) if "lp" in edge else points[len(points) // 2]
        )
    frames = []
    for g in range(groups):
        left, low, right, high = (float(v) for v in objects[f"cluster_{g}"]["bb"].split(","))
        frames.append(Frame(left, -high, right - left, high - low))
    centres = tuple(point(objects[f"n{i}"]["pos"]) for i in range(boxes))
    return Layout(centres, tuple(r for r in routes if r is not None), tuple(frames))
