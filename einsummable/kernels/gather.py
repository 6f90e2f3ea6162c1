"""Lookups in tables: the kernel of a `Gather`.

Contract: indices are checked against the whole table on every call.  A block may hold some of the rows only:
what it does not hold comes out as zero, so that the sum over the blocks is the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from einsummable.kernels.warm import empty
from einsummable.nodes import Gather


class Lookup:
    """The kernel of `node` on blocks of its space with extents `shape`."""

    def __init__(self, node: Gather, shape: tuple[int, ...]) -> None:
        self.node = node
        rank = len(node.out)
        self.shape = shape[:rank]
        self.grid = {
            label: np.arange(n).reshape([-1 if e == d else 1 for e in range(rank)])
            for d, (label, n) in enumerate(zip(node.out, self.shape, strict=True))
        }
        #: Of each row label, the extent of the whole table and that of the block.
        self.extents = [(n, here) for (_, n), here in zip(node.space[rank:], shape[rank:], strict=True)]
        self.order = _order(node)

    def __call__(
        self,
        blocks: Sequence[np.ndarray],
        at: tuple[int, ...],
        _params: Mapping[str, np.generic],
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return what the table holds of what the indices ask for."""
        table, held, local = blocks[0], None, []
        for k, ((extent, here), start) in enumerate(zip(self.extents, at[len(self.shape) :], strict=True), 1):
            values = self._checked(k, blocks[k], extent)
            if here < extent:
                inside = (values >= start) & (values < start + here)
                spread = self._spread(inside, k)
                held = spread if held is None else held & spread
                values = np.where(inside, values - start, 0)
            local.append(values)
        if 0 in [here for _, here in self.extents] or 0 in self.shape:
            result = np.empty(self.shape, table.dtype) if out is None else out
            result[...] = 0
            return result
        result = self._take(table, local, out)
        if held is not None:
            result[np.broadcast_to(~held, self.shape)] = 0
        return result

    def _checked(self, k: int, values: np.ndarray, extent: int) -> np.ndarray:
        if values.size and (values.min() < 0 or values.max() >= extent):
            raise self.node.out_of_range(k, int(values[(values < 0) | (values >= extent)].flat[0]))
        return values

    def _spread(self, values: np.ndarray, k: int) -> np.ndarray:
        """Return `values`, which has the labels of input `k`, over the dimensions of the output."""
        return values[tuple(self.grid[label] for label in self.node.labels[k])]

    def _take(self, table: np.ndarray, local: list[np.ndarray], out: np.ndarray | None) -> np.ndarray:
        node = self.node
        if self.order is None:
            rows = {
                row: self._spread(v, k) for k, (row, v) in enumerate(zip(node.rows, local, strict=True), 1)
            }
            found = table[tuple(rows[x] if x in rows else self.grid[x] for x in node.labels[0])]
        else:
            axis = node.labels[0].index(node.rows[0])
            if self.order == tuple(range(len(self.order))) and out is not None:
                # Indices are in range; to clip them is how numpy writes to `out` without a buffer.
                return np.take(table, local[0], axis=axis, out=out, mode="clip")
            found = np.transpose(np.take(table, local[0], axis=axis, mode="clip"), self.order)
            if out is None:
                return np.asarray(found)
        result = empty(self.shape, table.dtype) if out is None else out
        result[...] = found
        return result


def _order(node: Gather) -> tuple[int, ...] | None:
    """Return how the dimensions of ``np.take`` are to be ordered, None where it cannot do it."""
    table, tok = node.labels[0], node.labels[1]
    made = [x for label in table for x in (tok if label in node.rows else (label,))]
    if len(node.rows) > 1 or len(set(made)) < len(made) or len(set(tok)) < len(tok):
        return None
    return tuple(made.index(label) for label in node.out)
