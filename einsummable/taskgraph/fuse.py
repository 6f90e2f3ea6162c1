"""Fusion: kernel calls whose results only one another read become one task.

Contract: `fuse` answers a TaskGraph that computes the same.  A `Fused` task ends in the call of the task it
stands for (`origin`); its earlier steps are calls on the same site whose blocks nothing else reads, and all
run over a label that none of them aggregates, so that they can be made range by range along it.  So an
elementwise call joins what it reads, and scores, mask, softmax and values, or distances and their minimum,
become one.  Labels alone decide.  Moves, reads, slices and assembled blocks stay as they are.

A step joins only where it is handed on in the cache, or writes over what it reads: a chain of large matrix
products stays apart, because reading the weights again for every tile would cost more.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from einsummable.kernels import sharing
from einsummable.nodes import Einsummable, box_shape
from einsummable.taskgraph.tasks import Apply, Fused, Move, Output, Step, Task, TaskGraph
from einsummable.taskgraph.uncollected import uncollected
from einsummable.taskgraph.updates import replaced


def fuse(taskgraph: TaskGraph) -> TaskGraph:
    """Return `taskgraph` with the calls fused that gain by it."""
    with uncollected():
        groups = _groups(taskgraph)
        return _regrouped(taskgraph, groups) if groups else taskgraph


def _regrouped(taskgraph: TaskGraph, groups: dict[int, list[int]]) -> TaskGraph:
    """Return `taskgraph` with each group of tasks, named by its last one, as one."""
    inner = {i for group in groups.values() for i in group[:-1]}
    new: dict[int, int] = {}
    tasks: list[Task] = []
    for i, task in enumerate(taskgraph.tasks):
        if i in inner:
            continue
        new[i] = len(tasks)
        group = groups.get(i, [])
        tasks.append(_renumbered(task, new) if len(group) < 2 else _fused(taskgraph, group, new))
    outputs = tuple(
        Output(out.name, out.shape, out.dtype, tuple((new[t], box) for t, box in out.blocks))
        for out in taskgraph.outputs
    )
    return TaskGraph(taskgraph.graph, taskgraph.sites, tuple(tasks), outputs)


def _groups(taskgraph: TaskGraph) -> dict[int, list[int]]:
    """Return the tasks that go together, in order, by the last of them."""
    kept = {t for out in taskgraph.outputs for t, _ in out.blocks}
    taken = set(replaced(taskgraph))  # they stay apart: alone they touch only what they change
    groups = {}
    for i in range(len(taskgraph.tasks) - 1, -1, -1):
        if i in taken or not _is_call(taskgraph, i):
            continue
        group = {i}
        refused: set[int] = set()
        while True:
            read = {j for t in group for j in taskgraph.tasks[t].inputs} - group - refused
            open_ = {j for j in read if j not in kept and j not in taken and _is_call(taskgraph, j)}
            ready = [j for j in open_ if set(taskgraph.consumers[j]) <= group]
            if not ready:
                break
            j = max(ready)  # the latest first: what it reads may follow
            if _gains(taskgraph, sorted({*group, j})):
                group.add(j)
            else:
                refused.add(j)
        taken |= group
        if len(group) > 1:
            groups[i] = sorted(group)
    return groups


def _is_call(taskgraph: TaskGraph, i: int) -> bool:
    task = taskgraph.tasks[i]
    if not isinstance(task, Apply):
        return False
    node = taskgraph.graph.nodes[task.origin]
    return isinstance(node, Einsummable) and not node.one_hot


def _members(taskgraph: TaskGraph, group: list[int]) -> tuple[list[sharing.Member], list[int]]:
    """Return the calls of `group` as `sharing` takes them, and the tasks outside that they read."""
    inside = set(group)
    outside = list(dict.fromkeys(j for t in group for j in taskgraph.tasks[t].inputs if j not in inside))
    number = {j: n for n, j in enumerate([*outside, *group])}
    members = []
    for t in group:
        task = taskgraph.tasks[t]
        members.append((taskgraph.graph.nodes[task.origin], tuple(number[j] for j in task.inputs)))
    return members, outside


def _gains(taskgraph: TaskGraph, group: list[int]) -> bool:
    """Return whether the first of `group` is better made together with the others."""
    members, outside = _members(taskgraph, group)
    shapes = [box_shape(taskgraph.tasks[t].ranges) for t in group]
    threads = sharing.threads(members, len(outside))
    if not any(thread.cuttable for thread in threads) or any(0 in shape for shape in shapes):
        return False
    node, first = members[0][0], shapes[0]
    size = prod(first[: len(node.out)]) * node.dtype.itemsize
    if size <= sharing.TILE_BYTES or sharing.in_place(members, len(outside), 0):
        return True
    return bool(sharing.tile(members, len(outside), shapes, threads))


def _fused(taskgraph: TaskGraph, group: list[int], new: dict[int, int]) -> Fused:
    members, outside = _members(taskgraph, group)
    tasks = [taskgraph.tasks[t] for t in group]
    steps = tuple(
        Step(task.origin, task.ranges, reads) for task, (_, reads) in zip(tasks, members, strict=True)
    )
    last = tasks[-1]
    return Fused(last.site, tuple(new[j] for j in outside), steps, last.shape, last.dtype, last.origin)


def _renumbered(task: Task, new: dict[int, int]) -> Task:
    inputs = tuple([new[j] for j in task.inputs])
    if inputs == task.inputs:
        return task
    if isinstance(task, Move):  # of which there are most
        return Move(task.site, inputs, task.shape, task.dtype, task.origin)
    return replace(task, inputs=inputs)
