"""Several einsummables run as one: tile by tile along the labels they share.

Contract: `chain` answers a kernel for links of which only the last one's result is wanted.  Where tiling pays
(see `sharing.tile`), a tile runs through all links before the next begins, in buffers that are reused, so
no intermediate is ever whole in memory; where it does not, the links run one after the other, and maps
write over what they read.  What a mask hides from a tile is not computed (see `shadow`).  The kernel takes
the first indices of every link's ranges, in one tuple each; else it is called as `blocks.Kernel` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod

import numpy as np

from einsummable.functions import AGGREGATES
from einsummable.kernels.blocks import Kernel
from einsummable.kernels.compiled import Compiled
from einsummable.kernels.contraction import Contraction
from einsummable.kernels.panels import Panels
from einsummable.kernels.schedule import Index, Link, Plan, Schedule, Tile

#: Buffers begin at the start of a line of the cache.
_LINE = 64


@lru_cache(maxsize=512)
def chain(links: tuple[Link, ...], inputs: int) -> Chain:
    """Return the kernel of `links`, einsummables that read `inputs` blocks and one another."""
    return Chain(Schedule(links, inputs))


class Chain:
    """A kernel of several links."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        # What stands for a hidden part that is constant, by shape, and which links are spared by it.
        self.constants: dict[tuple[int, ...], np.ndarray] = {}
        self.spared: dict[tuple[int, tuple[int, ...]], bool] = {}

    def ready(self, at: Sequence[tuple[int, ...]]) -> None:
        """Choose and compile all that a call with these first indices needs, so that no call waits for it."""
        self.schedule.tiles(at)

    def __call__(
        self,
        blocks: Sequence[np.ndarray],
        at: Sequence[tuple[int, ...]],
        params: Mapping[str, np.generic],
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the result of the last link."""
        of = self.schedule
        if out is None:
            node = of.nodes[of.last]
            out = np.empty(tuple(of.extents[of.last][x] for x in node.out), node.dtype)
        run = _Run(self, blocks, at, params, out)
        for tile in of.tiles(at):
            run.tile(tile)
        return out


class _Run:
    """One call: its blocks and its buffers."""

    def __init__(
        self,
        chain: Chain,
        blocks: Sequence[np.ndarray],
        at: Sequence[tuple[int, ...]],
        params: Mapping[str, np.generic],
        out: np.ndarray,
    ) -> None:
        self.of, self.constants, self.spared = chain.schedule, chain.constants, chain.spared
        self.blocks, self.at, self.params, self.out = blocks, at, params, out
        self.rooms: dict[int, np.ndarray] = {}
        self.views: dict[tuple[int, tuple[int, ...]], np.ndarray] = {}
        self.bound: dict[tuple[int, Kernel], Callable[[], None]] = {}  # equal kernels find equal buffers
        self.finite: dict[int, bool] = {}
        self.laid_out: dict[tuple[int, int], tuple[Index, np.ndarray | Panels]] = {}

    def tile(self, tile: Tile) -> None:
        """Write one tile of the result."""
        if tile.unseen:
            if self.shadowed(tile):
                return
            tile = self.of.whole(tile.cut)
        values: list[np.ndarray] = []
        for s, plan in enumerate(tile.steps):
            values.append(self.step(s, plan, values))

    def shadowed(self, tile: Tile) -> bool:
        """Write one tile from what is visible of it; return whether that is all that it takes."""
        found = self.of.shadow
        values: list[np.ndarray] = []
        standing: dict[int, np.ndarray] = {}
        for s, plan in enumerate(tile.steps):
            if s in found.checked and not self.is_spared(s, tile, values, standing):
                return False
            values.append(self.step(s, plan, values))
            if s in found.represented:
                standing[s] = self.representative(s, tile, values, standing)
        for part in tile.hidden:
            self.out[part] = standing[self.of.last]
        return True

    def is_spared(
        self, s: int, tile: Tile, values: Sequence[np.ndarray], standing: Mapping[int, np.ndarray]
    ) -> bool:
        """Return whether link `s` needs nothing of what is hidden from it."""
        of, link, node = self.of, self.of.links[s], self.of.nodes[s]
        represented = of.shadow.checked[s]
        if of.is_product(s):
            (k,) = represented
            if standing[link.reads[k] - of.inputs].any():
                return False
            return all(self.is_finite(j) for i, j in enumerate(link.reads) if i != k)
        if not node.join.is_copy:
            return _is_identity(self.representative(s, tile, values, standing), node.aggregate)
        p = link.reads[0] - of.inputs
        if p != of.shadow.link or not of.shadow.constant:
            return _is_identity(standing[p], node.aggregate)
        key = s, standing[p].shape
        if key not in self.spared:
            self.spared[key] = _is_identity(standing[p], node.aggregate)
        return self.spared[key]

    def is_finite(self, j: int) -> bool:
        """Return whether input `j` holds neither nan nor infinities."""
        if j not in self.finite:
            x = self.blocks[j]
            self.finite[j] = x.dtype.kind in "biu" or bool(np.isfinite(x).all())
        return self.finite[j]

    def representative(
        self, s: int, tile: Tile, values: Sequence[np.ndarray], standing: Mapping[int, np.ndarray]
    ) -> np.ndarray:
        """Return what link `s` makes where the mask hides, with extent 1 along the label that it hides."""
        of, node, plan = self.of, self.of.nodes[s], tile.unseen[s]
        constant = s == of.shadow.link and of.shadow.constant
        if constant and plan.shape in self.constants:
            return self.constants[plan.shape]
        label, ranges, reads = of.threads[of.shadow.thread].labels[s], of.ranges(s, tile.cut), []
        for k, operand in enumerate(plan.operands):
            if operand.earlier in standing:
                reads.append(standing[operand.earlier])
            elif operand.earlier >= 0 and label in node.labels[k]:  # the mask does not look at it
                shape = [1 if x == label else ranges[x][1] - ranges[x][0] for x in node.labels[k]]
                reads.append(np.zeros(shape, values[operand.earlier].dtype))
            else:
                reads.append(self.operand(s, k, plan, values))
        value = plan.kernel(reads, self.first(s, plan), self.params)
        if constant:
            self.constants[plan.shape] = value
        return value

    def step(self, s: int, plan: Plan, values: Sequence[np.ndarray]) -> np.ndarray:
        """Run link `s` on a tile."""
        into = self.room(s, plan)
        again = self.bound.get((s, plan.kernel))
        if again is not None:
            again()
            return into
        reads = [
            values[operand.earlier] if operand.earlier >= 0 else self.operand(s, k, plan, values)
            for k, operand in enumerate(plan.operands)
        ]
        if plan.bindable:
            again = plan.kernel.bound(reads, self.at[s], into)
            if again is not None:
                self.bound[s, plan.kernel] = again
        if plan.aside:
            into[...] = plan.kernel(reads, self.first(s, plan), self.params)
            return into
        return plan.kernel(reads, self.first(s, plan), self.params, into)

    def first(self, s: int, plan: Plan) -> tuple[int, ...]:
        """Return the first indices of the ranges of link `s` on the tile of `plan`."""
        if plan.shift is None:
            return self.at[s]
        return tuple([a + b for a, b in zip(self.at[s], plan.shift, strict=True)])

    def operand(self, s: int, k: int, plan: Plan, values: Sequence[np.ndarray]) -> np.ndarray | Panels:
        """Return what link `s` reads as input `k`."""
        operand = plan.operands[k]
        if operand.earlier >= 0:
            return values[operand.earlier]
        if operand.lasting is None:
            return self.blocks[operand.block][operand.part]
        index, block = self.laid_out.get((s, k), (None, None))
        if index != operand.lasting:
            block = self.blocks[operand.block][operand.lasting]
            if isinstance(plan.kernel, Compiled | Contraction):
                block = plan.kernel.prepared(k, block)
            self.laid_out[s, k] = operand.lasting, block
        return block[operand.part]

    def room(self, s: int, plan: Plan) -> np.ndarray:
        """Return where the result of link `s` goes."""
        slot = self.of.slots[s]
        if slot == 0:
            return self.out[plan.part]
        view = self.views.get((s, plan.shape))
        if view is None:
            if slot not in self.rooms:
                room = np.empty(self.of.room_bytes[slot] + _LINE, np.uint8)
                self.rooms[slot] = room[-room.ctypes.data % _LINE :]
            dtype = self.of.nodes[s].dtype
            flat = self.rooms[slot][: prod(plan.shape) * dtype.itemsize]
            view = self.views[s, plan.shape] = flat.view(dtype).reshape(plan.shape)
        return view


def _is_identity(value: np.ndarray, aggregate: str) -> bool:
    """Return whether an aggregate is the same without the elements of `value`."""
    if aggregate == "sum":
        return not value.any()
    return bool((value == AGGREGATES[aggregate].identity(value.dtype)).all())
