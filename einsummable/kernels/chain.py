"""Several einsummables run as one: tile by tile along the labels they share.

Contract: `chain` answers a kernel for links of which only the last one's result is wanted.  Where tiling pays
(see `sharing.tile`), a tile runs through all links before the next begins, in buffers that are reused, so
no intermediate is ever whole in memory; where it does not, the links run one after the other, and maps
write over what they read.  What a mask hides from a tile is not computed (see `shadow`).  The kernel takes
the first indices of every link's ranges, in one tuple each; else it is called as `blocks.Kernel` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np

from einsummable.functions import AGGREGATES
from einsummable.graph import Einsummable
from einsummable.kernels import masks, sharing
from einsummable.kernels.blocks import Call, Kernel, prepare
from einsummable.kernels.compiled import Compiled, product_of_tiles
from einsummable.kernels.contraction import Contraction
from einsummable.kernels.shadow import shadow

_Range: TypeAlias = tuple[int, int]
#: The range of each thread that is cut.
_Tile: TypeAlias = tuple[tuple[int, _Range], ...]
_Index: TypeAlias = tuple


@dataclass(frozen=True, slots=True)
class Link:
    """A call on a block with extents `shape` of its space.

    Below the number of the chain's inputs, `reads` name these, from there on the results of earlier links.
    """

    call: Call
    shape: tuple[int, ...]
    reads: tuple[int, ...]


@lru_cache(maxsize=512)
def chain(links: tuple[Link, ...], inputs: int) -> Chain:
    """Return the kernel of `links`, einsummables that read `inputs` blocks and one another."""
    return Chain(links, inputs)


@dataclass(frozen=True, slots=True)
class _Operand:
    """What a link reads as one input: an earlier link's result (by number, else -1), or `part` of a block.

    A block that the fastest thread does not cut is read again and again: then `lasting` is what of it is laid
    out once as the kernel likes it, and `part` is a part of that.
    """

    block: int
    earlier: int
    part: _Index
    lasting: _Index | None = None


@dataclass(frozen=True, slots=True)
class _Plan:
    """A link on a tile.

    Attributes
    ----------
    kernel, operands
        What is called with what.
    shift
        What the tile adds to the first indices of the block, None where the kernel does not look at them.
    shape, part
        Extents of the result, and where in the chain's result it is, if it goes there.
    aside
        Whether the kernel must not write where it goes, since it reads that again.
    """

    kernel: Kernel
    operands: tuple[_Operand, ...]
    shift: tuple[int, ...] | None
    shape: tuple[int, ...]
    part: _Index
    aside: bool


class Chain:
    """A kernel of several links; the first call on a shape prepares the kernels of its tiles."""

    def __init__(self, links: tuple[Link, ...], inputs: int) -> None:
        self.links, self.inputs, self.last = links, inputs, len(links) - 1
        self.nodes: list[Einsummable] = [link.call.node for link in links]
        members = [(node, link.reads) for node, link in zip(self.nodes, links, strict=True)]
        self.threads = sharing.threads(members, inputs)
        self.sizes = sharing.tile(members, inputs, [link.shape for link in links], self.threads)
        self.extents = [
            {x: n for (x, _), n in zip(node.space, link.shape, strict=True)}
            for node, link in zip(self.nodes, links, strict=True)
        ]
        self.over = [sharing.writes_over(members, inputs, s) for s in range(len(links))]
        self.slots = self._slots()
        self.shadow = shadow(members, inputs, self.threads)
        self._plans: dict[tuple[int, _Tile], _Plan] = {}
        self._visible: dict[tuple, _Range] = {}
        self.constants: dict[tuple[int, ...], np.ndarray] = {}
        for s in range(len(links)):  # what tiles need is compiled before anybody waits for it
            self.plan(s, next(self.tiles()))

    def _extent(self, t: int) -> int:
        return self.extents[self.last][self.threads[t].labels[self.last]]

    def _slots(self) -> list[int]:
        """Return the buffer of every link's result: that of what it writes over, else one that is free.

        The last slot is the result itself.
        """
        slots, owner = [-1] * len(self.links), self.last
        while owner >= 0:
            slots[owner] = 0
            owner = self.over[owner]
        last_read = {j - self.inputs: s for s, link in enumerate(self.links) for j in link.reads}
        free: list[int] = []
        made = 1
        for s in range(len(self.links)):
            if slots[s] < 0 and self.over[s] >= 0:
                slots[s] = slots[self.over[s]]
            elif slots[s] < 0:
                slots[s] = free.pop() if free else made
                made = max(made, slots[s] + 1)
            read = {j - self.inputs for j in self.links[s].reads if j >= self.inputs}
            free += [slots[p] for p in read if last_read[p] == s and slots[p] not in (0, slots[s])]
        return slots

    def tiles(self) -> Iterator[_Tile]:
        """Yield the tiles of the result."""
        cuts = []
        for t, size in self.sizes.items():
            n = self._extent(t)
            cuts.append([(t, (a, min(a + size, n))) for a in range(0, n, size)])
        return product(*cuts)

    def ranges(self, s: int, tile: _Tile) -> dict[str, _Range]:
        """Return the ranges of the labels of link `s` on a tile, from the start of its block."""
        ranges = {x: (0, n) for x, n in self.extents[s].items()}
        for t, cut in tile:
            label = self.threads[t].labels.get(s)
            if label is not None:
                ranges[label] = cut
        return ranges

    def plan(self, s: int, tile: _Tile) -> _Plan:
        """Return what link `s` does on a tile."""
        if (s, tile) not in self._plans:
            self._plans[s, tile] = self._planned(s, tile)
        return self._plans[s, tile]

    def _planned(self, s: int, tile: _Tile) -> _Plan:
        node, ranges = self.nodes[s], self.ranges(s, tile)
        operands = tuple(self._operand(s, k, ranges) for k in range(len(node.labels)))
        call, extents = self.links[s].call, tuple(b - a for a, b in ranges.values())
        lasting = tuple(k for k, operand in enumerate(operands) if operand.lasting is not None)
        kernel = product_of_tiles(node, call.args, extents, lasting) if node.is_contraction else None
        if kernel is None:
            kernel = prepare(call, extents)
        shift = tuple(a for a, _ in ranges.values()) if node.join.labels else None
        shape = tuple(ranges[x][1] - ranges[x][0] for x in node.out)
        aside = self.over[s] >= 0 and not isinstance(kernel, Compiled)
        return _Plan(kernel, operands, shift, shape, _index(node.out, ranges), aside)

    def _operand(self, s: int, k: int, ranges: Mapping[str, _Range]) -> _Operand:
        j, labels = self.links[s].reads[k], self.nodes[s].labels[k]
        if j >= self.inputs:
            return _Operand(-1, j - self.inputs, ())
        fastest = next(reversed(self.sizes), None)
        if fastest is None or self.threads[fastest].labels[s] in labels:
            return _Operand(j, -1, _index(labels, ranges))
        hidden = None if self.shadow is None else self.threads[self.shadow.thread].labels.get(s)
        whole = dict(ranges) if hidden is None else {**ranges, hidden: (0, self.extents[s][hidden])}
        inside = {x: r if x == hidden else (0, r[1] - r[0]) for x, r in ranges.items()}
        return _Operand(j, -1, _index(labels, inside), _index(labels, whole))

    def visible(self, at: Sequence[tuple[int, ...]], tile: _Tile) -> _Range:
        """Return the range, in its block, of the label that a mask hides, of which something is seen."""
        found = self.shadow
        node, ranges = self.nodes[found.link], self.ranges(found.link, tile)
        first = {x: a for (x, _), a in zip(node.space, at[found.link], strict=True)}
        seen = {x: (first[x] + ranges[x][0], first[x] + ranges[x][1]) for x in found.mask.labels}
        key = tuple(seen.items())
        if key not in self._visible:
            label = self.threads[found.thread].labels[found.link]
            start, stop = masks.live(node.join, found.mask, label, seen, dead=found.dead)
            self._visible[key] = start - first[label], stop - first[label]
        return self._visible[key]

    # ------------------------------------------------------------------------------------ running

    def __call__(
        self,
        blocks: Sequence[np.ndarray],
        at: Sequence[tuple[int, ...]],
        params: Mapping[str, np.generic],
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the result of the last link."""
        node = self.nodes[self.last]
        if out is None:
            out = np.empty(tuple(self.extents[self.last][x] for x in node.out), node.dtype)
        _Run(self, blocks, at, params, out).run()
        return out


