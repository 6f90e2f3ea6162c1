"""Which labels the calls of a chain share, and how it is cut along them.

Contract: labels are local to their node; two are the same *thread* where one call's result is another's
input.  `threads` finds them.  A thread that every call has and none aggregates can be cut: the whole chain on
a range of it is independent of the rest.  `tile` chooses ranges so that what the calls hand on stays in the
cache, if that saves more traffic than reading again what lacks the thread costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import TypeAlias

from einsummable.nodes import Einsummable

#: What intermediate results of a tile may take: about a second-level cache.
TILE_BYTES = 1 << 20
#: How many times that it may be where a smaller tile would read too much again: the next cache.
LARGEST = 8
#: Large tiles have a multiple of so many rows: vectors and GEMM's own tiles fit them.
EVEN = 32
#: Rows of a matrix product below which GEMM is slow.
ROWS = 96

#: A call: its node, and what it reads (below the number of inputs an input, else an earlier call).
Member: TypeAlias = tuple[Einsummable, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Thread:
    """Labels of several calls that run over the same indices.

    Attributes
    ----------
    labels
        By call, the label of the thread; a call without it is not there.
    cuttable
        Whether every call has it, once, and none aggregates it.
    single
        Whether no call has it twice.
    """

    labels: dict[int, str]
    cuttable: bool
    single: bool


def threads(members: Sequence[Member], inputs: int) -> list[Thread]:
    """Return all threads of a chain, in the order of the last call's labels first."""
    parent = {(s, x): (s, x) for s, (node, _) in enumerate(members) for x, _ in node.space}

    def root(key: tuple[int, str]) -> tuple[int, str]:
        while parent[key] != key:
            key = parent[key]
        return key

    for s, (node, reads) in enumerate(members):
        for k, j in enumerate(reads):
            if j >= inputs:
                made = members[j - inputs][0]
                for theirs, mine in zip(made.out, node.labels[k], strict=True):
                    parent[root((j - inputs, theirs))] = root((s, mine))
    groups: dict[tuple[int, str], list[tuple[int, str]]] = {}
    for s in reversed(range(len(members))):
        for x, _ in members[s][0].space:
            groups.setdefault(root((s, x)), []).append((s, x))
    found = []
    for keys in groups.values():
        single = len(keys) == len({s for s, _ in keys})
        kept = all(x in members[s][0].out for s, x in keys)
        found.append(Thread(dict(keys), single and kept and len(keys) == len(members), single))
    return found


def tile(
    members: Sequence[Member],
    inputs: int,
    shapes: Sequence[tuple[int, ...]],
    found: Sequence[Thread],
) -> dict[int, int]:
    """Return the extent of a tile along each of the threads of `found` that is cut, by position.

    Parameters
    ----------
    shapes
        The extents of every call's space.
    """
    extents = [{x: n for (x, _), n in zip(node.space, shape, strict=True)}
               for (node, _), shape in zip(members, shapes, strict=True)]  # fmt: skip
    held = sum(
        prod(extents[s][x] for x in node.out) * node.dtype.itemsize
        for s, (node, _) in enumerate(members[:-1])
        if writes_over(members, inputs, s) < 0
    )
    outside = [
        (prod(extents[s][x] for x in set(node.labels[k])) * node.dtype.itemsize, s, frozenset(node.labels[k]))
        for s, (node, reads) in enumerate(members)
        for k, j in enumerate(reads)
        if j < inputs
    ]
    last = len(members) - 1
    sizes: dict[int, int] = {}
    again = {}  # bytes that are read again for every further cut
    for t, thread in enumerate(found):
        if thread.cuttable and extents[last][thread.labels[last]] > 1:
            again[t] = sum(size for size, s, labels in outside if thread.labels[s] not in labels)
    rows = ROWS if any(node.is_contraction for node, _ in members) else 1
    saved = 2 * sum(prod(extents[s][x] for x in node.out) * node.dtype.itemsize
                    for s, (node, _) in enumerate(members[:-1]))  # fmt: skip
    free = {t: size <= TILE_BYTES // 8 for t, size in again.items()}
    for t in sorted(again, key=lambda t: not free[t]):
        if held <= TILE_BYTES:
            break
        n = extents[last][found[t].labels[last]]
        size = max(1 if free[t] else min(rows, n), n * TILE_BYTES // held)
        while size < n and not free[t] and again[t] * (ceil(n / size) - 1) > saved // 4:
            size *= 2
        if size >= EVEN:
            size = (size + EVEN // 2) // EVEN * EVEN
        size = ceil(n / ceil(n / min(size, n)))
        if size < n and (free[t] or held * size // n <= LARGEST * TILE_BYTES):
            sizes[t] = size
            held = held * size // n
    return sizes


def in_place(members: Sequence[Member], inputs: int, s: int) -> bool:
    """Return whether the result of call `s` is written over by the call that reads it last."""
    readers = [(r, k) for r, (_, reads) in enumerate(members) for k, j in enumerate(reads) if j == s + inputs]
    return bool(readers) and writes_over(members, inputs, readers[-1][0]) == s


def writes_over(members: Sequence[Member], inputs: int, s: int) -> int:
    """Return the call whose result call `s` may write over, -1 for none."""
    node, reads = members[s]
    if node.aggregate is not None:
        return -1
    for k, j in enumerate(reads):
        later = any(j in other for _, other in members[s + 1 :])
        if j < inputs or later or reads.count(j) > 1:
            continue
        made = members[j - inputs][0]
        if node.labels[k] == node.out and made.dtype == node.dtype and len(set(node.out)) == len(node.out):
            return j - inputs
    return -1
