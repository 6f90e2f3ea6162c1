"""Basic indexing of a view: ints, slices, ``None`` and ``...``.

Contract: numpy's meaning of a key.  A dimension that is broadcast is indexed without a node; the others by
one selection.  Arrays and tensors as keys are left to `rearrange`.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from einsummable.errors import DtypeError, ShapeError
from einsummable.lazy.expression import Expression, Pick
from einsummable.nodes import Position

Axes = tuple[int | None, ...]


@dataclass(slots=True)
class _Taken:
    """What is taken of one dimension of the expression: a range, or one index."""

    start: int
    step: int
    extent: int | None  # None: one index, and the dimension goes


def index(
    expression: Expression, axes: Axes, shape: tuple[int, ...], key: Any
) -> tuple[Expression, Axes, tuple[int, ...]]:
    """Return the expression, axes and shape of a view indexed by `key`.

    Raises
    ------
    ShapeError
        An index is out of range, or there are too many.
    DtypeError
        `key` is more than ints, slices, None and Ellipsis.
    """
    taken = [_Taken(0, 1, n) for n in expression.shape]
    new_axes: list[int | None] = []
    new_shape: list[int] = []
    d = 0
    for item in spelled_out(key, len(shape)):
        if item is None:
            new_axes.append(None)
            new_shape.append(1)
            continue
        part = _part(item, d, shape[d])
        if axes[d] is not None:
            taken[axes[d]] = part
        if part.extent is not None:
            new_axes.append(axes[d])
            new_shape.append(part.extent)
        d += 1
    if all(t == _Taken(0, 1, n) for t, n in zip(taken, expression.shape, strict=True)):
        return expression, tuple(new_axes), tuple(new_shape)
    kept = [a for a, t in enumerate(taken) if t.extent is not None]
    positions = tuple(
        Position(None, t.start) if t.extent is None else Position(f"d{a}", t.start, t.step)
        for a, t in enumerate(taken)
    )
    space = tuple((f"d{a}", taken[a].extent) for a in kept)
    renumbered = tuple(None if a is None else kept.index(a) for a in new_axes)
    return Pick(expression, positions, space), renumbered, tuple(new_shape)


def spelled_out(key: Any, rank: int) -> list[Any]:
    """Return `key` as a list with an item a dimension, and a None for each new one."""
    items = list(key) if isinstance(key, tuple) else [key]
    if sum(item is Ellipsis for item in items) > 1:
        raise ShapeError("an index has one '...'")
    named = sum(item is not None and item is not Ellipsis for item in items)
    if named > rank:
        raise ShapeError(f"{named} indices are given for a tensor of {rank} dimensions")
    rest = [slice(None)] * (rank - named)
    at = next((k for k, item in enumerate(items) if item is Ellipsis), len(items))
    return items[:at] + rest + items[at + 1 :]


def _part(item: Any, d: int, extent: int) -> _Taken:
    if isinstance(item, slice):
        start, stop, step = item.indices(extent)
        extent = len(range(start, stop, step))
        return _Taken(start, step, extent) if extent else _Taken(0, 1, 0)
    try:
        i = None if isinstance(item, bool) else operator.index(item)
    except TypeError:
        i = None
    if i is None:
        raise DtypeError(
            f"a lazy tensor is not indexed by {type(item).__name__}",
            notes=("supported: whole numbers, slices, None, ... and arrays of integers",),
        )
    if not -extent <= i < extent:
        raise ShapeError(f"index {i} is out of range for dimension {d}, which has {extent}")
    return _Taken(i % extent, 1, None)
