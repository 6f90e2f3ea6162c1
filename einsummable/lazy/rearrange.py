"""numpy's functions that put tensors together, and indexing by arrays of integers.

Contract: numpy's shapes, dtypes and values.  A concatenation and a lookup are a node each; indices below zero
count from the end, and one that is out of range is an error when the program runs.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from einsummable import dtypes
from einsummable.builder import GraphBuilder
from einsummable.dtypes import ScalarType
from einsummable.errors import DtypeError, ShapeError
from einsummable.lazy.expression import Appended, Expression, Labels, Source
from einsummable.lazy.functions import implements
from einsummable.lazy.handle import Tensor, unsupported
from einsummable.lazy.indexing import spelled_out
from einsummable.lazy.inputs import as_tensor
from einsummable.lazy.reductions import axes_of

# --------------------------------------------------------------------------------- one after another


@implements(np.concatenate)
def concatenate(arrays: Sequence[Any], axis: int | None = 0, *, dtype: Any = None) -> Tensor:
    """Return `arrays` one after another along `axis`; flattened first where that is None."""
    tensors = [as_tensor(x) for x in arrays]
    if axis is None:
        tensors, axis = [x.reshaped((x.size,)) for x in tensors], 0
    if not tensors or not all(x.ndim for x in tensors):
        raise ShapeError("what is concatenated has at least one dimension")
    wanted = dtypes.promote(ScalarType(x.dtype) for x in tensors).dtype if dtype is None else dtype
    tensors = [x.astype(wanted) for x in tensors]
    along = axes_of(tensors[0], axis)[0]
    expressions = tuple(x.plain() for x in tensors)
    labels = tuple(f"d{d}" for d in range(tensors[0].ndim))
    g = GraphBuilder()
    ids = [g.input(f"x{k}", x.shape, x.dtype) for k, x in enumerate(expressions)]
    if len(ids) == 1:
        return tensors[0]
    return Tensor.of(Appended(expressions, g[g.concat(ids, labels, along)]))


@implements(np.stack)
def stack(arrays: Sequence[Any], axis: int = 0, *, dtype: Any = None) -> Tensor:
    """Return `arrays`, all of one shape, along a new dimension."""
    tensors = [as_tensor(x) for x in arrays]
    shapes = dict.fromkeys(x.shape for x in tensors)
    if len(shapes) != 1:
        raise ShapeError(f"tensors of shapes {', '.join(map(str, shapes))} cannot be stacked")
    return concatenate([np.expand_dims(x, axis) for x in tensors], axis, dtype=dtype)


@implements(np.vstack)
def vstack(tup: Sequence[Any], *, dtype: Any = None) -> Tensor:
    """Return tensors one below the other; those of one dimension are rows."""
    tensors = [as_tensor(x) for x in tup]
    return concatenate([x if x.ndim > 1 else x.reshaped((1, x.size)) for x in tensors], dtype=dtype)


@implements(np.hstack)
def hstack(tup: Sequence[Any], *, dtype: Any = None) -> Tensor:
    """Return tensors side by side."""
    tensors = [as_tensor(x) for x in tup]
    tensors = [x if x.ndim else x.reshaped((1,)) for x in tensors]
    return concatenate(tensors, min(1, tensors[0].ndim - 1), dtype=dtype)


@implements(np.flip)
def flip(m: Tensor, axis: Any = None) -> Tensor:
    """Return it with the elements along `axis`, by default all, in reverse order."""
    axes = range(m.ndim) if axis is None else axes_of(m, axis)
    return m[tuple(slice(None, None, -1) if d in axes else slice(None) for d in range(m.ndim))]


# ------------------------------------------------------------------------------------- looked up


@implements(np.take)
def take(a: Any, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise") -> Tensor:
    """Return the elements of `a` at `indices` along `axis`; of the flattened tensor where that is None."""
    if out is not None or mode not in ("raise", "clip"):
        raise unsupported(f"np.take with mode={mode!r}" if out is None else "np.take with out")
    a = as_tensor(a)
    if axis is None:
        a, axis = a.reshaped((a.size,)), 0
    along = axes_of(a, axis)[0]
    chosen = _indices(indices)
    if mode == "clip":
        chosen = np.minimum(np.maximum(chosen.astype(dtypes.I64), 0), a.shape[along] - 1)
    return lookup(a, (*[slice(None)] * along, chosen))


@implements(operator.getitem)
def lookup(x: Tensor, key: Any) -> Tensor:
    """Return ``x[key]``, where `key` has arrays or tensors of integers.

    Raises
    ------
    DtypeError
        An array holds no integers (of a mask, the shape of the result would depend on values).
    ShapeError
        Shapes do not broadcast, there are too many indices, or a whole number is out of range.
    """
    items = spelled_out(key, x.ndim)
    advanced = [k for k, item in enumerate(items) if item is not None and not isinstance(item, slice)]
    arrays = {k: _indices(items[k]) for k in advanced if not _is_whole(items[k])}
    basic = tuple(slice(None) if k in arrays else item for k, item in enumerate(items))
    table = x[basic]
    try:
        shape = np.broadcast_shapes(*(i.shape for i in arrays.values()))
    except ValueError:
        shapes = ", ".join(str(i.shape) for i in arrays.values())
        raise ShapeError(f"indices of shapes {shapes} do not broadcast") from None
    # Where the arrays stand side by side, whole numbers among them, their dimensions take their place.
    kept = [k for k in range(len(items)) if k not in advanced or k in arrays]
    together = advanced == list(range(advanced[0], advanced[-1] + 1))
    at = sum(k < advanced[0] for k in kept) if together else 0
    return _gather(table, {kept.index(k): i for k, i in arrays.items()}, shape, at)


def _is_whole(item: Any) -> bool:
    return isinstance(item, int | np.integer) and not isinstance(item, bool)


def _indices(item: Any) -> Tensor:
    if isinstance(item, list) and not np.size(item):
        item = np.zeros(np.shape(item), np.int64)
    if not isinstance(item, Tensor | np.ndarray | list):
        raise DtypeError(
            f"a lazy tensor is not indexed by {type(item).__name__}",
            notes=("supported: whole numbers, slices, None, ... and arrays of integers",),
        )
    tensor = as_tensor(item)
    if dtypes.kind(tensor.dtype) != "i":
        notes = ("np.where(mask, x, y) keeps the shape",) if dtypes.kind(tensor.dtype) == "b" else ()
        name = dtypes.name(tensor.dtype)
        raise DtypeError(f"a lazy tensor is indexed by whole numbers, not by {name}", notes=notes)
    return tensor


def _gather(table: Tensor, indices: dict[int, Tensor], shape: tuple[int, ...], at: int) -> Tensor:
    """Return `table` looked up along some dimensions; those of the indices, `shape`, begin at `at`."""
    labels = tuple(f"row{d}" if d in indices else f"d{d}" for d in range(table.ndim))
    new = tuple(f"i{k}" for k in range(len(shape)))
    extents = dict(zip(new, shape, strict=True))
    reads: dict[str, tuple[Expression, Labels]] = {}
    for d, chosen in indices.items():
        spread = new[len(new) - chosen.ndim :]
        reads[labels[d]] = _counted_from_start(chosen, table.shape[d]).read(spread, extents)
    # Labels that no index has after broadcasting are of extent 1, or an index is repeated along them.
    rest = [label for d, label in enumerate(labels) if d not in indices]
    found = {label for _, ls in reads.values() for label in ls}
    out = (*rest[:at], *(label for label in new if label in found), *rest[at:])
    source = table.plain()
    g = GraphBuilder()
    operands = (source, *(x for x, _ in reads.values()))
    ids = [g.input(f"x{k}", x.shape, x.dtype) for k, x in enumerate(operands)]
    held = {row: (i, ls) for i, (row, (_, ls)) in zip(ids[1:], reads.items(), strict=True)}
    names = (_name(table, "the tensor"), *(_name(chosen, "an array") for chosen in indices.values()))
    made = Appended(operands, g[g.gather(out, (ids[0], labels), held, names)])
    # Dimensions of extent 1 that broadcasting has dropped come back.
    axes = {label: d for d, label in enumerate(out)}
    full = (*rest[:at], *new, *rest[at:])
    sizes = extents | {label: n for label, n in zip(labels, table.shape, strict=True) if label in rest}
    return Tensor(made, tuple(axes.get(label) for label in full), tuple(sizes[label] for label in full))


def _name(x: Tensor, otherwise: str) -> str:
    return x.expression.name if isinstance(x.expression, Source) and x.expression.name else otherwise


def _counted_from_start(chosen: Tensor, extent: int) -> Tensor:
    """Return indices of which those from ``-extent`` to -1 count from the end."""
    chosen = chosen.astype(dtypes.I64)
    return np.where((chosen < 0) & (chosen >= -extent), chosen + extent, chosen)
