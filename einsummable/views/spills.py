"""What of a run went to disk and came back, for the timeline and the trace.

Contract: pure functions of a `RunRecord`, or of the dicts that `spills` makes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from einsummable.runtime.events import Loaded, RunRecord
from einsummable.views import amounts
from einsummable.views.drawing import Drawing

#: Out, and in again.
_COLOURS = {"evicted": "#d0342c", "loaded": "#3f8f3f"}
_HEIGHT = 3.0
_MICRO = 1e6


def spills(record: RunRecord) -> list[dict[str, Any]]:
    """Return a dict for each block that was evicted or loaded."""
    return [
        {
            "task": e.task,
            "site": e.site,
            "kind": "loaded" if isinstance(e, Loaded) else "evicted",
            "start": e.started,
            "stop": e.ended,
            "bytes": e.nbytes,
        }
        for e in record.disk
    ]


def words(found: Sequence[dict[str, Any]]) -> str:
    """Return how much it was, to go on a caption with; nothing if it was nothing."""
    sizes = {kind: [s["bytes"] for s in found if s["kind"] == kind] for kind in _COLOURS}
    told = [
        f"{amounts.nbytes(sum(of_kind))} {kind} in {amounts.many(len(of_kind), 'block')}"
        for kind, of_kind in sizes.items()
        if of_kind
    ]
    return "; ".join(["", *told])


def draw_spills(d: Drawing, found: Sequence[dict[str, Any]], site: int, top: float, scale: float) -> None:
    """Draw those of one site as a thin stripe from `top` down."""
    for spill in found:
        if spill["site"] != site:
            continue
        what = f"{amounts.nbytes(spill['bytes'])} {spill['kind']}, the block of task #{spill['task']}"
        span = f"{amounts.seconds(spill['stop'] - spill['start'])} from {amounts.seconds(spill['start'])}"
        with d.group(f"{what}\n{span}", site=site, task=spill["task"]):
            width = max((spill["stop"] - spill["start"]) * scale, 1.0)
            d.rect(spill["start"] * scale, top, width, _HEIGHT, fill=_COLOURS[spill["kind"]])


def traced(record: RunRecord, first: int, thread: int) -> Iterator[dict[str, Any]]:
    """Yield them as events of a trace (see `trace`); several may be under way at a time."""
    for number, spill in enumerate(spills(record)):
        task = record.taskgraph.tasks[spill["task"]]
        name = f"{record.taskgraph.graph.name_of(task.origin)} {spill['kind']}"
        same = {"cat": "disk", "id": number, "pid": first + spill["site"], "tid": thread, "name": name}
        args = {"task": spill["task"], "node": task.origin, "bytes": spill["bytes"]}
        yield {"ph": "b", "ts": spill["start"] * _MICRO, "args": args, **same}
        yield {"ph": "e", "ts": spill["stop"] * _MICRO, **same}