def _index(labels: Sequence[str], ranges: Mapping[str, _Range]) -> _Index:
    """Return numpy's index for the ranges of some labels; the dots keep it an array."""
    return (*[slice(*ranges[x]) for x in labels], ...)


class _Run:
    """One call: its blocks and its buffers."""

    def __init__(
        self,
        of: Chain,
        blocks: Sequence[np.ndarray],
        at: Sequence[tuple[int, ...]],
        params: Mapping[str, np.generic],
        out: np.ndarray,
    ) -> None:
        self.of, self.blocks, self.at, self.params, self.out = of, blocks, at, params, out
        self.rooms: dict[int, np.ndarray] = {}
        self.finite: dict[int, bool] = {}
        self.laid_out: dict[tuple[int, int], tuple[_Index, np.ndarray]] = {}

    def run(self) -> None:
        """Write all tiles of the result."""
        for tile in self.of.tiles():
            self.tile(tile)

    def tile(self, tile: _Tile) -> None:
        """Write one tile of the result."""
        found = self.of.shadow
        if found is not None:
            visible = self.of.visible(self.at, tile)
            extent = self.of.extents[found.link][self.of.threads[found.thread].labels[found.link]]
            seen = visible[0] < visible[1] and visible != (0, extent)
            if seen and self.shadowed(tile, visible, extent):
                return
        values: list[np.ndarray] = []
        for s in range(len(self.of.links)):
            values.append(self.step(s, tile, values))

    def shadowed(self, tile: _Tile, visible: _Range, extent: int) -> bool:
        """Write one tile from what is visible of it; return whether that is all that it takes."""
        of, found = self.of, self.of.shadow
        seen = (*tile, (found.thread, visible))
        hidden = visible[1] if visible[1] < extent else visible[0] - 1
        unseen = (*tile, (found.thread, (hidden, hidden + 1)))
        values: list[np.ndarray] = []
        standing: dict[int, np.ndarray] = {}
        for s in range(len(of.links)):
            if s in found.checked and not self.is_spared(s, unseen, values, standing):
                return False
            values.append(self.step(s, seen, values))
            if s in found.represented:
                standing[s] = self.representative(s, unseen, values, standing)
        if of.last in standing:
            for part in ((0, visible[0]), (visible[1], extent)):
                where = of.ranges(of.last, (*tile, (found.thread, part)))
                self.out[_index(of.nodes[of.last].out, where)] = standing[of.last]
        return True

    def is_spared(
        self,
        s: int,
        unseen: _Tile,
        values: Sequence[np.ndarray],
        standing: Mapping[int, np.ndarray],
    ) -> bool:
        """Return whether link `s` needs nothing of what is hidden from it."""
        of, link, node = self.of, self.of.links[s], self.of.nodes[s]
        represented, label = of.shadow.checked[s], of.threads[of.shadow.thread].labels[s]
        if len(represented) < sum(label in labels for labels in node.labels):
            (k,) = represented
            if standing[link.reads[k] - of.inputs].any():
                return False
            return all(self.is_finite(j) for i, j in enumerate(link.reads) if i != k)
        if node.join.is_copy:
            value = standing[link.reads[0] - of.inputs]
        else:
            value = self.representative(s, unseen, values, standing)
        if node.aggregate == "sum":
            return not value.any()
        return bool((value == AGGREGATES[node.aggregate].identity(value.dtype)).all())

    def is_finite(self, j: int) -> bool:
        """Return whether input `j` holds neither nan nor infinities."""
        if j not in self.finite:
            x = self.blocks[j]
            self.finite[j] = x.dtype.kind in "biu" or bool(np.isfinite(x).all())
        return self.finite[j]

    def representative(
        self,
        s: int,
        unseen: _Tile,
        values: Sequence[np.ndarray],
        standing: Mapping[int, np.ndarray],
    ) -> np.ndarray:
        """Return what link `s` makes where the mask hides, with extent 1 along the label that it hides."""
        of, node = self.of, self.of.nodes[s]
        plan = of.plan(s, unseen)
        constant = s == of.shadow.link and of.shadow.constant
        if constant and plan.shape in of.constants:
            return of.constants[plan.shape]
        label, ranges, reads = of.threads[of.shadow.thread].labels[s], of.ranges(s, unseen), []
        for k, operand in enumerate(plan.operands):
            if operand.earlier in standing:
                reads.append(standing[operand.earlier])
            elif operand.earlier >= 0 and label in node.labels[k]:  # the mask does not look at it
                shape = [ranges[x][1] - ranges[x][0] for x in node.labels[k]]
                reads.append(np.zeros(shape, values[operand.earlier].dtype))
            else:
                reads.append(self.operand(s, k, plan, values))
        value = plan.kernel(reads, self.first(s, plan), self.params)
        if constant:
            of.constants[plan.shape] = value
        return value

    def step(self, s: int, tile: _Tile, values: Sequence[np.ndarray]) -> np.ndarray:
        """Run link `s` on a tile."""
        plan = self.of.plan(s, tile)
        reads = [self.operand(s, k, plan, values) for k in range(len(plan.operands))]
        into = self.room(s, plan)
        if plan.aside:
            into[...] = plan.kernel(reads, self.first(s, plan), self.params)
            return into
        return plan.kernel(reads, self.first(s, plan), self.params, into)

    def first(self, s: int, plan: _Plan) -> tuple[int, ...]:
        """Return the first indices of the ranges of link `s` on the tile of `plan`."""
        if plan.shift is None:
            return self.at[s]
        return tuple([a + b for a, b in zip(self.at[s], plan.shift, strict=True)])

    def operand(self, s: int, k: int, plan: _Plan, values: Sequence[np.ndarray]) -> np.ndarray:
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

    def room(self, s: int, plan: _Plan) -> np.ndarray:
        """Return where the result of link `s` goes."""
        slot = self.of.slots[s]
        if slot == 0:
            return self.out[plan.part]
        dtype = self.of.nodes[s].dtype
        size = prod(plan.shape) * dtype.itemsize
        if slot not in self.rooms or self.rooms[slot].nbytes < size:
            self.rooms[slot] = np.empty(size, np.uint8)
        return self.rooms[slot][:size].view(dtype).reshape(plan.shape)
