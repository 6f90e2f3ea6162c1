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

from einsummable.graph import Einsummable
from einsummable.kernels import masks, sharing
from einsummable.kernels.blocks import Call, Kernel, prepare
from einsummable.kernels.compiled import Compiled
from einsummable.kernels.shadow import shadow
from einsummable.scalar import AGGREGATES

_Range: TypeAlias = tuple[int, int]


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
        self._kernels: dict[tuple[int, tuple[int, ...]], Kernel] = {}
        self._live: dict[tuple, _Range] = {}
        self.constants: dict[tuple[int, ...], np.ndarray] = {}
        first = next(self.tiles())
        for s in range(len(links)):  # what tiles need is compiled before anybody waits for it
            self.kernel(s, tuple(b - a for a, b in self.ranges(s, first).values()))

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

    def tiles(self) -> Iterator[dict[int, _Range]]:
        """Yield the range of each thread that is cut, tile by tile."""
        cuts = []
        for t, size in self.sizes.items():
            n = self._extent(t)
            cuts.append([(t, (a, min(a + size, n))) for a in range(0, n, size)])
        return (dict(cut) for cut in product(*cuts))

    def ranges(self, s: int, tile: Mapping[int, _Range]) -> dict[str, _Range]:
        """Return the ranges of the labels of link `s` on a tile, from the start of its block."""
        ranges = {x: (0, n) for x, n in self.extents[s].items()}
        for t, cut in tile.items():
            label = self.threads[t].labels.get(s)
            if label is not None:
                ranges[label] = cut
        return ranges

    def kernel(self, s: int, shape: tuple[int, ...]) -> Kernel:
        """Return the kernel of link `s` for extents `shape`."""
        key = (s, shape)
        if key not in self._kernels:
            self._kernels[key] = prepare(self.links[s].call, shape)
        return self._kernels[key]

    def visible(self, at: Sequence[tuple[int, ...]], tile: Mapping[int, _Range]) -> _Range:
        """Return the range, in its block, of the label that a mask hides, of which something is seen."""
        found = self.shadow
        labels = [x for x, _ in self.nodes[found.link].space]
        first = dict(zip(labels, at[found.link], strict=True))
        ranges = self.ranges(found.link, tile)
        of_mask = {x: (first[x] + ranges[x][0], first[x] + ranges[x][1]) for x in found.mask.labels}
        key = tuple(sorted(of_mask.items()))
        if key not in self._live:
            label = self.threads[found.thread].labels[found.link]
            join = self.nodes[found.link].join
            start, stop = masks.live(join, found.mask, label, of_mask, dead=found.dead)
            self._live[key] = start - first[label], stop - first[label]
        return self._live[key]

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

    def run(self) -> None:
        """Write all tiles of the result."""
        for tile in self.of.tiles():
            self.tile(tile)

    def tile(self, tile: Mapping[int, _Range]) -> None:
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
            values.append(self.step(s, self.of.ranges(s, tile), values))

    def shadowed(self, tile: Mapping[int, _Range], visible: _Range, extent: int) -> bool:
        """Write one tile from what is visible of it; return whether that is all that it takes."""
        of, found = self.of, self.of.shadow
        seen = {**tile, found.thread: visible}
        hidden = visible[1] if visible[1] < extent else visible[0] - 1
        unseen = {**tile, found.thread: (hidden, hidden + 1)}
        values: list[np.ndarray] = []
        standing: dict[int, np.ndarray] = {}
        for s in range(len(of.links)):
            if s in found.checked and not self.is_spared(s, unseen, values, standing):
                return False
            values.append(self.step(s, of.ranges(s, seen), values))
            if s in found.represented:
                standing[s] = self.representative(s, unseen, values, standing)
        if of.last in standing:
            node, ranges = of.nodes[of.last], of.ranges(of.last, tile)
            for part in ((0, visible[0]), (visible[1], extent)):
                ranges[of.threads[found.thread].labels[of.last]] = part
                self.out[(*[slice(*ranges[x]) for x in node.out], ...)] = standing[of.last]
        return True

    def is_spared(
        self,
        s: int,
        unseen: Mapping[int, _Range],
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
        unseen: Mapping[int, _Range],
        values: Sequence[np.ndarray],
        standing: Mapping[int, np.ndarray],
    ) -> np.ndarray:
        """Return what link `s` makes where the mask hides, with extent 1 along the label that it hides."""
        of, link, node = self.of, self.of.links[s], self.of.nodes[s]
        ranges = of.ranges(s, unseen)
        shape = tuple(b - a for a, b in ranges.values())
        constant = s == of.shadow.link and of.shadow.constant
        if constant and shape in of.constants:
            return of.constants[shape]
        label, reads = of.threads[of.shadow.thread].labels[s], []
        for k, j in enumerate(link.reads):
            p = j - of.inputs
            if p in standing:
                reads.append(standing[p])
            elif p >= 0 and label in node.labels[k]:  # the mask does not look at it
                reads.append(np.zeros([ranges[x][1] - ranges[x][0] for x in node.labels[k]], values[p].dtype))
            else:
                reads.append(self.operand(s, k, j, ranges, values))
        at = tuple(a + start for a, (start, _) in zip(self.at[s], ranges.values(), strict=True))
        value = of.kernel(s, shape)(reads, at, self.params)
        if constant:
            of.constants[shape] = value
        return value

    def operand(
        self, s: int, k: int, j: int, ranges: Mapping[str, _Range], values: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Return what link `s` reads as input `k`: part of a block, or what an earlier link made."""
        if j >= self.of.inputs:
            return values[j - self.of.inputs]
        labels = self.of.nodes[s].labels[k]
        return self.blocks[j][(*[slice(*ranges[x]) for x in labels], ...)]

    def step(self, s: int, ranges: Mapping[str, _Range], values: Sequence[np.ndarray]) -> np.ndarray:
        """Run link `s` on `ranges`."""
        of, node = self.of, self.of.nodes[s]
        reads = [self.operand(s, k, j, ranges, values) for k, j in enumerate(of.links[s].reads)]
        kernel = of.kernel(s, tuple(b - a for a, b in ranges.values()))
        at = tuple(a + start for a, (start, _) in zip(self.at[s], ranges.values(), strict=True))
        into = self.room(s, [ranges[x] for x in node.out])
        if of.over[s] >= 0 and not isinstance(kernel, Compiled):
            into[...] = kernel(reads, at, self.params)  # it may read again what it has written over
            return into
        return kernel(reads, at, self.params, into)

    def room(self, s: int, ranges: Sequence[_Range]) -> np.ndarray:
        """Return where the result of link `s` on `ranges` goes."""
        slot = self.of.slots[s]
        if slot == 0:
            return self.out[(*[slice(*r) for r in ranges], ...)]
        shape = tuple(b - a for a, b in ranges)
        dtype = self.of.nodes[s].dtype
        size = prod(shape) * dtype.itemsize
        if slot not in self.rooms or self.rooms[slot].nbytes < size:
            self.rooms[slot] = np.empty(size, np.uint8)
        return self.rooms[slot][:size].view(dtype).reshape(shape)
