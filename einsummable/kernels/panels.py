"""Arrays laid out for the lanes: what a step of a loop nest loads lies side by side, term after term.

Contract: `pack` copies an array so that the lanes of one step of the vector label are neighbours, and the
next terms of the sum follow them.  Then a step reads memory from front to back, and what many rows share is
read without a miss, whatever the strides were before.  A `Panels` may be indexed by ranges as the array it
stands for; where a range of the vector label begins inside a step, the answer is the array itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from einsummable.kernels.tiling import Labels

#: Lines this far apart share a place in the first-level cache, so that few of them stay there at once.
_ALIAS_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Panels:
    """The values of `source`, packed for steps of `lanes` lanes along dimension `vector`.

    Attributes
    ----------
    packed
        What owns the memory.
    address, strides
        Where the first element stands, and the bytes from one index to the next in each dimension; along
        `vector` they hold between the first lanes of two steps only.
    """

    source: np.ndarray
    packed: np.ndarray
    vector: int
    lanes: int
    address: int
    strides: tuple[int, ...]

    def __getitem__(self, index: tuple) -> Panels | np.ndarray:
        """Return a box: `index` has a slice for each dimension, of step 1."""
        starts = [0 if s is Ellipsis else s.start or 0 for s in index]
        if starts[self.vector] % self.lanes:
            return self.source[index]
        address = self.address + sum(a * b for a, b in zip(starts, self.strides, strict=False))
        return Panels(self.source[index], self.packed, self.vector, self.lanes, address, self.strides)


def pack(x: np.ndarray, labels: Labels, vector: str, inner: Sequence[str], lanes: int) -> Panels:
    """Return `x` with the labels of `inner`, in this order, as the terms of a step along `vector`."""
    terms = [label for label in inner if label in labels]
    order = [label for label in labels if label != vector and label not in terms] + [vector, *terms]
    v, others = labels.index(vector), len(order) - len(terms) - 1
    if x.strides[v] % _ALIAS_BYTES == 0:
        x = x.copy()
    n = x.shape[v]
    turned = x.transpose([labels.index(label) for label in order])
    before, after = turned.shape[:others], turned.shape[others + 1 :]
    packed = np.empty((*before, -(-n // lanes), *after, lanes), x.dtype)
    whole = n - n % lanes
    front = (slice(None),) * others
    for part, groups in ((slice(0, whole), slice(0, n // lanes)), (slice(whole, n), slice(n // lanes, None))):
        length = part.stop - part.start
        if length:
            wide = min(length, lanes)
            steps = turned[(*front, part)].reshape(*before, length // wide, wide, *after)
            packed[(*front, groups, ..., slice(0, wide))] = np.moveaxis(steps, others + 1, -1)
    of = dict(zip(order, packed.strides, strict=False))  # the last dimension is that of the lanes
    of[vector] //= lanes
    strides = tuple(of[label] for label in labels)
    return Panels(x, packed, v, lanes, packed.ctypes.data, strides)
