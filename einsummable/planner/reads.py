"""Which blocks of its inputs every kernel call of a node reads, and how much of each: as numpy arrays.

Contract: what `taskgraph.lower` does with boxes one at a time, for all calls at once, in bytes.  Every
dimension is cut by one label at most, so the overlaps are found along each dimension and multiplied out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod

import numpy as np

from einsummable.nodes import Einsummable, Gather, Node
from einsummable.planner.cost import in_labels
from einsummable.planner.partition import Partition, cut

#: The borders of the blocks of a tensor, in each dimension.
Edges = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Reads:
    """Entry e: kernel call ``call[e]`` reads ``bytes[e]`` of block ``block[e]`` of the tensor."""

    calls: int
    blocks: int
    call: np.ndarray
    block: np.ndarray
    bytes: np.ndarray
    block_bytes: np.ndarray


def reads(node: Node, partition: Partition, k: int, edges: Sequence[Sequence[int]], itemsize: int) -> Reads:
    """Return what the calls of `node` read of its input `k`, which is held in blocks with borders `edges`."""
    cuts = [cut(n, parts) for (_, n), parts in zip(node.space, partition.parts, strict=True)]
    where = {label: d for d, label in enumerate(partition.labels)}
    if isinstance(node, Einsummable | Gather):
        dims = [(where[label], cuts[where[label]]) for label in node.labels[k]]
    else:
        # One label cuts each dimension: along the diagonal of all labels every range of each is seen.
        boxes = [
            node.in_box(k, tuple(c[min(i, len(c) - 1)] for c in cuts))
            for i in range(max(partition.parts, default=1))
        ]
        dims = [
            (where[x], tuple(box[d] for box in boxes[: partition[x]])) if x else (-1, (boxes[0][d],))
            for d, x in enumerate(in_labels(node, k))
        ]
    return _reads(partition.parts, tuple(dims), tuple(map(tuple, edges)), itemsize)


def reads_of_blocks(blocks: Sequence[Sequence[int]], edges: Sequence[Sequence[int]]) -> Reads:
    """Return what the blocks with borders `blocks` overlap of those with borders `edges`, in elements."""
    dims = tuple((d, tuple(pairwise(border))) for d, border in enumerate(blocks))
    return _reads(tuple(len(b) - 1 for b in blocks), dims, tuple(map(tuple, edges)), 1)


@lru_cache(maxsize=4096)
def _reads(
    parts: tuple[int, ...],
    dims: tuple[tuple[int, tuple[tuple[int, int], ...]], ...],
    edges: Edges,
    itemsize: int,
) -> Reads:
    calls, blocks = prod(parts), prod(len(e) - 1 for e in edges)
    index = np.unravel_index(np.arange(calls), parts) if parts else ()
    call, block, size = np.arange(calls), np.zeros(calls, np.int64), np.full(calls, float(itemsize))
    for (at, spans), border in zip(dims, edges, strict=True):
        starts, which, lengths = _along(spans, border)
        mine = index[at][call] if at >= 0 else np.zeros(len(call), np.int64)
        count = starts[mine + 1] - starts[mine]
        entry = np.repeat(np.arange(len(call)), count)
        hit = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count) + starts[mine][entry]
        call, block = call[entry], block[entry] * (len(border) - 1) + which[hit]
        size = size[entry] * lengths[hit]
    return Reads(calls, blocks, call, block, size, block_bytes(edges, itemsize))


def _along(
    spans: tuple[tuple[int, int], ...], border: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each span where its hits start, and each hit's block and length."""
    start, stop = np.array(spans, np.int64).reshape(-1, 2).T
    edges = np.array(border)
    first = np.searchsorted(edges, start, "right") - 1
    count = np.where(start < stop, np.searchsorted(edges, stop, "left") - first, 0)
    span = np.repeat(np.arange(len(spans)), count)
    which = np.arange(len(span)) - np.repeat(np.cumsum(count) - count, count) + first[span]
    lengths = np.minimum(stop[span], edges[which + 1]) - np.maximum(start[span], edges[which])
    return np.concatenate([[0], np.cumsum(count)]), which, lengths


