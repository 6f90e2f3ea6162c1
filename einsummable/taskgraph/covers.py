"""Whether boxes cover a tensor exactly once.

Contract: `covers_once` is exact for any boxes, and near-linear for the cells of a grid.

>>> covers_once([((0, 2),), ((2, 5),)], (5,)), covers_once([((0, 3),), ((2, 4),)], (4,))
(True, False)
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

from einsummable.nodes import Box, box_shape


def covers_once(boxes: tuple[Box, ...] | list[Box], shape: tuple[int, ...]) -> bool:
    """Return whether `boxes` cover a tensor of `shape` exactly once."""
    if sum(prod(box_shape(b)) for b in boxes) != prod(shape):
        return False
    solid = [b for b in boxes if all(start < stop for start, stop in b)]
    if any(start < 0 or stop > n for b in solid for (start, stop), n in zip(b, shape, strict=True)):
        return False
    return _is_grid(solid) or not _overlap(solid)  # equal volume and no overlap is a cover


def _is_grid(boxes: list[Box]) -> bool:
    """Return whether `boxes` are the distinct cells of one grid: found without comparing any two."""
    edges = [sorted({x for r in column for x in r}) for column in zip(*boxes, strict=True)]
    steps = [set(pairwise(e)) for e in edges]
    cells = all(
        r in step for column, step in zip(zip(*boxes, strict=True), steps, strict=True) for r in column
    )
    return cells and len(set(boxes)) == len(boxes)


def _overlap(boxes: list[Box]) -> bool:
    """Return whether any two of `boxes` overlap; sorted by their first range, only near ones can."""
    boxes = sorted(boxes)
    for i, a in enumerate(boxes):
        for b in boxes[i + 1 :]:
            if a and b[0][0] >= a[0][1]:
                break
            if all(s < t2 and s2 < t for (s, t), (s2, t2) in zip(a, b, strict=True)):
                return True
    return False
