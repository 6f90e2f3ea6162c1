"""A cluster as a table: an engine a row, where it runs, its BLAS, and the memory it takes.

Contract: `cluster_view` takes what is known of the engines and says it in figures and words; without engines
it is the view of no cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from einsummable.runtime.engines import EngineTable
from einsummable.runtime.usage import Usage
from einsummable.views import amounts
from einsummable.views.colours import INK, palette
from einsummable.views.drawing import Drawing, text_width

_SIZE = 12
_HEAD = ("site", "engine", "host", "pid", "threads", "BLAS", "process", "tensors kept", "")


def cluster_view(
    engines: EngineTable, usage: Sequence[Usage] = (), *, memory: int | None = None, state: str = ""
) -> dict[str, Any]:
    """Return what there is of a cluster as a view.

    Parameters
    ----------
    usage
        What each engine takes, in the order of `engines`; by default nobody has asked.
    memory
        The bytes that each engine may take.
    state
        ``starting``, ``stopping``, or by default ``running`` where there are engines and else ``none``.
    """
    state = state or ("running" if engines else "none")
    known = {u.site: u for u in usage}
    colours = palette(len(engines))
    rows = []
    for engine in engines:
        used = known.get(engine.site)
        rows.append(
            {
                "site": engine.site,
                "engine": engine.id,
                "host": engine.host,
                "pid": engine.pid,
                "threads": engine.threads,
                "blas": engine.blas,
                "colour": colours[engine.site],
                "process": amounts.nbytes(used.resident) if used and used.resident is not None else "",
                "kept": amounts.nbytes(used.kept) if used else "",
                "share": used.kept / memory if used and memory else 0.0,
                "lost": used.lost if used else "",
            }
        )
    view = {
        "kind": "cluster",
        "state": state,
        "engines": rows,
        "memory": amounts.nbytes(memory) if memory is not None else "",
    }
    return view | {"caption": _caption(view)}


def _caption(view: dict[str, Any]) -> str:
    rows = view["engines"]
    match view["state"]:
        case "none":
            return "no cluster: programs run on threads of this process"
        case "starting":
            return "engines are starting"
        case "stopping":
            return "engines are stopping"
    hosts = dict.fromkeys(row["host"] for row in rows)
    words = f"{amounts.many(len(rows), 'engine')} on {amounts.many(len(hosts), 'host')}"
    threads = sorted({row["threads"] for row in rows})
    words += f", {'–'.join(map(str, threads))} BLAS thread{'' if threads == [1] else 's'} each"
    lost = sum(bool(row["lost"]) for row in rows)
    words += f"; {amounts.many(lost, 'engine')} gone" if lost else ""
    return words + (f"; each may take {view['memory']}" if view["memory"] else "")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    cells = (row["site"], row["engine"], row["host"], row["pid"], row["threads"], row["blas"])
    return (*map(str, cells), row["process"] or "–", row["kept"] or "–", row["lost"])


def draw(view: dict[str, Any]) -> Drawing:
    """Draw a view of `cluster_view`."""
    rows = [_cells(row) for row in view["engines"]]
    d = Drawing()
    if not rows:
        d.text(0, 14, {"none": "no engines"}.get(view["state"], view["caption"]), size=_SIZE, muted=True)
        return d
    columns = list(zip(_HEAD, *rows, strict=True))
    widths = [max(text_width(cell, _SIZE) for cell in column) for column in columns]
    x = 22.0
    for column, width in zip(columns, widths, strict=True):
        for k, cell in enumerate(column):
            d.text(x, 14 + 24 * k, cell, size=_SIZE, muted=k == 0)
        x += width + 22
    for k, row in enumerate(view["engines"], 1):
        with d.group(f"engine {row['engine']}", site=row["site"], keys=f"site:{row['site']}"):
            d.rect(0, 24 * k + 4, 12, 12, fill=row["colour"], stroke=INK, stroke_opacity=0.3)
        d.line((0, 24 * k - 3), (x - 22, 24 * k - 3), stroke_opacity=0.15)
    return d


def text(view: dict[str, Any]) -> str:
    """Return the table in characters."""
    rows = [_cells(row) for row in view["engines"]]
    if not rows:
        return view["caption"]
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in (_HEAD, *rows))
    return "\n".join([view["caption"], *lines])
