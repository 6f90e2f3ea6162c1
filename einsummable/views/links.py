"""What belongs to what: the one vocabulary of selections, shared by all widgets and pictures.

Contract: a *key* names something that a reader can select.  An element of a picture has ``data-keys``, its
own key first, then those of the wholes that light it up, too.  Links say of a key which further keys are lit
with it; one step is enough, nobody follows links of links.

========================= =================================================================================
``node:3``                a node of the graph                 ``tensor:W``    what a node makes
``block:W:0,1``           a block of a tensor, by its index   ``site:2``      a site
``task:17``               a task of the TaskGraph             ``span:5-9``    characters of the formula
``label:3:j``             a label of a node's space           ``edge:1-3``    what node 3 reads of node 1
========================= =================================================================================

The same letter in two lines of a program may mean two things.  So a label is that of a node, and is linked
with the labels of other nodes through which its dimension passes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from einsummable.graph import EinGraph
from einsummable.nodes import Box
from einsummable.planner.plan import Placement, Plan
from einsummable.planner.strategies import shared_axes
from einsummable.taskgraph.tasks import Aggregate, Move, Read, Task, TaskGraph, calls

Links = dict[str, list[str]]


def node_key(i: int) -> str:
    """Return the key of node `i`."""
    return f"node:{i}"


def tensor_key(name: str) -> str:
    """Return the key of the tensor called `name` (see `EinGraph.name_of`)."""
    return f"tensor:{name}"


def block_key(name: str, index: Sequence[int]) -> str:
    """Return the key of the block at `index`, a position for each dimension."""
    return f"block:{name}:{','.join(map(str, index))}"


def task_key(task: int) -> str:
    """Return the key of a task."""
    return f"task:{task}"


def site_key(site: int) -> str:
    """Return the key of a site."""
    return f"site:{site}"


def label_key(i: int, label: str) -> str:
    """Return the key of a label of the space of node `i`."""
    return f"label:{i}:{label}"


def edge_key(source: int, target: int) -> str:
    """Return the key of what node `target` reads of node `source`."""
    return f"edge:{source}-{target}"


def span_key(start: int, stop: int) -> str:
    """Return the key of a range of characters of the formula."""
    return f"span:{start}-{stop}"


def keys(*names: str | None) -> str:
    """Return the ``data-keys`` of an element."""
    return " ".join(name for name in names if name)


def merge(*many: Mapping[str, Iterable[str]]) -> Links:
    """Return the links of all of `many`."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for some in many:
        for key, others in some.items():
            found[key].update(dict.fromkeys(others))
    return {key: list(others) for key, others in found.items()}


def graph_links(graph: EinGraph) -> Links:
    """Return the links among nodes, tensors, edges, labels and spans of the formula."""
    found: dict[str, list[str]] = defaultdict(list)
    for i, node in enumerate(graph.nodes):
        own, tensor = node_key(i), tensor_key(graph.name_of(i))
        edges = [edge_key(j, i) for j in dict.fromkeys(node.inputs)]
        found[own] += [tensor, *edges]
        found[tensor] += [own, *(edge_key(i, c) for c in graph.consumers[i])]
        if node.origin.span is not None:
            span = span_key(node.origin.span.start, node.origin.span.stop)
            found[own].append(span)
            found[tensor].append(span)
            found[span] += [own, tensor]
        for j in dict.fromkeys(node.inputs):
            found[edge_key(j, i)] += [node_key(j), own, tensor_key(graph.name_of(j))]
    return merge(found, label_links(graph))


def label_links(graph: EinGraph) -> Links:
    """Return the links of labels to those that are one dimension with them, to nodes and to tensors."""
    axes = shared_axes(graph)
    names = graph.names
    members: dict[tuple[int, str], list[tuple[int, str]]] = defaultdict(list)
    for place, axis in sorted(axes.items()):
        members[axis].append(place)
    found: Links = {}
    for place, axis in axes.items():
        same = members[axis]
        nodes = dict.fromkeys(i for i, _ in same)
        have = dict.fromkeys(i for i, label in same if label in graph.nodes[i].out)
        found[label_key(*place)] = [
            *(label_key(*p) for p in same if p != place),
            *map(node_key, nodes),
            *(tensor_key(names[i]) for i in have),
        ]
    return found


def task_links(taskgraph: TaskGraph) -> Links:
    """Return the links between tasks, and the nodes, tensors and spans that they belong to."""
    graph = taskgraph.graph
    names = graph.names
    found: dict[str, list[str]] = defaultdict(list)
    for t, task in enumerate(taskgraph.tasks):
        own = task_key(t)
        for i in dict.fromkeys([task.origin, *(origin for origin, _ in calls(task))]):
            span = graph.nodes[i].origin.span
            owners = [node_key(i), *([span_key(span.start, span.stop)] if span is not None else [])]
            found[own] += owners
            for owner in (*owners, tensor_key(names[i])):
                found[owner].append(own)
    return dict(found)


def block_links(plan: Plan, placement: Placement, taskgraph: TaskGraph) -> Links:
    """Return the links between blocks and the tasks that make, combine or move them, and to their nodes.

    A task belongs to every block that what it makes is a part of, where that is one box of a tensor.
    """
    graph = plan.graph
    edges = [placement.held_edges(plan, i) for i in range(len(graph.nodes))]
    names = graph.names
    found: dict[str, list[str]] = defaultdict(list)
    boxes: list[tuple[int, Box] | None] = []
    for t, task in enumerate(taskgraph.tasks):
        boxes.append(_made(graph, task, boxes))
        for i, box in _all_made(graph, task, boxes[-1]):
            for index in _indices(box, edges[i]):
                block = block_key(names[i], index)
                found[block].append(task_key(t))
                found[task_key(t)].append(block)
    for i, node in enumerate(graph.nodes):
        span = node.origin.span
        owners = [node_key(i), *([span_key(span.start, span.stop)] if span is not None else [])]
        for index in product(*(range(len(e) - 1) for e in edges[i])):
            found[block_key(names[i], index)] += owners
    return dict(found)


def _made(graph: EinGraph, task: Task, before: Sequence[tuple[int, Box] | None]) -> tuple[int, Box] | None:
    """Return the node and the box of it that `task` makes, None where that is not one box of one node."""
    match task:
        case Read(box=box):
            return task.origin, box
        case Move() | Aggregate():
            return before[task.inputs[0]]
        case _:
            made = calls(task)
            return (made[-1][0], graph.nodes[made[-1][0]].out_box(made[-1][1])) if made else None


def _all_made(graph: EinGraph, task: Task, last: tuple[int, Box] | None) -> list[tuple[int, Box]]:
    """Return what all calls of a task make, those of a fused one that nobody else sees included."""
    first = [(i, graph.nodes[i].out_box(ranges)) for i, ranges in calls(task)[:-1]]
    return [*first, *([last] if last is not None else [])]


def _indices(box: Box, edges: Sequence[Sequence[int]]) -> Iterable[tuple[int, ...]]:
    """Return the indices of the blocks that meet `box`."""
    ranges = []
    for (start, stop), borders in zip(box, edges, strict=True):
        first = max(bisect_right(borders, start) - 1, 0)
        ranges.append(range(first, max(min(bisect_left(borders, stop), len(borders) - 1), first + 1)))
    return product(*ranges)
