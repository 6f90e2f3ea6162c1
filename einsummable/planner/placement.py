"""Placement: which site makes every kernel call, and which holds every block.

Contract: `place` gives the calls of every node to the sites in equal shares and, among such placements, seeks
the one that moves the fewest bytes.  It is deterministic.  Tensors that already live on sites stay there.

One node at a time, with all others where they are: what each call would find on each site (blocks held there
or brought there for another node, readers of its result that are there) is a matrix of bytes saved, and the
best sharing out is an assignment problem.  Nodes are visited forwards, then backwards and forwards again
while that changes anything.  More calls than sites are first put into groups that share the most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod

import numpy as np
from scipy.optimize import linear_sum_assignment

from einsummable.errors import PlanError
from einsummable.graph import Input
from einsummable.planner.cost import flops
from einsummable.planner.grouping import groups
from einsummable.planner.partition import cut
from einsummable.planner.plan import Layout, Placement, Plan, out_edges
from einsummable.planner.reads import (
    NOTHING,
    Entries,
    Reads,
    block_bytes,
    join,
    merge,
    needs,
    reads,
    reads_of_blocks,
    shared,
)

#: Sweeps over the graph after the first.
SWEEPS = 4
#: Weighs evenness against bytes: it only ever decides between equals.
TIE = 1e-6


def place(plan: Plan, sites: int, layouts: Mapping[str, Layout] | None = None) -> Placement:
    """Return sites for all kernel calls and blocks of `plan`.

    Parameters
    ----------
    sites
        How many there are.
    layouts
        Of inputs that already live on sites, by name; other inputs are homed where they are used.

    Raises
    ------
    PlanError
        There is no site, or a layout does not fit its input.
    """
    if sites < 1:
        raise PlanError(f"a program cannot be placed on {sites} sites")
    placer = _Placer(plan, sites, layouts or {})
    order = [i for i, node in enumerate(plan.graph.nodes) if not isinstance(node, Input)]
    placer.sweep(order)
    for k in range(SWEEPS):
        if not placer.sweep(order if k % 2 else order[::-1]):
            break
    placement = Placement(sites, *placer.result())
    placement.check(plan)
    return placement


class _Placer:
    """The placement while it grows: `calls[i]` and `held[i]` are None until node i is placed."""

    def __init__(self, plan: Plan, sites: int, layouts: Mapping[str, Layout]) -> None:
        self.plan, self.sites, self.nodes = plan, sites, plan.graph.nodes
        self.calls: list[np.ndarray | None] = [None] * len(self.nodes)
        self.held: list[np.ndarray | None] = [None] * len(self.nodes)
        self.edges = [out_edges(n, cuts) for n, cuts in zip(self.nodes, plan.partitions, strict=True)]
        self.fixed = {i for i, n in enumerate(self.nodes) if isinstance(n, Input) and n.name in layouts}
        for i in self.fixed:
            node, layout = self.nodes[i], layouts[self.nodes[i].name]
            layout.check(node, sites)
            self.edges[i] = [
                (0, *(b for _, b in cut(*dim))) for dim in zip(node.shape, layout.parts, strict=True)
            ]
            self.held[i] = np.array(layout.sites, np.int64)
        self.reads: list[list[Reads]] = []
        self.readers: list[list[tuple[int, Reads]]] = [[] for _ in self.nodes]
        for i, (node, cuts) in enumerate(zip(self.nodes, plan.partitions, strict=True)):
            self.reads.append(
                [
                    reads(node, cuts, k, self.edges[j], self.nodes[j].dtype.itemsize)
                    for k, j in enumerate(node.inputs)
                ]
            )
            for j, r in zip(node.inputs, self.reads[i], strict=True):
                self.readers[j].append((i, r))
        self.work = [flops(n) / cuts.blocks for n, cuts in zip(self.nodes, plan.partitions, strict=True)]
        self.load = np.zeros(sites)
        self.dirty = set(range(len(self.nodes)))
        self.solved: dict[tuple, np.ndarray] = {}

    def sweep(self, order: Sequence[int]) -> bool:
        """Place every node of `order` whose neighbours moved; return whether any node moved."""
        moved = False
        for i in order:
            if i not in self.dirty:
                continue
            self.dirty.discard(i)
            old = self.calls[i]
            if old is not None:
                self.load -= self.work[i] * np.bincount(old, minlength=self.sites)
            self.calls[i] = self.assign(i, old)
            self.load += self.work[i] * np.bincount(self.calls[i], minlength=self.sites)
            held, self.held[i] = self.held[i], self.finishers(i)
            if old is None or not (np.array_equal(old, self.calls[i]) and np.array_equal(held, self.held[i])):
                moved = True
                self.dirty.update(c for j in (i, *self.nodes[i].inputs) for c, _ in self.readers[j] if c != i)
                self.dirty.update(self.nodes[i].inputs)
        return moved

    # ------------------------------------------------------------------------------------ calls

    def assign(self, i: int, old: np.ndarray | None) -> np.ndarray:
        """Return the best sites for the calls of node `i`, `old` unless others are better."""
        here = [self.present(j, i) for j in self.nodes[i].inputs]
        found = [join(r, there) for r, there in zip(self.reads[i], here, strict=True)] + [self.ahead(i)]
        entries = tuple(np.concatenate(column) for column in zip(*found, strict=True))
        count, scale = self.plan.partitions[i].blocks, float(entries[2].max(initial=1.0))
        if count <= self.sites:
            tried = [self.solve(count, entries, scale)]
        else:
            call, site, saved = entries
            group = groups(self.nodes[i], self.plan.partitions[i], self.sites)
            tried = [self.solve(self.sites, (group[call], site, saved), scale)[group]]
            if len(saved):
                tried.append(self.solve(count, entries, scale))
        tried = tried if old is None else [old, *tried]
        costs = [self.cost(i, calls, here, entries) for calls in tried]
        return next(c for c, cost in zip(tried, costs, strict=True) if cost <= min(costs) + TIE * scale)

    def present(self, j: int, without: int) -> Entries:
        """Return what is on which site of node `j`, or will be for the sake of others than `without`."""
        found = []
        if self.held[j] is not None:
            sizes = block_bytes(self.edges[j], self.nodes[j].dtype.itemsize)
            found.append((np.arange(len(sizes)), self.held[j], sizes))
        for c, r in self.readers[j]:
            if c != without and self.calls[c] is not None:
                found.append(needs(r, self.calls[c], self.sites))
        return found[0] if len(found) == 1 else merge(found, self.sites)

    def ahead(self, i: int) -> Entries:
        """Return what readers of node `i` save if its calls are where they are."""
        found, each = [NOTHING], self.each(i)
        for c, r in self.readers[i]:
            if self.calls[c] is not None:
                block, site, wanted = needs(r, self.calls[c], self.sites)
                # Any call of a block may be the one that finishes it.
                call = (block[:, None] * each + np.arange(each)).ravel()
                found.append((call, np.repeat(site, each), np.repeat(wanted / each, each)))
        return tuple(np.concatenate(column) for column in zip(*found, strict=True))

    def each(self, i: int) -> int:
        """Return how many calls of node `i` contribute to one block."""
        return self.plan.partitions[i].blocks // prod(len(e) - 1 for e in self.edges[i])

    def solve(self, rows: int, entries: Entries, scale: float) -> np.ndarray:
        """Return the site for each row that saves most, rows being shared out evenly."""
        load = self.load if rows % self.sites else np.zeros(self.sites)
        key = (rows, load.tobytes(), *(e.tobytes() for e in entries))
        if key not in self.solved:
            self.solved[key] = _share_out(rows, ceil(rows / self.sites), entries, load, scale)
        return self.solved[key]

    def cost(self, i: int, calls: np.ndarray, here: list[Entries], entries: Entries) -> float:
        """Return the bytes that node `i` moves with its calls there, up to a constant."""
        if len(calls) <= self.sites:
            call, site, saved = entries
            return -float(saved[site == calls[call]].sum())
        total = 0.0
        for r, there in zip(self.reads[i], here, strict=True):
            wanted = needs(r, calls, self.sites)
            total += float(wanted[2].sum()) - shared(wanted, there, self.sites)
        call, site, saved = self.ahead(i)
        total -= float(saved[site == calls[call]].sum())
        if self.each(i) > 1:
            sizes = block_bytes(self.edges[i], self.nodes[i].dtype.itemsize)
            partials = np.unique(np.arange(len(calls)) // self.each(i) * self.sites + calls)
            total += float(sizes[partials // self.sites].sum())
        return total

    def finishers(self, i: int) -> np.ndarray:
        """Return the site that finishes each block of node `i`: the one with a part of it that uses it most."""
        blocks = self.calls[i].reshape(-1, self.each(i))
        if blocks.shape[1] == 1:
            return blocks[:, 0]
        used = np.zeros(blocks.shape)
        for c, r in self.readers[i]:
            if self.calls[c] is not None:
                block, site, wanted = needs(r, self.calls[c], self.sites)
                used += _at(blocks, block, site, wanted)
        # Among equals the calls take turns, so that no site ends with more than its share.
        used += TIE * (np.arange(blocks.shape[1]) == np.arange(len(blocks))[:, None] % blocks.shape[1])
        return blocks[np.arange(len(blocks)), used.argmax(axis=1)]

    # ----------------------------------------------------------------------------------- inputs

    def result(self) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
        """Return the sites of all calls and the homes of all blocks, inputs last of all."""
        stored = np.zeros(self.sites)
        for i, node in enumerate(self.nodes):
            if isinstance(node, Input):
                self.held[i] = self.lie(i) if i in self.fixed else self.home(i, stored)
        homes = tuple(tuple(sites.tolist()) for sites in self.held)
        calls = tuple(
            home if sites is None else tuple(sites.tolist())
            for sites, home in zip(self.calls, homes, strict=True)
        )
        return calls, homes

    def home(self, i: int, stored: np.ndarray) -> np.ndarray:
        """Return sites for the blocks of a free input: where they are used, shared out evenly."""
        wanted = self.present(i, -1)
        sizes = block_bytes(self.edges[i], self.nodes[i].dtype.itemsize)
        slots = ceil(len(sizes) / max(len(np.unique(wanted[1])), 1))
        homes = _share_out(len(sizes), slots, wanted, stored, float(wanted[2].max(initial=1.0)))
        stored += np.bincount(homes, sizes, self.sites)
        return homes

    def lie(self, i: int) -> np.ndarray:
        """Return for the plan's blocks of an input with a layout the site that has most of each."""
        node, cuts = self.nodes[i], self.plan.partitions[i]
        r = reads_of_blocks(out_edges(node, cuts), self.edges[i])
        block, site, size = r.call, self.held[i][r.block], r.bytes
        most = np.bincount(block * self.sites + site, size, r.calls * self.sites)
        return most.reshape(r.calls, self.sites).argmax(axis=1)


def _share_out(rows: int, slots: int, entries: Entries, load: np.ndarray, scale: float) -> np.ndarray:
    """Return a site for each row, at most `slots` rows a site, for the greatest sum of `entries`.

    Between equals, sites with little `load` and few rows come first.
    """
    (row, site, gained), sites = entries, len(load)
    gain = np.bincount(row * sites + site, gained, rows * sites).astype(float).reshape(rows, sites)
    gain -= TIE * scale * load / max(load.max(), 1.0)
    gain = np.concatenate([gain - 2 * TIE * scale * k for k in range(slots)], axis=1)
    return linear_sum_assignment(gain, maximize=True)[1] % sites


def _at(sites: np.ndarray, block: np.ndarray, site: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return for each entry of `sites` (by block) the bytes of that block wanted there."""
    found = np.zeros(sites.shape)
    here = sites[block] == site[:, None]
    np.add.at(found, block, here * wanted[:, None])
    return found
