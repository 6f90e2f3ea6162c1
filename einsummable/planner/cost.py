"""What a cut costs: the published model in elements, and the model of bytes that really move.

Contract: plain functions of one node and its partition, or of one tensor and two cuts; no search, no numpy.
They are what the tables of `tables` must agree with, and what a reader checks by hand.

The published model (EinDecomp) charges a node's *join* with all elements its kernel calls read, its
*aggregation* with the partial results that are combined, and a tensor that is cut one way and read another
with a *repartition*; where anything lives plays no part.  The model of moved bytes assumes one site a call,
equal calls on equal sites, and that a site keeps of each tensor the part it already holds.

>>> repartition_cost((16, 16), (2, 4), (4, 2))
768.0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from einsummable.graph import EinGraph, Einsummable, Input, Node, Reshape, Select, whole
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Layout, out_parts
from einsummable.scalar import Call


def in_labels(node: Node, k: int) -> tuple[str, ...]:
    """Return for each dimension of input `k` the label whose cut cuts it, ``""`` where none does."""
    match node:
        case Einsummable():
            return node.labels[k]
        case Reshape():
            labels, at = [], 0
            for n in node.groups_in:
                labels.append(node.space[at][0] if n else "")
                at += n
            return tuple(labels)
        case Select():
            return tuple(p.label if p.label and not p.param else "" for p in node.positions)
        case Input():
            return ()


def read_shape(node: Node, k: int) -> tuple[int, ...]:
    """Return the extents of the part of input `k` that the whole of `node` reads."""
    return tuple(stop - start for start, stop in node.in_box(k, whole([n for _, n in node.space])))


def flops(node: Node) -> int:
    """Return the scalar operations that `node` does: those of its join and its aggregate, at least one.

    Reshapes and selections copy; each element counts as one operation.
    """
    match node:
        case Einsummable():
            each = sum(isinstance(op, Call) for op in node.join.ops) + (node.aggregate is not None)
            return prod(n for _, n in node.space) * max(each, 1)
        case Reshape() | Select():
            return prod(node.shape)
        case Input():
            return 0


# ------------------------------------------------------------------------------ the published model


def join_cost(node: Node, cut: Partition) -> int:
    """Return the elements that all kernel calls together read: ``Σ |T| · Π parts of labels not in T``.

    A node of one input only, a map or a reduction, is charged too.
    """
    return sum(
        prod(read_shape(node, k))
        * prod(n for label, n in zip(cut.labels, cut.parts, strict=True) if label not in in_labels(node, k))
        for k in range(len(node.inputs))
    )


def aggregation_cost(node: Node, cut: Partition) -> int:
    """Return the elements of partial results to combine: ``|Z| · (Π parts of aggregated labels - 1)``."""
    if not isinstance(node, Einsummable):
        return 0
    return prod(node.shape) * (prod(cut[label] for label in node.aggregated) - 1)


def repartition_cost(shape: tuple[int, ...], have: tuple[int, ...], want: tuple[int, ...]) -> float:
    """Return the elements handled when a tensor of `shape` that is cut as `have` is cut as `want` instead.

    Every block of the first cut is taken apart and every block of the second put together from the pieces:
    ``|T|·(n_have/n_both) + |T|·(n_want/n_both - 1)`` with ``n`` the size of a block; nothing for equal cuts.
    """
    if have == want:
        return 0.0
    both = prod(map(max, have, want))
    return float(prod(shape) * (both / prod(have) + both / prod(want) - 1))


# -------------------------------------------------------------------------- bytes that really move


def aggregation_bytes(node: Node, cut: Partition) -> int:
    """Return the bytes of partial results that travel to the site where they are combined."""
    return 0 if isinstance(node, Input) else aggregation_cost(node, cut) * node.dtype.itemsize


def holders(cut: Partition, layout: Layout | None = None) -> int:
    """Return how many sites hold parts of a tensor: those of its layout, else one a call of its node.

    Where partial results are combined, each site that made one ends with a share of the block.
    """
    return cut.blocks if layout is None else len(set(layout.sites))


def input_bytes(source: Node, have: tuple[int, ...], held: int, node: Node, k: int, cut: Partition) -> float:
    """Return the bytes of input `k` that travel when `node` is cut as `cut` and finds it cut as `have`.

    Each call reads its box.  Of that its own site holds at most the overlap of a block of each cut, at most
    `held` sites hold anything, and all of them together hold each element once.  Replicas count: a box that
    ``r`` sites read is received ``r - 1`` times at least.
    """
    parts = [cut[label] if label else 1 for label in in_labels(node, k)]
    read = read_shape(node, k)
    each = prod(n / d for n, d in zip(read, parts, strict=True))
    overlap = prod(
        min(extent / a, n / d) for extent, a, n, d in zip(source.shape, have, read, parts, strict=True)
    )
    # Where a site holds several blocks, they are assumed to be neighbours.
    mine = min(overlap * max(prod(have) / held, 1.0), each)
    local = min(min(held, cut.blocks) * mine, prod(read), each * cut.blocks)
    return (each * cut.blocks - local) * source.dtype.itemsize


def node_bytes(
    graph: EinGraph, cuts: Sequence[Partition], i: int, layouts: Mapping[str, Layout] | None = None
) -> float:
    """Return the bytes that node `i` of a plan makes travel: its inputs, and its partial results."""
    node = graph.nodes[i]
    moved = float(aggregation_bytes(node, cuts[i]))
    for k, j in enumerate(node.inputs):
        source = graph.nodes[j]
        layout = (layouts or {}).get(source.name) if isinstance(source, Input) else None
        held = holders(cuts[j], layout)
        moved += input_bytes(source, out_parts(source, cuts[j]), held, node, k, cuts[i])
    return moved


def moved_bytes(
    graph: EinGraph, cuts: Sequence[Partition], layouts: Mapping[str, Layout] | None = None
) -> float:
    """Return the bytes that a plan moves; `cuts` has a partition for every node of `graph`."""
    return sum(node_bytes(graph, cuts, i, layouts) for i in range(len(graph.nodes)))
