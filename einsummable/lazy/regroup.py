"""Reshaping by regrouping: any shape to any other of the same size.

Contract: elements keep their order.  Where both shapes have a common refinement, one `Reshape` node does it:
its atoms are the refinement.  Where they do not, as for (2, 3) to (3, 2), the dimensions that do not fit are
merged first, by a second node.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from math import prod
from operator import mul

from einsummable import dtypes
from einsummable.builder import GraphBuilder
from einsummable.nodes import Space
from einsummable.scalar import ScalarBuilder


def regroup(builder: GraphBuilder, source: int, shape: tuple[int, ...]) -> int:
    """Append what gives node `source` the shape `shape`, which has as many elements."""
    have = builder[source].shape
    if have == shape:
        return source
    if prod(have) == 0:
        return _empty(builder, source, shape)
    cuts, wanted = _cuts(have), _cuts(shape)
    both = sorted(cuts | wanted)
    if any(b % a for a, b in pairwise(both)):
        common = sorted(cuts & wanted)
        middle = tuple(b // a for a, b in pairwise(common))
        return regroup(builder, regroup(builder, source, middle), shape)
    atoms = tuple((f"d{k}", b // a) for k, (a, b) in enumerate(pairwise(both)))
    return builder.reshape(source, atoms, _groups(have, atoms), _groups(shape, atoms))


def _cuts(shape: tuple[int, ...]) -> set[int]:
    """Return after how many of the slowest parts each dimension ends: the products of its prefixes."""
    return {1, *accumulate(shape, mul)}


def _groups(shape: tuple[int, ...], atoms: Space) -> tuple[int, ...]:
    """Return how many atoms each dimension of `shape` is made of; one of extent 1 has none."""
    groups, at = [], 0
    for n in shape:
        start, size = at, 1
        while size < n:
            size *= atoms[at][1]
            at += 1
        groups.append(at - start)
    return tuple(groups)


def _empty(builder: GraphBuilder, source: int, shape: tuple[int, ...]) -> int:
    """Append a tensor without elements: there is none to read."""
    b = ScalarBuilder()
    join = b.build(b.call(dtypes.name(builder[source].dtype), b.const(0)))
    extents = {f"d{d}": n for d, n in enumerate(shape)}
    return builder.einsummable(tuple(extents), [], join, extents=extents)
