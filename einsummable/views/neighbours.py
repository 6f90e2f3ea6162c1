"""Which tasks belong to a task: those whose blocks it reads and those that read its block.

Contract: links as in `links`.  What only looks at blocks, copies or moves them is passed through and belongs,
too; so a kernel call is lit together with the moves that feed it and the calls that these come from.
"""

from __future__ import annotations

from collections.abc import Sequence

from einsummable.taskgraph.tasks import Assemble, Move, Slice, TaskGraph, calls
from einsummable.views.links import Links, graph_links, merge, node_key, site_key, span_key, task_key


def neighbour_links(taskgraph: TaskGraph, *, each: bool = True) -> Links:
    """Return the links of nodes, spans, tasks and sites.

    Parameters
    ----------
    each
        Whether tasks have links of their own; without, a picture has to know itself what a task belongs to.
    """
    found = graph_links(taskgraph.graph)
    return merge(found, _tasks(taskgraph)) if each else found


def _tasks(taskgraph: TaskGraph) -> Links:
    graph = taskgraph.graph
    inputs = [tuple(dict.fromkeys(task.inputs)) for task in taskgraph.tasks]
    found: Links = {}
    for t, task in enumerate(taskgraph.tasks):
        own = found[task_key(t)] = []
        for i in dict.fromkeys([task.origin, *(origin for origin, _ in calls(task))]):
            span = graph.nodes[i].origin.span
            owners = [node_key(i), *([span_key(span.start, span.stop)] if span is not None else [])]
            own += owners
            for owner in owners:
                found.setdefault(owner, []).append(task_key(t))
        found.setdefault(site_key(task.site), []).append(task_key(t))
        near = dict.fromkeys([*_reached(taskgraph, inputs, t), *_reached(taskgraph, taskgraph.consumers, t)])
        own += map(task_key, near)
    return found


def _reached(taskgraph: TaskGraph, edges: Sequence[Sequence[int]], start: int) -> list[int]:
    """Return what is reached from `start`, not going on beyond tasks that compute or read inputs."""
    found: dict[int, None] = {}
    waiting = list(edges[start])
    while waiting:
        t = waiting.pop()
        if t in found:
            continue
        found[t] = None
        if isinstance(taskgraph.tasks[t], Move | Slice | Assemble):
            waiting += edges[t]
    return sorted(found)
