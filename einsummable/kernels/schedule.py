"""What a chain of einsummables does on every tile: decided once, before anybody waits for it.

Contract: a `Schedule` answers, for the first indices of a block, its tiles in order: of each the steps, with
kernels chosen and compiled, and of one from which a mask hides something (see `shadow`) the steps on what is
visible, and those that make what stands for the rest.  Labels and extents decide, so equal blocks share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeAlias

from einsummable.kernels import masks, sharing
from einsummable.kernels.blocks import Call, Kernel, prepare
from einsummable.kernels.compiled import Compiled, product_of_tiles
from einsummable.kernels.shadow import shadow
from einsummable.nodes import Einsummable

Range: TypeAlias = tuple[int, int]
#: The range of each thread that is cut.
Cut: TypeAlias = tuple[tuple[int, Range], ...]
Index: TypeAlias = tuple


@dataclass(frozen=True, slots=True)
class Link:
    """A call on a block with extents `shape` of its space.

    Below the number of the chain's inputs, `reads` name these, from there on the results of earlier links.
    """

    call: Call
    shape: tuple[int, ...]
    reads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """What a link reads as one input: an earlier link's result (by number, else -1), or `part` of a block.

    A block that the fastest thread does not cut is read again and again: then `lasting` is what of it is laid
    out once as the kernel likes it, and `part` is a part of that.
    """

    block: int
    earlier: int
    part: Index
    lasting: Index | None = None


@dataclass(frozen=True, slots=True)
class Plan:
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
    bindable
        Whether every tile with this kernel calls it with the same buffers and first indices.
    """

    kernel: Kernel
    operands: tuple[Operand, ...]
    shift: tuple[int, ...] | None
    shape: tuple[int, ...]
    part: Index
    aside: bool
    bindable: bool


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of the result.

    Attributes
    ----------
    cut
        What it is.
    steps
        What each link does, where a mask hides something on what is visible.
    unseen
        Empty if nothing is hidden; else, for the links that need it, what makes one element of that.
    hidden
        Where in the chain's result the hidden part is, if its last link has one.
    """

    cut: Cut
    steps: tuple[Plan, ...]
    unseen: tuple[Plan | None, ...] = ()
    hidden: tuple[Index, ...] = ()


class Schedule:
    """The tiles of `links`, einsummables that read `inputs` blocks and one another."""

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
        self._plans: dict[tuple[int, Cut], Plan] = {}
        self._tiles: dict[tuple[int, ...], tuple[Tile, ...]] = {}
        self.room_bytes = self._room_bytes()

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

    def _room_bytes(self) -> dict[int, int]:
        """Return the size of every buffer; no tile is larger than the first."""
        sizes: dict[int, int] = {}
        for s, slot in enumerate(self.slots):
            size = prod(self.plan(s, next(self._cuts())).shape) * self.nodes[s].dtype.itemsize
            sizes[slot] = max(sizes.get(slot, 0), size)
        return sizes

    def tiles(self, at: Sequence[tuple[int, ...]]) -> tuple[Tile, ...]:
        """Return the tiles of a block; of every link, `at` has the first indices of its ranges."""
        key = () if self.shadow is None else tuple(at[self.shadow.link])
        if key not in self._tiles:
            self._tiles[key] = tuple(self._tile(at, cut) for cut in self._cuts())
        return self._tiles[key]

    def _tile(self, at: Sequence[tuple[int, ...]], cut: Cut) -> Tile:
        found = self.shadow
        if found is None:
            return self.whole(cut)
        start, stop = self._visible(at, cut)
        extent = self.extents[found.link][self.threads[found.thread].labels[found.link]]
        if start >= stop or (start, stop) == (0, extent):
            return self.whole(cut)
        hidden = stop if stop < extent else start - 1
        seen, one = ((*cut, (found.thread, r)) for r in ((start, stop), (hidden, hidden + 1)))
        parts = []
        if self.last in found.represented:
            for part in ((0, start), (stop, extent)):
                ranges = self.ranges(self.last, (*cut, (found.thread, part)))
                parts.append(index(self.nodes[self.last].out, ranges))
        steps = range(len(self.links))
        return Tile(
            cut,
            tuple(self.plan(s, seen) for s in steps),
            tuple(self.plan(s, one) if self._is_represented(s) else None for s in steps),
            tuple(parts),
        )

    def _is_represented(self, s: int) -> bool:
        """Return whether link `s` is run on what stands for the hidden part."""
        found, node = self.shadow, self.nodes[s]
        if s not in found.checked:
            return s in found.represented
        return not self.is_product(s) and not node.join.is_copy

    def is_product(self, s: int) -> bool:
        """Return whether link `s`, which aggregates what is hidden, multiplies it by inputs of the chain."""
        label = self.threads[self.shadow.thread].labels[s]
        return len(self.shadow.checked[s]) < sum(label in labels for labels in self.nodes[s].labels)

    def whole(self, cut: Cut) -> Tile:
        """Return a tile of which everything is computed."""
        return Tile(cut, tuple(self.plan(s, cut) for s in range(len(self.links))))

    def _cuts(self) -> Iterator[Cut]:
        """Yield the tiles of the result."""
        cuts = []
        for t, size in self.sizes.items():
            n = self._extent(t)
            cuts.append([(t, (a, min(a + size, n))) for a in range(0, n, size)])
        return product(*cuts)

    def ranges(self, s: int, tile: Cut) -> dict[str, Range]:
        """Return the ranges of the labels of link `s` on a tile, from the start of its block."""
        ranges = {x: (0, n) for x, n in self.extents[s].items()}
        for t, cut in tile:
            label = self.threads[t].labels.get(s)
            if label is not None:
                ranges[label] = cut
        return ranges

    def plan(self, s: int, cut: Cut) -> Plan:
        """Return what link `s` does on a tile."""
        if (s, cut) not in self._plans:
            self._plans[s, cut] = self._planned(s, cut)
        return self._plans[s, cut]

    def _planned(self, s: int, tile: Cut) -> Plan:
        node, ranges = self.nodes[s], self.ranges(s, tile)
        operands = tuple(self._operand(s, k, ranges) for k in range(len(node.labels)))
        call, extents = self.links[s].call, tuple(b - a for a, b in ranges.values())
        lasting = tuple(k for k, operand in enumerate(operands) if operand.lasting is not None)
        kernel = product_of_tiles(node, call.args, extents, lasting) if node.is_contraction else None
        if kernel is None:
            kernel = prepare(call, extents)
        shift = tuple(a for a, _ in ranges.values()) if node.join.labels else None
        shape = tuple(ranges[x][1] - ranges[x][0] for x in node.out)
        loops = isinstance(kernel, Compiled)
        aside = self.over[s] >= 0 and not loops
        # What stands in a block or in the result is elsewhere for every tile.
        inside = all(operand.earlier >= 0 and self.slots[operand.earlier] for operand in operands)
        bindable = loops and shift is None and inside and self.slots[s] != 0
        return Plan(kernel, operands, shift, shape, index(node.out, ranges), aside, bindable)

    def _operand(self, s: int, k: int, ranges: Mapping[str, Range]) -> Operand:
        j, labels = self.links[s].reads[k], self.nodes[s].labels[k]
        if j >= self.inputs:
            return Operand(-1, j - self.inputs, ())
        fastest = next(reversed(self.sizes), None)
        if fastest is None or self.threads[fastest].labels[s] in labels:
            return Operand(j, -1, index(labels, ranges))
        hidden = None if self.shadow is None else self.threads[self.shadow.thread].labels.get(s)
        whole = dict(ranges) if hidden is None else {**ranges, hidden: (0, self.extents[s][hidden])}
        inside = {x: r if x == hidden else (0, r[1] - r[0]) for x, r in ranges.items()}
        return Operand(j, -1, index(labels, inside), index(labels, whole))

    def _visible(self, at: Sequence[tuple[int, ...]], cut: Cut) -> Range:
        """Return the range, in its block, of the label that a mask hides, of which something is seen."""
        found = self.shadow
        node, ranges = self.nodes[found.link], self.ranges(found.link, cut)
        first = {x: a for (x, _), a in zip(node.space, at[found.link], strict=True)}
        seen = {x: (first[x] + ranges[x][0], first[x] + ranges[x][1]) for x in found.mask.labels}
        label = self.threads[found.thread].labels[found.link]
        start, stop = masks.live(node.join, found.mask, label, seen, dead=found.dead)
        return start - first[label], stop - first[label]


def index(labels: Sequence[str], ranges: Mapping[str, Range]) -> Index:
    """Return numpy's index for the ranges of some labels; the dots keep it an array."""
    return (*[slice(*ranges[x]) for x in labels], ...)
