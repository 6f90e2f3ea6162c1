"""The critical path of a run: the chain of tasks and moves that its end waited for.

Contract: `critical_path` goes back from what ended last.  A task waits for what it reads and for the task
before it on its site, a move for the block it takes along; of these, the one that ended last comes before it.
So the path needs no costs and is as good for a measured run as for a simulated one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from einsummable.runtime.events import Ended, MoveEnded, RunRecord, TaskEnded


def critical_path(record: RunRecord) -> tuple[TaskEnded | MoveEnded, ...]:
    """Return the events of the path, the first one first; of a run without any, none."""
    done: dict[int, TaskEnded | MoveEnded] = {e.task: e for e in (*record.tasks, *record.moves)}
    before = _before(record.tasks)
    path: list[TaskEnded | MoveEnded] = []
    at = max(done.values(), key=_order, default=None)
    while at is not None:
        path.append(at)
        waited_for = [done[j] for j in record.taskgraph.tasks[at.task].inputs if j in done]
        if at.task in before:
            waited_for.append(before[at.task])
        at = max(waited_for, key=_order, default=None)
    return tuple(reversed(path))


def span(event: Ended) -> tuple[float, float]:
    """Return when a task, a move or work of the disk began and ended."""
    return (event.sent, event.received) if isinstance(event, MoveEnded) else (event.started, event.ended)


def shares(record: RunRecord, path: Sequence[TaskEnded | MoveEnded]) -> tuple[float, float, float]:
    """Return the seconds of a critical path that went to tasks, to moves, and to nothing but waiting."""
    tasks = moves = reached = 0.0
    for event in path:
        start, end = span(event)
        worked = max(end - max(start, reached), 0.0)
        reached = max(reached, end)
        if isinstance(event, MoveEnded):
            moves += worked
        else:
            tasks += worked
    return tasks, moves, max(record.wall - tasks - moves, 0.0)


def _before(tasks: Sequence[TaskEnded]) -> dict[int, TaskEnded]:
    """Return for each task the one that ended before it on its site."""
    by_site: dict[int, list[TaskEnded]] = defaultdict(list)
    for event in tasks:
        by_site[event.site].append(event)
    return {
        later.task: earlier
        for events in by_site.values()
        for earlier, later in pairwise(sorted(events, key=_order))
    }


def _order(event: TaskEnded | MoveEnded) -> tuple[float, float, int]:
    # Views take no time: of those that end at once, what was begun later, or has the larger id, came later.
    start, end = span(event)
    return end, start, event.task
