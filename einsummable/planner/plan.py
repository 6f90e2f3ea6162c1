"""What the planner decides: a Plan (how every node is cut) and a Placement (where every block is).

Contract: both are values that know nothing of how they were found.  For a node cut into blocks,
`Placement.calls[node]` names the site of each kernel call, in the order of ``Partition.boxes``, and
`Placement.homes[node]` the site that holds each finished block of its output.  The blocks of the output are
those of the partition restricted to the output's labels; where aggregated labels are cut, several calls
contribute to one block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from einsummable.errors import PlanError
from einsummable.graph import EinGraph
from einsummable.nodes import Box, Einsummable, Gather, Input, Node
from einsummable.planner.partition import Partition, cut


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """A partition for every node of a graph.

    Attributes
    ----------
    partitions
        By node id; the labels of each are those of the node's iteration space, in order.
    p
        The number of kernel calls that was asked for.
    strategy
        The name of what found it: ``eindecomp``, ``single site``, ``data parallel`` …
    cost
        What the strategy minimised, in its own unit (elements for the published model).
    """

    graph: EinGraph
    partitions: tuple[Partition, ...]
    p: int
    strategy: str = "eindecomp"
    cost: float = 0.0

    def check(self) -> None:
        """Raise `PlanError` unless every node has a partition of its own space."""
        if len(self.partitions) != len(self.graph.nodes):
            raise PlanError(f"{len(self.partitions)} partitions are given for {len(self.graph.nodes)} nodes")
        for node, partition in zip(self.graph.nodes, self.partitions, strict=True):
            partition.check(node.space, node.cuttable)

    def __str__(self) -> str:
        lines = [f"plan by {self.strategy}, p = {self.p}"]
        for i, (node, partition) in enumerate(zip(self.graph.nodes, self.partitions, strict=True)):
            lines.append(f"%{i} {self.graph.name_of(i)}: {partition}  ({partition.blocks} calls)  {node}")
        return "\n".join(lines)

    __repr__ = __str__


def out_parts(node: Node, partition: Partition) -> tuple[int, ...]:
    """Return how many parts each dimension of the output of `node` has."""
    return tuple(partition[label] if label else 1 for label in node.out)


def grid_edges(shape: Sequence[int], parts: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the borders of near-equal blocks of a tensor of `shape`: a start and every block's stop."""
    return [(0, *(stop for _, stop in cut(n, k))) for n, k in zip(shape, parts, strict=True)]


def out_edges(node: Node, partition: Partition) -> list[tuple[int, ...]]:
    """Return the borders of the output's blocks in each dimension: a start and every block's stop."""
    cuts = [cut(n, parts) for (_, n), parts in zip(node.space, partition.parts, strict=True)]
    ranges, names = [c[0] for c in cuts], [label for label, _ in node.space]
    edges = []
    for d, label in enumerate(node.out):
        at = names.index(label) if label else -1
        spans = (
            [node.out_box((*ranges[:at], r, *ranges[at + 1 :]))[d] for r in cuts[at]] if label else [(0, 1)]
        )
        edges.append((spans[0][0], *(stop for _, stop in spans)))
    return edges


def out_boxes(node: Node, partition: Partition) -> list[Box]:
    """Return the box of every block of the output of `node`, the last dimension fastest."""
    return list(product(*(pairwise(edges) for edges in out_edges(node, partition))))


def calls_of_block(node: Node, partition: Partition) -> list[int]:
    """Return for each kernel call, in the order of ``Partition.boxes``, the output block it contributes to.

    The output's labels come first in a space, so the calls of one block are consecutive.
    """
    blocks = prod(out_parts(node, partition))
    each = partition.blocks // max(blocks, 1)
    return [call // each for call in range(partition.blocks)]


@dataclass(frozen=True, slots=True, repr=False)
class Placement:
    """Sites for all kernel calls and blocks of a plan (see the module's contract).

    Attributes
    ----------
    calls, homes
        By node id: the site of each kernel call, the home of each finished block.
    scatter
        By node id (or nothing at all): where partial results of a block come from several sites, it may be
        finished in smaller blocks, each at a home of its own (a reduce-scatter).  Then these are the parts of
        each dimension of the output, multiples of those of the plan, and `homes` are those of the smaller
        blocks; else this is empty.
    """

    sites: int
    calls: tuple[tuple[int, ...], ...]
    homes: tuple[tuple[int, ...], ...]
    scatter: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        lines = [f"placement on {self.sites} sites"]
        for i, (calls, homes) in enumerate(zip(self.calls, self.homes, strict=True)):
            lines.append(f"%{i}: calls on {_few(calls)}; blocks on {_few(homes)}")
        return "\n".join(lines)

    __repr__ = __str__

    def held_parts(self, plan: Plan, i: int) -> tuple[int, ...]:
        """Return how many parts each dimension of node `i` is held in: those that `homes` are for."""
        scattered = self.scatter[i] if self.scatter else ()
        return scattered or out_parts(plan.graph.nodes[i], plan.partitions[i])

    def held_edges(self, plan: Plan, i: int) -> list[tuple[int, ...]]:
        """Return the borders, in each dimension, of the blocks that `homes` are for."""
        node = plan.graph.nodes[i]
        if not (self.scatter and self.scatter[i]):
            return out_edges(node, plan.partitions[i])
        return grid_edges(node.shape, self.scatter[i])

    def check(self, plan: Plan) -> None:
        """Raise `PlanError` unless every call and block of `plan` has a site that exists."""
        for i, (node, partition) in enumerate(zip(plan.graph.nodes, plan.partitions, strict=True)):
            self._check_scatter(i, node, partition)
            wanted = (partition.blocks, prod(self.held_parts(plan, i)))
            if (len(self.calls[i]), len(self.homes[i])) != wanted:
                raise PlanError(f"%{i} has {wanted[0]} calls and {wanted[1]} blocks, the placement differs")
            if any(not 0 <= s < self.sites for s in (*self.calls[i], *self.homes[i])):
                raise PlanError(f"%{i} is placed on a site that does not exist: there are {self.sites}")

    def _check_scatter(self, i: int, node: Node, partition: Partition) -> None:
        finer, coarser = self.scatter[i] if self.scatter else (), out_parts(node, partition)
        if not finer:
            return
        fits = len(finer) == len(coarser) and all(
            k > 0 and k % m == 0 and k <= max(n, 1)
            for k, m, n in zip(finer, coarser, node.shape, strict=True)
        )
        if not fits or not isinstance(node, Einsummable | Gather):
            raise PlanError(f"%{i} in blocks {coarser} cannot be scattered into {finer}")


def _few(sites: tuple[int, ...]) -> str:
    shown = ",".join(map(str, sites[:16]))
    return shown + (f" … ({len(sites)} in all)" if len(sites) > 16 else "")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a tensor that already lives on sites is: the parts of each dimension, the site of each block."""

    parts: tuple[int, ...]
    sites: tuple[int, ...]

    def check(self, node: Input, sites: int) -> None:
        """Raise `PlanError` unless it is a layout of `node` on `sites` sites."""
        fits = len(self.parts) == len(node.shape) and all(
            1 <= k <= max(n, 1) for k, n in zip(self.parts, node.shape, strict=True)
        )
        if not fits or len(self.sites) != prod(self.parts):
            raise PlanError(
                f"{node.name} of shape {node.shape} cannot lie in parts {self.parts} on sites {self.sites}"
            )
        if any(not 0 <= s < sites for s in self.sites):
            raise PlanError(f"{node.name} lies on a site that does not exist: there are {sites}")
