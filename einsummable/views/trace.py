"""Runs in the Trace Event Format, which Perfetto (https://ui.perfetto.dev) and ``about:tracing`` open.

Contract: `trace` is a pure function of records.  A site is a process: its tasks are slices of one thread, a
move is an asynchronous slice on the site that it reaches, and a flow leads from the task that made its block
to the first task that reads it; a counter tells the bytes that a site holds.  Times are microseconds since
the run began, as the format wants them.

Source: *Trace Event Format*, the Chromium project's document of the JSON that ``catapult`` reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from einsummable.runtime.events import MoveEnded, RunRecord, TaskEnded
from einsummable.runtime.holding import held
from einsummable.views.spills import traced
from einsummable.views.taskgraphs import describe

_TASKS, _MOVES, _DISK = 1, 2, 3
_MICRO = 1e6


def trace(records: Mapping[str, RunRecord]) -> dict[str, Any]:
    """Return runs as one trace, to be written as JSON.

    Parameters
    ----------
    records
        The runs by name, "measured" and "simulated" for instance; each has processes of its own.
    """
    events: list[dict[str, Any]] = []
    first = 0
    for name, record in records.items():
        events += _run(name, record, first)
        first += record.taskgraph.sites
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {name: f"{r.wall:.9g} s {r.error}".strip() for name, r in records.items()},
    }


def _run(name: str, record: RunRecord, first: int) -> Iterator[dict[str, Any]]:
    for site in range(record.taskgraph.sites):
        yield _named("process_name", first + site, 0, f"{name}: site {site}")
        order = {"ph": "M", "name": "process_sort_index", "pid": first + site, "tid": 0}
        yield {**order, "args": {"sort_index": first + site}}
        yield _named("thread_name", first + site, _TASKS, "tasks")
        yield _named("thread_name", first + site, _MOVES, "moves arriving")
        if any(event.site == site for event in record.disk):
            yield _named("thread_name", first + site, _DISK, "to disk and back")
    ran = {e.task: e for e in record.tasks}
    for event in record.tasks:
        yield _task(record, event, first)
    for event in record.moves:
        yield from _move(record, event, ran, first)
    yield from traced(record, first, _DISK)
    yield from _counters(record, first)


def _named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _task(record: RunRecord, event: TaskEnded, first: int) -> dict[str, Any]:
    task = record.taskgraph.tasks[event.task]
    return {
        "ph": "X",
        "name": record.taskgraph.graph.name_of(task.origin),
        "cat": type(task).__name__,
        "pid": first + event.site,
        "tid": _TASKS,
        "ts": event.started * _MICRO,
        "dur": (event.ended - event.started) * _MICRO,
        "args": {"task": event.task, "node": task.origin, "does": describe(record.taskgraph, event.task)},
    }


def _move(
    record: RunRecord, event: MoveEnded, ran: Mapping[int, TaskEnded], first: int
) -> Iterator[dict[str, Any]]:
    """Yield a move, which may overlap others, and the flow from the task that made its block."""
    taskgraph = record.taskgraph
    task = taskgraph.tasks[event.task]
    name = f"{taskgraph.graph.name_of(task.origin)} from site {event.source}"
    same = {"cat": "Move", "id": event.task, "pid": first + event.site, "tid": _MOVES, "name": name}
    args = {"task": event.task, "node": task.origin, "source": event.source, "bytes": event.nbytes}
    yield {"ph": "b", "ts": event.sent * _MICRO, "args": args, **same}
    yield {"ph": "e", "ts": event.received * _MICRO, **same}
    readers = [ran[j] for j in taskgraph.consumers[event.task] if j in ran]
    maker, reader = ran.get(task.inputs[0]), min(readers, key=lambda e: e.started, default=None)
    if maker is not None and reader is not None:
        flow = {"cat": "Move", "id": event.task, "name": name, "tid": _TASKS}
        # A flow is tied to the slice around its time: the middle is inside, whatever is rounded.
        yield {"ph": "s", "pid": first + maker.site, "ts": _middle(maker), **flow}
        yield {"ph": "f", "bp": "e", "pid": first + reader.site, "ts": _middle(reader), **flow}


def _middle(event: TaskEnded) -> float:
    return (event.started + event.ended) / 2 * _MICRO


def _counters(record: RunRecord, first: int) -> Iterator[dict[str, Any]]:
    """Yield the bytes that every site holds, whenever they change."""
    for site, steps in enumerate(held(record)):
        for at, size in steps:
            counter = {"ph": "C", "name": "bytes held", "pid": first + site, "tid": 0}
            yield {**counter, "ts": at * _MICRO, "args": {"bytes": size}}
