"""Pictures of views of `partitions`: the tensors of a plan, or one of them."""

from __future__ import annotations

from typing import Any

from einsummable.views import amounts, legends
from einsummable.views.blocks import Scale, axes_text, card, table_text, table_title
from einsummable.views.drawing import Drawing

_WIDTH = 780.0


def _tables(view: dict[str, Any]) -> list[dict[str, Any]]:
    return view["tensors"] if view["kind"] == "plan" else [view["tensor"]]


def second_line(table: dict[str, Any]) -> str:
    """Return what stands under the name of a tensor."""
    return f"{amounts.nbytes(table['bytes'])} {table['dtype']}, {amounts.many(table['count'], 'block')}"


def draw(view: dict[str, Any]) -> Drawing:
    """Draw every tensor of a view of `plan_view`, or the one of a view of `partition_view`."""
    tables = _tables(view)
    scale = Scale.of(tables, 150.0 if view["kind"] == "plan" else 300.0)
    d = Drawing()
    d.flow([card(table, view, scale, second_line(table)) for table in tables], _WIDTH)
    keys = legends.sites(view) + legends.textures([b for t in tables for b in t["blocks"]])
    d.flow(keys, _WIDTH, gap=16, top=d.box[3] + 22)
    return d


def text(view: dict[str, Any]) -> str:
    """Return every tensor as a heading and a grid of site numbers."""
    parts = [view["caption"]]
    for table in _tables(view):
        heading = f"{table_title(table)}  {axes_text(table)}  ({second_line(table)})"
        partials = max((b["partials"] for b in table["blocks"]), default=1)
        heading += f", from {partials} partial results each" if partials > 1 else ""
        parts.append(f"{heading}\n{table_text(table)}")
    return "\n\n".join(parts)
