"""Einsummables as compiled loops: any join of plain arithmetic, exp included, with any aggregate.

Contract: `compiled` answers a kernel, or None where the join has a function or a dtype that is not compiled,
the work is too little to be worth it, or there is no compiler.  The kernel reads blocks of any strides (what
lanes cannot load side by side is copied in pieces first, see `panels`) and makes no other temporary.
Long sums are made in parts of `_TERMS` terms, which also keeps what they read in the cache.

Squared distances are summed as they are written: as a matrix product (x² + y² - 2xy) they would lose what
the digits of x² and y² cancel, all of it between neighbours; these loops run at 3/4 of GEMM's speed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import ceil, prod
from typing import TypeAlias

import numpy as np

from einsummable import scalar
from einsummable.dtypes import BOOL, ScalarType
from einsummable.kernels import machine
from einsummable.kernels.loops import Space, best
from einsummable.kernels.nest import FLOATS, KNOWN, Nest, castable, supported
from einsummable.kernels.panels import Panels, pack
from einsummable.kernels.tiling import Labels
from einsummable.nodes import Einsummable
from einsummable.scalar import Call

#: Elements of an iteration space below which numpy is as fast and the compiler would be waited for.
SMALL = 1 << 14
#: Terms of a sum that are added one after the other, at most; fewer where panels of them are to stay cached.
_TERMS = 1 << 11
_PANEL_TERMS = 1 << 9
#: The most that a copy for the lanes takes.
_COPY_BYTES = 1 << 18
#: What of it stays in the cache while rows pass by.
_PANEL_BYTES = 1 << 17
#: The most that is laid out whole for many calls; of what is larger every call copies what it needs.
_LAID_OUT_BYTES = 1 << 22
#: A look at an element of the inputs costs as much as so many steps of the loops.
_LOOK = 16
#: Rows from which on what they share is packed.
_MANY_ROWS = 64

_Array: TypeAlias = "np.ndarray | Panels"


def compiled(
    node: Einsummable,
    args: tuple[np.dtype, ...],
    params: tuple[tuple[str, ScalarType], ...],
    shape: tuple[int, ...],
) -> Compiled | None:
    """Return the kernel of `node` for a block of its space with extents `shape`, or None."""
    if not machine.available() or prod(shape) < SMALL or all(n < 2 for n in shape):
        return None
    if node.dtype not in KNOWN or not all(d in KNOWN for d in args):
        return None
    typed = scalar.infer(node.join, args, params)
    made = BOOL if node.aggregate in ("any", "all") else typed[-1].type.dtype
    if not supported(node.join, typed) or not castable(made, node.dtype):
        return None
    extent = {label: n for (label, _), n in zip(node.space, shape, strict=True)}
    labels = tuple(tuple(dict.fromkeys(ls)) for ls in node.labels)
    return Compiled(node, best(Space(node, typed, labels, args, params, extent)), extent)


@lru_cache(maxsize=1024)
def product_of_tiles(
    node: Einsummable, args: tuple[np.dtype, ...], shape: tuple[int, ...], lasting: tuple[int, ...]
) -> Compiled | None:
    """Return loops for a contraction of which many tiles read the inputs `lasting`, None if GEMM is better.

    GEMM packs both factors and writes a result that has few terms an element at its leisure; these loops
    find one factor packed.  With vectors of 64 bytes they reach the processor's peak where GEMM has 60 to
    90% of it; with smaller ones they were not measured to be better.
    """
    if not machine.available() or machine.processor().vector_bytes < 64:
        return None
    loops = compiled(node, args, (), shape) if len(set(args)) == 1 and node.dtype in FLOATS else None
    if loops is None or not loops.shared or not set(loops.shared) <= set(lasting):
        return None
    read = sum(prod(loops.extent[x] for x in node.labels[k]) for k in loops.shared)
    return loops if read * node.dtype.itemsize <= _LAID_OUT_BYTES else None


@lru_cache(maxsize=1024)
def _function(nest: Nest) -> machine.Function:
    from einsummable.kernels.emit import text  # loads the compiler

    return machine.function(text(nest))


class Compiled:
    """A kernel that runs a loop nest, piece by piece where that is better."""

    def __init__(self, node: Einsummable, nest: Nest, extent: Mapping[str, int]) -> None:
        self.nest, self.extent, self.dtype = nest, dict(extent), node.dtype
        self.space = tuple(label for label, _ in node.space)
        self.written, self.out, self.shape = node.labels, node.out, tuple(extent[x] for x in node.out)
        self.sorted = sorted(node.join.labels)
        self.safe = _function(nest).call
        self.swift = None
        if self._may_be_ordered():
            self.swift = _function(replace(nest, ordered=True)).call
        self.pack = struct.Struct(f"{len(nest.table)}q").pack
        self.at_labels = [self.space.index(x) for x in self.sorted]
        self._plain: dict[tuple, tuple | None] = {}
        self.shared = [k for k, (ls, _) in enumerate(nest.arrays)
                       if nest.rows is not None and nest.vector in ls and nest.rows not in ls]  # fmt: skip
        self.packs = self._packs()
        self.cut_inner, self.inner_size = self._inner_cut()
        self.cut_out = self._outer_cut()

    def _may_be_ordered(self) -> bool:
        """Return whether a look at the inputs may tell that no nan is aggregated, and costs little."""
        nest, op = self.nest, self.nest.join.ops[-1]
        extreme = nest.aggregate in ("max", "min") and nest.dtype.kind == "f"
        plain = len(nest.join.ops) == 3 and isinstance(op, Call) and op.fn in ("add", "sub", "mul")
        read = sum(prod(self.extent[x] for x in labels) for labels, _ in nest.arrays)
        return extreme and plain and len(nest.arrays) == 2 and _LOOK * read < prod(self.extent.values())

    def _is_ordered(self, blocks: Sequence[np.ndarray]) -> bool:
        """Return whether no sum, difference or product of elements of two blocks is nan."""
        if any(x.dtype.kind == "f" and not np.isfinite(x.sum()) for x in blocks):
            # Infinities of one sign may still be added.
            added = self.nest.join.ops[-1].fn == "add"
            return added and (all(x.min() > -np.inf for x in blocks) or all(x.max() < np.inf for x in blocks))
        return True

    def _packs(self) -> bool:
        """Return whether every call packs what rows share: it is read by many, and by no others again."""
        nest = self.nest
        others = {x for k in self.shared for x in nest.arrays[k][0]} - {nest.vector, *nest.inner}
        many = bool(self.shared) and self.extent[nest.rows] >= _MANY_ROWS
        return many and all(self.extent[x] == 1 for x in others)

    def _inner_cut(self) -> tuple[str | None, int]:
        """Return the aggregated label that is walked in parts, and the extent of a part."""
        nest, total = self.nest, prod(self.extent[x] for x in self.nest.inner)
        lanes = nest.lanes if nest.vector in nest.inner else 1
        most = _PANEL_TERMS if self.packs else _TERMS
        if total <= 2 * most * lanes:
            return None, 0
        label = max(nest.inner, key=lambda x: self.extent[x])
        others = total // self.extent[label]
        size = max(most * lanes // max(others, 1), nest.width)
        return (label, size) if size < self.extent[label] else (None, 0)

    def _outer_cut(self) -> str | None:
        """Return the label of the result that is cut where copies for the lanes would be large."""
        names = [x for x in self.nest.out if self.extent[x] > 1]
        plain = [x for x in names if x != self.nest.vector] or names
        return max(plain, key=lambda x: self.extent[x], default=None)

    def _panel_size(self) -> int:
        """Return the lanes of a piece of which what rows share stays in the cache."""
        nest = self.nest
        terms = prod(self.extent[x] for x in nest.inner if x != self.cut_inner) * (self.inner_size or 1)
        row = max(terms, 1) * max(d.itemsize for _, d in nest.arrays)
        return nest.lanes * max(1, _PANEL_BYTES // (row * nest.lanes))

    def prepared(self, k: int, block: np.ndarray) -> _Array:
        """Return `block`, or a copy that many calls read faster as their input `k`."""
        labels = self.written[k]
        if len(set(labels)) < len(labels) or block.nbytes > _LAID_OUT_BYTES:
            return block
        if k in self.shared:
            return pack(block, labels, self.nest.vector, self.nest.inner, self.nest.lanes)
        return self._side_by_side(block, labels)

    def _fitting(self, k: int, x: _Array) -> _Array:
        """Return input `k` as these loops read it: of panels made for others, what they stand for."""
        if not isinstance(x, Panels):
            return x
        made_for = self.written[k][x.vector], x.lanes
        return x if k in self.shared and made_for == (self.nest.vector, self.nest.lanes) else x.source

    def __call__(
        self,
        blocks: Sequence[_Array],
        at: tuple[int, ...],
        params: Mapping[str, np.generic],
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the result, in `out` if that is given."""
        result = np.empty(self.shape, self.dtype) if out is None else out
        call = self.safe if self.swift is None or not self._is_ordered(blocks) else self.swift
        scalars = [np.asarray(params[name], dtype) for name, dtype in self.nest.params]
        table = self._table(blocks, at, scalars, result)
        if table is None:
            self._pieces(blocks, at, scalars, result, call)
        else:
            call(table)
        return result

    def bound(
        self, blocks: Sequence[_Array], at: tuple[int, ...], out: np.ndarray
    ) -> Callable[[], None] | None:
        """Return a call with these arrays, which must outlive it, None where it depends on their values."""
        table = None if self.swift or self.nest.params else self._table(blocks, at, (), out)
        return None if table is None else partial(self.safe, table)

    def _table(
        self, blocks: Sequence[_Array], at: tuple[int, ...], scalars: Sequence[np.ndarray], result: np.ndarray
    ) -> bytes | None:
        """Return what the loops read, None if one call of them will not do."""
        form = (result.strides, *[(type(x), x.strides) for x in blocks])
        if form not in self._plain:
            self._plain[form] = self._straight(blocks, result)
        after = self._plain[form]
        if after is None:
            return None
        places = [_address(x) for x in (*blocks, *scalars, result)]
        return self.pack(*places, *after[0], *[at[d] for d in self.at_labels], *after[1])

    def _straight(
        self, blocks: Sequence[_Array], result: np.ndarray
    ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return what stands in the table between and after places and first indices, if one call will do."""
        nest = self.nest
        if self.written != tuple(ls for ls, _ in nest.arrays) or self.cut_inner is not None:
            return None
        if self._is_odd(result, self.out) or not result.flags.aligned:
            return None
        strides: list[int] = []
        for k, x in enumerate(blocks):
            if not isinstance(x, Panels):
                plain = isinstance(x, np.ndarray) and x.flags.aligned and not self._is_odd(x, self.written[k])
                if not plain or (self.packs and k in self.shared):
                    return None
            elif self._fitting(k, x) is not x:
                return None
            strides += x.strides
        strides += self._result_strides(result)
        return (0, *[self.extent[x] for x in nest.labels]), tuple(strides)

    def _result_strides(self, result: np.ndarray) -> list[int]:
        of = dict(zip(self.out, result.strides, strict=True))
        return [of[x] for x in self.nest.out if x != self.nest.vector]

    def _pieces(
        self,
        blocks: Sequence[_Array],
        at: tuple[int, ...],
        scalars: Sequence[np.ndarray],
        result: np.ndarray,
        call: Callable[[bytes], None],
    ) -> None:
        arrays = [self._distinct(k, self._fitting(k, block)) for k, block in enumerate(blocks)]
        first = dict(zip(self.space, at, strict=True))
        for ranges in self._out_pieces([*arrays, result]):
            into = result[(*[slice(*ranges[x]) for x in self.out], ...)]
            target = self._side_by_side(into, self.out, fill=False)
            for resume, piece in enumerate(self._inner_pieces(ranges)):
                self._run(arrays, target, scalars, first, piece, resume, call)
            if target is not into:
                into[...] = target

    def _distinct(self, k: int, block: _Array) -> _Array:
        """Return the block with each label once: a view of its diagonal."""
        if isinstance(block, Panels):
            return block
        block, written, labels = np.asarray(block), self.written[k], self.nest.arrays[k][0]
        if len(written) != len(labels):
            block = np.einsum(block, [labels.index(x) for x in written], list(range(len(labels))))
        return block if block.flags.aligned else block.copy()

    def _is_odd(self, x: np.ndarray, labels: Labels) -> bool:
        """Return whether the lanes cannot load `x` side by side."""
        vector = self.nest.vector
        return vector in labels and x.strides[labels.index(vector)] != x.itemsize

    def _side_by_side(self, x: np.ndarray, labels: Labels, *, fill: bool = True) -> np.ndarray:
        """Return `x`, or where the lanes cannot load it an array like it that they can, with its values."""
        if not self._is_odd(x, labels):
            return x
        d = labels.index(self.nest.vector)
        turned = np.moveaxis(x, d, -1)
        copy = turned.copy() if fill else np.empty(turned.shape, x.dtype)
        return np.moveaxis(copy, -1, d)

    def _out_pieces(self, arrays: Sequence[_Array]) -> Iterator[dict[str, tuple[int, int]]]:
        """Yield the pieces of the space that are made one after the other, as ranges of the labels."""
        whole = {x: (0, n) for x, n in self.extent.items()}
        if self.packs and not all(isinstance(arrays[k], Panels) for k in self.shared):
            label, size = self.nest.vector, self._panel_size()
        else:
            label, labels = self.cut_out, [*(ls for ls, _ in self.nest.arrays), self.out]
            odd = [x.nbytes for x, ls in zip(arrays, labels, strict=True)
                   if label in ls and not isinstance(x, Panels) and self._is_odd(x, ls)]  # fmt: skip
            size = ceil(self.extent.get(label, 1) / max(1, ceil(max(odd, default=0) / _COPY_BYTES)))
        if label is None or size >= self.extent[label]:
            yield whole
            return
        for start in range(0, self.extent[label], size):
            yield whole | {label: (start, min(start + size, self.extent[label]))}

    def _inner_pieces(self, ranges: dict[str, tuple[int, int]]) -> Iterator[dict[str, tuple[int, int]]]:
        label = self.cut_inner
        if label is None:
            yield ranges
            return
        for start in range(0, self.extent[label], self.inner_size):
            yield ranges | {label: (start, min(start + self.inner_size, self.extent[label]))}

    def _run(
        self,
        arrays: Sequence[_Array],
        target: np.ndarray,
        scalars: Sequence[np.ndarray],
        first: Mapping[str, int],
        ranges: Mapping[str, tuple[int, int]],
        resume: int,
        call: Callable[[bytes], None],
    ) -> None:
        nest = self.nest
        strides: list[int] = []
        kept: list[_Array] = []  # copies must live until the loops have run
        for k, (x, (labels, _)) in enumerate(zip(arrays, nest.arrays, strict=True)):
            x = x[tuple([slice(*ranges[label]) for label in labels])] if labels else x
            if not isinstance(x, Panels):
                if self.packs and k in self.shared:
                    x = pack(x, labels, nest.vector, nest.inner, nest.lanes)
                else:
                    x = self._side_by_side(x, labels)
            kept.append(x)
            strides += x.strides
        places = [_address(x) for x in (*kept, *scalars, target)]
        places.append(resume)
        places += [ranges[x][1] - ranges[x][0] for x in nest.labels]
        places += [first[x] + ranges[x][0] for x in self.sorted]
        call(self.pack(*places, *strides, *self._result_strides(target)))


def _address(x: _Array) -> int:
    return x.address if isinstance(x, Panels) else x.__array_interface__["data"][0]