# ------------------------------------------------------------------------------- blocks on sites

#: What is, or is wanted, on sites: blocks (or kernel calls), sites, bytes.
Entries = tuple[np.ndarray, np.ndarray, np.ndarray]
#: So many blocks on average that a call finds on a site are summed up by a matrix product.
DENSE = 8
NOTHING: Entries = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def block_bytes(edges: Sequence[Sequence[int]], itemsize: int) -> np.ndarray:
    """Return the size of every block."""
    return _block_bytes(tuple(map(tuple, edges)), itemsize)


@lru_cache(maxsize=4096)
def _block_bytes(edges: Edges, itemsize: int) -> np.ndarray:
    sizes = np.full(1, float(itemsize))
    for border in edges:
        sizes = np.multiply.outer(sizes, np.diff(border)).ravel()
    return sizes


def needs(r: Reads, sites_of_calls: np.ndarray, sites: int) -> Entries:
    """Return the bytes of each block that each site reads; what several calls there read counts once.

    Calls that are fewer than the sites are on sites of their own.
    """
    site = sites_of_calls[r.call]
    if r.calls <= sites:  # one call a site, so that nothing coincides
        return r.block, site, r.bytes
    # Calls that read different parts of a block add up, to the whole of it at most.
    block, site, total = add_up((r.block, site, r.bytes), sites)
    return block, site, np.minimum(total, r.block_bytes[block])


def add_up(entries: Entries, sites: int) -> Entries:
    """Return `entries` with those of one row and site added up; ordered by row, then site."""
    row, site, size = entries
    key, cells = row * sites + site, (int(row.max(initial=-1)) + 1) * sites
    if cells <= DENSE * len(key):
        total = np.bincount(key, size, cells)
        key = np.flatnonzero(total)
        return key // sites, key % sites, total[key]
    key, where = np.unique(key, return_inverse=True)
    return key // sites, key % sites, np.bincount(where, size, len(key))


def merge(parts: Sequence[Entries], sites: int) -> Entries:
    """Return all `parts`, of what is there several times the largest; ordered by block, then site."""
    if not parts:
        return NOTHING
    block, site, size = (np.concatenate(column) for column in zip(*parts, strict=True))
    key = block * sites + site
    cells = int(key.max(initial=-1)) + 1
    if cells <= DENSE * len(key):
        most = np.zeros(cells)
        np.maximum.at(most, key, size)
        key = np.flatnonzero(most)
        return key // sites, key % sites, most[key]
    order = np.lexsort((-size, key))
    key, size = key[order], size[order]
    first = np.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    return key[first] // sites, key[first] % sites, size[first]


def join(r: Reads, there: Entries) -> Entries:
    """Return the bytes of what each call reads that are on each site: `there` is ordered by block."""
    block, site, size = there
    start = np.searchsorted(block, np.arange(r.blocks + 1))
    count = np.diff(start)[r.block]
    sites = int(site.max(initial=0)) + 1
    if count.sum() > DENSE * r.calls * sites:
        return join_dense(r, there, sites)
    entry = np.repeat(np.arange(len(r.block)), count)
    hit = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count) + start[r.block][entry]
    return r.call[entry], site[hit], np.minimum(r.bytes[entry], size[hit])


def join_within(r: Reads, there: Entries, hosts: Hosts, group: np.ndarray) -> Entries:
    """Return what `join` does for sites on the host that `group` names for each call, and no others."""
    block, site, size = there
    key = block * hosts.count + hosts.host[site]
    order = np.argsort(key, kind="stable")
    key = key[order]
    wanted = r.block * hosts.count + group[r.call]
    first, last = np.searchsorted(key, wanted, "left"), np.searchsorted(key, wanted, "right")
    count = last - first
    if count.sum() > DENSE * r.calls * hosts.members.shape[1]:
        return concatenate([NOTHING, *_dense_by_host(r, there, hosts, group)])
    entry = np.repeat(np.arange(len(wanted)), count)
    hit = order[np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count) + first[entry]]
    return r.call[entry], site[hit], np.minimum(r.bytes[entry], size[hit])


