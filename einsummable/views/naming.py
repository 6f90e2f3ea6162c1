"""What a reader calls things: tensors, their labels, the formula of a node."""

from __future__ import annotations

from einsummable.graph import EinGraph
from einsummable.nodes import Concat, Einsummable, Gather, Input, Node, Reshape, Select
from einsummable.planner.partition import Partition


def labels(graph: EinGraph, i: int) -> tuple[str, ...]:
    """Return a name for each dimension of the output of node `i`.

    An input has no labels of its own, so it borrows those of the first node that reads it plainly.
    """
    node = graph.nodes[i]
    match node:
        case Input():
            for j in graph.consumers[i]:
                reader = graph.nodes[j]
                for k, source in enumerate(reader.inputs):
                    used = read_labels(reader, k)
                    if source == i and len(set(used)) == len(used):
                        return used
            return node.out
        case Reshape():
            return _grouped(node, node.groups_out)
        case _:
            return node.out


def read_labels(node: Node, k: int) -> tuple[str, ...]:
    """Return how `node` indexes its input `k`: a label or an index for each dimension."""
    match node:
        case Einsummable():
            return node.labels[k]
        case Reshape():
            return _grouped(node, node.groups_in)
        case Select():
            return tuple(map(str, node.positions))
        case Concat():
            return node.out
        case Gather():
            return node.labels[k]
    return ()


def _indexed(graph: EinGraph, node: Gather, k: int) -> str:
    labels = node.labels[k]
    return graph.name_of(node.inputs[k]) + (f"[{','.join(labels)}]" if labels else "")


def _grouped(node: Reshape, groups: tuple[int, ...]) -> tuple[str, ...]:
    names, at = [], 0
    for n in groups:
        atoms = " ".join(label for label, _ in node.space[at : at + n])
        names.append(atoms if n == 1 else f"({atoms})")
        at += n
    return tuple(names)


def space_labels(graph: EinGraph, i: int) -> tuple[str, ...]:
    """Return a name for each label of the iteration space of node `i`."""
    node = graph.nodes[i]
    return labels(graph, i) if isinstance(node, Input) else tuple(label for label, _ in node.space)


def tensor(graph: EinGraph, i: int) -> str:
    """Return the output of node `i` as a reader writes it: ``H[b,h]``."""
    shown = labels(graph, i)
    return graph.name_of(i) + (f"[{','.join(shown)}]" if shown else "")


def formula(graph: EinGraph, i: int) -> str:
    """Return what node `i` computes from its inputs, by name: ``sum[d] X*W``; nothing for an input."""
    node = graph.nodes[i]
    match node:
        case Einsummable():
            joined = node.join.format([graph.name_of(j) for j in node.inputs])
            return f"{node.aggregate}[{','.join(node.aggregated)}] {joined}" if node.aggregate else joined
        case Reshape() | Select():
            inner = ",".join(read_labels(node, 0))
            return f"{graph.name_of(node.inputs[0])}[{inner}]"
        case Concat():
            label, parts = node.out[node.axis], ", ".join(graph.name_of(j) for j in node.inputs)
            return f"concat[{label}]({parts})"
        case Gather():
            taken = dict(
                zip(node.rows, (_indexed(graph, node, k) for k in range(1, len(node.inputs))), strict=True)
            )
            inner = ",".join(taken.get(label, label) for label in node.labels[0])
            return f"{graph.name_of(node.inputs[0])}[{inner}]"
    return ""


def cuts(names: tuple[str, ...], partition: Partition) -> str:
    """Return the labels that `partition` cuts, with their parts: ``i÷2 j÷4``."""
    found = [f"{name}÷{n}" for name, n in zip(names, partition.parts, strict=True) if n > 1]
    return " ".join(found) or "whole"
