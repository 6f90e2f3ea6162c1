"""Named plans: what a person would write down by hand, on the same graph and the same scale as EinDecomp.

Contract: `named_plans(graph, p)` returns a checked `Plan` for each strategy that the graph has, with the
bytes of the moved model as its cost.  All cut a node into at most p blocks, along one or two labels:

single site        nothing is cut
data parallel      every node along the label that most nodes share, and that the fewest inputs have
tensor parallel    a contraction along an output label only its second operand has, the next along that
                   same label, now aggregated (columns, then rows); other nodes as their input is cut,
                   else along the batch or the sequence
sequence parallel  the same along a label that some node pairs with itself, as attention does positions
2-D                every node along the two longest labels of its output, √p parts each

Labels of different nodes are the same here where a dimension passes from one to the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isqrt

from einsummable.graph import EinGraph
from einsummable.nodes import Input, Node
from einsummable.planner.candidates import divisors
from einsummable.planner.cost import in_labels, is_product, moved_bytes
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Layout, Plan

#: A label of one node.
_Place = tuple[int, str]
#: How each node is cut, by label; nodes that are missing are whole.
_Cuts = dict[int, dict[str, int]]


def named_plans(graph: EinGraph, p: int, *, layouts: Mapping[str, Layout] | None = None) -> tuple[Plan, ...]:
    """Return the named plans that `graph` has, the plan for a single site first."""
    axes = shared_axes(graph)
    strategies: dict[str, Callable[[], _Cuts | None]] = {
        "single site": dict,
        "data parallel": lambda: _along(graph, axes, _batch(graph, axes), p),
        "tensor parallel": lambda: _tensor_parallel(graph, axes, p),
        "sequence parallel": lambda: _along(graph, axes, _sequence(graph, axes), p),
        "2-D": lambda: _two_dimensional(graph, p),
    }
    plans = []
    for name, find in strategies.items():
        cuts = find()
        if cuts is not None:
            plans.append(_plan(graph, cuts, p, name, layouts or {}))
    return tuple(plans)


def _plan(graph: EinGraph, cuts: _Cuts, p: int, name: str, layouts: Mapping[str, Layout]) -> Plan:
    chosen: list[Partition] = []
    for i, node in enumerate(graph.nodes):
        labels = tuple(label for label, _ in node.space)
        chosen.append(Partition(labels, tuple(cuts.get(i, {}).get(label, 1) for label in labels)))
    for i, node in enumerate(graph.nodes):
        if isinstance(node, Input):
            chosen[i] = Partition(chosen[i].labels, _as_read(graph, i, chosen, layouts.get(node.name)))
    plan = Plan(graph, tuple(chosen), p, name, moved_bytes(graph, tuple(chosen), layouts))
    plan.check()
    return plan


def _as_read(graph: EinGraph, i: int, chosen: list[Partition], layout: Layout | None) -> tuple[int, ...]:
    """Return the cut of input `i`: as it lies, else as its first reader reads it."""
    if layout is not None:
        return layout.parts
    shape = graph.nodes[i].shape
    for reader in graph.consumers[i]:
        labels = in_labels(graph.nodes[reader], graph.nodes[reader].inputs.index(i))
        read = (chosen[reader][label] if label else 1 for label in labels)
        # A concatenation may have more parts than one of its inputs has elements.
        return tuple(min(parts, max(n, 1)) for parts, n in zip(read, shape, strict=True))
    return (1,) * len(shape)


# ----------------------------------------------------------------------- labels across nodes


def shared_axes(graph: EinGraph) -> dict[_Place, _Place]:
    """Return for each label of each node one label that stands for all those it passes through."""
    parent: dict[_Place, _Place] = {}

    def find(a: _Place) -> _Place:
        while parent.setdefault(a, a) != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        return a

    for i, node in enumerate(graph.nodes):
        for label, _ in node.space:
            find((i, label))
        for k, j in enumerate(node.inputs):
            for mine, theirs in zip(in_labels(node, k), graph.nodes[j].out, strict=True):
                if mine and theirs:
                    parent[find((i, mine))] = find((j, theirs))
    return {a: find(a) for a in parent}


@dataclass(slots=True)
class _Axis:
    """How much of a graph has a label: computed nodes, inputs; whether a node has it twice; its extent."""

    nodes: int = 0
    inputs: int = 0
    twice: bool = False
    extent: int = 0


def _coverage(graph: EinGraph, axes: Mapping[_Place, _Place]) -> dict[_Place, _Axis]:
    """Return for each axis how much of the graph has it; axes of one element are left out."""
    found: dict[_Place, _Axis] = {}
    for i, node in enumerate(graph.nodes):
        mine = Counter(axes[i, label] for label, _ in node.space)
        for axis, times in mine.items():
            known = found.setdefault(axis, _Axis())
            known.nodes += not isinstance(node, Input)
            known.inputs += isinstance(node, Input)
            known.twice |= times > 1
        for label, extent in node.space:
            found[axes[i, label]].extent = max(found[axes[i, label]].extent, extent)
    return {axis: known for axis, known in found.items() if known.extent > 1}


def _batch(graph: EinGraph, axes: Mapping[_Place, _Place]) -> _Place | None:
    """Return the axis of data parallelism: of most nodes (two thirds at least), then of fewest inputs."""
    computed = sum(not isinstance(node, Input) for node in graph.nodes)
    count = {
        axis: known
        for axis, known in _coverage(graph, axes).items()
        if not known.twice and 3 * known.nodes >= 2 * computed
    }
    return min(count, key=lambda a: (-count[a].nodes, count[a].inputs, a), default=None)


def _sequence(graph: EinGraph, axes: Mapping[_Place, _Place]) -> _Place | None:
    """Return the axis that some node pairs with itself, as attention does positions; that of most nodes."""
    count = {axis: known for axis, known in _coverage(graph, axes).items() if known.twice}
    return min(count, key=lambda a: (-count[a].nodes, count[a].inputs, a), default=None)


# ---------------------------------------------------------------------------------- strategies


def _first(node: Node, i: int, axes: Mapping[_Place, _Place], axis: _Place | None, p: int) -> dict[str, int]:
    """Return the cut of node `i` along its first cuttable label on `axis`; empty where it has none."""
    for label, extent in node.space:
        if label in node.cuttable and axes[i, label] == axis:
            return {label: max(1, min(p, extent))}
    return {}


def _along(graph: EinGraph, axes: Mapping[_Place, _Place], axis: _Place | None, p: int) -> _Cuts | None:
    if axis is None:
        return None
    return {i: _first(node, i, axes, axis, p) for i, node in enumerate(graph.nodes)}


def _tensor_parallel(graph: EinGraph, axes: Mapping[_Place, _Place], p: int) -> _Cuts | None:
    """Return columns-then-rows cuts, None where no contraction has a label of its second operand only."""
    cuts: _Cuts = {}
    count, found = _coverage(graph, axes), False
    both = [axis for axis in (_batch(graph, axes), _sequence(graph, axes)) if axis is not None]
    batch = max(both, key=lambda axis: count[axis].extent, default=None)
    for i, node in enumerate(graph.nodes):
        if isinstance(node, Input):
            continue
        cuts[i] = _carried(graph, i, cuts, p)
        if cuts[i] and axes[i, next(iter(cuts[i]))] != batch:
            continue
        column = _column(node) if is_product(node) else None
        if column is not None:
            cuts[i], found = {column: max(1, min(p, dict(node.space)[column]))}, True
        elif not cuts[i]:
            cuts[i] = _first(node, i, axes, batch, p)
    return cuts if found else None


def _carried(graph: EinGraph, i: int, cuts: _Cuts, p: int) -> dict[str, int]:
    """Return the cut of node `i` along a label by which one of its inputs comes cut."""
    node = graph.nodes[i]
    for k, j in enumerate(node.inputs):
        for mine, theirs in zip(in_labels(node, k), graph.nodes[j].out, strict=True):
            if mine in node.cuttable and theirs in cuts.get(j, {}):
                return {mine: max(1, min(p, dict(node.space)[mine]))}
    return {}


def _column(node: Node) -> str | None:
    first, second = (in_labels(node, k) for k in range(2))
    return next((label for label in second if label in node.out and label not in first), None)


def _two_dimensional(graph: EinGraph, p: int) -> _Cuts:
    side = max(d for d in divisors(p) if d <= isqrt(p))
    cuts: _Cuts = {}
    for i, node in enumerate(graph.nodes):
        extents = {label: n for label, n in node.space if label in node.cuttable}
        longest = sorted((label for label in node.out if label in extents), key=lambda x: -extents[x])[:2]
        wanted = (p,) if len(longest) == 1 else (p // side, side)
        cuts[i] = {label: max(1, min(n, extents[label])) for label, n in zip(longest, wanted, strict=False)}
    return cuts
