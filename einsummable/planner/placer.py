"""A placement while it grows: what every node would find on every site, and the best sites by that.

Contract: a `Placer` places nodes in the order that `sweep` is given, each for the least bytes with all others
where they are; `moved` tells what it has come to and `placement` ends it.  Equal arrays of sites are one
object, so that nodes with equal surroundings, as in equal layers, are known by identities and placed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from math import ceil, prod
from typing import TypeVar

import numpy as np

from einsummable.nodes import Input
from einsummable.planner.assign import TIE, share_out
from einsummable.planner.grouping import groups
from einsummable.planner.plan import Layout, Placement, Plan, grid_edges, out_edges, out_parts
from einsummable.planner.reads import (
    NOTHING,
    Edges,
    Entries,
    Hosts,
    Reads,
    add_up,
    block_bytes,
    concatenate,
    join,
    join_within,
    largest,
    merge,
    needs,
    reads,
    reads_of_blocks,
    shared,
)
from einsummable.planner.scatter import PIECE_BYTES, finishers, most_pieces, refined, scatters, used_bytes
from einsummable.progress import step
from einsummable.work import flops

T = TypeVar("T")


class Placer:
    """The placement while it grows: `calls[i]` and `held[i]` are None until node i is placed."""

    def __init__(
        self,
        plan: Plan,
        sites: int,
        layouts: Mapping[str, Layout],
        hosts: Sequence[int] | None,
        near: float,
        wanted: Sequence[np.ndarray | None] | None,
        solved: dict[bytes, np.ndarray],
    ) -> None:
        self.plan, self.sites, self.nodes = plan, sites, plan.graph.nodes
        self.hosts = Hosts.of(hosts)
        self.near = 1.0 if self.hosts is None else near
        self.wanted = wanted  # the host of every call, where that is decided
        self.calls: list[np.ndarray | None] = [None] * len(self.nodes)
        self.held: list[np.ndarray | None] = [None] * len(self.nodes)
        self.scatter: list[tuple[int, ...]] = [()] * len(self.nodes)
        self.edges = [out_edges(n, cuts) for n, cuts in zip(self.nodes, plan.partitions, strict=True)]
        self.known: dict[bytes, np.ndarray] = {}  # equal arrays of sites are one
        self.answers: dict[tuple, object] = {}  # by situation
        self.fixed = {i for i, n in enumerate(self.nodes) if isinstance(n, Input) and n.name in layouts}
        for i in self.fixed:
            node, layout = self.nodes[i], layouts[self.nodes[i].name]
            layout.check(node, sites)
            self.edges[i] = grid_edges(node.shape, layout.parts)
            self.held[i] = self.one(np.array(layout.sites, np.int64))
        self.readers: list[list[tuple[int, int]]] = [[] for _ in self.nodes]
        for i, node in enumerate(self.nodes):
            for k, j in enumerate(node.inputs):
                self.readers[j].append((i, k))
        self.plain = [[self.read(i, k) for k in range(len(node.inputs))] for i, node in enumerate(self.nodes)]
        self.reads = [list(reads) for reads in self.plain]  # of blocks as they are finished
        self.work = [flops(n) / cuts.blocks for n, cuts in zip(self.nodes, plan.partitions, strict=True)]
        self.load = np.zeros(sites)
        self.dirty = set(range(len(self.nodes)))
        self.solved = solved

    def read(self, i: int, k: int, edges: Edges | None = None) -> Reads:
        """Return what node `i` reads of its input `k`, held in blocks with borders `edges`."""
        node = self.nodes[i]
        j = node.inputs[k]
        return reads(node, self.plan.partitions[i], k, edges or self.edges[j], self.nodes[j].dtype.itemsize)

    def sizes(self, i: int) -> np.ndarray:
        """Return the bytes of every block that node `i` is held in."""
        return block_bytes(self.edges[i], self.nodes[i].dtype.itemsize)

    def each(self, i: int) -> int:
        """Return how many calls of node `i` contribute to one block."""
        cuts = self.plan.partitions[i]
        return cuts.blocks // prod(out_parts(self.nodes[i], cuts))

    def sweep(self, order: Sequence[int]) -> bool:
        """Place every node of `order` whose neighbours moved; return whether any node moved."""
        moved = False
        for i in order:
            step()
            if i not in self.dirty:
                continue
            self.dirty.discard(i)
            old, held, scatter = self.calls[i], self.held[i], self.scatter[i]
            if old is not None:
                self.load -= self.work[i] * np.bincount(old, minlength=self.sites)
            self.calls[i] = self.one(
                self.once(self.situation(i, old), lambda i=i, old=old: self.assign(i, old))
            )
            self.load += self.work[i] * np.bincount(self.calls[i], minlength=self.sites)
            self.finish(i)
            same = scatter == self.scatter[i] and np.array_equal(held, self.held[i])
            if old is None or not (same and np.array_equal(old, self.calls[i])):
                moved = True
                self.dirty.update(c for j in (i, *self.nodes[i].inputs) for c, _ in self.readers[j] if c != i)
                self.dirty.update(self.nodes[i].inputs)
        return moved

    # ------------------------------------------------------------------- equal nodes, equal answers

    def one(self, sites: np.ndarray) -> np.ndarray:
        """Return the one array that stands for all equal to `sites`: identities then tell them apart."""
        return self.known.setdefault(sites.tobytes(), sites)

    def once(self, situation: tuple, answer: Callable[[], T]) -> T:
        """Return `answer()`, that of the first time where the situation was met before."""
        if situation not in self.answers:
            self.answers[situation] = answer()
        return self.answers[situation]

    def users(self, j: int, without: int = -1) -> tuple[tuple[Reads, int], ...]:
        """Return what placed readers of node `j` read, and the identity of their sites."""
        return tuple(
            (self.reads[c][k], id(self.calls[c]))
            for c, k in self.readers[j]
            if c != without and self.calls[c] is not None
        )

    def situation(self, i: int, old: np.ndarray | None) -> tuple:
        """Return all that `assign` depends on, so that equal nodes of equal layers are placed once."""
        node, cuts = self.nodes[i], self.plan.partitions[i]
        even = cuts.blocks % self.sites == 0
        return (
            # Few calls go by their number, many by their node; neither is taken for the other.
            (cuts.blocks, None) if cuts.blocks <= self.sites else (None, i),
            out_parts(node, cuts),
            self.scatter[i],
            id(old),
            None if self.wanted is None else id(self.wanted[i]),
            b"" if even else self.load.tobytes(),
            self.users(i),
            tuple(
                (r, id(self.held[j]), frozenset(self.users(j, i)))
                for r, j in zip(self.reads[i], node.inputs, strict=True)
            ),
        )

    # ------------------------------------------------------------------------------------ calls

    def assign(self, i: int, old: np.ndarray | None) -> np.ndarray:
        """Return the best sites for the calls of node `i`, `old` unless others are better."""
        here = [self.present(j, i) for j in self.nodes[i].inputs]
        ahead = self.ahead(i)
        entries = concatenate(
            [self.saved(i, r, there) for r, there in zip(self.reads[i], here, strict=True)] + [ahead]
        )
        count, scale = self.plan.partitions[i].blocks, float(entries[2].max(initial=1.0))
        tried = [] if old is None else [old]
        if count <= self.sites:
            tried.append(self.solve(i, count, entries))
        else:
            call, site, saved = entries
            if self.wanted is None:
                group = groups(self.nodes[i], self.plan.partitions[i], self.sites)
                tried.append(self.solve(i, self.sites, (group[call], site, saved))[group])
            if len(saved) or self.wanted is not None:
                tried.append(self.solve(i, count, entries))
        costs = [self.cost(i, calls, here, ahead, entries) for calls in tried]
        return next(c for c, cost in zip(tried, costs, strict=True) if cost <= min(costs) + TIE * scale)

    def present(self, j: int, without: int) -> Entries:
        """Return what is on which site of node `j`, or will be for the sake of others than `without`."""
        found = []
        if self.held[j] is not None:
            sizes = self.sizes(j)
            found.append((np.arange(len(sizes)), self.held[j], sizes))
        return merge(found + self.wants(j, without), self.sites)

    def wants(self, j: int, without: int = -1) -> list[Entries]:
        """Return what readers of node `j` that are placed need of it; readers that need the same, once."""
        readers = [(c, k) for c, k in self.readers[j] if c != without and self.calls[c] is not None]
        alike = {(id(self.reads[c][k]), id(self.calls[c])): (c, k) for c, k in readers}
        return [self.needs(c, k) for c, k in alike.values()]

    def needs(self, c: int, k: int, r: Reads | None = None) -> Entries:
        """Return what node `c`, which is placed, needs of its input `k` on every site."""
        return needs(r or self.reads[c][k], self.calls[c], self.sites)

    def saved(self, i: int, r: Reads, there: Entries) -> Entries:
        """Return the bytes that each call of node `i` saves on each site, since they are there.

        Where sites share hosts, what is on the same host saves a part; where the host of each call is
        decided, that part is the same for all of its sites, and left out.
        """
        if self.hosts is None:
            return join(r, there)
        if self.wanted is not None and self.hosts.even:
            return join_within(r, there, self.hosts, self.wanted[i])
        return self.hosts.levels(join(r, there), join(r, self.hosts.merge(there)), self.near)

    def ahead(self, i: int) -> Entries:
        """Return what readers of node `i` save if its calls are where they are."""
        cuts, each = self.plan.partitions[i], self.each(i)
        parts = out_parts(self.nodes[i], cuts)
        inside = refined(parts, self.scatter[i] or parts)
        share = len(inside) / cuts.blocks  # of the calls of a block, how many finish a piece of it
        found = [NOTHING]
        for c, k in self.readers[i]:
            if self.calls[c] is not None:
                piece, site, wanted = self.needs(c, k)
                found.append((inside[piece], site, wanted * share))
        there = add_up(concatenate(found), self.sites)
        blocks = cuts.blocks // each
        call, most = np.arange(cuts.blocks), np.full(cuts.blocks, np.inf)
        made = Reads(cuts.blocks, blocks, call, call // each, most, most[:blocks])
        return self.saved(i, made, there)

    def solve(self, i: int, rows: int, entries: Entries) -> np.ndarray:
        """Return the site for each row (call, or group of calls, of node `i`) that saves most, evenly."""
        load = self.load if rows % self.sites else np.zeros(self.sites)
        if self.wanted is not None:
            return share_out(rows, entries, load, group=self.wanted[i], hosts=self.hosts)
        digest = blake2b(str((rows, len(entries[0]))).encode())
        for array in (load, *entries):
            digest.update(np.ascontiguousarray(array))
        key = digest.digest()
        if key not in self.solved:
            self.solved[key] = share_out(rows, entries, load, hosts=self.hosts)
        return self.solved[key]

    def cost(
        self, i: int, calls: np.ndarray, here: Sequence[Entries], ahead: Entries, entries: Entries
    ) -> float:
        """Return the bytes that node `i` moves with its calls there, up to a constant."""
        call, site, saved = entries if len(calls) <= self.sites else ahead
        there = calls[call]
        total = -float(saved[site == there if self.hosts is None else self.hosts.matches(site, there)].sum())
        if len(calls) <= self.sites:
            return total
        for r, there in zip(self.reads[i], here, strict=True):
            wanted = needs(r, calls, self.sites)
            total += float(wanted[2].sum()) - shared(wanted, there, self.sites)
        return total + self.partials(i, calls)

    def partials(self, i: int, calls: np.ndarray) -> float:
        """Return the bytes of partial results of node `i` that travel when its calls are at `calls`."""
        node, each = self.nodes[i], self.each(i)
        if each == 1:
            return 0.0
        sizes = block_bytes(out_edges(node, self.plan.partitions[i]), node.dtype.itemsize)
        block = np.unique(np.arange(len(calls)) // each * self.sites + calls) // self.sites
        return float(sizes[block].sum() - sizes.sum())

    # ----------------------------------------------------------------------------------- blocks

    def finish(self, i: int) -> None:
        """Choose how the blocks of node `i` are cut when they are finished, and on which sites."""
        node, calls = self.nodes[i], self.calls[i].reshape(-1, self.each(i))
        if calls.shape[1] == 1:
            self.held[i] = self.one(calls[:, 0])
            return
        parts = out_parts(node, self.plan.partitions[i])
        situation = (
            "finish",
            node.shape,
            node.dtype.itemsize,
            parts,
            id(self.calls[i]),
            tuple((self.plain[c][k], id(self.calls[c])) for c, k in self.readers[i]),
        )
        finer, self.edges[i], self.held[i] = self.once(situation, lambda: self.pieces(i, parts, calls))
        self.scatter[i] = () if finer == parts else finer
        for c, k in self.readers[i]:
            self.reads[c][k] = self.read(c, k, self.edges[i])

    def pieces(
        self, i: int, parts: tuple[int, ...], calls: np.ndarray
    ) -> tuple[tuple[int, ...], Sequence[Sequence[int]], np.ndarray]:
        """Return the best parts for the blocks of node `i`, their borders, and the site of each piece."""
        node = self.nodes[i]
        sizes = block_bytes(grid_edges(node.shape, parts), node.dtype.itemsize)
        ways = most_pieces(min(len(set(row)) for row in calls.tolist()), float(sizes.max()), self.hosts)
        best = None
        for finer in dict.fromkeys([parts, *scatters(parts, node.shape, ways)]):
            edges = grid_edges(node.shape, finer)
            seen = [(c, k, self.read(c, k, edges)) for c, k in self.readers[i]]
            wanted = [self.needs(c, k, r) for c, k, r in seen if self.calls[c] is not None]
            used = used_bytes(
                calls, refined(parts, finer), concatenate([NOTHING, *wanted]), self.hosts, self.near
            )
            if best is not None and round(float(used.max(axis=1).sum())) < best[0][0]:
                continue  # not even if every piece were where it is used most
            homes, gain = finishers(calls, refined(parts, finer), used)
            least = float(block_bytes(edges, node.dtype.itemsize).min(initial=np.inf))
            entries = sum(len(r.call) for _, _, r in seen)
            # Bytes first; then few transfers; then evenness, where that is worth a message.
            rank = (round(gain), -entries, (1 if least >= PIECE_BYTES else -1) * len(homes), finer)
            if best is None or rank > best[0]:
                best = (rank, finer, edges, homes)
        _, finer, edges, homes = best
        return finer, edges, self.one(homes)

    def moved(self) -> float:
        """Return the bytes that move between sites, weighed: within a host they count less."""
        total = self.near * self.crossing(np.arange(self.sites))
        return total if self.hosts is None else total + (1 - self.near) * self.crossing(self.hosts.host)

    def crossing(self, where: np.ndarray) -> float:
        """Return the bytes that move between groups of sites, `where` naming the group of each site."""
        total = 0.0
        for j in range(len(self.nodes)):
            block, site, size = concatenate([NOTHING, *self.wants(j)])
            block, group, size = merge([(block, where[site], size)], self.sites)
            total += float(size.sum())
            if self.held[j] is None:  # the home of a free input will be one that reads it
                total -= float(largest((block, group, size), len(self.sizes(j))).sum())
            else:
                total -= float(size[group == where[self.held[j]][block]].sum())
            if self.calls[j] is not None:
                total += self.partials(j, where[self.calls[j]])
        return total

    # ----------------------------------------------------------------------------------- inputs

    def placement(self) -> Placement:
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
        scatter = tuple(self.scatter) if any(self.scatter) else ()
        return Placement(self.sites, calls, homes, scatter)

    def home(self, i: int, stored: np.ndarray) -> np.ndarray:
        """Return sites for the blocks of a free input: where they are used, shared out evenly."""
        wanted, sizes = self.present(i, -1), self.sizes(i)
        slots = ceil(len(sizes) / max(len(np.unique(wanted[1])), 1))
        if self.hosts is not None:
            wanted = self.hosts.levels(wanted, self.hosts.merge(wanted), self.near)
        homes = share_out(len(sizes), wanted, stored, slots=slots, hosts=self.hosts)
        stored += np.bincount(homes, sizes, self.sites)
        return homes

    def lie(self, i: int) -> np.ndarray:
        """Return for the plan's blocks of an input with a layout the site that has most of each."""
        node, cuts = self.nodes[i], self.plan.partitions[i]
        r = reads_of_blocks(out_edges(node, cuts), self.edges[i])
        block, site, size = r.call, self.held[i][r.block], r.bytes
        most = np.bincount(block * self.sites + site, size, r.calls * self.sites)
        return most.reshape(r.calls, self.sites).argmax(axis=1)
