"""Drawing tables of blocks: a bar, a grid, small multiples of grids, a grid of grids.

Contract: rows are the second last dimension and columns the last; dimensions before those that are cut make
panels, one a part, side by side, or in rows and columns where there are several.  Blocks of one dimension
are as long as their extents say.  The same lengths are used for the same extents everywhere in a picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import log, prod
from typing import Any

from einsummable.views import amounts, legends, links
from einsummable.views.colours import INK, PAPER, UNPLACED, ink_on
from einsummable.views.drawing import Drawing, text_width

_SIZE = 12
_SHORTEST = 22.0
_PANEL_GAP = 10.0
#: A table is not made wider than this many pixels, or characters.
_WIDEST = 700.0
_COLUMNS = 96


@dataclass(frozen=True, slots=True)
class Scale:
    """How long a dimension is drawn: `longest` pixels for extent `reference`.

    Extents that differ by up to a factor of 5 are drawn in true proportion, more is compressed by a power
    so that the shortest stays visible.  Panels side by side take at most `widest` pixels.
    """

    reference: int
    longest: float
    exponent: float
    widest: float = _WIDEST

    @classmethod
    def of(cls, tables: Sequence[dict[str, Any]], longest: float, widest: float = _WIDEST) -> Scale:
        """Return the scale for the innermost two dimensions of `tables`."""
        extents = [dim["extent"] for table in tables for dim in table["dims"][-2:] if dim["extent"] > 1]
        ratio = max(extents, default=1) / min(extents, default=1)
        exponent = max(min(1.0, log(5) / log(ratio)) if ratio > 1 else 1.0, 0.4)
        return cls(max(extents, default=1), longest, exponent, widest)

    def length(self, dim: dict[str, Any]) -> float:
        """Return the pixels of one dimension."""
        natural = self.longest * (dim["extent"] / self.reference) ** self.exponent
        parts = len(dim["edges"]) - 1
        # Room for a number in every block where there are few, a visible stripe where there are many.
        return max(natural, _SHORTEST, min(20.0 * parts, 120.0), 4.0 * parts)


def table_title(table: dict[str, Any]) -> str:
    """Return the tensor with its labels."""
    labels = ",".join(dim["name"] for dim in table["dims"])
    return table["name"] + (f"[{labels}]" if labels else "")


def card(table: dict[str, Any], view: dict[str, Any], scale: Scale, second: str) -> Drawing:
    """Return a drawing of one table under its title."""
    d = Drawing()
    with d.group("", node=table["id"], keys=links.tensor_key(table["name"])):
        d.text(0, 12, table_title(table), size=13, bold=True)
        d.text(0, 28, second, size=_SIZE, muted=True)
        body = draw_table(table, view, scale)
        d.place(body, 0, 38)
    return d


def draw_table(table: dict[str, Any], view: dict[str, Any], scale: Scale) -> Drawing:
    """Return a drawing of the blocks of a table with their labels and extents."""
    dims = table["dims"]
    inner, outer = dims[-2:], [d for d in dims[:-2] if len(d["edges"]) > 2]
    count = prod(len(d["edges"]) - 1 for d in outer)
    shrunk = replace(scale, longest=max(scale.longest / max(count, 1) ** 0.4, 44.0))
    colours = legends.site_colours(view)
    widths = _lengths(inner[-1], shrunk) if inner else [_SHORTEST + 4]
    heights = _lengths(inner[0], shrunk) if len(inner) == 2 else [_SHORTEST + 4]
    panels = _panels(table, outer)
    rows = _arrange(outer, count, sum(widths), scale.widest)
    d = Drawing()
    left = _margin(inner, outer)
    heading = 18.0 if outer else 0.0
    y = 0.0
    for row in rows:
        x = left
        if len(outer) > 1:
            name = " ".join(_part(dim, k) for dim, k in zip(outer[:-1], panels[row[0]][0][:-1], strict=True))
            d.text(0, y + heading + 12, name, size=_SIZE, muted=True)
        for number in row:
            index, blocks = panels[number]
            if outer:
                width = text_width(_part(outer[-1], index[-1]), _SIZE)
                centre = x + max(sum(widths), width) / 2
                d.text(centre, y + 12, _part(outer[-1], index[-1]), size=_SIZE, anchor="middle", muted=True)
                at = centre - sum(widths) / 2
            else:
                width, at = 0.0, x
            keys = _block_keys(table, view, number * len(widths) * len(heights), len(blocks))
            _draw_panel(d, (at, y + heading), widths, heights, list(zip(blocks, keys, strict=True)), colours)
            if number == row[0] and len(inner) == 2:
                _row_label(d, table["id"], inner[0], at, y + heading + sum(heights) / 2)
            x += max(sum(widths), width) + _PANEL_GAP
        y += heading + sum(heights) + _PANEL_GAP
    if inner:
        first = (
            left if not outer else left + max(0.0, text_width(_part(outer[-1], 0), _SIZE) - sum(widths)) / 2
        )
        _column_label(d, table["id"], inner[-1], first + sum(widths) / 2, y + 6, min_left=0.0)
    return d


def _lengths(dim: dict[str, Any], scale: Scale) -> list[float]:
    whole, extent = scale.length(dim), max(dim["extent"], 1)
    sizes = [(b - a) / extent * whole for a, b in pairwise(dim["edges"])]
    return sizes if dim["extent"] else [whole / len(sizes)] * len(sizes)


def _panels(
    table: dict[str, Any], outer: list[dict[str, Any]]
) -> list[tuple[tuple[int, ...], list[dict[str, Any]]]]:
    """Return for each panel its index in the outer dimensions, and its blocks."""
    counts = [len(d["edges"]) - 1 for d in outer]
    each = len(table["blocks"]) // max(prod(counts), 1)
    return [
        (index, table["blocks"][k * each : (k + 1) * each])
        for k, index in enumerate(product(*map(range, counts)))
    ]


def _arrange(outer: list[dict[str, Any]], count: int, width: float, widest: float) -> list[list[int]]:
    """Return the rows of panels, by number."""
    fit = max(1, int(widest // (max(width, 44) + _PANEL_GAP)))
    each = len(outer[-1]["edges"]) - 1 if len(outer) > 1 else fit
    return [list(range(k, min(k + each, count))) for k in range(0, count, each)]


def _part(dim: dict[str, Any], k: int) -> str:
    start, stop = dim["edges"][k : k + 2]
    return f"{dim['name']} {start}" if stop == start + 1 else f"{dim['name']} {start}:{stop}"


def _cut_text(dim: dict[str, Any]) -> str:
    return f"{dim['extent']} ÷ {dim['parts']}" if dim["parts"] > 1 else str(dim["extent"])


def _margin(inner: list[dict[str, Any]], outer: list[dict[str, Any]]) -> float:
    width = 0.0
    if len(inner) == 2:
        words = (text_width(inner[0]["name"], _SIZE, bold=True), text_width(_cut_text(inner[0]), _SIZE))
        width = max(words) + 8
    if len(outer) > 1:
        last = [len(dim["edges"]) - 2 for dim in outer[:-1]]
        width += (
            text_width(" ".join(_part(dim, k) for dim, k in zip(outer[:-1], last, strict=True)), _SIZE) + 10
        )
    return width


def _block_keys(table: dict[str, Any], view: dict[str, Any], first: int, count: int) -> list[str]:
    """Return the keys of `count` blocks from `first`; kernel calls of a join have only those of the node."""
    owner = links.tensor_key(table["name"])
    if view["kind"] == "join":
        return [links.node_key(table["id"])] * count
    counts, found = [len(dim["edges"]) - 1 for dim in table["dims"]], []
    for at in range(first, first + count):
        index = []
        for n in reversed(counts):
            at, k = divmod(at, n)
            index.append(k)
        found.append(links.keys(links.block_key(table["name"], index[::-1]), owner))
    return found


def _row_label(d: Drawing, owner: int, dim: dict[str, Any], x: float, y: float) -> None:
    with d.group("", label=dim["label"], keys=links.label_key(owner, dim["label"])):
        d.text(x - 8, y - 2, dim["name"], size=_SIZE, anchor="end", bold=True)
        d.text(x - 8, y + 13, _cut_text(dim), size=_SIZE, anchor="end", muted=True)


def _column_label(
    d: Drawing, owner: int, dim: dict[str, Any], x: float, y: float, *, min_left: float
) -> None:
    name, cut = dim["name"], _cut_text(dim)
    width = text_width(name, _SIZE, bold=True) + 5 + text_width(cut, _SIZE)
    start = max(x - width / 2, min_left)
    with d.group("", label=dim["label"], keys=links.label_key(owner, dim["label"])):
        d.text(start, y, name, size=_SIZE, bold=True)
        d.text(start + text_width(name, _SIZE, bold=True) + 5, y, cut, size=_SIZE, muted=True)


def _draw_panel(
    d: Drawing,
    corner: tuple[float, float],
    widths: list[float],
    heights: list[float],
    blocks: list[tuple[dict[str, Any], str]],
    colours: Sequence[str],
) -> None:
    y = corner[1]
    cells = iter(blocks)
    for height in heights:
        x = corner[0]
        for width in widths:
            block, keys = next(cells)
            draw_block(d, (x, y, width, height), block, colours, keys)
            x += width
        y += height
    d.rect(*corner, sum(widths), sum(heights), stroke=INK, stroke_opacity=0.45)


def draw_block(
    d: Drawing,
    at: tuple[float, float, float, float],
    block: dict[str, Any],
    colours: Sequence[str],
    keys: str,
) -> None:
    """Draw one block in the rectangle `at`, with its site's number where there is room."""
    x, y, width, height = at
    colour, opacity = block_colour(block, colours)
    with d.group(block_title(block), site=block["site"], keys=links.keys(keys, *site_keys(block))):
        d.rect(
            x,
            y,
            width,
            height,
            fill=colour,
            fill_opacity=opacity,
            stroke=PAPER,
            weight=1 if min(width, height) > 6 else 0.5,
        )
        ink = ink_on(colour) if opacity == 1 else INK
        if block["partials"] > 1:
            d.hatch(x, y, width, height, stroke=ink, stroke_opacity=0.5, step=7)
        if (block["copies"] or 0) > 1 and min(width, height) > 7:
            d.rect(x + 2.2, y + 2.2, width - 4.4, height - 4.4, stroke=ink, weight=1.5)
        text = block_text(block)
        wide = text_width(text, _SIZE)
        if text and wide + 4 <= width and height >= 16:
            if block["partials"] > 1:
                d.rect(x + width / 2 - wide / 2 - 3, y + height / 2 - 8, wide + 6, 16, radius=3, fill=colour)
            d.text(x + width / 2, y + height / 2 + 4.3, text, size=_SIZE, anchor="middle", fill=ink)


