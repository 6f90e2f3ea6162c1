"""Contractions, ``Z[out] = sum of X[a] * Y[b]``, as matrix products.

Contract: `contraction` answers a kernel for any labels: ``Z[batch,m,n] = sum[k] X[batch,m,k] * Y[batch,k,n]``
after diagonals are taken and labels of one input alone are summed away.  Which operand stands left and in
which order the labels of a group are merged is chosen so that the fewest elements are copied for blocks in C
order; blocks with other strides are right too.  The result is in C order.

16-bit floats are multiplied and summed in float32, booleans are counted in int64.  Integer products go
through float64's GEMM where all partial sums are exact there, else through numpy's loops, which wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np

from einsummable import dtypes
from einsummable.dtypes import BOOL, F64, I64, ScalarType, kind
from einsummable.kernels.warm import empty
from einsummable.nodes import Einsummable

Labels: TypeAlias = tuple[str, ...]

#: Fewer multiplications than this are not worth a look at the values of integers.
_WORTH_GEMM = 1 << 14


@dataclass(frozen=True, slots=True)
class Lowering:
    """How a contraction becomes a matrix product.

    Attributes
    ----------
    swapped
        Whether the second input stands left.
    batch, rows, inner, columns
        The labels of each group, in the order in which they are merged.
    direct
        Whether the product can be written into the result's own memory.
    copied
        How many elements are copied for inputs in C order.
    """

    swapped: bool
    batch: Labels
    rows: Labels
    inner: Labels
    columns: Labels
    direct: bool
    copied: int


def lower(left: Labels, right: Labels, out: Labels, extent: Mapping[str, int]) -> Lowering:
    """Return the lowering that copies the fewest elements.

    Parameters
    ----------
    left, right, out
        Labels of the inputs and of the result, each once a tensor, all in at least two of the three.
    extent
        Of all labels.
    """
    return min(_lowerings(left, right, out, extent), key=lambda found: (found.copied, found.swapped))


def _lowerings(left: Labels, right: Labels, out: Labels, extent: Mapping[str, int]) -> Iterator[Lowering]:
    batch = tuple(ls for ls in out if ls in left and ls in right)
    size = {ls: prod(extent[x] for x in ls) for ls in (left, right, out)}
    for swapped in (False, True):
        a, b = (right, left) if swapped else (left, right)
        orders = [
            {tuple(x for x in like if x in group and x not in batch) for like in by}
            for group, by in (
                (set(a) & set(out), (a, out)),
                (set(a) & set(b), (a, b)),
                (set(b) & set(out), (b, out)),
            )
        ]
        for rows, inner, columns in product(*map(sorted, orders)):
            direct = _is_run(out, rows, extent) and _is_run(out, columns, extent)
            direct = direct and _ends_in(out, columns or rows, extent)
            copied = 0 if direct else size[out]
            for labels, groups in ((a, (rows, inner)), (b, (inner, columns))):
                views = all(_is_run(labels, group, extent) for group in groups)
                copied += 0 if views and not _scattered(labels, batch, extent) else size[labels]
            yield Lowering(swapped, batch, rows, inner, columns, direct, copied)


def _is_run(labels: Labels, group: Labels, extent: Mapping[str, int]) -> bool:
    """Return whether `group` is one dimension of a tensor in C order: its labels in a row, in this order."""
    solid = [x for x in labels if extent[x] != 1]
    wanted = [x for x in group if extent[x] != 1]
    at = solid.index(wanted[0]) if wanted else 0
    return solid[at : at + len(wanted)] == wanted


def _scattered(labels: Labels, batch: Labels, extent: Mapping[str, int]) -> bool:
    """Return whether the fastest label is a batch label, so that no matrix has a contiguous dimension."""
    solid = [x for x in labels if extent[x] != 1]
    return bool(solid) and solid[-1] in batch


def _ends_in(labels: Labels, group: Labels, extent: Mapping[str, int]) -> bool:
    solid = [x for x in labels if extent[x] != 1]
    wanted = [x for x in group if extent[x] != 1]
    return not wanted or solid[-1] == wanted[-1]


# ---------------------------------------------------------------------------------------- kernels

_Operand: TypeAlias = Callable[[np.ndarray], np.ndarray]


def contraction(node: Einsummable, args: tuple[np.dtype, ...], shape: tuple[int, ...]) -> Contraction:
    """Return the kernel of `node`, a contraction, for a block of its space with extents `shape`.

    Every label must stand in an input.
    """
    return Contraction(node, args, shape)


class Contraction:
    """A kernel that is a matrix product."""

    def __init__(self, node: Einsummable, args: tuple[np.dtype, ...], shape: tuple[int, ...]) -> None:
        extent = {label: n for (label, _), n in zip(node.space, shape, strict=True)}
        wide = _compute_dtype(node, args)
        order = node.join.factors()
        first, second = (tuple(dict.fromkeys(node.labels[i])) for i in order)
        shared = set(first) & set(second) | set(node.out)
        kept = [tuple(x for x in ls if x in shared) for ls in (first, second)]
        how = lower(*kept, node.out, extent)
        sides = ((how.rows, how.inner), (how.inner, how.columns))
        if how.swapped:
            sides = sides[::-1]
        operands = [
            _operand(node.labels[i], ls, how.batch, groups, extent, args[i], wide)
            for i, ls, groups in zip(order, kept, sides, strict=True)
        ]
        if how.swapped:
            order, operands = order[::-1], operands[::-1]
        self._order, (self._left, self._right) = order, operands
        self._finish = _result(how, node.out, extent, wide, _multiplication(how, extent, wide))
        self._narrow = node.dtype if node.dtype != wide else None
        self._labels, self._how = node.labels, how

    def prepared(self, k: int, block: np.ndarray) -> np.ndarray:
        """Return `block`, or a copy that many calls read faster as their input `k`: a stack of matrices."""
        how, labels = self._how, self._labels[k]
        groups = (how.rows, how.inner) if k == self._order[0] else (how.inner, how.columns)
        wanted = [x for group in (how.batch, *groups) for x in group]
        if len(set(labels)) < len(labels) or len(wanted) != len(labels):
            return block
        turned = np.ascontiguousarray(block.transpose([labels.index(x) for x in wanted]))
        return turned.transpose([wanted.index(x) for x in labels])

    def __call__(
        self, blocks: Sequence[np.ndarray], _at: object, _params: object, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the result, in `out` if that is given."""
        i, j = self._order
        into = out if self._narrow is None else None
        result = self._finish(self._left(blocks[i]), self._right(blocks[j]), into)
        if out is not None and result is not out:
            out[...] = result
            return out
        return result if self._narrow is None else result.astype(self._narrow)


