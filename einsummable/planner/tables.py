"""The costs of `cost` for whole tables of candidates at once.

Contract: `rows` are candidate partitions of a node (see `candidates`), `have` are candidate cuts of a tensor,
one column a dimension.  A result has one entry a row, or one a pair of rows.  Each function here equals the
function of `cost` that its docstring names, at every entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from einsummable.nodes import Einsummable, Gather, Node
from einsummable.planner.cost import in_labels, read_shape
from einsummable.planner.plan import Layout


def out_rows(node: Node, rows: np.ndarray) -> np.ndarray:
    """Return how `rows` cut each dimension of the output (`plan.out_parts`)."""
    return _columns(node, rows, node.out)


def in_rows(node: Node, rows: np.ndarray, k: int) -> np.ndarray:
    """Return how `rows` cut each dimension of input `k`."""
    return _columns(node, rows, in_labels(node, k))


def _columns(node: Node, rows: np.ndarray, labels: tuple[str, ...]) -> np.ndarray:
    at = {label: d for d, (label, _) in enumerate(node.space)}
    table = np.ones((len(rows), len(labels)), np.int64)
    for column, label in enumerate(labels):
        if label:
            table[:, column] = rows[:, at[label]]
    return table


def join(node: Node, rows: np.ndarray) -> np.ndarray:
    """Return `cost.join_cost` of each row."""
    cost = np.zeros(len(rows))
    for k in range(len(node.inputs)):
        mine = in_labels(node, k)
        others = [d for d, (label, _) in enumerate(node.space) if label not in mine]
        cost += float(prod(read_shape(node, k))) * rows[:, others].prod(axis=1)
    return cost


def aggregation(node: Node, rows: np.ndarray) -> np.ndarray:
    """Return `cost.aggregation_cost` of each row."""
    if not isinstance(node, Einsummable | Gather):
        return np.zeros(len(rows))
    return float(prod(node.shape)) * (rows[:, len(node.out) :].prod(axis=1) - 1)


def repartition(shape: tuple[int, ...], have: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return `cost.repartition_cost` of each pair of rows of `have` and `want`."""
    both = np.ones((len(have), len(want)))
    same = np.ones((len(have), len(want)), bool)
    for a, b in zip(have.T, want.T, strict=True):
        both *= np.maximum(a[:, None], b[None, :])
        same &= a[:, None] == b[None, :]
    factor = both / have.prod(axis=1)[:, None] + both / want.prod(axis=1)[None, :] - 1
    return np.where(same, 0.0, prod(shape) * factor)


@dataclass(frozen=True, eq=False)
class Forms:
    """Candidates of `cost.Form`: parts (one column a dimension), holders and copies of each."""

    parts: np.ndarray
    holders: np.ndarray
    copies: np.ndarray

    def __len__(self) -> int:
        return len(self.parts)


def forms_of(node: Node, rows: np.ndarray, layout: Layout | None = None) -> Forms:
    """Return `cost.form_of` of each row."""
    held = rows.prod(axis=1) if layout is None else np.full(len(rows), len(set(layout.sites)))
    return Forms(out_rows(node, rows), held, np.ones(len(rows)))


def forms_read(node: Node, k: int, rows: np.ndarray) -> Forms:
    """Return `cost.form_read` of each row."""
    return replicated(in_rows(node, rows, k), rows.prod(axis=1))


def replicated(parts: np.ndarray, holders: np.ndarray) -> Forms:
    """Return forms in which every holder has a whole block."""
    return Forms(parts, holders, np.maximum(holders / parts.prod(axis=1), 1.0))


def transfer(extents: tuple[int, ...], have: Forms, read: tuple[int, ...], want: Forms) -> np.ndarray:
    """Return `cost.transfer` of each pair of `have` and `want`."""
    each = np.ones(len(want))
    local = np.ones((len(have), len(want)))
    for extent, a, n, d in zip(extents, have.parts.T, read, want.parts.T, strict=True):
        each *= n / d
        local *= np.minimum((extent / a)[:, None], (n / d)[None, :])
    together = np.maximum(have.parts.prod(axis=1) / have.holders, 1.0)
    local = np.minimum(local * together[:, None], each[None, :])
    local *= np.minimum(have.holders[:, None], want.holders[None, :])
    local = np.minimum(local, (have.copies * prod(read))[:, None])
    needed = (each * want.holders)[None, :]
    return needed - np.minimum(local, needed)
