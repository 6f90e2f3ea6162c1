"""Runs as rows of numbers, for a timeline that grows while a program runs.

Contract: a `Tracker` takes events in the order in which an observer hears them; `take` answers what came
since it was asked last, so that what a browser was sent is added up and never sent again.  `track` is all of
a run that is over.  Rows: ``bars`` [task, start, stop], ``moves`` [move, start, stop], ``disk`` [task, start,
stop, 0 for out or 1 for in again], ``held`` [site, time, bytes more or less].  What tasks are is said once,
in `stage`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from einsummable.runtime.critical import critical_path, shares, span
from einsummable.runtime.events import (
    Ended,
    Event,
    Evicted,
    Loaded,
    MoveEnded,
    Progress,
    RunEnded,
    RunRecord,
    RunStarted,
    TaskEnded,
)
from einsummable.runtime.holding import Holding
from einsummable.taskgraph.tasks import Aggregate, Apply, Fused, Move, TaskGraph, nbytes, work
from einsummable.views import amounts, naming, timelines
from einsummable.views.colours import palette
from einsummable.views.taskgraphs import describe

#: Above so many tasks, not each is told in words.
TEXTS = 5000


def stage(
    taskgraph: TaskGraph, *, hosts: Sequence[int] | None = None, budget: float | None = None
) -> dict[str, Any]:
    """Return what all tracks of a program share: what its tasks are, and the colours of its nodes.

    Parameters
    ----------
    budget
        The bytes that a site may hold, where there is a limit.
    """
    tasks, graph = taskgraph.tasks, taskgraph.graph
    colours = timelines.colours_of(_by_work(taskgraph))
    spans = dict.fromkeys(node.origin.span for node in graph.nodes if node.origin.span is not None)
    many = len(tasks) > TEXTS
    return {
        "text": graph.text,
        "spans": [[span.start, span.stop] for span in spans],
        "sites": taskgraph.sites,
        "hosts": list(hosts) if hosts is not None else None,
        "colours": list(palette(taskgraph.sites, tuple(hosts) if hosts is not None else None)),
        "site": [task.site for task in tasks],
        "node": [task.origin for task in tasks],
        # c: computes, v: copies or looks at blocks, m: moves
        "kind": "".join(map(_kind, tasks)),
        "source": {str(i): tasks[t.inputs[0]].site for i, t in enumerate(tasks) if isinstance(t, Move)},
        "bytes": {str(i): nbytes(t) for i, t in enumerate(tasks) if isinstance(t, Move)},
        "texts": [] if many else [describe(taskgraph, i) for i in range(len(tasks))],
        "nodes": [
            {
                "id": i,
                "name": graph.name_of(i),
                "colour": colour,
                "does": f"{naming.tensor(graph, i)} = {naming.formula(graph, i)}",
            }
            for i, colour in sorted(colours.items())
        ],
        "budget": budget,
        "budget_text": amounts.nbytes(budget) if budget is not None else "",
    }


class Tracker:
    """What is known of a run so far."""

    def __init__(self, taskgraph: TaskGraph) -> None:
        self._holding = Holding(taskgraph)
        self._at, self._over, self._error = 0.0, False, ""
        self._working: tuple[int, ...] = ()
        self._bars: list[list[float]] = []
        self._disk: list[list[float]] = []
        self._moves: list[list[float]] = []
        self._changes: list[list[float]] = []

    def hear(self, event: Event) -> None:
        """Take one event."""
        match event:
            case RunStarted() | Progress():
                self._at = max(self._at, event.at)
                self._working = event.working if isinstance(event, Progress) else ()
            case TaskEnded():
                self._end(self._bars, event)
            case MoveEnded():
                self._end(self._moves, event)
            case Evicted() | Loaded():
                self._end(self._disk, event, int(isinstance(event, Loaded)))
            case RunEnded(at, error):
                self._at, self._error, self._over, self._working = at, error, True, ()

    def _end(self, rows: list[list[float]], event: Ended, *more: int) -> None:
        start, end = span(event)
        rows.append([event.task, _time(start), _time(end), *more])
        self._at = max(self._at, end)
        self._changes += ([site, _time(at), size] for site, at, size in self._holding.hear(event))

    def take(self) -> dict[str, Any]:
        """Return what came since the last call, and how things stand."""
        taken = {
            "at": _time(self._at),
            "over": self._over,
            "error": self._error,
            "working": list(self._working),
            "bars": self._bars,
            "moves": self._moves,
            "disk": self._disk,
            "held": self._changes,
        }
        self._bars, self._moves, self._disk, self._changes = [], [], [], []
        return taken


def track(record: RunRecord, name: str) -> dict[str, Any]:
    """Return all of a run that is over, with its critical path and the peak of every site.

    Parameters
    ----------
    name
        What it is called: "measured" or "simulated".
    """
    tracker = Tracker(record.taskgraph)
    for event in record.events:
        tracker.hear(event)
    found = tracker.take()
    path = critical_path(record)
    view = timelines.timeline_view(record)
    peaks = [max((size for _, size in steps), default=0) for steps in view["held"]]
    return found | {
        "name": name,
        "critical": [event.task for event in path],
        "peaks": [amounts.nbytes(peak) for peak in peaks],
        "busy": [amounts.share(record.busy(site), record.wall) for site in range(record.taskgraph.sites)],
        "spent": {str(node["id"]): amounts.seconds(node["seconds"]) for node in view["nodes"]},
        "headline": view["caption"].partition(";")[0],
        "caption": f"{view['caption']}; {_caption(record, len(path), shares(record, path), peaks)}",
    }


def _caption(record: RunRecord, steps: int, spent: tuple[float, float, float], peaks: Sequence[int]) -> str:
    tasks, moves, rest = (amounts.share(seconds, record.wall) for seconds in spent)
    path = f"critical path of {amounts.many(steps, 'step')}: {tasks} tasks, {moves} moves, {rest} waiting"
    return f"{path}; at most {amounts.nbytes(max(peaks, default=0))} held on a site"


def run_view(stage: Mapping[str, Any], tracks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return runs of one program as a view, the first one above, to be drawn on one scale."""
    told = (f"{t['name']}: {t['caption']}" for t in tracks)
    return {"kind": "run", "stage": stage, "tracks": list(tracks), "caption": "\n".join(told)}


def _kind(task: object) -> str:
    return "m" if isinstance(task, Move) else "c" if isinstance(task, Apply | Fused | Aggregate) else "v"


def _time(seconds: float) -> float:
    """Return a time to the nanosecond, which is shorter to send."""
    return round(seconds, 9)


def _by_work(taskgraph: TaskGraph) -> list[int]:
    """Return the nodes after which tasks that compute are named, most work first."""
    total: dict[int, float] = defaultdict(float)
    for task in taskgraph.tasks:
        if isinstance(task, Apply | Fused | Aggregate):
            total[task.origin] += work(taskgraph.graph, task)
    return sorted(total, key=lambda i: (-total[i], i))
