"""Sums that add every term in one place: the kernel of a one-hot sum (see `onehot`).

Contract: ``Z[r,d] = sum[t] where(tok[t] == r, g[t,d], 0)`` takes a step for each element of g, not for each r
beside it.  Terms are sorted by where they go: first terms of a place are written at once, second ones added
at once, and so on; where more than `FEW` come together they are summed up by `numpy.add.reduceat`.  16-bit
floats are summed in float32.  What goes to no place of the block is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from einsummable import dtypes
from einsummable.kernels.warm import empty
from einsummable.nodes import Einsummable

#: Terms of one place from which on they are summed up by themselves.
FEW = 8

#: A kernel, as `blocks.Kernel` says.
_Kernel = Callable[..., np.ndarray]


class ScatterAdd:
    """The kernel of a one-hot sum on blocks of its space.

    Parameters
    ----------
    node
        The sum.
    shape
        The extents of the block.
    terms
        The kernel that makes the terms: the value of the join over the labels `labels_of_terms` names.
    """

    def __init__(self, node: Einsummable, shape: tuple[int, ...], terms: _Kernel) -> None:
        self.terms, self.dtype, self.shape = terms, node.dtype, shape[: len(node.out)]
        self.wide = dtypes.accumulator(node.dtype)
        self.space = [label for label, _ in node.space]
        extent = dict(zip(self.space, shape, strict=True))
        self.compared = node.one_hot
        self.labels = [node.labels[k] for _, k in self.compared]
        self.among = labels_of_terms(node)
        rows = [label for label, _ in self.compared]
        #: Terms are told apart by labels of the indices and those summed over; the others are copied along.
        told = {label for labels in self.labels for label in labels} | set(node.aggregated)
        self.told = [x for x in self.among if x in told]
        self.along = [x for x in self.among if x not in told]
        #: Where a term goes: its rows, and the labels of the result that an index has.
        self.places = [*rows, *(x for x in self.told if x in node.out)]
        self.extent, self.rows = extent, rows
        made = [*self.places, *self.along]
        self.order = [made.index(x) for x in node.out]

    def __call__(
        self,
        blocks: Sequence[np.ndarray],
        at: tuple[int, ...],
        params: Mapping[str, np.generic],
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the sum of what goes to this block."""
        first = dict(zip(self.space, at, strict=True))
        to, kept = self._places(blocks, first)
        value = self.terms(blocks, tuple(first[x] for x in self.among), params)
        axes = [self.among.index(x) for x in (*self.told, *self.along)]
        width = prod(self.extent[x] for x in self.along)
        value = np.transpose(value, axes).reshape(len(kept), width)
        count = prod(self.extent[x] for x in self.places)
        sums = empty((count, width), self.wide)
        sums[...] = 0
        add_rows(sums, to, value, np.flatnonzero(kept))
        made = sums.reshape([self.extent[x] for x in (*self.places, *self.along)]).transpose(self.order)
        if out is None:
            return np.ascontiguousarray(made, self.dtype)
        out[...] = made
        return out

    def _places(
        self, blocks: Sequence[np.ndarray], first: Mapping[str, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return where each term that stays goes, and for every term whether it stays."""
        sizes = [self.extent[x] for x in self.told]
        grid = {
            x: np.arange(n).reshape([-1 if e == d else 1 for e in range(len(sizes))])
            for d, (x, n) in enumerate(zip(self.told, sizes, strict=True))
        }
        to, kept = np.zeros(sizes, np.intp), np.ones(sizes, bool)
        for (row, k), labels in zip(self.compared, self.labels, strict=True):
            place = blocks[k][tuple(grid[x] for x in labels)] - first[row]
            kept &= (place >= 0) & (place < self.extent[row])
            to = to * self.extent[row] + place
        for x in self.places[len(self.rows) :]:
            to = to * self.extent[x] + grid[x]
        kept = kept.reshape(-1)
        return np.broadcast_to(to, sizes).reshape(-1)[kept], kept


def labels_of_terms(node: Einsummable) -> tuple[str, ...]:
    """Return the labels that the terms of a one-hot sum have: all but the compared ones."""
    rows = {label for label, _ in node.one_hot}
    return tuple(label for label, _ in node.space if label not in rows)


def add_rows(sums: np.ndarray, to: np.ndarray, value: np.ndarray, terms: np.ndarray) -> None:
    """Add rows `terms` of `value` to the rows `to` of `sums`, which are zeros.

    Parameters
    ----------
    to
        For each of `terms` a row of `sums`.
    """
    if not len(to) or not sums.size:
        return
    order = np.argsort(to, kind="stable")
    to, terms = to[order], terms[order]
    starts = np.flatnonzero(np.concatenate([[True], to[1:] != to[:-1]]))
    counts = np.diff(starts, append=len(to))
    few = counts <= FEW
    places = to[starts]
    sums[places[few]] = value[terms[starts[few]]]
    for n in range(1, FEW):
        more = few & (counts > n)
        if not more.any():
            break
        sums[places[more]] += value[terms[starts[more] + n]]
    if not few.all():
        many = np.repeat(~few, counts)
        within = np.cumsum(counts[~few]) - counts[~few]
        sums[places[~few]] = np.add.reduceat(value[terms[many]], within, axis=0, dtype=sums.dtype)
