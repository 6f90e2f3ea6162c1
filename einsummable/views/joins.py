"""The picture of a node's kernel calls: a bar or grid, or for three cut labels an isometric cube.

A cube shows its three near faces, each marked with the tensor whose labels it has, and beside it every call,
slice by slice along the label that goes into the depth.
"""

from __future__ import annotations

from itertools import pairwise, product
from math import cos, pi, sin
from typing import Any

from einsummable.views import legends, links
from einsummable.views.blocks import (
    Scale,
    axes_text,
    block_colour,
    block_text,
    block_title,
    draw_table,
    site_keys,
    table_text,
)
from einsummable.views.colours import INK, PAPER, ink_on
from einsummable.views.drawing import Drawing, Point, text_width

_SIZE = 12
_EDGE = 130.0
#: Unit vectors on paper: to the right, to the left, down.
_ACROSS, _DEEP, _DOWN = (cos(pi / 6), sin(pi / 6)), (-cos(pi / 6), sin(pi / 6)), (0.0, 1.0)


def draw(view: dict[str, Any]) -> Drawing:
    """Draw a view of `join_view`."""
    table = view["table"]
    d = Drawing()
    labels = ",".join(view["output"]["labels"])
    title = view["output"]["name"] + (f"[{labels}]" if labels else "")
    title += f" = {view['formula']}" if view["formula"] else ""
    d.text(0, 12, title, size=13, bold=True)
    d.flow(calls(view), 780, gap=40, top=30)
    keys = legends.sites(view) + legends.textures(table["blocks"])
    d.flow(keys, 780, gap=16, top=d.box[3] + 22)
    return d


def calls(view: dict[str, Any]) -> list[Drawing]:
    """Return the drawings of the kernel calls of a view of `join_view`: a cube and its slices, or a table."""
    table = view["table"]
    if len(table["dims"]) == 3:
        turned = _turned(table)
        return [_cube(view), draw_table(turned, view, Scale.of([turned], 130.0))]
    return [draw_table(table, view, Scale.of([table], 260.0))]


def text(view: dict[str, Any]) -> str:
    """Return the sites of the kernel calls as grids of numbers."""
    table = view["table"]
    cut = f"cut along {axes_text(table)}" if table["dims"] else "not cut"
    heading = f"{view['output']['name']} = {view['formula']}  {cut}"
    table = _turned(table) if len(table["dims"]) == 3 else table
    return f"{view['caption']}\n\n{heading}\n{table_text(table)}"


def _roles(dims: list[dict[str, Any]]) -> tuple[int, int, int]:
    """Return which dimension goes down, across and into the depth: an aggregated one into the depth."""
    deep = next((d for d in range(3) if dims[d]["aggregated"]), 2)
    down, across = (d for d in range(3) if d != deep)
    return down, across, deep