def _dense_by_host(r: Reads, there: Entries, hosts: Hosts, group: np.ndarray) -> Iterator[Entries]:
    """Yield for every host what `join_dense` says of its calls and sites."""
    block, site, size = there
    wanted = np.zeros((r.calls, r.blocks))
    wanted[r.call, r.block] = r.bytes
    for host, members in enumerate(hosts.members):
        calls, here = np.flatnonzero(group == host), hosts.host[site] == host
        column = np.searchsorted(members, site[here])
        total = _minima(wanted[calls], (block[here], column, size[here]), len(members))
        call, where = np.nonzero(total)
        yield calls[call], members[where], total[call, where]


def join_dense(r: Reads, there: Entries, sites: int) -> Entries:
    """Return the same summed up by call and site, without an entry for each block in between."""
    wanted = np.zeros((r.calls, r.blocks))
    wanted[r.call, r.block] = r.bytes
    total = _minima(wanted, there, sites)
    call, where = np.nonzero(total)
    return call, where, total[call, where]


def _minima(wanted: np.ndarray, there: Entries, sites: int) -> np.ndarray:
    """Return by call and site how much of the blocks that are `wanted` (calls × blocks) is `there`."""
    block, site, size = there
    total = np.zeros((len(wanted), sites))
    for most in np.unique(size):  # few: near-equal blocks, whole or as some reader cuts them
        present = np.zeros((wanted.shape[1], sites))
        present[block[size == most], site[size == most]] = 1.0
        total += np.minimum(wanted, most) @ present
    return total


def largest(entries: Entries, blocks: int) -> np.ndarray:
    """Return for each block the largest of its entries."""
    found = np.zeros(blocks)
    np.maximum.at(found, entries[0], entries[2])
    return found


def shared(a: Entries, b: Entries, sites: int) -> float:
    """Return the bytes of `a` that `b` has too; both are merged."""
    _, left, right = np.intersect1d(a[0] * sites + a[1], b[0] * sites + b[1], True, return_indices=True)
    return float(np.minimum(a[2][left], b[2][right]).sum())


def concatenate(parts: Sequence[Entries]) -> Entries:
    """Return all of `parts`, at least one."""
    return parts[0] if len(parts) == 1 else tuple(np.concatenate(c) for c in zip(*parts, strict=True))


# --------------------------------------------------------------------------------------- hosts


@dataclass(frozen=True, eq=False)
class Hosts:
    """The host of every site, and the sites of every host: as many in each, short ones padded with -1."""

    host: np.ndarray
    members: np.ndarray

    @classmethod
    def of(cls, hosts: Sequence[int] | None) -> Hosts | None:
        """Return the hosts, None where every site has its own."""
        if hosts is None or len(set(hosts)) == len(hosts):
            return None
        host = np.unique(np.asarray(hosts), return_inverse=True)[1]
        members = [np.flatnonzero(host == h) for h in range(host.max() + 1)]
        width = max(map(len, members))
        return cls(host, np.array([np.pad(m, (0, width - len(m)), constant_values=-1) for m in members]))

    @property
    def count(self) -> int:
        """How many hosts there are."""
        return len(self.members)

    @property
    def even(self) -> bool:
        """Whether every host has as many sites."""
        return bool((self.members >= 0).all())

    def merge(self, entries: Entries) -> Entries:
        """Return what is on each host, of what is there several times the largest."""
        block, site, size = entries
        return merge([(block, self.host[site], size)], self.count)

    def levels(self, by_site: Entries, by_host: Entries, near: float) -> Entries:
        """Return entries of both levels as one: host h stands as a site of number ``sites + h``.

        A byte on the site itself counts 1, one on its host what remains when moving it there costs `near`.
        """
        row, site, size = by_site
        line, host, large = by_host
        return concatenate([(row, site, size * near), (line, len(self.host) + host, large * (1 - near))])

    def matches(self, site: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return where `site`, of entries of `levels`, is the site `chosen` or its host."""
        return (site == chosen) | (site == len(self.host) + self.host[chosen])
