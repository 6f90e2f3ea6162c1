"""What no plan can do better than, where that is known: bytes that contractions must move.

Contract: every bound is for work that is evenly shared out, with inputs that lie wherever suits, once.  A
site that does its share of a matrix product touches at least a certain part of the three matrices (Loomis and
Whitney, 1949); which shapes of a share are best is in Al Daas, Ballard, Grigori, Kumar and Rouse, *Tight
memory-independent parallel matrix multiplication communication lower bounds*, 2022.

>>> round(matmul(1000, 1000, 1000, 8))  # 3·S²·(2 - 1)
3000000
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod, sqrt

from einsummable.graph import EinGraph
from einsummable.nodes import Einsummable
from einsummable.planner.candidates import light_nodes
from einsummable.planner.cost import is_product, work


def matmul(rows: float, columns: float, summed: float, sites: float) -> float:
    """Return the elements that move at least when `sites` sites share a matrix product evenly."""
    m, n, k = sorted((rows, columns, summed), reverse=True)
    if sites <= 1 or not k:
        return 0.0
    if sites <= m / n:
        touched = (m * n + m * k) / sites + n * k
    elif sites <= m * n / k**2:
        touched = 2 * sqrt(m * n * k**2 / sites) + m * n / sites
    else:
        touched = 3 * (m * n * k / sites) ** (2 / 3)
    return max(sites * touched - (m * n + m * k + n * k), 0.0)


def contraction(node: Einsummable, sites: int) -> float:
    """Return the elements that move at least for a contraction of two inputs, evenly shared."""
    extent, first, second = dict(node.space), set(node.labels[0]), set(node.labels[1])
    batch = prod(extent[x] for x in first & second if x in node.out)
    rows = prod(extent[x] for x in first - second)
    columns = prod(extent[x] for x in second - first)
    summed = prod(extent[x] for x in first & second if x not in node.out)
    return batch * matmul(rows, columns, summed, sites / max(batch, 1))


def moved(graph: EinGraph, sites: int, names: Mapping[str, object] | None = None) -> float:
    """Return the bytes that move at least if every contraction that counts is shared out evenly.

    A tensor may be brought to several readers at once, so of contractions with an input in common only the
    most demanding one is counted.

    Parameters
    ----------
    names
        Inputs of the graph that already lie on sites; contractions that read them are left out.
    """
    light = light_nodes([work(graph, i) for i in range(len(graph.nodes))], sites)
    found = []
    for i, node in enumerate(graph.nodes):
        if i in light or not is_product(node):
            continue
        if any(getattr(graph.nodes[j], "name", None) in (names or {}) for j in node.inputs):
            continue
        size = min(node.dtype.itemsize, *(graph.nodes[j].dtype.itemsize for j in node.inputs))
        found.append((size * contraction(node, sites), set(node.inputs)))
    total, used = 0.0, set()
    for nbytes, inputs in sorted(found, key=lambda one: -one[0]):
        if not inputs & used:
            total += nbytes
            used |= inputs
    return total