def _turned(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table of three dimensions with the one that goes into the depth first."""
    dims, (down, across, deep) = table["dims"], _roles(table["dims"])
    counts = [len(dim["edges"]) - 1 for dim in dims]
    blocks = []
    for k, i, j in product(range(counts[deep]), range(counts[down]), range(counts[across])):
        index = {deep: k, down: i, across: j}
        blocks.append(table["blocks"][_flat([index[d] for d in range(3)], counts)])
    return table | {"dims": [dims[deep], dims[down], dims[across]], "blocks": blocks}


def _flat(index: list[int], counts: list[int]) -> int:
    return (index[0] * counts[1] + index[1]) * counts[2] + index[2]


def _cube(view: dict[str, Any]) -> Drawing:
    table, (down, across, deep) = view["table"], _roles(view["table"]["dims"])
    dims, blocks = table["dims"], table["blocks"]
    counts = [len(dim["edges"]) - 1 for dim in dims]
    colours = legends.site_colours(view)
    edges = [[e / max(dim["extent"], 1) for e in dim["edges"]] for dim in dims]
    d = Drawing()
    # A face is spanned by two dimensions; the third is at the end that is seen.
    faces = (
        (down, across, deep, counts[deep] - 1, 1.0),
        (down, deep, across, counts[across] - 1, 1.0),
        (deep, across, down, 0, 0.0),
    )
    axis = {down: _DOWN, across: _ACROSS, deep: _DEEP}

    def at(place: dict[int, float]) -> Point:
        x = sum(axis[k][0] * v for k, v in place.items()) * _EDGE
        return x, sum(axis[k][1] * v for k, v in place.items()) * _EDGE

    for one, other, third, last, end in faces:
        for a, (a0, a1) in enumerate(pairwise(edges[one])):
            for b, (b0, b1) in enumerate(pairwise(edges[other])):
                index = {one: a, other: b, third: last}
                block = blocks[_flat([index[k] for k in range(3)], counts)]
                corners = [
                    at({one: u, other: v, third: end}) for u, v in ((a0, b0), (a1, b0), (a1, b1), (a0, b1))
                ]
                _draw_facet(d, corners, block, colours, links.node_key(table["id"]))
        outline = [at({one: u, other: v, third: end}) for u, v in ((0, 0), (1, 0), (1, 1), (0, 1))]
        d.polygon(outline, stroke=INK, weight=1.5, stroke_opacity=0.8)
    _name_faces(d, view, at, (down, across, deep))
    return d


def _draw_facet(
    d: Drawing, corners: list[Point], block: dict[str, Any], colours: tuple[str, ...], node: str
) -> None:
    colour, opacity = block_colour(block, colours)
    keys = links.keys(node, *site_keys(block))
    with d.group(block_title(block), site=block["site"], keys=keys):
        d.polygon(corners, fill=colour, fill_opacity=opacity, stroke=PAPER, weight=1)
        text, width = block_text(block), text_width(block_text(block), _SIZE)
        across = max(x for x, _ in corners) - min(x for x, _ in corners)
        if text and width + 12 <= across * 0.7:
            x, y = sum(x for x, _ in corners) / 4, sum(y for _, y in corners) / 4
            ink = ink_on(colour) if opacity == 1 else INK
            d.text(x, y + 4.3, text, size=_SIZE, anchor="middle", fill=ink)


def _name_faces(d: Drawing, view: dict[str, Any], at: Any, roles: tuple[int, int, int]) -> None:
    """Write beside each face the tensor that has its two labels, and beside each edge its label."""
    dims, (down, across, deep) = view["table"]["dims"], roles
    tensors = [view["output"], *view["inputs"]]

    def owner(one: int, other: int) -> str:
        cut = {dims[one]["name"], dims[other]["name"]}
        rest = {dims[k]["name"] for k in range(3)} - cut
        for t in tensors:
            if cut <= set(t["labels"]) and not rest & set(t["labels"]):
                return f"{t['name']}[{','.join(t['labels'])}]"
        return ""

    x, y = at({down: 0.5, across: 0.0, deep: 1.0})
    _edge_name(d, view["table"]["id"], dims[down], x - 8, y, "end")
    x, y = at({down: 1.0, across: 0.5, deep: 1.0})
    _edge_name(d, view["table"]["id"], dims[across], x - 12, y + 16, "end")
    x, y = at({down: 1.0, across: 1.0, deep: 0.5})
    _edge_name(d, view["table"]["id"], dims[deep], x + 12, y + 16, "start")
    x, y = at({down: 0.0, across: 0.0, deep: 0.0})
    d.text(x, y - 9, owner(deep, across), size=_SIZE, anchor="middle", bold=True)
    x, y = at({down: 1.0, across: 0.5, deep: 1.0})
    d.text(x - 12, y + 33, owner(down, across), size=_SIZE, anchor="end", bold=True)
    x, y = at({down: 1.0, across: 1.0, deep: 0.5})
    d.text(x + 12, y + 33, owner(down, deep), size=_SIZE, bold=True)


def _edge_name(d: Drawing, owner: int, dim: dict[str, Any], x: float, y: float, anchor: str) -> None:
    with d.group("", label=dim["label"], keys=links.label_key(owner, dim["label"])):
        d.text(x, y, f"{dim['name']} {dim['extent']} ÷ {dim['parts']}", size=_SIZE, anchor=anchor, muted=True)
