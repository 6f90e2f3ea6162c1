"""Every einsummable that is no matrix product: any join of any number of inputs, any aggregate.

Contract: `fused` answers a kernel that walks the block's iteration space in pieces.  A piece evaluates the
whole join in temporaries of at most `PIECE_BYTES` each, which stay in the cache and are reused from piece to
piece, and aggregates into the result or writes there at once.  So the space may be far larger than memory,
and a chain of elementwise operations reads and writes memory once.  dtypes are those of `scalar.infer`;
16-bit floats are aggregated in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

import numpy as np

from einsummable import dtypes
from einsummable.dtypes import ScalarType
from einsummable.functions import AGGREGATES
from einsummable.kernels import tiling
from einsummable.kernels.joins import Register, Source, Step, compile_join
from einsummable.kernels.tiling import Labels
from einsummable.kernels.warm import empty
from einsummable.nodes import Einsummable
from einsummable.scalar import Arg, Const, Label, Param

#: The most that one temporary takes.  Two or three of them fit the second-level cache.
PIECE_BYTES = 1 << 18

_ALL = slice(None)
_Blocks: TypeAlias = Sequence[np.ndarray]
_Scalars: TypeAlias = Mapping[str, np.generic]
_Fill: TypeAlias = Callable[[_Blocks, tuple[int, ...], _Scalars], np.ndarray]
_Kernel: TypeAlias = Callable[..., np.ndarray]  # as `blocks.Kernel` says


def fused(
    node: Einsummable,
    args: tuple[np.dtype, ...],
    params: tuple[tuple[str, ScalarType], ...],
    shape: tuple[int, ...],
    piece_bytes: int = PIECE_BYTES,
) -> _Kernel:
    """Return the kernel of `node` for a block of its space with extents `shape`."""
    wide = node.dtype if node.aggregate is None else dtypes.accumulator(node.dtype)
    if node.aggregate is not None and 0 in shape:
        return _empty(shape[: len(node.out)], AGGREGATES[node.aggregate].identity(wide), node.dtype)
    extent = {label: n for (label, _), n in zip(node.space, shape, strict=True)}
    to_bool = dtypes.BOOL if node.aggregate in ("any", "all") else None
    registers = compile_join(node.join, node.labels, args, params, to_bool)
    return _Fused(node, registers, extent, wide, piece_bytes)


def _empty(shape: tuple[int, ...], identity: object, dtype: np.dtype) -> _Kernel:
    def kernel(_blocks: object, _at: object, _params: object, out: np.ndarray | None = None) -> np.ndarray:
        out = np.empty(shape, dtype) if out is None else out
        out[...] = identity
        return out

    return kernel


class _Place(Enum):
    """Where a step puts its result."""

    NEW = auto()
    OPERAND = auto()
    BUFFER = auto()
    RESULT = auto()


@dataclass(frozen=True, slots=True)
class _Placed:
    """A step of a piece: it fills register `r`; `operand` is the register it writes over, if it does."""

    function: Callable[..., np.ndarray]
    operands: tuple[int, ...]
    r: int
    place: _Place
    operand: int = -1


class _Fused:
    """A kernel.  All that does not depend on values is decided once, when it is made."""

    def __init__(
        self,
        node: Einsummable,
        registers: tuple[Register, ...],
        extent: dict[str, int],
        wide: np.dtype,
        piece_bytes: int,
    ) -> None:
        self.registers, self.extent, self.out = registers, extent, frozenset(node.out)
        self.dtype, self.wide, self.shape = node.dtype, wide, tuple(extent[x] for x in node.out)
        self.ufunc = AGGREGATES[node.aggregate].ufunc if node.aggregate else None
        self.order, single = tiling.layout(node.labels, node.out, extent)
        self.size = self._piece_size(single, piece_bytes)
        self.tiled = frozenset(x for x in self.order if self.size[x] < extent[x])
        self.transposition = tuple(node.out.index(x) for x in self.order if x in self.out)
        self.axes = tuple(d for d, x in enumerate(self.order) if x not in self.out)
        self.one_by_one = all(self.size[self.order[d]] == 1 for d in self.axes)
        self.first = tuple(0 if x not in self.out else _ALL for x in self.order)
        value = registers[-1].labels
        self.spread = not value or any(x not in value and extent[x] > 1 for x in self.order)
        space = [label for label, _ in node.space]
        self.fills = [_filling(r, node.labels, space, self.order, extent) for r in registers]
        self.once, self.steps = self._place_steps()

    def _piece_size(self, single: frozenset[str], piece_bytes: int) -> dict[str, int]:
        temporaries = [
            r for i, r in enumerate(self.registers) if isinstance(r.source, Step) and not self._is_result(i)
        ]
        needed = frozenset[str]().union(*(r.labels for r in temporaries))
        itemsize = max((r.dtype.itemsize for r in temporaries), default=1)
        return tiling.tile(self.order, self.extent, needed, single, max(piece_bytes // itemsize, 1))

    def _is_result(self, i: int) -> bool:
        """Return whether register `i` can be computed in the result's own memory."""
        source, dtype = self.registers[i].source, self.registers[i].dtype
        last = i == len(self.registers) - 1 and self.ufunc is None
        return last and isinstance(source, Step) and source.takes_out and dtype == self.dtype

    def _place_steps(self) -> tuple[list[_Placed], list[_Placed]]:
        """Return the steps that run once, and those that run for every piece."""
        final_use = {
            o: i
            for i, r in enumerate(self.registers)
            if isinstance(r.source, Step)
            for o in r.source.operands
        }
        once: list[_Placed] = []
        steps: list[_Placed] = []
        spare: set[int] = set()  # registers whose memory is a piece's own
        for i, r in enumerate(self.registers):
            step = r.source
            if not isinstance(step, Step):
                continue
            if self._is_result(i):
                steps.append(_Placed(step.function, step.operands, i, _Place.RESULT))
            elif self.tiled and r.labels.isdisjoint(self.tiled):
                once.append(_Placed(step.function, step.operands, i, _Place.NEW))
            elif not step.takes_out or not r.labels:
                steps.append(_Placed(step.function, step.operands, i, _Place.NEW))
            else:
                over = [o for o in step.operands if o in spare and final_use[o] == i and self._alike(o, i)]
                place = _Place.BUFFER if self.tiled else _Place.NEW
                if over and step.in_place:
                    place = _Place.OPERAND
                steps.append(_Placed(step.function, step.operands, i, place, over[0] if over else -1))
                spare.add(i)
        return once, steps

    def _alike(self, a: int, b: int) -> bool:
        return (self.registers[a].labels, self.registers[a].dtype) == (
            self.registers[b].labels,
            self.registers[b].dtype,
        )

    # -------------------------------------------------------------------------------- running

    def __call__(
        self, blocks: _Blocks, at: tuple[int, ...], params: _Scalars, out: np.ndarray | None = None
    ) -> np.ndarray:
        result = out if out is not None and self.wide == self.dtype else empty(self.shape, self.wide)
        into = result.transpose(self.transposition)
        registers = [None if fill is None else fill(blocks, at, params) for fill in self.fills]
        for step in self.once:
            registers[step.r] = step.function(*[registers[o] for o in step.operands])
        if self.tiled:
            self._walk(registers, into)
        else:
            self._piece(registers, into, {}, tuple(self.extent[x] for x in self.order), first=True)
        if self.wide == self.dtype:
            return result
        if out is None:
            return result.astype(self.dtype)
        out[...] = result
        return out

    def _walk(self, registers: list, into: np.ndarray) -> None:
        order, tiled = self.order, self.tiled
        cut = [
            (r, registers[r], [x in tiled and x in register.labels for x in order])
            for r, register in enumerate(self.registers)
            if registers[r] is not None and not register.labels.isdisjoint(tiled)
        ]
        kept = [d for d, x in enumerate(order) if x in self.out]
        whole = tuple(self.size[x] for x in order)
        buffers = {
            step.r: np.empty(self._shape_of(step.r, whole), self.registers[step.r].dtype)
            for step in self.steps
            if step.place is _Place.BUFFER
        }
        for piece, first in tiling.pieces(order, self.out, self.extent, self.size):
            for r, array, mask in cut:
                registers[r] = array[tuple([s if m else _ALL for s, m in zip(piece, mask, strict=True)])]
            shape = tuple([s.stop - s.start for s in piece])
            room = buffers
            if shape != whole:
                room = {r: b[tuple([slice(n) for n in self._shape_of(r, shape)])] for r, b in buffers.items()}
            # The ellipsis keeps a result without dimensions an array.
            self._piece(registers, into[(*[piece[d] for d in kept], ...)], room, shape, first=first)

    def _shape_of(self, r: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        labels = self.registers[r].labels
        return tuple([n if x in labels else 1 for x, n in zip(self.order, shape, strict=True)])

    def _piece(
        self,
        registers: list,
        into: np.ndarray,
        buffers: Mapping[int, np.ndarray],
        shape: tuple[int, ...],
        *,
        first: bool,
    ) -> None:
        for step in self.steps:
            values = [registers[o] for o in step.operands]
            place = step.place
            if place is _Place.NEW:
                registers[step.r] = step.function(*values)
            elif place is _Place.OPERAND:
                registers[step.r] = step.function(*values, out=registers[step.operand])
            elif place is _Place.BUFFER:
                registers[step.r] = step.function(*values, out=buffers[step.r])
            else:
                step.function(*values, out=into)
                return
        value = registers[-1]
        if self.ufunc is None:
            into[...] = value
        else:
            self._aggregate(np.broadcast_to(value, shape) if self.spread else value, into, first=first)

    def _aggregate(self, value: np.ndarray, into: np.ndarray, *, first: bool) -> None:
        if self.one_by_one:
            part = value[self.first]
        elif first:
            self.ufunc.reduce(value, axis=self.axes, dtype=self.wide, out=into)
            return
        else:
            part = self.ufunc.reduce(value, axis=self.axes, dtype=self.wide)
        if first:
            into[...] = part
        else:
            self.ufunc(into, part, out=into)


def _filling(
    r: Register, labels: tuple[Labels, ...], space: list[str], order: Labels, extent: Mapping[str, int]
) -> _Fill | None:
    """Return what fills register `r` before the first piece, None for a step.

    Arrays are seen with one dimension for each label of `order`, of extent 1 where they lack it.
    """
    source: Source = r.source
    match source:
        case Arg(index):
            return _view(index, labels[index], order)
        case Label(name):
            d, n, shape = space.index(name), extent[name], [-1 if x == name else 1 for x in order]
            return lambda _blocks, at, _params: np.arange(at[d], at[d] + n).reshape(shape)
        case Const():
            value = np.asarray(source.value, r.dtype)
            return lambda _blocks, _at, _params: value
        case Param(name):
            return lambda _blocks, _at, params: np.asarray(params[name], r.dtype)
        case Step():
            return None


def _view(index: int, labels: Labels, order: Labels) -> _Fill:
    distinct = tuple(dict.fromkeys(labels))
    permutation = tuple(distinct.index(x) for x in order if x in distinct)
    spread = tuple(_ALL if x in distinct else None for x in order)
    if distinct == labels == order:
        return lambda blocks, _at, _params: blocks[index]
    if distinct == labels:
        return lambda blocks, _at, _params: blocks[index].transpose(permutation)[spread]
    subscripts, kept = [distinct.index(x) for x in labels], list(range(len(distinct)))
    return lambda blocks, _at, _params: np.einsum(blocks[index], subscripts, kept).transpose(permutation)[
        spread
    ]
