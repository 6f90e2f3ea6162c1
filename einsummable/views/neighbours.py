"""Which tasks belong to a task: those whose blocks it reads and those that read its block.

Contract: links as in `links`.  What only looks at blocks, copies or moves them is passed through and belongs,
too; so a kernel call is lit together with the moves that feed it and the calls that these come from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from einsummable.graph import EinGraph
from einsummable.taskgraph.tasks import Assemble, Move, Slice, Task, TaskGraph, calls
from einsummable.views.links import Links, graph_links, merge, node_key, site_key, span_key, task_key


@dataclass(frozen=True, slots=True)
class _Item:
    """Something in a picture: its key, what it belongs to and reads, and whether one looks through it."""

    key: str
    nodes: Collection[int]
    sites: Collection[int]
    reads: Sequence[int]
    passed: bool


def neighbour_links(taskgraph: TaskGraph, *, each: bool = True) -> Links:
    """Return the links of nodes, spans, tasks and sites.

    Parameters
    ----------
    each
        Whether tasks have links of their own; without, a picture has to know itself what a task belongs to.
    """
    if not each:
        return graph_links(taskgraph.graph)
    items = [
        _Item(task_key(t), _nodes(task), (task.site,), tuple(dict.fromkeys(task.inputs)), _is_passed(task))
        for t, task in enumerate(taskgraph.tasks)
    ]
    return merge(graph_links(taskgraph.graph), _links(taskgraph.graph, items))


def item_links(taskgraph: TaskGraph, view: Mapping[str, Any]) -> Links:
    """Return the same for what a view of `folding.fold` draws: tasks that are left, and folds."""
    items = []
    for item in view["tasks"]:
        tasks = [taskgraph.tasks[t] for t in item["members"]]
        fold = item["type"] == "Fold"
        items.append(
            _Item(
                fold_key(item) if fold else task_key(item["members"][0]),
                dict.fromkeys(i for task in tasks for i in _nodes(task)),
                dict.fromkeys(task.site for task in tasks),
                tuple(dict.fromkeys([*item["inputs"], *item["back"]])),
                not fold and _is_passed(tasks[0]),
            )
        )
    return merge(graph_links(taskgraph.graph), _links(taskgraph.graph, items))


def fold_key(item: Mapping[str, Any]) -> str:
    """Return the key of a fold: its node and its lane."""
    return f"fold:{item['node']}:{item['lane']}"


def _nodes(task: Task) -> Collection[int]:
    return dict.fromkeys([task.origin, *(origin for origin, _ in calls(task))])


def _is_passed(task: Task) -> bool:
    return isinstance(task, Move | Slice | Assemble)


def _links(graph: EinGraph, items: Sequence[_Item]) -> Links:
    readers: list[list[int]] = [[] for _ in items]
    for k, item in enumerate(items):
        for j in item.reads:
            readers[j].append(k)
    reads = [item.reads for item in items]
    found: Links = {}
    for k, item in enumerate(items):
        own = found.setdefault(item.key, [])
        for i in item.nodes:
            span = graph.nodes[i].origin.span
            owners = [node_key(i), *([span_key(span.start, span.stop)] if span is not None else [])]
            own += owners
            for owner in owners:
                found.setdefault(owner, []).append(item.key)
        for site in item.sites:
            found.setdefault(site_key(site), []).append(item.key)
        near = dict.fromkeys([*_reached(items, reads, k), *_reached(items, readers, k)])
        own += [items[j].key for j in near if j != k]
    return found


def _reached(items: Sequence[_Item], edges: Sequence[Sequence[int]], start: int) -> list[int]:
    """Return what is reached from `start`, not going on beyond what computes or reads inputs."""
    found: dict[int, None] = {}
    waiting = list(edges[start])
    while waiting:
        k = waiting.pop()
        if k in found:
            continue
        found[k] = None
        if items[k].passed:
            waiting += edges[k]
    return sorted(found)
