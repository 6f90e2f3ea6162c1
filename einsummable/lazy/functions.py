"""numpy's functions on lazy tensors: the table behind `Tensor.__array_function__`.

Contract: each function takes those of numpy's arguments that it knows; another keyword is a `TypeError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from einsummable import dtypes
from einsummable.contract import contraction_path
from einsummable.equation import Equation, common_dtype, from_sublists, read_arguments, read_optimize
from einsummable.errors import ShapeError
from einsummable.lazy.expression import Product
from einsummable.lazy.handle import FUNCTIONS, UFUNCS, Tensor, unsupported
from einsummable.lazy.inputs import as_tensor
from einsummable.lazy.reductions import axes_of, mean, reduce
from einsummable.lazy.ufuncs import elementwise, truth


def implements(*numpy: Callable) -> Callable[[Callable], Callable]:
    """Enter the decorated function into the table for these functions of numpy."""

    def enter(function: Callable) -> Callable:
        FUNCTIONS.update(dict.fromkeys(numpy, function))
        return function

    return enter


# --------------------------------------------------------------------------------- contractions


@implements(np.einsum)
def einsum(*args: Any, dtype: Any = None, optimize: Any = False) -> Tensor:
    """Return ``np.einsum(*args)``; with `dtype` the operands are cast to it."""
    equation, operands = read_arguments(args)
    tensors = [as_tensor(x) for x in operands]
    if dtype is not None:
        tensors = [x.astype(dtype) for x in tensors]
    return product(equation, tensors, optimize)


def product(equation: Equation, tensors: Sequence[Tensor], optimize: Any = False) -> Tensor:
    """Return the contraction that `equation` is of `tensors`."""
    dtype = common_dtype([x.dtype for x in tensors])
    contraction = equation.resolve([x.shape for x in tensors], dtype, read_optimize(optimize))
    extents = dict(contraction.extents)
    reads = [x.read(ls, extents) for x, ls in zip(tensors, contraction.labels, strict=True)]
    labels = tuple(ls for _, ls in reads)
    if labels != contraction.labels:
        path = contraction_path(labels, contraction.out, extents, read_optimize(optimize))
        contraction = type(contraction)(labels, contraction.out, contraction.extents, dtype, path)
    return Tensor.of(Product(tuple(x for x, _ in reads), contraction))


def matmul(a: Any, b: Any) -> Tensor:
    """Return ``np.matmul(a, b)``."""
    a, b = as_tensor(a), as_tensor(b)
    if not a.ndim or not b.ndim:
        raise ShapeError("matmul of a scalar: write a * b")
    left = [..., 0, 1] if a.ndim > 1 else [1]
    right = [..., 1, 2] if b.ndim > 1 else [1]
    _agree("matmul", a, a.ndim - 1, b, max(b.ndim - 2, 0))
    out = [..., *left[1:-1], *right[2:]]
    return _contract(a, left, b, right, out)


def _matmul(_ufunc: np.ufunc, method: str, inputs: tuple, keywords: dict) -> Tensor:
    if method != "__call__" or keywords:
        raise unsupported("np.matmul")
    return matmul(*inputs)


UFUNCS["matmul"] = _matmul


@implements(np.dot)
def dot(a: Any, b: Any) -> Tensor:
    """Return ``np.dot(a, b)``."""
    a, b = as_tensor(a), as_tensor(b)
    if not a.ndim or not b.ndim:
        return a * b
    return tensordot(a, b, axes=([a.ndim - 1], [max(b.ndim - 2, 0)]))


@implements(np.inner)
def inner(a: Any, b: Any) -> Tensor:
    """Return ``np.inner(a, b)``."""
    a, b = as_tensor(a), as_tensor(b)
    return tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 1])) if a.ndim and b.ndim else a * b


@implements(np.outer)
def outer(a: Any, b: Any) -> Tensor:
    """Return ``np.outer(a, b)``."""
    return _contract(ravel(as_tensor(a)), [0], ravel(as_tensor(b)), [1], [0, 1])


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """Return ``np.tensordot(a, b, axes)``."""
    a, b = as_tensor(a), as_tensor(b)
    if np.iterable(axes):
        first, second = (tuple(x) if np.iterable(x) else (x,) for x in axes)
    else:
        first, second = tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    first, second = axes_of(a, first), axes_of(b, second)
    if len(first) != len(second):
        raise ShapeError(f"tensordot of {len(first)} axes with {len(second)}")
    left, right = list(range(a.ndim)), list(range(a.ndim, a.ndim + b.ndim))
    for i, j in zip(first, second, strict=True):
        _agree("tensordot", a, i, b, j)
        right[j] = left[i]
    shared = {left[i] for i in first}
    return _contract(a, left, b, right, [d for d in left + right if d not in shared])


def _contract(a: Tensor, left: list, b: Tensor, right: list, out: list) -> Tensor:
    return product(from_sublists((tuple(left), tuple(right)), tuple(out)), [a, b])


def _agree(what: str, a: Tensor, i: int, b: Tensor, j: int) -> None:
    if a.shape[i] != b.shape[j]:
        raise ShapeError(
            f"{what}: dimension {i} of the left tensor is {a.shape[i]},"
            f" dimension {j} of the right is {b.shape[j]}",
            notes=(f"the shapes are {a.shape} and {b.shape}",),
        )


# ------------------------------------------------------------------------- maps and reductions

for _name in ("sum", "prod"):
    implements(getattr(np, _name))(partial(reduce, _name))
implements(np.mean)(mean)


def _without_dtype(aggregate: str) -> Callable[..., Tensor]:
    """Return the function for those of numpy's reductions that take no dtype."""

    def function(x: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Tensor:
        return reduce(aggregate, x, axis, None, out, keepdims)

    return function


for _name in ("max", "min", "any", "all"):
    implements(getattr(np, _name))(_without_dtype(_name))


@implements(np.where)
def where(condition: Any, x: Any, y: Any) -> Tensor:
    """Return ``np.where(condition, x, y)``."""
    return elementwise("where", truth(condition), x, y)


@implements(np.real)
def real(x: Tensor) -> Tensor:
    """Return the real part."""
    return elementwise("real", x) if dtypes.kind(x.dtype) == "c" else x


@implements(np.imag)
def imag(x: Tensor) -> Tensor:
    """Return the imaginary part."""
    return elementwise("imag", x)


# --------------------------------------------------------------------------------------- shapes


@implements(np.transpose)
def transpose(x: Tensor, axes: Any = None) -> Tensor:
    """Return the dimensions in another order, by default the reverse."""
    if axes is None:
        return x.T
    order = axes_of(x, tuple(axes))
    if len(order) != x.ndim:
        raise ShapeError(f"{len(order)} axes are given for a tensor of {x.ndim} dimensions")
    return x.transposed(order)


@implements(np.swapaxes)
def swapaxes(x: Tensor, axis1: int, axis2: int) -> Tensor:
    """Return it with two dimensions exchanged."""
    i, j = axes_of(x, axis1)[0], axes_of(x, axis2)[0]
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return x.transposed(order)


@implements(np.moveaxis)
def moveaxis(x: Tensor, source: Any, destination: Any) -> Tensor:
    """Return it with dimensions moved to other places."""
    first, second = axes_of(x, source), axes_of(x, destination)
    if len(first) != len(second):
        raise ShapeError(f"{len(first)} dimensions cannot move to {len(second)} places")
    order = [d for d in range(x.ndim) if d not in first]
    for to, d in sorted(zip(second, first, strict=True)):
        order.insert(to, d)
    return x.transposed(order)


@implements(np.reshape)
def reshape(x: Tensor, shape: Any, order: str = "C") -> Tensor:
    """Return the same elements in the same order under another shape."""
    if order != "C":
        raise unsupported(f"np.reshape with order={order!r}")
    wanted = [int(n) for n in (shape if np.iterable(shape) else (shape,))]
    if wanted.count(-1) == 1:
        known = prod(n for n in wanted if n != -1)
        wanted[wanted.index(-1)] = x.size // known if known else 0
    if prod(wanted) != x.size or any(n < 0 for n in wanted):
        raise ShapeError(
            f"a tensor of shape {x.shape} cannot take the shape {tuple(np.atleast_1d(shape).tolist())}"
        )
    return x.reshaped(tuple(wanted))


@implements(np.ravel)
def ravel(x: Tensor) -> Tensor:
    """Return the elements in one dimension."""
    return x.reshaped((x.size,))


@implements(np.squeeze)
def squeeze(x: Tensor, axis: Any = None) -> Tensor:
    """Return it without its dimensions, or those of `axis`, of extent 1."""
    axes = axes_of(x, axis) if axis is not None else tuple(d for d, n in enumerate(x.shape) if n == 1)
    wrong = next((d for d in axes if x.shape[d] != 1), None)
    if wrong is not None:
        raise ShapeError(f"dimension {wrong} has extent {x.shape[wrong]}: only 1 can be squeezed")
    return x[tuple(0 if d in axes else slice(None) for d in range(x.ndim))]


@implements(np.expand_dims)
def expand_dims(x: Tensor, axis: Any) -> Tensor:
    """Return it with new dimensions of extent 1."""
    rank = x.ndim + (len(axis) if np.iterable(axis) else 1)
    new = np.lib.array_utils.normalize_axis_tuple(axis, rank)
    return x[tuple(None if d in new else slice(None) for d in range(rank))]


@implements(np.broadcast_to)
def broadcast_to(x: Any, shape: Any) -> Tensor:
    """Return it repeated along new dimensions and those of extent 1."""
    x = as_tensor(x)
    wanted = tuple(map(int, shape)) if np.iterable(shape) else (int(shape),)
    extra = len(wanted) - x.ndim
    if extra < 0 or any(n not in (1, w) for n, w in zip(x.shape, wanted[max(extra, 0) :], strict=False)):
        raise ShapeError(f"shape {x.shape} does not broadcast to {wanted}")
    grown = [d for d, n in enumerate(x.shape) if n != wanted[d + extra]]
    x = squeeze(x, tuple(grown))
    axes = iter(x.axes)
    found = [None if d < extra or d - extra in grown else next(axes) for d in range(len(wanted))]
    return Tensor(x.expression, tuple(found), wanted)


@implements(np.astype)
def astype(x: Tensor, dtype: Any, *, copy: bool = True) -> Tensor:  # noqa: ARG001 - nothing to share
    """Return the elements as another dtype."""
    return x.astype(dtype)


@implements(np.shape)
def shape(x: Tensor) -> tuple[int, ...]:
    """Return the extents."""
    return x.shape


@implements(np.ndim)
def ndim(x: Tensor) -> int:
    """Return the number of dimensions."""
    return x.ndim


@implements(np.size)
def size(x: Tensor, axis: int | None = None) -> int:
    """Return the number of elements, or the extent of a dimension."""
    return x.size if axis is None else prod(x.shape[d] for d in axes_of(x, axis))


@implements(np.iscomplexobj)
def iscomplexobj(x: Tensor) -> bool:
    """Return whether the dtype is complex."""
    return dtypes.kind(x.dtype) == "c"
