"""Placement: which site makes every kernel call, and which holds every block.

Contract: `place` gives the calls of every node to the sites in equal shares and, among such placements, seeks
the one that moves the fewest bytes.  It is deterministic.  Tensors that already live on sites stay there.

One node at a time, with all others where they are: what each call would find on each site (blocks held there
or brought there for another node, readers of its result that are there) is a matrix of bytes saved, and the
best sharing out is an assignment problem.  Nodes are visited forwards, then backwards and forwards again
while that changes anything.  More calls than sites are first put into groups that share the most.  A block
with partial results on several sites is finished in as many pieces as there are sites, one on each
(reduce-scatter), cut the way its readers cut it, unless the pieces are small or its readers want it whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, prod

import numpy as np

from einsummable.errors import PlanError
from einsummable.graph import Input, flops
from einsummable.planner.assign import TIE, share_out
from einsummable.planner.grouping import groups
from einsummable.planner.plan import Layout, Placement, Plan, grid_edges, out_edges, out_parts
from einsummable.planner.reads import (
    NOTHING,
    Edges,
    Entries,
    Hosts,
    Reads,
    block_bytes,
    concatenate,
    join,
    largest,
    merge,
    needs,
    reads,
    reads_of_blocks,
    shared,
)
from einsummable.planner.scatter import finishers, refined, scatters, used_bytes

#: Sweeps over the graph after the first.
SWEEPS = 4
#: So many kernel calls are placed from one start only.
MANY_CALLS = 200_000
#: A block is not scattered into pieces smaller than this for evenness alone.
PIECE_BYTES = 1 << 16


def place(
    plan: Plan,
    sites: int,
    layouts: Mapping[str, Layout] | None = None,
    *,
    hosts: Sequence[int] | None = None,
    near: float = 0.1,
) -> Placement:
    """Return sites for all kernel calls and blocks of `plan`.

    Parameters
    ----------
    sites
        How many there are.
    layouts
        Of inputs that already live on sites, by name; other inputs are homed where they are used.
    hosts
        The host of every site, where some share one.
    near
        What a byte costs that moves between sites of one host, where one between hosts costs 1.

    Raises
    ------
    PlanError
        There is no site, a site has no host, or a layout does not fit its input.
    """
    if sites < 1:
        raise PlanError(f"a program cannot be placed on {sites} sites")
    if hosts is not None and len(hosts) != sites:
        raise PlanError(f"hosts are given for {len(hosts)} sites, there are {sites}")
    layouts = layouts or {}
    tried = _placers(plan, sites, layouts, hosts, near)
    groups_of_sites = Hosts.of(hosts)
    if groups_of_sites is not None and groups_of_sites.even:
        # First the host of every call, then its site there: a better start where hosts are far apart.
        host = groups_of_sites.host
        outer = {
            name: replace(at, sites=tuple(host[list(at.sites)].tolist())) for name, at in layouts.items()
        }
        coarse = _placers(plan, len(groups_of_sites.members), outer, None, near)
        best = min(coarse, key=_Placer.moved)
        tried += _placers(plan, sites, layouts, hosts, near, best.calls)
    placement = min(tried, key=_Placer.moved).placement()
    placement.check(plan)
    return placement


def _placers(
    plan: Plan,
    sites: int,
    layouts: Mapping[str, Layout],
    hosts: Sequence[int] | None,
    near: float,
    wanted: Sequence[np.ndarray | None] | None = None,
) -> list[_Placer]:
    """Return placements that no move of one node improves, from different starts."""
    order = [i for i, node in enumerate(plan.graph.nodes) if not isinstance(node, Input)]
    found, solved = [], {}
    # What is seeded first has no neighbours to go by, so it matters where that is; less so in large programs.
    large = sum(cuts.blocks for cuts in plan.partitions) > MANY_CALLS
    for first in [order[::-1]] if large else [order, order[::-1]]:
        placer = _Placer(plan, sites, layouts, hosts, near, wanted, solved)
        for k in range(SWEEPS):
            if not placer.sweep(first if k % 2 == 0 else first[::-1]):
                break
        found.append(placer)
    return found


class _Placer:
    """The placement while it grows: `calls[i]` and `held[i]` are None until node i is placed."""

    def __init__(
        self,
        plan: Plan,
        sites: int,
        layouts: Mapping[str, Layout],
        hosts: Sequence[int] | None,
        near: float,
        wanted: Sequence[np.ndarray | None] | None,
        solved: dict[tuple, np.ndarray],
    ) -> None:
        self.plan, self.sites, self.nodes = plan, sites, plan.graph.nodes
        self.hosts = Hosts.of(hosts)
        self.near = 1.0 if self.hosts is None else near
        self.wanted = wanted  # the host of every call, where that is decided
        self.calls: list[np.ndarray | None] = [None] * len(self.nodes)
        self.held: list[np.ndarray | None] = [None] * len(self.nodes)
        self.scatter: list[tuple[int, ...]] = [()] * len(self.nodes)
        self.edges = [out_edges(n, cuts) for n, cuts in zip(self.nodes, plan.partitions, strict=True)]
        self.fixed = {i for i, n in enumerate(self.nodes) if isinstance(n, Input) and n.name in layouts}
        for i in self.fixed:
            node, layout = self.nodes[i], layouts[self.nodes[i].name]
            layout.check(node, sites)
            self.edges[i] = grid_edges(node.shape, layout.parts)
            self.held[i] = np.array(layout.sites, np.int64)
        self.readers: list[list[tuple[int, int]]] = [[] for _ in self.nodes]
        for i, node in enumerate(self.nodes):
            for k, j in enumerate(node.inputs):
                self.readers[j].append((i, k))
        self.reads = [[self.read(i, k) for k in range(len(node.inputs))] for i, node in enumerate(self.nodes)]
        self.work = [flops(n) / cuts.blocks for n, cuts in zip(self.nodes, plan.partitions, strict=True)]
        self.load = np.zeros(sites)
        self.dirty = set(range(len(self.nodes)))
        self.solved = solved
        self.known: dict[bytes, np.ndarray] = {}  # calls that were placed alike are one array

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
            if i not in self.dirty:
                continue
            self.dirty.discard(i)
            old, held, scatter = self.calls[i], self.held[i], self.scatter[i]
            if old is not None:
                self.load -= self.work[i] * np.bincount(old, minlength=self.sites)
            calls = self.assign(i, old)
            self.calls[i] = self.known.setdefault(calls.tobytes(), calls)
            self.load += self.work[i] * np.bincount(self.calls[i], minlength=self.sites)
            self.finish(i)
            same = scatter == self.scatter[i] and np.array_equal(held, self.held[i])
            if old is None or not (same and np.array_equal(old, self.calls[i])):
                moved = True
                self.dirty.update(c for j in (i, *self.nodes[i].inputs) for c, _ in self.readers[j] if c != i)
                self.dirty.update(self.nodes[i].inputs)
        return moved

    # ------------------------------------------------------------------------------------ calls

    def assign(self, i: int, old: np.ndarray | None) -> np.ndarray:
        """Return the best sites for the calls of node `i`, `old` unless others are better."""
        here = [self.present(j, i) for j in self.nodes[i].inputs]
        ahead = self.ahead(i)
        entries = concatenate(
            [self.near_or_there(r, there) for r, there in zip(self.reads[i], here, strict=True)] + [ahead]
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

    def near_or_there(self, r: Reads, there: Entries) -> Entries:
        """Return the bytes that each call saves on each site, since they are there or on the same host."""
        if self.hosts is None:
            return join(r, there)
        row, site, saved = join(r, there)
        by_host = join(r, self.hosts.merge(there))
        return concatenate([(row, site, saved * self.near), self.hosts.spread(by_host, 1 - self.near)])

    def ahead(self, i: int) -> Entries:
        """Return what readers of node `i` save if its calls are where they are."""
        found, each = [NOTHING], self.each(i)
        cuts = self.plan.partitions[i]
        parts = out_parts(self.nodes[i], cuts)
        inside = refined(parts, self.scatter[i] or parts)
        share = len(inside) / cuts.blocks  # of the calls of a block, how many finish a piece of it
        for c, k in self.readers[i]:
            if self.calls[c] is not None:
                block, site, wanted = self.needs(c, k)
                call = (inside[block][:, None] * each + np.arange(each)).ravel()
                found.append((call, np.repeat(site, each), np.repeat(wanted * share, each)))
        ahead = concatenate(found)
        if self.hosts is None:
            return ahead
        call, site, saved = ahead
        host = (call, self.hosts.host[site], saved)
        return concatenate([(call, site, saved * self.near), self.hosts.spread(host, 1 - self.near)])

    def solve(self, i: int, rows: int, entries: Entries) -> np.ndarray:
        """Return the site for each row (call, or group of calls, of node `i`) that saves most, evenly."""
        load = self.load if rows % self.sites else np.zeros(self.sites)
        group = None if self.wanted is None else self.wanted[i]
        key = (
            rows,
            load.tobytes(),
            *(e.tobytes() for e in entries),
            b"" if group is None else group.tobytes(),
        )
        if key not in self.solved:
            groups_of_sites = None if self.hosts is None else self.hosts.host
            self.solved[key] = share_out(rows, entries, load, group=group, groups=groups_of_sites)
        return self.solved[key]

    def cost(
        self, i: int, calls: np.ndarray, here: Sequence[Entries], ahead: Entries, entries: Entries
    ) -> float:
        """Return the bytes that node `i` moves with its calls there, up to a constant."""
        call, site, saved = entries if len(calls) <= self.sites else ahead
        total = -float(saved[site == calls[call]].sum())
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
            self.held[i] = calls[:, 0]
            return
        parts = out_parts(node, self.plan.partitions[i])
        ways = min(len(set(row)) for row in calls.tolist())
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
                best = (rank, finer, edges, homes, seen)
        _, finer, self.edges[i], self.held[i], seen = best
        self.scatter[i] = () if finer == parts else finer
        for c, k, r in seen:
            self.reads[c][k] = r

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
            block, site, size = wanted
            wanted = concatenate(
                [(block, site, size * self.near), self.hosts.spread(self.hosts.merge(wanted), 1 - self.near)]
            )
        homes = share_out(len(sizes), wanted, stored, slots=slots)
        stored += np.bincount(homes, sizes, self.sites)
        return homes

    def lie(self, i: int) -> np.ndarray:
        """Return for the plan's blocks of an input with a layout the site that has most of each."""
        node, cuts = self.nodes[i], self.plan.partitions[i]
        r = reads_of_blocks(out_edges(node, cuts), self.edges[i])
        block, site, size = r.call, self.held[i][r.block], r.bytes
        most = np.bincount(block * self.sites + site, size, r.calls * self.sites)
        return most.reshape(r.calls, self.sites).argmax(axis=1)