def site_keys(block: dict[str, Any]) -> list[str]:
    """Return the keys of the sites where a block, or what it stands for, is."""
    sites = block.get("sites", [block["site"]])
    return [links.site_key(site) for site in sites if site is not None]


def block_colour(block: dict[str, Any], colours: Sequence[str]) -> tuple[str, float]:
    """Return the colour and opacity of a block: its site's, grey where not placed, faint where mixed."""
    if block["site"] is not None:
        return colours[block["site"]], 1
    return (INK, 0.25) if len(block.get("sites", ())) > 1 else (UNPLACED, 1)


def block_text(block: dict[str, Any]) -> str:
    """Return what is written in a block: its site, or how many blocks it stands for."""
    if block["count"] > 1:
        return f"×{block['count']}"
    return "" if block["site"] is None else str(block["site"])


def block_title(block: dict[str, Any]) -> str:
    """Return the tooltip of a block."""
    words = "[" + ", ".join(f"{a}:{b}" for a, b in block["box"]) + "]"
    if block["site"] is not None:
        words += f" on site {block['site']}"
    elif len(block.get("sites", ())) > 1:
        words += f" on sites {amounts.ranges(block['sites'])}"
    words += f", {amounts.count(block['count'])} blocks" if block["count"] > 1 else ""
    words += f", made of {block['partials']} partial results" if block["partials"] > 1 else ""
    return words + (f", read whole on {block['copies']} sites" if (block["copies"] or 0) > 1 else "")


