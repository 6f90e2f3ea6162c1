"""What sites hold in memory while a program runs, heard from its events.

Contract: `held` says when a block begins and ends to count; a block that is on disk counts until it is there
and from when it begins to come back.
"""

from __future__ import annotations

from collections.abc import Iterable

from einsummable.runtime.critical import span
from einsummable.runtime.events import Event, Evicted, Loaded, MoveEnded, RunRecord, TaskEnded
from einsummable.taskgraph.held import Change, Held, series
from einsummable.taskgraph.tasks import TaskGraph


class Holding:
    """What is held in a run of which nothing was heard yet."""

    def __init__(self, taskgraph: TaskGraph) -> None:
        self._held = Held(taskgraph)

    def hear(self, event: Event) -> list[Change]:
        """Return what changes by an event."""
        match event:
            case TaskEnded() | MoveEnded():
                return self._held.ended(event.task, *span(event))
            case Evicted(_, site, _, ended, size):
                return [(site, ended, -size)]
            case Loaded(_, site, started, _, size):
                return [(site, started, size)]
            case _:
                return []


def held(record: RunRecord) -> tuple[tuple[tuple[float, int], ...], ...]:
    """Return the bytes that every site holds over time: ``(time, bytes from then on)``."""
    holding = Holding(record.taskgraph)
    return series(_changes(holding, record.events), record.taskgraph.sites)


def _changes(holding: Holding, events: Iterable[Event]) -> Iterable[Change]:
    for event in events:
        yield from holding.hear(event)
