"""Cutting a TaskGraph into what each site needs of it.

Contract: `split` answers a `SitePart` a site: its own tasks in order of urgency (the one with the longest way
to the end of the program first), whom their blocks go to, and what arrives from elsewhere.  A part is small,
pickles in milliseconds and depends on no process; `take` answers the boxes of the inputs that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np

from einsummable.kernels.blocks import Call
from einsummable.nodes import Box, Einsummable, Gather, box_shape
from einsummable.taskgraph.tasks import (
    Aggregate,
    Apply,
    Assemble,
    Fused,
    Move,
    Read,
    Task,
    TaskGraph,
    calls,
    nbytes,
)
from einsummable.taskgraph.updates import replaced

#: A box of an input of the program.
Source: TypeAlias = tuple[str, Box]


@dataclass(frozen=True, slots=True)
class SitePart:
    """What one site needs of a TaskGraph.

    Tasks are numbered anew, the most urgent first.  A *slot* holds a block: slot i the block that task i
    makes, slots from ``len(tasks)`` on those that arrive.

    Attributes
    ----------
    ids, tasks
        The index in ``TaskGraph.tasks`` of each task, and the task itself (no moves).
    inputs
        For each task the slots that it reads.
    calls, calls_of
        The distinct kernel calls, and for each task which of them it makes.
    overwrites
        For each task the position of an input whose memory may take the result, -1 for none.
    sends
        For each task the sites its block is sent to, as ``(site, tag)``.
    arrivals
        ``(tag, shape, dtype)`` of the blocks that come from elsewhere; a tag is the index of the Move.
    outputs
        The slots whose blocks are part of a result.
    replaces
        For slots that may take the memory of a block of an input, if that is given up: that block.
    """

    site: int
    sites: int
    ids: tuple[int, ...]
    tasks: tuple[Task, ...]
    inputs: tuple[tuple[int, ...], ...]
    calls: tuple[Call, ...]
    calls_of: tuple[tuple[int, ...], ...]
    overwrites: tuple[int, ...]
    sends: tuple[tuple[tuple[int, int], ...], ...]
    arrivals: tuple[tuple[int, tuple[int, ...], np.dtype], ...]
    outputs: tuple[int, ...]
    replaces: tuple[tuple[int, Source], ...] = ()

    @property
    def reads(self) -> tuple[Source, ...]:
        """The boxes of the program's inputs that this site reads, each once."""
        return tuple(dict.fromkeys((t.name, t.box) for t in self.tasks if isinstance(t, Read)))

    def task_of(self, slot: int) -> int:
        """Return the index in ``TaskGraph.tasks`` of what makes the block in `slot`."""
        return self.ids[slot] if slot < len(self.ids) else self.arrivals[slot - len(self.ids)][0]


def split(taskgraph: TaskGraph) -> tuple[SitePart, ...]:
    """Return the part of every site."""
    tasks, consumers = taskgraph.tasks, taskgraph.consumers
    urgency = _urgencies(taskgraph)
    order = sorted(range(len(tasks)), key=lambda i: -urgency[i])
    kept = {t for out in taskgraph.outputs for t, _ in out.blocks}
    old = {i: tasks[j] for i, j in replaced(taskgraph).items()}
    known: dict[int, Call] = {}
    parts = []
    for site in range(taskgraph.sites):
        own = [i for i in order if tasks[i].site == site and not isinstance(tasks[i], Move)]
        arriving = [i for i in order if tasks[i].site == site and isinstance(tasks[i], Move)]
        slot = {i: s for s, i in enumerate(own + arriving)}
        made = [[_call(taskgraph, origin, known) for origin, _ in calls(tasks[i])] for i in own]
        distinct = {call: n for n, call in enumerate(dict.fromkeys(c for each in made for c in each))}
        parts.append(
            SitePart(
                site=site,
                sites=taskgraph.sites,
                ids=tuple(own),
                tasks=tuple(tasks[i] for i in own),
                inputs=tuple(tuple(slot[j] for j in tasks[i].inputs) for i in own),
                calls=tuple(distinct),
                calls_of=tuple(tuple(distinct[c] for c in each) for each in made),
                overwrites=tuple(_overwritten(taskgraph, i, kept) for i in own),
                sends=tuple(
                    tuple((tasks[r].site, r) for r in consumers[i] if isinstance(tasks[r], Move)) for i in own
                ),
                arrivals=tuple((i, tasks[i].shape, tasks[i].dtype) for i in arriving),
                outputs=tuple(s for i, s in slot.items() if i in kept),
                replaces=tuple((slot[i], (old[i].name, old[i].box)) for i in own if i in old),
            )
        )
    return tuple(parts)


