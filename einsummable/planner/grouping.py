"""Kernel calls put together on one site: which ones share the most.

Contract: `groups` shares the calls of a node out among sites in equal numbers.  Where that goes up, a group
is a box of calls, the one that reads and makes the fewest bytes; else a run of calls, the label along which
they share most being the fastest.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from einsummable.nodes import Node, box_shape
from einsummable.planner.cost import in_labels
from einsummable.planner.partition import Partition, cut


@lru_cache(maxsize=1024)
def groups(node: Node, partition: Partition, sites: int) -> np.ndarray:
    """Return the group, 0 to `sites` - 1, of every kernel call; there are at least as many as sites."""
    parts, calls = partition.parts, partition.blocks
    touched = _touched(node, partition)
    boxes = _boxes(parts, calls // sites) if calls % sites == 0 else []
    if boxes:
        best = min(boxes, key=lambda box: _bytes(box, touched))
        index = np.unravel_index(np.arange(calls), parts)
        coarse = [i // g for i, g in zip(index, best, strict=True)]
        return np.ravel_multi_index(coarse, [n // g for n, g in zip(parts, best, strict=True)])
    # The label that saves most when calls along it stand together varies fastest.
    saved = [sum(size for dims, size in touched if d not in dims) for d in range(len(parts))]
    slowest_first = sorted(range(len(parts)), key=lambda d: (saved[d], d))
    order = np.arange(calls).reshape(parts).transpose(slowest_first).ravel()
    group = np.empty(calls, np.int64)
    group[order] = np.arange(calls) * sites // calls
    return group


def _touched(node: Node, partition: Partition) -> list[tuple[frozenset[int], int]]:
    """Return for each block that a call reads or makes the labels that it depends on, and its elements."""
    where = {label: d for d, (label, _) in enumerate(node.space)}
    first = tuple(cut(n, parts)[0] for (_, n), parts in zip(node.space, partition.parts, strict=True))
    found = [
        (frozenset(where[x] for x in in_labels(node, k) if x), prod(box_shape(node.in_box(k, first))))
        for k in range(len(node.inputs))
    ]
    made = frozenset(where[x] for x in node.out if x)
    if prod(partition.parts[d] for d in made) < partition.blocks:  # partial results travel
        found.append((made, prod(box_shape(node.out_box(first)))))
    return found


def _boxes(parts: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
    """Return all ways to take `count` calls as a box that divides `parts`."""
    if not parts:
        return [()] if count == 1 else []
    return [
        (g, *rest)
        for g in range(1, min(parts[0], count) + 1)
        if parts[0] % g == 0 and count % g == 0
        for rest in _boxes(parts[1:], count // g)
    ]


def _bytes(box: tuple[int, ...], touched: list[tuple[frozenset[int], int]]) -> int:
    return sum(size * prod(g for d, g in enumerate(box) if d in dims) for dims, size in touched)
