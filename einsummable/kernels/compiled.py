"""Einsummables as compiled loops: any join of plain arithmetic, exp included, with any aggregate.

Contract: `compiled` answers a kernel, or None where the join has a function or a dtype that is not compiled,
the work is too little to be worth it, or there is no compiler.  The kernel reads blocks of any strides (what
lanes cannot load side by side is copied in pieces first) and makes no other temporary.  Its loops are chosen
by labels and extents: which label runs along the vectors, and whether steps of another share what is loaded.
Long sums are made in parts of `_TERMS` terms, which also keeps what they read in the cache.

Squared distances are summed as they are written: as a matrix product (x² + y² - 2xy) they would lose what
the digits of x² and y² cancel, all of it between neighbours, and these loops run at half of GEMM's speed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, prod

import numpy as np

from einsummable import scalar
from einsummable.dtypes import BOOL, ScalarType
from einsummable.graph import Einsummable
from einsummable.kernels import machine, tiling
from einsummable.kernels.nest import KNOWN, Nest, castable, supported
from einsummable.kernels.tiling import Labels
from einsummable.scalar import Call

#: Elements of an iteration space below which numpy is as fast and the compiler would be waited for.
SMALL = 1 << 14
#: Terms of a sum that are added one after the other, at most.
_TERMS = 1 << 11
#: The most that a copy for the lanes takes.
_COPY_BYTES = 1 << 18
#: Operations of a function on a vector, where it is more than one.
_WORK = {"exp": 14, "sigmoid": 20, "silu": 20, "div": 4, "sqrt": 6, "rsqrt": 10}
#: What of it stays in the cache while rows pass by.
_PANEL_BYTES = 1 << 17
#: A look at an element of the inputs costs as much as so many steps of the loops.
_LOOK = 16
#: Rows from which on what they share is copied.
_MANY_ROWS = 64
_COPY_COST = 3.0  # of an element copied with strides, in vector operations
_ACROSS_COST = 10.0  # of combining the lanes of a vector


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
    nest = _best(_Space(node, typed, labels, args, params, extent))
    return Compiled(node, nest, extent)


@dataclass(frozen=True, slots=True)
class _Space:
    """An einsummable on extents, of which loops are to be chosen."""

    node: Einsummable
    typed: tuple[scalar.Typed, ...]
    labels: tuple[Labels, ...]
    args: tuple[np.dtype, ...]
    params: tuple[tuple[str, ScalarType], ...]
    extent: dict[str, int]


def _best(space: _Space) -> Nest:
    candidates = [x for x, n in space.extent.items() if n > 1]
    return min((_nest(space, x) for x in candidates), key=lambda pair: pair[1])[0]


def _nest(space: _Space, vector: str) -> tuple[Nest, float]:
    """Return the loops with `vector` along the lanes, and their cost in vector operations."""
    node, extent = space.node, space.extent
    computed = [
        t.type.dtype for op, t in zip(node.join.ops, space.typed, strict=True) if isinstance(op, Call)
    ]
    used = [d.itemsize for d in (*space.args, node.dtype, *computed) if d != BOOL]
    width = machine.processor().vector_bytes // max(used, default=4)
    registers = 16 if machine.processor().vector_bytes == 64 else 8
    steps = ceil(extent[vector] / width)
    rows = _shared(space, vector) if node.aggregate and vector in node.out else None
    height = min(4, extent[rows]) if rows else 1
    most = registers // 8 if rows else registers // 2 if node.aggregate and vector in node.out else 4
    count = max(1, min(most, steps))
    order = tiling.layout(space.labels, node.out, extent)[0]
    last = {vector: 1, rows: 2}
    out = sorted((x for x in order if x in node.out), key=lambda x: last.get(x, 0))
    inner = sorted((x for x in order if x not in node.out), key=lambda x: last.get(x, 0))
    nest = Nest(
        node.join,
        space.typed,
        tuple(zip(space.labels, space.args, strict=True)),
        tuple((name, type_.dtype) for name, type_ in space.params if name in node.join.params),
        tuple(out),
        node.dtype,
        tuple(inner),
        node.aggregate,
        vector,
        rows,
        width,
        count,
        height,
    )
    return nest, _cost(space, nest, steps)


def _shared(space: _Space, vector: str) -> str | None:
    """Return a label of the result whose steps share vectors that are loaded."""
    found = [
        x
        for x in space.node.out
        if x != vector and space.extent[x] > 1 and any(vector in ls and x not in ls for ls in space.labels)
    ]
    return max(found, key=lambda x: min(space.extent[x], 64), default=None)


def _cost(space: _Space, nest: Nest, steps: int) -> float:
    extent, vector = space.extent, nest.vector
    work = sum(_WORK.get(op.fn, 1) for op in nest.join.ops if isinstance(op, Call)) + 1
    loads = sum(1.0 if vector in ls else 0.25 for ls in space.labels) / nest.height
    others = prod(n for x, n in extent.items() if x != vector)
    total = others * steps * (work + loads)
    if vector not in space.node.out:
        total += prod(extent[x] for x in nest.out) * _ACROSS_COST
    copied = [ls for ls in (*space.labels, space.node.out) if vector in ls and ls[-1] != vector]
    return total + sum(_COPY_COST * prod(extent[x] for x in ls) for ls in copied)


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
        self.cut_inner, self.inner_size = self._inner_cut()
        self.cut_out = self._outer_cut()
        self.panel = self._panel()

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

    def _inner_cut(self) -> tuple[str | None, int]:
        """Return the aggregated label that is walked in parts, and the extent of a part."""
        nest, total = self.nest, prod(self.extent[x] for x in self.nest.inner)
        lanes = nest.width * nest.count if nest.vector in nest.inner else 1
        if total <= 2 * _TERMS * lanes:
            return None, 0
        label = max(nest.inner, key=lambda x: self.extent[x])
        others = total // self.extent[label]
        size = max(_TERMS * lanes // max(others, 1), nest.width)
        return (label, size) if size < self.extent[label] else (None, 0)

    def _outer_cut(self) -> str | None:
        """Return the label of the result that is cut where copies for the lanes would be large."""
        names = [x for x in self.nest.out if self.extent[x] > 1]
        plain = [x for x in names if x != self.nest.vector] or names
        return max(plain, key=lambda x: self.extent[x], default=None)

    def _panel(self) -> tuple[str | None, int]:
        """Return the vector label and the lanes of a step, where what rows share is worth a copy.

        Lanes of one step that lie side by side for all terms of a sum are read without a miss.
        """
        nest = self.nest
        if nest.rows is None or self.extent[nest.rows] < _MANY_ROWS:
            return None, 0
        shared = [ls for ls, _ in nest.arrays if nest.vector in ls and nest.rows not in ls]
        if any(x not in (nest.vector, *nest.inner) for ls in shared for x in ls):
            return None, 0  # it would be copied again for each step of other labels
        step = nest.width * nest.count
        terms = prod(self.extent[x] for x in nest.inner if x != self.cut_inner) * (self.inner_size or 1)
        row = max(terms, 1) * max(d.itemsize for _, d in nest.arrays)
        return nest.vector, step * max(1, _PANEL_BYTES // (row * step))

    def _as_panel(self, x: np.ndarray, labels: Labels) -> np.ndarray:
        d = labels.index(self.nest.vector)
        return np.moveaxis(np.moveaxis(x, d, -1).copy(), -1, d)

    def prepared(self, k: int, block: np.ndarray) -> np.ndarray:
        """Return `block`, or a copy that many calls read faster as their input `k`."""
        labels = self.written[k]
        return block if len(set(labels)) < len(labels) else self._side_by_side(block, labels)

    def __call__(
        self,
        blocks: Sequence[np.ndarray],
        at: tuple[int, ...],
        params: Mapping[str, np.generic],
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the result, in `out` if that is given."""
        result = np.empty(self.shape, self.dtype) if out is None else out
        call = self.safe if self.swift is None or not self._is_ordered(blocks) else self.swift
        strides = (result.strides, *[x.strides for x in blocks])
        if strides not in self._plain:
            self._plain[strides] = self._straight(blocks, result)
        after = self._plain[strides]
        if after is None:
            self._pieces(blocks, at, params, result, call)
            return result
        scalars = [np.asarray(params[name], dtype) for name, dtype in self.nest.params]
        places = [x.__array_interface__["data"][0] for x in (*blocks, *scalars, result)]
        call(self.pack(*places, *after[0], *[at[d] for d in self.at_labels], *after[1]))
        return result

    def _straight(
        self, blocks: Sequence[np.ndarray], result: np.ndarray
    ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return what stands in the table between and after places and first indices, if one call will do."""
        nest, vector = self.nest, self.nest.vector
        arrays = list(zip((*blocks, result), (*(ls for ls, _ in nest.arrays), self.out), strict=True))
        if self.written != tuple(ls for ls, _ in nest.arrays) or self.cut_inner is not None:
            return None
        if self.panel[0] is not None or not all(isinstance(x, np.ndarray) for x in blocks):
            return None
        if any(self._is_odd(x, labels) or not x.flags.aligned for x, labels in arrays):
            return None
        strides = [
            s
            for x, labels in arrays[:-1]
            for s, label in zip(x.strides, labels, strict=True)
            if label != vector
        ]
        of = dict(zip(self.out, result.strides, strict=True))
        strides += [of[x] for x in nest.out if x != vector]
        return (0, *[self.extent[x] for x in nest.labels]), tuple(strides)

    def _pieces(
        self,
        blocks: Sequence[np.ndarray],
        at: tuple[int, ...],
        params: Mapping[str, np.generic],
        result: np.ndarray,
        call: Callable[[bytes], None],
    ) -> None:
        arrays = [self._distinct(k, block) for k, block in enumerate(blocks)]
        scalars = [np.asarray(params[name], dtype) for name, dtype in self.nest.params]
        first = dict(zip(self.space, at, strict=True))
        for ranges in self._out_pieces([*arrays, result]):
            into = result[(*[slice(*ranges[x]) for x in self.out], ...)]
            target = self._side_by_side(into, self.out, fill=False)
            for resume, piece in enumerate(self._inner_pieces(ranges)):
                self._run(arrays, target, scalars, first, piece, resume, call)
            if target is not into:
                into[...] = target

    def _distinct(self, k: int, block: np.ndarray) -> np.ndarray:
        """Return the block with each label once: a view of its diagonal."""
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

    def _out_pieces(self, arrays: Sequence[np.ndarray]) -> Iterator[dict[str, tuple[int, int]]]:
        """Yield the pieces of the space that are made one after the other, as ranges of the labels."""
        whole = {x: (0, n) for x, n in self.extent.items()}
        label, size = self.panel
        if label is None:
            label = self.cut_out
            labels = [*(ls for ls, _ in self.nest.arrays), self.out]
            odd = [
                x.nbytes for x, ls in zip(arrays, labels, strict=True) if label in ls and self._is_odd(x, ls)
            ]
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
        arrays: Sequence[np.ndarray],
        target: np.ndarray,
        scalars: Sequence[np.ndarray],
        first: Mapping[str, int],
        ranges: Mapping[str, tuple[int, int]],
        resume: int,
        call: Callable[[bytes], None],
    ) -> None:
        nest, vector = self.nest, self.nest.vector
        places: list[int] = []
        strides: list[int] = []
        kept = []  # copies must live until the loops have run
        for x, (labels, _) in zip(arrays, nest.arrays, strict=True):
            x = x[tuple([slice(*ranges[label]) for label in labels])] if labels else x
            if self.panel[0] in labels and nest.rows not in labels:
                x = self._as_panel(x, labels)
            x = self._side_by_side(x, labels)
            kept.append(x)
            places.append(x.ctypes.data)
            strides += [s for s, label in zip(x.strides, labels, strict=True) if label != vector]
        places += [x.ctypes.data for x in scalars]
        places += [target.ctypes.data, resume]
        places += [ranges[x][1] - ranges[x][0] for x in nest.labels]
        places += [first[x] + ranges[x][0] for x in self.sorted]
        of = dict(zip(self.out, target.strides, strict=True))
        call(self.pack(*places, *strides, *[of[x] for x in nest.out if x != vector]))
