"""numpy's reductions of lazy tensors.

Contract: one einsummable, in the dtype that numpy would accumulate in: small integers and booleans are summed
as 64-bit ones, means of integers are float64, means of 16-bit floats are taken in float32.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from einsummable import dtypes
from einsummable.dtypes import BF16, BOOL, F16, F32, F64, kind
from einsummable.errors import ShapeError
from einsummable.lazy.handle import Tensor, labels_of, loop
from einsummable.lazy.inputs import as_tensor
from einsummable.scalar import COPY, ScalarBuilder


def axes_of(x: Tensor, axis: Any) -> tuple[int, ...]:
    """Return numpy's ``axis`` as dimensions of `x`; None is all."""
    if axis is None:
        return tuple(range(x.ndim))
    try:
        return normalize_axis_tuple(axis, x.ndim)
    except np.exceptions.AxisError as error:
        raise ShapeError(f"axis {axis} of a tensor of {x.ndim} dimensions: {error}") from None
    except ValueError:
        raise ShapeError(f"axis {axis} names a dimension twice") from None


def reduce(
    aggregate: str, x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False
) -> Tensor:
    """Return an aggregate of `x` over `axis`.

    Parameters
    ----------
    aggregate
        A row of `functions.AGGREGATES`.
    axis, dtype, keepdims
        As in ``np.sum``.
    out
        Only None.

    Raises
    ------
    ShapeError
        There is no such axis, or it is empty and the aggregate is max or min.
    """
    x = as_tensor(x)
    _no_out(out)
    axes = axes_of(x, axis)
    wanted = np.dtype(dtype) if dtype is not None else _accumulated(aggregate, x.dtype)
    if aggregate in ("max", "min"):
        empty = next((d for d in axes if x.shape[d] == 0), None)
        if empty is not None:
            raise ShapeError(f"{aggregate} over dimension {empty} of shape {x.shape}: it is empty")
    labels = labels_of(x.ndim)
    kept = tuple(d for d in range(x.ndim) if d not in axes)
    join = COPY
    if wanted != x.dtype:
        b = ScalarBuilder()
        join = b.build(b.call(dtypes.name(wanted), b.arg(0)))
    out_labels = tuple(labels[d] for d in kept)
    extents = dict(zip(labels, x.shape, strict=True))
    found = loop([x], [labels], out_labels, extents, join, aggregate if axes else None)
    if not keepdims:
        return found
    shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    return Tensor(found.expression, tuple(kept.index(d) if d in kept else None for d in range(x.ndim)), shape)


def _accumulated(aggregate: str, dtype: np.dtype) -> np.dtype:
    if aggregate in ("any", "all"):
        return BOOL
    if aggregate in ("sum", "prod") and kind(dtype) in "bi":
        wide = np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
        return wide if dtype.itemsize < wide.itemsize else dtype
    return dtype


def mean(x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Tensor:
    """Return ``np.mean(x, axis, dtype, keepdims=keepdims)``."""
    x = as_tensor(x)
    _no_out(out)
    count = prod(x.shape[d] for d in axes_of(x, axis))
    wanted = np.dtype(dtype) if dtype is not None else F64 if kind(x.dtype) in "bi" else x.dtype
    narrow = dtype is None and wanted in (F16, BF16)
    total = reduce("sum", x, axis, F32 if narrow else wanted, keepdims=keepdims)
    return (total / count).astype(wanted)


def _no_out(out: object) -> None:
    if out is not None:
        raise ShapeError("a lazy tensor is not written to out=: bind the result to a name")
