"""Small tensors in fewer, larger pieces: what hardly counts in bytes should not count in messages either.

Contract: `gathered` answers a plan that moves next to no more bytes.  A node that hardly counts is cut as an
input of it comes, where that makes fewer blocks: the statistics of a normalisation, say, are then summed up
on one site for each block of rows and sent out whole, not scattered over all sites and gathered in pieces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from einsummable.graph import EinGraph
from einsummable.nodes import Input, Node
from einsummable.planner.candidates import light_nodes
from einsummable.planner.cost import in_labels, is_product, moved_bytes, tensor_bytes, work
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Layout, Plan, out_parts

#: What all light nodes together may add to the bytes that move.
SHARE = 1e-3


def gathered(plan: Plan, layouts: Mapping[str, Layout], fixed: Collection[int]) -> Plan:
    """Return `plan` with light nodes in fewer blocks; nodes of `fixed` stay as they are."""
    graph, cuts = plan.graph, list(plan.partitions)
    light = light_nodes([work(graph, i) for i in range(len(cuts))], plan.p)
    free = [i for i in sorted(light) if i not in fixed and not isinstance(graph.nodes[i], Input)]
    for i in free:
        old = cuts[i]
        allowed = _around(graph, cuts, i, layouts) + SHARE * plan.cost / len(free)
        for cut in sorted(_as_it_comes(graph, cuts, i), key=lambda cut: cut.blocks):
            cuts[i] = cut
            if cut.blocks >= old.blocks or _around(graph, cuts, i, layouts) <= allowed:
                break
        if cuts[i].blocks >= old.blocks:
            cuts[i] = old
    if tuple(cuts) == plan.partitions:
        return plan
    return replace(plan, partitions=tuple(cuts), cost=moved_bytes(graph, cuts, layouts))


def _as_it_comes(graph: EinGraph, cuts: Sequence[Partition], i: int) -> Iterator[Partition]:
    """Yield the cuts of node `i` by which it takes an input as that is made, and its own last."""
    node = graph.nodes[i]
    for k, j in enumerate(node.inputs):
        source = graph.nodes[j]
        if not isinstance(source, Input) and not is_product(node):
            yield _following(node, k, out_parts(source, cuts[j]))
    yield cuts[i]


def _following(node: Node, k: int, parts: Sequence[int]) -> Partition:
    """Return the cut of `node` that reads its input `k` in `parts`, as far as its labels may be cut so."""
    wanted = dict(zip(in_labels(node, k), parts, strict=True))
    names = tuple(label for label, _ in node.space)
    most = {label: max(n, 1) for label, n in node.space}
    allowed = (min(wanted.get(x, 1), most[x]) if x in node.cuttable else 1 for x in names)
    return Partition(names, tuple(allowed))


def _around(graph: EinGraph, cuts: Sequence[Partition], i: int, layouts: Mapping[str, Layout]) -> float:
    """Return the bytes that node `i` and what it reads make travel."""
    return sum(tensor_bytes(graph, cuts, j, layouts) for j in {i, *graph.nodes[i].inputs})
