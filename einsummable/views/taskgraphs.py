"""A TaskGraph as data: every task where there are few, counts by node and lane always.

Contract: a lane is a site, or above `LANES` sites a run of sites.  ``cells`` count the tasks of a node in a
lane (of fused calls each for its node), ``flows`` the moves between two lanes: of the tensor that ``node``
makes, to the node ``target`` that reads it (the same node where partial results travel).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import ceil
from typing import Any

from einsummable.taskgraph.tasks import (
    Aggregate,
    Apply,
    Assemble,
    Fused,
    Move,
    Read,
    Slice,
    Task,
    TaskGraph,
    calls,
    nbytes,
)
from einsummable.views import amounts, naming

#: So many tasks are drawn one by one.
LIMIT = 300
LANES = 32


def taskgraph_view(
    taskgraph: TaskGraph, *, limit: int = LIMIT, hosts: Sequence[int] | None = None
) -> dict[str, Any]:
    """Return the tasks of a TaskGraph as a view.

    Parameters
    ----------
    limit
        Above so many tasks, ``tasks`` is empty and only counts are there.
    hosts
        The host of every site, where sites have hosts.
    """
    lanes = lanes_of(taskgraph.sites)
    lane_of = {site: k for k, members in enumerate(lanes) for site in members}
    graph = taskgraph.graph
    used = sorted({i for task in taskgraph.tasks for i in (task.origin, *(o for o, _ in calls(task)))})
    view = {
        "kind": "taskgraph",
        "sites": taskgraph.sites,
        "hosts": list(hosts) if hosts is not None else None,
        "count": len(taskgraph.tasks),
        "nodes": [
            {
                "id": i,
                "name": graph.name_of(i),
                "tensor": naming.tensor(graph, i),
                "formula": naming.formula(graph, i),
            }
            for i in used
        ],
        "lanes": lanes,
        "tasks": [_task(taskgraph, i, lane_of) for i in range(len(taskgraph.tasks))]
        if len(taskgraph.tasks) <= limit
        else [],
        "cells": _cells(taskgraph, lane_of),
        "flows": _flows(taskgraph, lane_of),
        "outputs": [{"name": out.name, "tasks": [t for t, _ in out.blocks]} for out in taskgraph.outputs],
    }
    return view | {"caption": _caption(taskgraph)}


def lanes_of(sites: int) -> list[list[int]]:
    """Return the sites of each lane: one each, or runs of equal length where there are too many."""
    each = ceil(sites / LANES) if sites > LANES else 1
    return [list(range(first, min(first + each, sites))) for first in range(0, sites, each)]


def _task(taskgraph: TaskGraph, i: int, lane_of: dict[int, int]) -> dict[str, Any]:
    task = taskgraph.tasks[i]
    return {
        "id": i,
        "type": type(task).__name__,
        "site": task.site,
        "lane": lane_of[task.site],
        "node": task.origin,
        "inputs": list(task.inputs),
        "shape": list(task.shape),
        "bytes": nbytes(task),
        "text": describe(taskgraph, i),
    }


def describe(taskgraph: TaskGraph, i: int) -> str:
    """Return what task `i` does, in words."""
    task, graph = taskgraph.tasks[i], taskgraph.graph
    name = graph.name_of(task.origin)
    match task:
        case Read():
            return f"read {task.name}[{_box(task.box)}]"
        case Apply():
            return _call(taskgraph, task.origin, task.ranges)
        case Fused():
            return "\n".join(_call(taskgraph, *call) for call in calls(task))
        case Slice():
            return f"[{_box(task.box)}] of a block of {name}"
        case Move():
            source = taskgraph.tasks[task.inputs[0]].site
            return f"{amounts.nbytes(nbytes(task))} of {name} from site {source} to site {task.site}"
        case Assemble():
            return f"{len(task.inputs)} pieces of {name} put together"
        case Aggregate():
            return f"{task.aggregate} of {len(task.inputs)} partial results of {name}"


def _call(taskgraph: TaskGraph, origin: int, ranges: Sequence[tuple[int, int]]) -> str:
    graph, labels = taskgraph.graph, naming.space_labels(taskgraph.graph, origin)
    where = ", ".join(f"{n} {a}:{b}" for n, (a, b) in zip(labels, ranges, strict=True))
    return f"{graph.name_of(origin)} = {naming.formula(graph, origin)}" + (f" on {where}" if where else "")


def _box(box: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{a}:{b}" for a, b in box)


def _cells(taskgraph: TaskGraph, lane_of: dict[int, int]) -> list[dict[str, Any]]:
    counts: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for task in taskgraph.tasks:
        if isinstance(task, Fused):
            for origin, _ in calls(task):
                counts[origin, lane_of[task.site]]["Apply"] += 1
        else:
            counts[task.origin, lane_of[task.site]][type(task).__name__] += 1
    return [{"node": node, "lane": lane, "tasks": dict(counts[node, lane])} for node, lane in sorted(counts)]


def is_partial(taskgraph: TaskGraph, move: int) -> bool:
    """Return whether what a Move carries is a partial result, to be combined where it arrives."""
    return any(isinstance(taskgraph.tasks[j], Aggregate) for j in taskgraph.consumers[move])


def _reader(taskgraph: TaskGraph, move: int) -> int:
    """Return the node for which a Move is made: that of the first task which computes with what it brings."""
    at = move
    while taskgraph.consumers[at]:
        at = taskgraph.consumers[at][0]
        if isinstance(taskgraph.tasks[at], Apply | Fused | Aggregate):
            break
    return taskgraph.tasks[at].origin


def _flows(taskgraph: TaskGraph, lane_of: dict[int, int]) -> list[dict[str, Any]]:
    flows: dict[tuple[int, int, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for i, task in enumerate(taskgraph.tasks):
        if isinstance(task, Move):
            source = lane_of[taskgraph.tasks[task.inputs[0]].site]
            flow = flows[task.origin, _reader(taskgraph, i), source, lane_of[task.site]]
            flow[0] += 1
            flow[1] += nbytes(task)
    return [
        {"node": node, "target": target, "from": a, "to": b, "moves": moves, "bytes": size}
        for (node, target, a, b), (moves, size) in sorted(flows.items())
    ]


def _caption(taskgraph: TaskGraph) -> str:
    kinds: Counter[type[Task]] = Counter(map(type, taskgraph.tasks))
    words = f"{amounts.many(len(taskgraph.tasks), 'task')} on {amounts.many(taskgraph.sites, 'site')}: "
    words += amounts.many(sum(len(calls(task)) for task in taskgraph.tasks), "kernel call")
    words += f", {amounts.many(kinds[Aggregate], 'aggregation')}" if kinds[Aggregate] else ""
    if not kinds[Move]:
        return words + "; nothing moves"
    words += f"; {amounts.many(kinds[Move], 'move')} of {amounts.nbytes(taskgraph.bytes_moved)}"
    partial = sum(
        nbytes(task)
        for i, task in enumerate(taskgraph.tasks)
        if isinstance(task, Move) and is_partial(taskgraph, i)
    )
    return words + (f", of which {amounts.nbytes(partial)} are partial results" if partial else "")
