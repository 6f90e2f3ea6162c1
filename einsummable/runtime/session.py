"""Tensors that live on the engines of a cluster, block by block, until they are freed.

Contract: a `DistributedTensor` has a shape, a dtype and a `Layout`, and a number for each of its blocks,
under which the site that the layout names keeps it.  Blocks are never modified.  They are dropped when the
tensor is freed or garbage-collected.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import product
from math import prod
from types import EllipsisType
from typing import TypeAlias

import numpy as np

from einsummable import dtypes, mapped
from einsummable.errors import EngineError, ShapeError
from einsummable.nodes import Box, box_shape
from einsummable.planner.partition import cut
from einsummable.planner.plan import Layout
from einsummable.runtime import wire
from einsummable.runtime.engines import Engines

#: What selects along one dimension.
Index: TypeAlias = "int | slice | EllipsisType"


class DistributedTensor:
    """A tensor whose blocks are on the engines of a cluster.

    Attributes
    ----------
    shape, dtype
        As of an array.
    layout
        The parts of each dimension, and the site of each block.
    """

    def __init__(self, engines: Engines, shape: tuple[int, ...], dtype: np.dtype, layout: Layout) -> None:
        self.shape, self.dtype, self.layout = tuple(shape), np.dtype(dtype), layout
        self._engines = engines
        self._there: dict[tuple[int, Box], int] | None = None
        self._numbers = tuple(engines.number() for _ in layout.sites)
        for number, site, box in zip(self._numbers, layout.sites, self._boxes(), strict=True):
            engines.kept[number] = site, prod(box_shape(box)) * self.dtype.itemsize
        self._drop = weakref.finalize(self, _drop, engines, layout.sites, self._numbers)
        self._drop.atexit = False

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all blocks together."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def there(self) -> dict[tuple[int, Box], int]:
        """The number of each block by its site and box; `EngineError` if the tensor was freed."""
        if self._there is None:
            self._there = {(site, box): number for site, box, number in self.blocks}
        elif not self._drop.alive:
            raise EngineError(f"{self!r} is used")
        return self._there

    @property
    def blocks(self) -> list[tuple[int, Box, int]]:
        """For each block its site, its box and its number; `EngineError` if the tensor was freed."""
        if not self._drop.alive:
            raise EngineError(f"{self!r} is used")
        return list(zip(self.layout.sites, self._boxes(), self._numbers, strict=True))

    def _boxes(self) -> tuple[Box, ...]:
        return _cut(self.shape, self.layout.parts)

    def is_on(self, engines: Engines) -> bool:
        """Return whether these are the engines that hold the blocks."""
        return self._engines is engines

    def store(self, array: np.ndarray) -> None:
        """Let the sites have their blocks, cast to the tensor's dtype, and return when all have them.

        A site that sees the file that `array` is mapped from reads its blocks there; to others they are sent.
        """
        region = mapped.region(array)
        reading = {
            site for site in set(self.layout.sites) if region and self._engines.sees(site, region.file)
        }
        with self._engines.exchange() as exchange:
            for site, box, number in self.blocks:
                if site in reading:
                    exchange.send(site, wire.LOAD, number, wire.pack_load(region.part(box), self.dtype))
                else:
                    block = array[(*_index(box), ...)].astype(self.dtype, copy=False)
                    exchange.send(site, wire.STORE, number, block)
            exchange.gather(self.layout.sites)

    def fetch(self, part: Index | tuple[Index, ...] = ...) -> np.ndarray:
        """Return the tensor, or a part of it, as an array of this process; only blocks with that part move.

        Parameters
        ----------
        part
            As an array is indexed: whole numbers, slices, an ellipsis.  ``tensor[part]`` is the same.

        Raises
        ------
        ShapeError
            There is no such part.
        EngineError
            An engine that had a block is gone, or the tensor was freed.
        """
        bounds, rest = _bounds(part, self.shape)
        pieces = [(site, box, n) for site, box, n in self.blocks if _overlap(box, bounds) is not None]
        with self._engines.exchange() as exchange:
            for site, _, number in pieces:
                exchange.send(site, wire.FETCH, number)
            found = {answer.tag: answer.payload for answer in exchange.gather(site for site, *_ in pieces)}
        if len(pieces) == 1 and pieces[0][1] == bounds:
            only = found[pieces[0][2]]
            if only.flags.writeable:  # else it is lent by the engine
                return only.view(self.dtype).reshape(self.shape)[rest]
        whole = np.empty(box_shape(bounds), self.dtype)
        for _, box, number in pieces:
            block = found[number].view(self.dtype).reshape(box_shape(box))
            common = _overlap(box, bounds)
            whole[_index(_within(common, bounds))] = block[_index(_within(common, box))]
        return whole[rest]

    __getitem__ = fetch

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        """Return the fetched tensor: what ``numpy.asarray`` calls."""
        if copy is False:
            raise ValueError("a tensor on engines is always copied when it is fetched")
        return self.fetch().astype(dtype or self.dtype, copy=False)

    def free(self) -> None:
        """Drop the blocks now."""
        self._drop()

    def forget(self) -> None:
        """Note that the engines have dropped the blocks by themselves."""
        if self._drop.detach() is not None:
            for number in self._numbers:
                del self._engines.kept[number]

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        if not self._drop.alive:
            return f"<DistributedTensor [{shape}] {dtypes.name(self.dtype)}, freed>"
        sites = sorted(set(self.layout.sites))
        parts = "×".join(map(str, self.layout.parts)) or "1"
        plural = "s" if len(self.layout.sites) != 1 else ""
        where = ", ".join(map(str, sites))
        return (
            f"<DistributedTensor [{shape}] {dtypes.name(self.dtype)}, {parts} block{plural} on "
            f"site{'s' if len(sites) != 1 else ''} {where}>"
        )


@contextmanager
def giving_up(tensors: Sequence[DistributedTensor]) -> Iterator[None]:
    """Take `tensors` to be no more after a run that is given their blocks, however it ends."""
    try:
        yield
    except BaseException:
        for tensor in tensors:  # who knows which engines came to drop them
            tensor.free()
        raise
    for tensor in tensors:
        tensor.forget()


def split_evenly(shape: tuple[int, ...], sites: int) -> Layout:
    """Return the layout that cuts the longest dimension into a block for each site, as far as it goes."""
    parts = [1] * len(shape)
    if shape and max(shape) > 0:
        longest = max(range(len(shape)), key=shape.__getitem__)
        parts[longest] = min(sites, shape[longest])
    return Layout(tuple(parts), tuple(range(max(parts, default=1))))


def layout_of(shape: tuple[int, ...], boxes: list[Box], sites: list[int]) -> Layout | None:
    """Return the layout with these blocks in this order, None if none has them: they are not near-equal."""
    parts = tuple(len({box[d] for box in boxes}) for d in range(len(shape)))
    return Layout(parts, tuple(sites)) if _cut(tuple(shape), parts) == tuple(boxes) else None


@lru_cache(maxsize=1024)  # a loop of small programs asks for the same boxes again and again
def _cut(shape: tuple[int, ...], parts: tuple[int, ...]) -> tuple[Box, ...]:
    return tuple(product(*(cut(n, k) for n, k in zip(shape, parts, strict=True))))


def _bounds(part: Index | tuple[Index, ...], shape: tuple[int, ...]) -> tuple[Box, tuple[Index, ...]]:
    """Return the smallest box with all of `part`, and what to take of that."""
    key = list(part) if isinstance(part, tuple) else [part]
    if sum(k is ... for k in key) > 1 or len(key) - (... in key) > len(shape):
        raise ShapeError(f"a tensor of {len(shape)} dimensions has no part {part!r}")
    at = key.index(...) if ... in key else len(key)
    key[at : at + 1] = [slice(None)] * (len(shape) - len(key) + (... in key))
    box, rest = [], []
    for k, n in zip(key, shape, strict=True):
        if isinstance(k, slice):
            steps = range(*k.indices(n))
            box.append((min(steps[0], steps[-1]), max(steps[0], steps[-1]) + 1) if steps else (0, 0))
            rest.append(slice(None, None, steps.step))
        elif isinstance(k, int | np.integer) and -n <= k < n:
            box.append((int(k) % n, int(k) % n + 1))
            rest.append(0)
        else:
            raise ShapeError(f"a dimension of extent {n} has no part {k!r}")
    return tuple(box), (*rest, ...)


def _overlap(a: Box, b: Box) -> Box | None:
    """Return what two boxes share, None if that is nothing."""
    common = tuple((max(s, t), min(e, f)) for (s, e), (t, f) in zip(a, b, strict=True))
    return common if all(start < stop for start, stop in common) else None


def _within(box: Box, outer: Box) -> Box:
    return tuple((start - first, stop - first) for (start, stop), (first, _) in zip(box, outer, strict=True))


def _index(box: Box) -> tuple[slice, ...]:
    return tuple(slice(start, stop) for start, stop in box)


def _drop(engines: Engines, sites: tuple[int, ...], numbers: tuple[int, ...]) -> None:
    for site, number in zip(sites, numbers, strict=True):
        del engines.kept[number]
        engines.tell(site, wire.FREE, number)
