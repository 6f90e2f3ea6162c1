"""What the planner decides: a Plan (how every node is cut) and a Placement (where every block is).

Contract: both are values that know nothing of how they were found.  For a node cut into blocks,
`Placement.calls[node]` names the site of each kernel call, in the order of ``Partition.boxes``, and
`Placement.homes[node]` the site that holds each finished block of its output.  The blocks of the output are
those of the partition restricted to the output's labels; where aggregated labels are cut, several calls
contribute to one block.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from einsummable.errors import PlanError
from einsummable.graph import Box, EinGraph, Node
from einsummable.planner.partition import Partition


@dataclass(frozen=True, slots=True)
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


def out_parts(node: Node, partition: Partition) -> tuple[int, ...]:
    """Return how many parts each dimension of the output of `node` has."""
    return tuple(partition[label] if label else 1 for label in node.out)


def out_boxes(node: Node, partition: Partition) -> list[Box]:
    """Return the box of every block of the output of `node`, the last dimension fastest."""
    inside = [1] * len(node.space)
    names = [label for label, _ in node.space]
    out = {label for label in node.out if label}
    for d, label in enumerate(names):
        inside[d] = partition.parts[d] if label in out else 1
    boxes = Partition(partition.labels, tuple(inside)).boxes(node.space)
    return [node.out_box(box) for box in boxes]


def calls_of_block(node: Node, partition: Partition) -> list[int]:
    """Return for each kernel call, in the order of ``Partition.boxes``, the output block it contributes to.

    The output's labels come first in a space, so the calls of one block are consecutive.
    """
    blocks = prod(out_parts(node, partition))
    each = partition.blocks // max(blocks, 1)
    return [call // each for call in range(partition.blocks)]


@dataclass(frozen=True, slots=True)
class Placement:
    """Sites for all kernel calls and blocks of a plan (see the module's contract)."""

    sites: int
    calls: tuple[tuple[int, ...], ...]
    homes: tuple[tuple[int, ...], ...]

    def check(self, plan: Plan) -> None:
        """Raise `PlanError` unless every call and block of `plan` has a site that exists."""
        for i, (node, partition) in enumerate(zip(plan.graph.nodes, plan.partitions, strict=True)):
            wanted = (partition.blocks, prod(out_parts(node, partition)))
            if (len(self.calls[i]), len(self.homes[i])) != wanted:
                raise PlanError(f"%{i} has {wanted[0]} calls and {wanted[1]} blocks, the placement differs")
            if any(not 0 <= s < self.sites for s in (*self.calls[i], *self.homes[i])):
                raise PlanError(f"%{i} is placed on a site that does not exist: there are {self.sites}")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a tensor that already lives on sites is: the parts of each dimension, the site of each block."""

    parts: tuple[int, ...]
    sites: tuple[int, ...]
