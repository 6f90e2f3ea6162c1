"""Boxes cut by the grid of blocks that a tensor is held in.

Contract: pure geometry, in integers.  A `Grid` finds the blocks that a box touches by bisection, dimension
by dimension; `disjoint` answers what to send so that nothing is sent twice.

>>> Grid.of((6,), (2,)).pieces(((2, 5),))
[(0, ((2, 3),), ((0, 1),)), (1, ((0, 2),), ((1, 3),))]
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise, product
from math import prod

import numpy as np

from einsummable.nodes import Box, box_shape
from einsummable.planner.plan import grid_edges

#: Part of a block that a box touches: the block, the part in the block's coordinates, and in the box's own.
Piece = tuple[int, Box, Box]


class Grid:
    """The blocks of a tensor, the last dimension fastest; `edges` are the borders in each dimension."""

    def __init__(self, edges: Sequence[Sequence[int]]) -> None:
        self.edges = tuple(tuple(e) for e in edges)
        self.parts = tuple(len(e) - 1 for e in self.edges)
        self._spans: list[dict[tuple[int, int], list]] = [{} for _ in self.edges]

    @classmethod
    def of(cls, shape: Sequence[int], parts: Sequence[int]) -> Grid:
        """Return the grid of near-equal blocks, `parts` in each dimension."""
        return cls(grid_edges(shape, parts))

    def box(self, block: int) -> Box:
        """Return the box that `block` covers."""
        return self.boxes[block]

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return prod(self.parts)

    def block_at(self, box: Box) -> int:
        """Return the block that `box` lies in."""
        found = 0
        for edges, parts, (start, _) in zip(self.edges, self.parts, box, strict=True):
            found = found * parts + min(bisect_right(edges, start), parts) - 1
        return found

    @cached_property
    def boxes(self) -> list[Box]:
        """The box of every block."""
        return list(product(*(pairwise(e) for e in self.edges)))

    def pieces(self, box: Box) -> list[Piece]:
        """Return the parts of the blocks that make up `box`; none where it is empty."""
        found: list[Piece] = [(0, (), ())]
        for d, span in enumerate(box):
            parts = self.parts[d]
            found = [
                (block * parts + i, (*inside, a), (*place, b))
                for block, inside, place in found
                for i, a, b in self._along(d, span)
            ]
        return found

    def _along(self, d: int, span: tuple[int, int]) -> list[tuple[int, tuple[int, int], tuple[int, int]]]:
        known = self._spans[d].get(span)
        if known is None:
            edges, (start, stop) = self.edges[d], span
            known = []
            for i in range(bisect_right(edges, start) - 1, bisect_left(edges, stop)) if start < stop else ():
                a, b = max(start, edges[i]), min(stop, edges[i + 1])
                known.append((i, (a - edges[i], b - edges[i]), (a - start, b - start)))
            self._spans[d][span] = known
        return known


def volume(box: Box) -> int:
    """Return the number of elements in `box`."""
    return prod(box_shape(box))


def intersect(a: Box, b: Box) -> Box | None:
    """Return what `a` and `b` share, None where that is nothing."""
    shared = tuple((max(s, t), min(e, f)) for (s, e), (t, f) in zip(a, b, strict=True))
    return shared if all(s < e for s, e in shared) else None


def within(box: Box, outer: Box) -> Box:
    """Return `box` in the coordinates of `outer`."""
    return tuple((s - o, e - o) for (s, e), (o, _) in zip(box, outer, strict=True))


def disjoint(boxes: Iterable[Box]) -> list[Box]:
    """Return boxes that cover the union of `boxes` once: these themselves where they do not overlap.

    Overlapping ones become their bounding box where that holds nothing more, else the cells that their
    own borders cut the union into.
    """
    todo = sorted(set(boxes))
    found: list[Box] = []
    while todo:
        group = [todo.pop(0)]
        reach = 0
        while reach < len(group):  # grow the group by what overlaps any of it
            touching = [b for b in todo if intersect(group[reach], b) is not None]
            group += touching
            todo = [b for b in todo if b not in touching] if touching else todo
            reach += 1
        found += group if len(group) == 1 else _cells(group)
    return found


def _cells(boxes: list[Box]) -> list[Box]:
    edges = [sorted({x for box in boxes for x in box[d]}) for d in range(len(boxes[0]))]
    wanted = np.zeros([len(e) - 1 for e in edges], bool)
    for box in boxes:
        wanted[tuple(slice(e.index(a), e.index(b)) for e, (a, b) in zip(edges, box, strict=True))] = True
    if wanted.all():
        return [tuple((e[0], e[-1]) for e in edges)]
    return [
        tuple((e[i], e[i + 1]) for e, i in zip(edges, index, strict=True))
        for index in np.argwhere(wanted).tolist()
    ]