def _compute_dtype(node: Einsummable, args: tuple[np.dtype, ...]) -> np.dtype:
    common = dtypes.promote([ScalarType(d) for d in args]).dtype
    return I64 if common == BOOL else dtypes.accumulator(node.dtype)


def _operand(
    labels: Labels,
    kept: Labels,
    batch: Labels,
    groups: tuple[Labels, Labels],
    extent: Mapping[str, int],
    dtype: np.dtype,
    wide: np.dtype,
) -> _Operand:
    """Return what makes an input a stack of matrices: its diagonals, sums, transposition and merging."""
    steps: list[_Operand] = []
    distinct = tuple(dict.fromkeys(labels))
    if distinct != labels:
        number = {x: n for n, x in enumerate(distinct)}
        subscripts = [number[x] for x in labels]
        steps.append(lambda x: np.einsum(x, subscripts, list(range(len(distinct)))))
    if dtype != wide:
        steps.append(lambda x: x.astype(wide))
    if kept != distinct:
        axes = tuple(d for d, x in enumerate(distinct) if x not in kept)
        steps.append(lambda x: x.sum(axis=axes, dtype=wide))
    order = (*batch, *groups[0], *groups[1])
    permutation = tuple(kept.index(x) for x in order)
    if permutation != tuple(range(len(order))):
        steps.append(lambda x: x.transpose(permutation))
    stack = (*(extent[x] for x in batch), *(prod(extent[x] for x in g) for g in groups))
    if any(len(g) != 1 for g in groups):
        steps.append(lambda x: x.reshape(stack))
    steps.append(_one_contiguous)
    if len(steps) == 1:
        return steps[0]

    def operand(x: np.ndarray) -> np.ndarray:
        for step in steps:
            x = step(x)
        return x

    return operand


def _one_contiguous(x: np.ndarray) -> np.ndarray:
    """Return `x` with contiguous rows or columns, without which numpy's matmul does not call BLAS."""
    (row, column), size, (m, n) = x.strides[-2:], x.itemsize, x.shape[-2:]
    if (column == size and row >= n * size) or (row == size and column >= m * size):
        return x
    return np.ascontiguousarray(x)


def _multiplication(how: Lowering, extent: Mapping[str, int], wide: np.dtype) -> Callable[..., np.ndarray]:
    """Return the product of two stacks of matrices."""
    if not how.inner:
        return np.multiply
    if kind(wide) not in "bi":
        return np.matmul
    work = prod(extent[x] for g in (how.rows, how.inner, how.columns) for x in g)
    terms = prod(extent[x] for x in how.inner)

    def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        if work < _WORTH_GEMM or _bound(a) * _bound(b) * terms > 1 << 53:
            return np.matmul(a, b, out=out)
        exact = np.matmul(a.astype(F64), b.astype(F64))
        if out is None:
            return exact.astype(wide)
        np.copyto(out, exact, casting="unsafe")
        return out

    return multiply


def _bound(x: np.ndarray) -> int:
    return max(int(x.max()), -int(x.min())) if x.size else 0


def _result(
    how: Lowering,
    out: Labels,
    extent: Mapping[str, int],
    wide: np.dtype,
    multiply: Callable[..., np.ndarray],
) -> Callable[[np.ndarray, np.ndarray, np.ndarray | None], np.ndarray]:
    """Return what multiplies two stacks and lays the result out as `out` says.

    It writes to the array that it is given, if GEMM can.
    """
    order = (*how.batch, *how.rows, *how.columns)
    shape = tuple(extent[x] for x in out)
    permutation = tuple(out.index(x) for x in order)
    stack = (*(extent[x] for x in how.batch), *(prod(extent[x] for x in g) for g in (how.rows, how.columns)))
    split = tuple(extent[x] for x in order)
    back = tuple(order.index(x) for x in out)

    def finish(a: np.ndarray, b: np.ndarray, into: np.ndarray | None) -> np.ndarray:
        if into is None:
            into = empty(shape, wide)
            if order != out and not how.direct:
                into[...] = multiply(a, b).reshape(split).transpose(back)
                return into
        try:
            matrices = into.transpose(permutation).reshape(stack, copy=False)
        except ValueError:  # its labels cannot be merged without a copy
            into[...] = multiply(a, b).reshape(split).transpose(back)
            return into
        multiply(a, b, out=matrices)
        return into

    return finish
