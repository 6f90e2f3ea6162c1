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
from dataclasses import dataclass
from math import prod

from einsummable.graph import EinGraph
from einsummable.nodes import Concat, Einsummable, Gather, Input, Node, Reshape, Select, whole
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Layout, out_parts
from einsummable.work import flops, operations

#: Operations that take about as long as to read or write a byte of memory, on the processors of today.
BYTE = 16


def in_labels(node: Node, k: int) -> tuple[str, ...]:
    """Return for each dimension of input `k` the label whose cut cuts it, ``""`` where none does."""
    match node:
        case Einsummable() | Gather():
            return node.labels[k]
        case Concat():
            return node.out
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


def is_product(node: Node) -> bool:
    """Return whether `node` is a contraction of its two inputs, a matrix product on every block."""
    return isinstance(node, Einsummable) and node.is_contraction and len(node.inputs) == 2


def read_shape(node: Node, k: int) -> tuple[int, ...]:
    """Return the extents of the part of input `k` that the whole of `node` reads."""
    return tuple(stop - start for start, stop in node.in_box(k, whole([n for _, n in node.space])))


def work(graph: EinGraph, i: int) -> int:
    """Return how long node `i` keeps sites busy, in operations: its own, and `BYTE` for each byte touched."""
    node = graph.nodes[i]
    if isinstance(node, Input):
        return 0
    touched = prod(node.shape) * node.dtype.itemsize
    for k, j in enumerate(node.inputs):
        looked_up = isinstance(node, Gather) and k == 0  # of a table only what is taken is touched
        touched += prod(node.shape if looked_up else read_shape(node, k)) * graph.nodes[j].dtype.itemsize
    return operations(node) + BYTE * touched


def balance(graph: EinGraph, cuts: Sequence[Partition], p: int) -> float:
    """Return the most operations of one of `p` sites over the mean, if the largest calls all fall on it."""
    most = total = 0.0
    for node, cut in zip(graph.nodes, cuts, strict=True):
        points = prod(n for _, n in node.space)
        block = prod(-(-n // parts) for (_, n), parts in zip(node.space, cut.parts, strict=True))
        most += flops(node) * block * -(-cut.blocks // p) / max(points, 1)
        total += flops(node)
    return most * p / total if total else 1.0


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
    if not isinstance(node, Einsummable | Gather):
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


@dataclass(frozen=True, slots=True)
class Form:
    """A tensor spread over sites: the parts of each dimension, and how many sites hold something.

    Fewer sites than blocks hold several neighbours each; with more, either each holds a whole block (a block
    is then there several times), or the sites that made partial results share what is there once.
    """

    parts: tuple[int, ...]
    holders: int
    once: bool = False

    @property
    def copies(self) -> float:
        """How often the tensor is there in all."""
        return 1.0 if self.once else max(self.holders / prod(self.parts), 1.0)


def form_of(node: Node, cut: Partition, layout: Layout | None = None) -> Form:
    """Return how the output of `node` is spread when it is made, or as an input lies.

    Where partial results are combined, each site that made one ends with a share of the block.
    """
    parts = out_parts(node, cut)
    return Form(parts, cut.blocks if layout is None else len(set(layout.sites)), once=True)


def form_read(node: Node, k: int, cut: Partition) -> Form:
    """Return how input `k` is spread when every call of `node` has what it reads."""
    return Form(tuple(cut[label] if label else 1 for label in in_labels(node, k)), cut.blocks)


def transfer(extents: Sequence[int], have: Form, read: Sequence[int], want: Form) -> float:
    """Return the elements that travel to bring a tensor of `extents` from one form into another.

    Of the first only a part of extents `read` may be wanted.  A site that is to hold a block of the second
    has of it at most its overlap with what it holds already, which is one block of the first; as many sites
    as both forms have may be so lucky, and all together they hold no element more often than it is there.
    """
    each = prod(n / d for n, d in zip(read, want.parts, strict=True))
    mine = prod(
        min(extent / a, n / d) for extent, a, n, d in zip(extents, have.parts, read, want.parts, strict=True)
    )
    mine = min(mine * max(prod(have.parts) / have.holders, 1.0), each)
    local = min(min(have.holders, want.holders) * mine, have.copies * prod(read), each * want.holders)
    return each * want.holders - local


def tensor_bytes(
    graph: EinGraph, cuts: Sequence[Partition], i: int, layouts: Mapping[str, Layout] | None = None
) -> float:
    """Return the bytes of the output of node `i` that travel, its partial results included.

    Where several nodes read it, one form is brought about for all of them, that of the output itself or of
    a reader, whichever costs least; each reader then takes from it what it needs besides.
    """
    node = graph.nodes[i]
    layout = (layouts or {}).get(node.name) if isinstance(node, Input) else None
    own = form_of(node, cuts[i], layout)
    wanted = [
        (read_shape(graph.nodes[reader], k), form_read(graph.nodes[reader], k, cuts[reader]))
        for reader in graph.consumers[i]
        for k, j in enumerate(graph.nodes[reader].inputs)
        if j == i
    ]

    def readers(have: Form) -> float:
        return sum(transfer(node.shape, have, read, want) for read, want in wanted)

    moved = readers(own)
    if len(wanted) > 1:
        shared = {Form(own.parts, prod(own.parts)), *(want for _, want in wanted)}
        moved = min(moved, *(transfer(node.shape, own, node.shape, f) + readers(f) for f in shared))
    return (aggregation_cost(node, cuts[i]) + moved) * node.dtype.itemsize


def moved_bytes(
    graph: EinGraph, cuts: Sequence[Partition], layouts: Mapping[str, Layout] | None = None
) -> float:
    """Return the bytes that a plan moves; `cuts` has a partition for every node of `graph`."""
    return sum(tensor_bytes(graph, cuts, i, layouts) for i in range(len(graph.nodes)))
