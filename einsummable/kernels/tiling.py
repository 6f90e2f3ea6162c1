"""How a loop over an iteration space is cut so that what it needs at a time stays in the cache.

Contract: `layout` answers an order of the labels, slowest first, in which inputs and result are walked along
their contiguous dimensions; `tile` the extents of a piece, so that no temporary over given labels has more
than a given number of elements; `pieces` the pieces of a space.  All three look at labels and extents only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import TypeAlias

Labels: TypeAlias = tuple[str, ...]

#: numpy reduces along the fastest dimension row by row, at a cost of some 20 ns a row; rows up to this
#: length are summed by one call a column instead.
SHORT_ROW = 16
#: … provided that a call has at least this many rows to work on.
_MANY_ROWS = 64


def layout(inputs: Sequence[Labels], out: Labels, extent: Mapping[str, int]) -> tuple[Labels, frozenset[str]]:
    """Return the labels of a space, slowest first, and those that are to be walked one by one.

    Parameters
    ----------
    inputs, out
        Labels of the tensors, in the order of their dimensions.
    extent
        Of all labels of the space.
    """
    order = _along_memory(inputs, out, tuple(extent), extent)
    short: list[str] = []
    for label in reversed(order):
        if label in out:
            break
        short.append(label)
    row = prod(extent[x] for x in short)
    if not 1 < row <= SHORT_ROW or prod(extent[x] for x in out) < _MANY_ROWS:
        return order, frozenset()
    rest = tuple(x for x in extent if x not in short)
    return (*short, *_along_memory(inputs, out, rest, extent)), frozenset(short)


def _along_memory(inputs: Sequence[Labels], out: Labels, labels: Labels, extent: Mapping[str, int]) -> Labels:
    tensors = [(ls, prod(extent[x] for x in set(ls))) for ls in (*inputs, out)]

    def strided(label: str) -> int:
        return sum(size for ls, size in tensors if label in ls and ls[-1] != label)

    wide = [x for x in labels if extent[x] > 1] or list(labels)
    if not wide:
        return ()
    fastest = min(wide, key=lambda x: (strided(x), x not in out, -extent[x]))
    order = {fastest: None}
    for ls, _ in sorted(tensors, key=lambda t: (t[0][-1:] != (fastest,), -t[1])):
        order.update(dict.fromkeys(x for x in reversed(ls) if x in labels))
    order.update(dict.fromkeys(reversed(labels)))
    return tuple(order)[::-1]


def tile(
    order: Labels, extent: Mapping[str, int], needed: frozenset[str], single: frozenset[str], elements: int
) -> dict[str, int]:
    """Return the extents of a piece; labels are filled from the fastest on.

    Parameters
    ----------
    order
        All labels, slowest first.
    needed
        The labels of temporaries; only these are cut.
    single
        Labels to be walked one by one.
    elements
        How many elements a temporary may have.
    """
    size = {}
    for label in reversed(order):
        n = extent[label]
        if label in single:
            size[label] = 1
        elif label in needed and n > elements:
            size[label] = -(-n // -(-n // elements))  # near-equal parts
            elements = 1
        else:
            size[label] = n
            if label in needed:
                elements //= max(n, 1)
    return size


def pieces(
    order: Labels, out: frozenset[str], extent: Mapping[str, int], size: Mapping[str, int]
) -> Iterator[tuple[tuple[slice, ...], bool]]:
    """Yield the pieces of a space, and of each whether it is the first of its part of the result.

    The slices stand in the order of `order`; the labels of `out` are the outer loops.
    """
    cuts = {
        x: [slice(a, min(a + size[x], extent[x])) for a in range(0, extent[x], size[x] or 1)] for x in order
    }
    outer, inner = [x for x in order if x in out], [x for x in order if x not in out]
    at = [([*outer, *inner]).index(x) for x in order]
    for part in product(*(cuts[x] for x in outer)):
        first = True
        for rest in product(*(cuts[x] for x in inner)):
            both = (*part, *rest)
            yield tuple(both[i] for i in at), first
            first = False