def _call(taskgraph: TaskGraph, origin: int, known: dict[int, Call]) -> Call:
    if origin not in known:
        known[origin] = Call.of(taskgraph.graph, taskgraph.graph.nodes[origin])
    return known[origin]


def _urgencies(taskgraph: TaskGraph) -> list[float]:
    """Return for each task the estimated time from its start to the end of the program.

    Only the order of these times matters, so rough figures of any machine will do.
    """
    rates = [
        2e10 if isinstance(node, Einsummable) and node.is_contraction else 1e9
        for node in taskgraph.graph.nodes
    ]
    urgency = [0.0] * len(taskgraph.tasks)
    for i in range(len(taskgraph.tasks) - 1, -1, -1):
        task = taskgraph.tasks[i]
        match task:
            case Apply() | Fused():
                own = 2e-6 + sum(prod(box_shape(ranges)) / rates[node] for node, ranges in calls(task))
            case Move():
                own = 5e-5 + nbytes(task) / 1e9
            case _:
                own = 1e-6 + nbytes(task) / 5e9
        urgency[i] = own + max((urgency[r] for r in taskgraph.consumers[i]), default=0.0)
    return urgency


def _overwritten(taskgraph: TaskGraph, i: int, kept: set[int]) -> int:
    """Return which input of a task may take its result, since nobody else has any use for it, -1 for none."""
    task = taskgraph.tasks[i]
    candidates = _fitting(taskgraph, task)
    # No views of other blocks; what came from elsewhere last: it may be lent, then its memory is not ours.
    for position in sorted(candidates, key=lambda k: isinstance(taskgraph.tasks[task.inputs[k]], Move)):
        j = task.inputs[position]
        source = taskgraph.tasks[j]
        match source:
            case Apply():
                fresh = isinstance(taskgraph.graph.nodes[source.origin], Einsummable | Gather)
            case Aggregate() | Assemble():
                fresh = len(source.inputs) > 1
            case _:
                fresh = isinstance(source, Fused | Move)
        if fresh and source.dtype == task.dtype and taskgraph.consumers[j] == (i,) and j not in kept:
            return position
    return -1


def _fitting(taskgraph: TaskGraph, task: Task) -> list[int]:
    """Return the inputs of which each element is read where the same element of the result is made."""
    if isinstance(task, Aggregate):
        return list(range(len(task.inputs)))
    node = taskgraph.graph.nodes[task.origin]
    if not isinstance(task, Apply) or not isinstance(node, Einsummable) or node.aggregate is not None:
        return []
    alike = [k for k, labels in enumerate(node.labels) if labels == node.out]
    once = len(set(node.out)) == len(node.out)
    return [k for k in alike if once and task.inputs.count(task.inputs[k]) == 1]


def take(part: SitePart, arrays: Mapping[str, np.ndarray]) -> dict[Source, np.ndarray]:
    """Return views of the boxes of whole `arrays` that `part` reads."""
    return {
        # The dots make a view of an array without dimensions, too; without them it would be a scalar.
        (name, box): arrays[name][(*(slice(start, stop) for start, stop in box), ...)]
        for name, box in part.reads
    }
