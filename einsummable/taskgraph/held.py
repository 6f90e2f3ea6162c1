"""What every site holds while a program runs: bytes of blocks, told as tasks end.

Contract: a block lives from the start of its task to the end of its last reader; those of inputs are there
from time 0 and stay, as do those of results; a slice is a view and keeps its block alive; a moved block has
its place from the moment it leaves.  Tasks may be told in any order, as they are when several sites report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from einsummable.taskgraph.tasks import Read, Slice, TaskGraph, nbytes

#: Site, time, and how many bytes more (or less) it holds from then on.
Change: TypeAlias = tuple[int, float, int]


class Held:
    """Blocks of a run of `taskgraph`, of which nothing has ended yet."""

    def __init__(self, taskgraph: TaskGraph) -> None:
        self._taskgraph = taskgraph
        self._owner = list(range(len(taskgraph.tasks)))
        self._readers = [0] * len(taskgraph.tasks)
        for i, task in enumerate(taskgraph.tasks):
            if isinstance(task, Slice):
                self._owner[i] = self._owner[task.inputs[0]]
            for j in set(task.inputs):
                self._readers[self._owner[j]] += 1
        self._stay = _lasting(taskgraph, self._owner)
        self._last = [0.0] * len(taskgraph.tasks)
        self._made = [False] * len(taskgraph.tasks)

    def ended(self, task: int, start: float, end: float) -> list[Change]:
        """Return what changes by the end of `task`, which worked (or moved) from `start` to `end`."""
        here = self._taskgraph.tasks[task]
        changes: list[Change] = []
        if self._owner[task] == task:
            self._made[task] = True
            self._last[task] = max(self._last[task], end)
            changes.append((here.site, 0.0 if isinstance(here, Read) else start, nbytes(here)))
            if not self._readers[task]:
                changes += self._released(task)
        for j in set(here.inputs):
            block = self._owner[j]
            self._readers[block] -= 1
            self._last[block] = max(self._last[block], end)
            if not self._readers[block] and self._made[block]:
                changes += self._released(block)
        return changes

    def _released(self, block: int) -> list[Change]:
        if block in self._stay:
            return []
        task = self._taskgraph.tasks[block]
        return [(task.site, self._last[block], -nbytes(task))]


def _lasting(taskgraph: TaskGraph, owner: Sequence[int]) -> set[int]:
    """Return the blocks that are there to the end: those of inputs and of results."""
    inputs = {i for i, task in enumerate(taskgraph.tasks) if isinstance(task, Read)}
    return inputs | {owner[t] for out in taskgraph.outputs for t, _ in out.blocks}


def peaks(taskgraph: TaskGraph, starts: Sequence[float], ends: Sequence[float]) -> tuple[int, ...]:
    """Return the most bytes that each site holds at once, when tasks start and end at these times."""
    tasks = taskgraph.tasks
    owner, last = list(range(len(tasks))), list(ends)
    for i, task in enumerate(tasks):
        if isinstance(task, Slice):
            owner[i] = owner[task.inputs[0]]
        for j in task.inputs:
            last[owner[j]] = max(last[owner[j]], ends[i])
    stay = _lasting(taskgraph, owner)
    blocks = [i for i, task in enumerate(tasks) if not isinstance(task, Slice)]
    begins = [0.0 if isinstance(tasks[i], Read) else starts[i] for i in blocks]
    freed = [i for i in blocks if i not in stay]
    at = np.array(begins + [last[i] for i in freed])
    site = np.array([tasks[i].site for i in [*blocks, *freed]], np.int64)
    change = np.array([nbytes(tasks[i]) for i in blocks] + [-nbytes(tasks[i]) for i in freed], np.int64)
    order = np.lexsort((change, at, site))  # what is freed at a time makes room for what begins then
    held = np.cumsum(change[order])
    most = np.zeros(taskgraph.sites, np.int64)
    before = np.cumsum(np.bincount(site, change, taskgraph.sites)) - np.bincount(
        site, change, taskgraph.sites
    )
    np.maximum.at(most, site[order], held - before[site[order]].astype(np.int64))
    return tuple(most.tolist())


def series(changes: Iterable[Change], sites: int) -> tuple[tuple[tuple[float, int], ...], ...]:
    """Return for every site the bytes it holds over time: ``(time, bytes from then on)``."""
    steps: list[Counter[float]] = [Counter() for _ in range(sites)]
    for site, at, size in changes:
        steps[site][at] += size
    found = []
    for site in steps:
        now, levels = 0, []
        for at in sorted(site):
            now += site[at]
            levels.append((at, now))
        found.append(tuple(levels))
    return tuple(found)
