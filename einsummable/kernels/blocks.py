"""Kernels: what runs on the blocks of one task.

Contract: `prepare` turns a `Call` (a graph node without its place in the graph) and the extents of a block
of its iteration space into a `Kernel`; equal requests are answered from a cache.  A kernel is called with
the blocks it reads, the first index of every label's range, and the values of the scalars it reads.  It is
safe to call from several threads, never writes to its inputs, and makes a fresh array, except that
reshapes and selections may return a view; given ``out``, an array of the result's shape, dtype and any
strides that shares no memory with an input, or is the block that an update changes, it writes there and
returns that.  Slices, assembly and aggregation have the same form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Protocol

import numpy as np

from einsummable import dtypes, scalar
from einsummable.dtypes import ScalarType
from einsummable.errors import EinsummableError, ShapeError
from einsummable.functions import AGGREGATES
from einsummable.graph import EinGraph
from einsummable.kernels.compiled import compiled
from einsummable.kernels.contraction import contraction
from einsummable.kernels.fused import fused
from einsummable.kernels.gather import Lookup
from einsummable.kernels.scatter_add import ScatterAdd, labels_of_terms
from einsummable.kernels.update import Updating, update_of
from einsummable.kernels.warm import empty
from einsummable.nodes import (
    Concat,
    Einsummable,
    Gather,
    Input,
    Node,
    Origin,
    Position,
    Reshape,
    Select,
    box_shape,
)
from einsummable.onehot import one_hot


class Kernel(Protocol):
    """What `prepare` answers."""

    def __call__(
        self,
        blocks: Sequence[np.ndarray],
        at: tuple[int, ...],
        params: Mapping[str, np.generic],
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the block made of `blocks`, whose ranges start at `at`; in `out` if that is given."""


#: Multiplications in one product of matrices below which GEMM's own overhead dominates.
_TINY = 64


@dataclass(frozen=True, slots=True)
class Call:
    """All that a kernel depends on but the extents of the block: equal nodes of a graph make equal calls."""

    node: Node
    args: tuple[np.dtype, ...]
    params: tuple[tuple[str, ScalarType], ...] = ()

    @classmethod
    def of(cls, graph: EinGraph, node: Node) -> Call:
        """Return the call that `node` of `graph` makes."""
        match node:
            case Einsummable():
                reads = node.join.params
            case Select():
                reads = {p.param for p in node.positions}
            case _:
                reads = set()
        bare = replace(node, inputs=tuple(range(len(node.inputs))), origin=Origin())
        args = tuple(graph.nodes[j].dtype for j in node.inputs)
        return cls(bare, args, tuple(p for p in graph.param_types if p[0] in reads))


@lru_cache(maxsize=4096)
def prepare(call: Call, shape: tuple[int, ...]) -> Kernel:
    """Return the kernel of `call` for a block of the iteration space with extents `shape`."""
    node = call.node
    match node:
        case Einsummable():
            if _is_product(node, shape):
                return contraction(node, call.args, shape)
            if node.one_hot and all(dtypes.kind(call.args[k]) == "i" for _, k in node.one_hot):
                return _scatter_add(call, shape)
            update = update_of(node, call.args, call.params)
            if update is not None:
                return Updating(node, update, shape)
            loops = compiled(node, call.args, call.params, shape)
            return fused(node, call.args, call.params, shape) if loops is None else loops
        case Reshape():
            result = box_shape(node.out_box(tuple((0, n) for n in shape)))
            return lambda blocks, _at, _params, out=None: _given(blocks[0].reshape(result), out)
        case Select():
            return _selection(node)
        case Concat(axis=axis):
            return lambda blocks, _at, _params, out=None: np.concatenate(blocks, axis, out)
        case Gather():
            return Lookup(node, shape)
        case Input():
            raise EinsummableError(f"an input named {node.name!r} is not computed")


def _scatter_add(call: Call, shape: tuple[int, ...]) -> Kernel:
    """Return the kernel of a one-hot sum: what makes its terms is a kernel as well."""
    node, among = call.node, labels_of_terms(call.node)
    extents, here = dict(node.space), dict(zip(dict(node.space), shape, strict=True))
    value = one_hot(node.join).value
    terms = replace(
        node,
        out=among,
        space=tuple((label, extents[label]) for label in among),
        join=value,
        aggregate=None,
        dtype=scalar.result_dtype(value, call.args, call.params),
    )
    made = prepare(Call(terms, call.args, call.params), tuple(here[label] for label in among))
    return ScatterAdd(node, shape, made)


def _is_product(node: Einsummable, shape: tuple[int, ...]) -> bool:
    """Return whether `node` is best computed as matrix products."""
    if not node.is_contraction or 0 in shape:
        return False
    read = {label for labels in node.labels for label in labels}
    extent = {label: n for (label, _), n in zip(node.space, shape, strict=True)}
    if read != extent.keys():
        return False
    shared = set(node.labels[0]) & set(node.labels[1]) & set(node.out)
    each = prod(n for label, n in extent.items() if label not in shared)
    # A call of GEMM for each of many tiny matrices costs more than the elements do.
    return each >= _TINY or each * _TINY >= prod(shape)


def _selection(node: Select) -> Kernel:
    """Return the view that the positions make; an index that a scalar gives is checked."""

    def index(p: Position, extent: int, params: Mapping[str, np.generic]) -> slice | int:
        if p.param is None:
            return 0 if p.label is None else slice(None, None, p.step)
        value = int(params[p.param])
        if not -extent <= value < extent:
            raise ShapeError(f"the scalar {p.param!r} is {value}, the dimension it indexes has {extent}")
        return value

    pairs = list(zip(node.positions, node.source_shape, strict=True))
    return lambda blocks, _at, params, out=None: _given(
        blocks[0][(*[index(p, n, params) for p, n in pairs], ...)], out
    )


def _given(block: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    if out is None:
        return block
    out[...] = block
    return out


def slice_block(blocks: Sequence[np.ndarray], index: tuple, _params: object = None) -> np.ndarray:
    """Return a box of a block, as a view."""
    return blocks[0][index]


def assemble(
    blocks: Sequence[np.ndarray],
    how: tuple[tuple[int, ...], np.dtype, tuple[tuple[slice, ...], ...]],
    _params: object = None,
) -> np.ndarray:
    """Return a block of ``(shape, dtype, places)``, piece `i` at ``places[i]``."""
    shape, dtype, places = how
    block = empty(shape, dtype)
    for piece, place in zip(blocks, places, strict=True):
        block[place] = piece
    return block


def aggregate(blocks: Sequence[np.ndarray], how: tuple[str, int], _params: object = None) -> np.ndarray:
    """Return the elementwise aggregate of blocks of one shape; ``how`` is its name and which block to reuse.

    The block at that position (-1: none) takes the result, if it is writable.  16-bit floats are
    accumulated in float32.
    """
    name, reuse = how
    ufunc, dtype = AGGREGATES[name].ufunc, blocks[0].dtype
    if len(blocks) == 1:
        return blocks[0]
    wide = dtypes.accumulator(dtype)
    if wide != dtype:
        total = blocks[0].astype(wide)
        for block in blocks[1:]:
            ufunc(total, block, out=total)
        return total.astype(dtype)
    spare = blocks[reuse] if reuse >= 0 and blocks[reuse].flags.writeable else None
    if spare is None:
        total, rest = empty(blocks[0].shape, dtype), blocks[2:]
        ufunc(blocks[0], blocks[1], out=total)
    else:
        total, rest = spare, [b for i, b in enumerate(blocks) if i != reuse]
    for block in rest:
        ufunc(total, block, out=total)
    return total
