"""Rematerialisation: an EinGraph that computes tensors a second time in place of keeping them.

Contract: an EinGraph to one with the same results.  Gradients read what was made long before; there is a
*moment*, about the loss, when most of that is held.  `rematerialise` lets some of it go: what reads it after
the moment reads a copy, made right before its first reader from what is kept.  `candidates` answers such
graphs, each of which holds clearly less at once than all before it and computes more again: one that keeps
matrix products and makes maps and reductions again, and some that keep what passes from one segment of the
nodes to the next and make all within a segment again (Chen et al., *Training deep nets with sublinear memory
cost*, 2016).  To a `GraphBuilder` equal nodes are one, so what one appends to these is no copy of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from itertools import accumulate
from math import prod

from einsummable.builder import check
from einsummable.errors import UnknownNameError, nearest
from einsummable.graph import EinGraph
from einsummable.nodes import Einsummable, Gather, Input, Node, Origin
from einsummable.work import flops

#: Into how many segments the nodes before the moment are cut.
SEGMENTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
#: A graph that holds more than this part of what another holds is not worth its further work.
WORTH = 0.9


def rematerialise(graph: EinGraph, names: Collection[str]) -> EinGraph:
    """Return `graph` with some tensors computed again for those that read them after the moment.

    Parameters
    ----------
    names
        What `EinGraph.name_of` calls them.  What nothing reads after the moment stays as it is.

    Raises
    ------
    UnknownNameError
        No tensor has such a name.
    """
    known = {graph.name_of(i): i for i in range(len(graph.nodes))}
    for name in names:
        if name not in known:
            raise UnknownNameError(f"the program has no tensor called {name!r}", notes=nearest(name, known))
    at = moment(graph)
    return _keeping(graph, at, _held_over(graph, at) - {known[name] for name in names})


def candidates(graph: EinGraph) -> list[EinGraph]:
    """Return graphs that hold less at once than `graph`, those that compute least again first."""
    at = moment(graph)
    held = _held_over(graph, at)
    kept = [_products(graph, held), *(_passed_on(graph, at, held, n) for n in SEGMENTS if n <= len(held))]
    found, least = [], peak(graph)
    for made in sorted((_keeping(graph, at, keep) for keep in kept), key=_work):
        if (most := peak(made)) < WORTH * least:
            found.append(made)
            least = most
    return found


def computed_again(graph: EinGraph) -> tuple[int, ...]:
    """Return the nodes that compute what a node before them did."""
    first: dict[Node, int] = {}
    same: list[int] = []
    for i, node in enumerate(graph.nodes):
        key = replace(node, inputs=tuple(same[j] for j in node.inputs)) if node.inputs else node
        same.append(first.setdefault(key, i))
    return tuple(i for i, j in enumerate(same) if i != j)


# --------------------------------------------------------------------------------- what is held when


def peak(graph: EinGraph) -> int:
    """Return the most bytes of tensors that are held at once, made one after another; inputs do not count."""
    results, end = {o for _, o in graph.outputs}, len(graph.nodes)
    return max(_bytes(graph, lambda i: end if i in results else _last(graph, i)), default=0)


def moment(graph: EinGraph) -> int:
    """Return the node at which most is held that could be let go: a scalar, if that is about as good."""
    always = _always(graph)
    held = _bytes(graph, lambda i: -1 if i in always else _last(graph, i))
    most = max(range(len(held)), key=held.__getitem__, default=0)
    scalars = [i for i, node in enumerate(graph.nodes) if not node.shape and not isinstance(node, Input)]
    best = max(scalars, key=held.__getitem__, default=most)
    return best if held and 2 * held[best] >= held[most] else most


def _always(graph: EinGraph) -> frozenset[int]:
    """Return what is always there: inputs, and results."""
    inputs = (i for i, node in enumerate(graph.nodes) if isinstance(node, Input))
    return frozenset([*inputs, *(o for _, o in graph.outputs)])


def _last(graph: EinGraph, i: int) -> int:
    return max(graph.consumers[i], default=i)


def _nbytes(node: Node) -> int:
    return prod(node.shape) * node.dtype.itemsize


def _bytes(graph: EinGraph, last: Callable[[int], int], of: Iterable[int] | None = None) -> list[int]:
    """Return the bytes held while each node is made, where node `i` is held until node ``last(i)`` is made.

    `of` are the nodes that count; inputs never do.
    """
    end = len(graph.nodes)
    change = [0] * (end + 1)
    for i in range(end) if of is None else of:
        until = min(last(i) + 1, end)
        if until > i and not isinstance(graph.nodes[i], Input):
            change[i] += _nbytes(graph.nodes[i])
            change[until] -= _nbytes(graph.nodes[i])
    return list(accumulate(change))[:-1]


def _held_over(graph: EinGraph, at: int, until: int | None = None) -> frozenset[int]:
    """Return the nodes up to `at` that are read later, by `until` at the latest, and are not always there."""
    until, always = len(graph.nodes) if until is None else until, _always(graph)
    return frozenset(
        i for i in range(at + 1) if i not in always and any(at < r <= until for r in graph.consumers[i])
    )


# ----------------------------------------------------------------------------------- what is kept


def _products(graph: EinGraph, held: frozenset[int]) -> frozenset[int]:
    """Return the matrix products, and their like, from which all of `held` can be made again."""
    always, found, stack, seen = _always(graph), set(), list(held), set(held)
    while stack:
        i = stack.pop()
        if _is_product(graph, i):
            found.add(i)
            continue
        fresh = [j for j in graph.nodes[i].inputs if j not in seen and j not in always]
        seen.update(fresh)
        stack += fresh
    return frozenset(found)


def _is_product(graph: EinGraph, i: int) -> bool:
    """Return whether a node takes more steps than it reads and makes elements."""
    node = graph.nodes[i]
    if not isinstance(node, Einsummable):
        return isinstance(node, Gather)
    touched = max(prod(graph.nodes[j].shape) for j in (i, *node.inputs))
    return prod(n for _, n in node.space) > touched


def _passed_on(graph: EinGraph, at: int, held: frozenset[int], segments: int) -> frozenset[int]:
    """Return what passes from one of so many segments before the moment to the next, at narrow places."""
    early = [i for i in range(at) if i not in _always(graph)]

    def last(i: int) -> int:
        return max((r for r in graph.consumers[i] if r <= at), default=i)

    passing = _bytes(graph, lambda i: last(i) - 1, early)
    extra = _bytes(graph, lambda i: last(i) - 1, (i for i in early if i not in held))
    made = list(accumulate(_nbytes(graph.nodes[i]) if i in held else 0 for i in range(at)))
    kept: set[int] = set()
    for k in range(1, segments):
        goal, reach = made[-1] * k / segments, made[-1] / (2 * segments)
        near = [t for t in range(at) if abs(made[t] - goal) <= reach]
        if near:
            cut = min(near, key=lambda t: (passing[t], extra[t], abs(made[t] - goal)))
            kept |= _held_over(graph, cut, at)
    return frozenset(kept)


def _work(graph: EinGraph) -> int:
    return sum(map(flops, graph.nodes))


def _keeping(graph: EinGraph, at: int, keep: frozenset[int]) -> EinGraph:
    """Return `graph` with copies, for the nodes after `at`, of what they read of before and nobody keeps."""
    there = keep | _always(graph)
    nodes: list[Node] = []
    new: dict[int, int] = {}
    copies: dict[int, int] = {}

    def found(j: int, late: bool) -> int:
        return copies[j] if late and j <= at and j not in there else new[j]

    for i, node in enumerate(graph.nodes):
        if i > at:
            for j in _missing(graph, [j for j in node.inputs if j <= at], there | copies.keys()):
                again = graph.nodes[j]
                inputs = tuple(found(k, True) for k in again.inputs)
                copies[j] = len(nodes)
                nodes.append(replace(again, inputs=inputs, origin=Origin(again.origin.span)))
        new[i] = len(nodes)
        inputs = tuple(found(j, i > at) for j in node.inputs)
        nodes.append(replace(node, inputs=inputs) if inputs else node)
    outputs = tuple((name, new[o]) for name, o in graph.outputs)
    return _needed(EinGraph(tuple(nodes), outputs, graph.params, graph.text))


def _missing(graph: EinGraph, wanted: list[int], there: Collection[int]) -> list[int]:
    """Return what is to be computed, in order, to have nodes `wanted` beside those that are there."""
    found: set[int] = set()
    stack = list(wanted)
    while stack:
        i = stack.pop()
        if i not in there and i not in found:
            found.add(i)
            stack += graph.nodes[i].inputs
    return sorted(found)


def _needed(graph: EinGraph) -> EinGraph:
    """Return `graph` without what no result needs any more."""
    needed = {o for _, o in graph.outputs}
    for i in range(len(graph.nodes) - 1, -1, -1):
        if i in needed:
            needed.update(graph.nodes[i].inputs)
    kept = [i for i, node in enumerate(graph.nodes) if i in needed or isinstance(node, Input)]
    new = {old: i for i, old in enumerate(kept)}
    nodes = (graph.nodes[i] for i in kept)
    made = EinGraph(
        tuple(replace(n, inputs=tuple(new[j] for j in n.inputs)) if n.inputs else n for n in nodes),
        tuple((name, new[o]) for name, o in graph.outputs),
        graph.params,
        graph.text,
    )
    check(made)
    return made