# ------------------------------------------------------------------------------------------ text


def table_text(table: dict[str, Any]) -> str:
    """Return a table in box-drawing characters: the site of every block, ``·`` where it has none."""
    dims = table["dims"]
    inner, outer = dims[-2:], [d for d in dims[:-2] if len(d["edges"]) > 2]
    columns = len(inner[-1]["edges"]) - 1 if inner else 1
    panels = _panels(table, outer)
    cell = max([1, *(len(block_text(b)) for b in table["blocks"])]) + 2
    wide = columns * (cell + 1) + 1
    if wide > _COLUMNS or len(table["blocks"]) > 512:
        return f"({amounts.count(table['count'])} blocks)"
    each = max(1, (_COLUMNS + 3) // (wide + 3))
    if len(outer) > 1:
        each = min(each, len(outer[-1]["edges"]) - 1)
    lines = []
    for start in range(0, len(panels), each):
        drawn = []
        for index, blocks in panels[start : start + each]:
            grid = _grid_text(blocks, columns, cell)
            if outer:
                grid.insert(0, " ".join(_part(dim, k) for dim, k in zip(outer, index, strict=True)))
            drawn.append(grid)
        widths = [max(map(len, grid)) for grid in drawn]
        lines += [
            "   ".join(f"{part:{w}}" for part, w in zip(row, widths, strict=True)).rstrip()
            for row in zip(*drawn, strict=True)
        ]
    return "\n".join(lines)


def _grid_text(blocks: list[dict[str, Any]], columns: int, cell: int) -> list[str]:
    rows = [blocks[k : k + columns] for k in range(0, len(blocks), columns)]
    bar = "─" * cell
    lines = ["┌" + "┬".join([bar] * columns) + "┐"]
    for k, row in enumerate(rows):
        if k and len(rows) <= 8:
            lines.append("├" + "┼".join([bar] * columns) + "┤")
        lines.append("│" + "│".join(f"{block_text(b) or '·':^{cell}}" for b in row) + "│")
    lines.append("└" + "┴".join([bar] * columns) + "┘")
    return lines


def axes_text(table: dict[str, Any]) -> str:
    """Return the dimensions and how they are cut: ``i 4096 ÷ 2, j 4096``."""
    return ", ".join(f"{dim['name']} {_cut_text(dim)}" for dim in table["dims"]) or "scalar"
