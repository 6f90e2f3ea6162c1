"""Why a node is cut as it is, in a few words.

Contract: the words say what can be read off the plan: whose cut a node shares, what is summed in parts, which
inputs several calls read alike.  They do not repeat the search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from einsummable.graph import EinGraph
from einsummable.nodes import Einsummable, Gather, Input, Node
from einsummable.planner.candidates import light_nodes
from einsummable.planner.cost import in_labels, work
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Layout, Plan, out_parts


def reasons(
    plan: Plan,
    names: Sequence[str],
    layouts: Mapping[str, Layout] | None = None,
    pins: Mapping[str, object] | None = None,
) -> list[str]:
    """Return the reason for the cut of every node.

    Parameters
    ----------
    names
        What a reader calls the nodes.
    layouts, pins
        Inputs that lie on sites, and tensors whose cut was given, by name.
    """
    graph = plan.graph
    light = light_nodes([work(graph, i) for i in range(len(graph.nodes))], plan.p)
    found = []
    for i, node in enumerate(graph.nodes):
        if names[i] in (pins or {}):
            found.append("pinned")
        elif isinstance(node, Input):
            found.append("lies on sites so" if node.name in (layouts or {}) else _of_input(plan, i, names))
        else:
            found.append(_of_node(plan, i, names, light))
    return found


def _of_input(plan: Plan, i: int, names: Sequence[str]) -> str:
    graph = plan.graph
    if not graph.consumers[i]:
        return "nobody reads it"
    mine = plan.partitions[i].parts
    for reader in graph.consumers[i]:
        if mine in _wanted(graph, plan.partitions, i, reader):
            return f"as {names[reader]} reads it"
    for reader in graph.consumers[i]:
        for theirs in _wanted(graph, plan.partitions, i, reader):
            if all(a % b == 0 for a, b in zip(mine, theirs, strict=True)):
                return f"as {names[reader]} reads it, in shares"
    return "a compromise between its readers"


def _wanted(graph: EinGraph, cuts: Sequence[Partition], i: int, reader: int) -> list[tuple[int, ...]]:
    """Return the cuts of node `i` that its `reader` would read without taking blocks apart."""
    node = graph.nodes[reader]
    return [
        tuple(cuts[reader][label] if label else 1 for label in in_labels(node, k))
        for k, j in enumerate(node.inputs)
        if j == i
    ]


def _of_node(plan: Plan, i: int, names: Sequence[str], light: frozenset[int]) -> str:
    graph, node, cut = plan.graph, plan.graph.nodes[i], plan.partitions[i]
    if cut.blocks == 1:
        if plan.p == 1:
            return "one site"
        return "kept whole: little work" if i in light else "kept whole: cheaper than moving"
    copied = ", ".join(copies(node, cut, names))
    if copied:
        return copied
    for j in node.inputs:
        mine = _wanted(graph, plan.partitions, j, i)
        if not isinstance(graph.nodes[j], Input) and out_parts(graph.nodes[j], plan.partitions[j]) in mine:
            return f"cut like its input {names[j]}"
    for reader in graph.consumers[i]:
        if out_parts(node, cut) in _wanted(graph, plan.partitions, i, reader):
            return f"cut like its reader {names[reader]}"
    return "every call reads its own part"


def copies(node: Node, cut: Partition, names: Sequence[str]) -> list[str]:
    """Return what `cut` multiplies: ``W ×2``, ``partial sums of d ×4``."""
    found = {}
    for k, j in enumerate(node.inputs):
        mine = in_labels(node, k)
        times = prod(n for label, n in zip(cut.labels, cut.parts, strict=True) if label not in mine)
        if times > 1:
            found[names[j]] = f"{names[j]} ×{times}"
    if isinstance(node, Einsummable | Gather):
        summed = [label for label in node.aggregated if cut[label] > 1]
        if summed:
            what = {"sum": "partial sums of"}.get(node.aggregate, f"partial {node.aggregate} of")
            found[""] = f"{what} {','.join(summed)} ×{prod(cut[label] for label in summed)}"
    return list(found.values())
