"""The cuts that are worth looking at: for every node a table with a row for each candidate partition.

Contract: a table is an integer array (candidates × labels of the node's space), rows distinct, none beyond an
extent, 1 in every column that may not be cut.  Earlier rows cut earlier labels more; a search that takes the
first of equals therefore cuts the slowest dimensions, which keeps blocks contiguous.

The published planner gives each prime factor of p to a label.  That fails where p is prime or exceeds the
extents, so numbers of blocks a little below p are offered too where p is no product of small primes, and
parts are clipped to the extents.  Of what comes out only balanced cuts are kept: the largest block at
most `SLACK` times what the best cut reaches.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np

from einsummable.nodes import Node

#: How much larger than need be the largest block may be.
SLACK = 1.1
#: Numbers of blocks below p are tried where p has a prime factor beyond this.
SMALL_PRIME = 5
#: About how many candidates the numbers below p may add to a node.
EXTRA = 400


@lru_cache(maxsize=4096)
def factorisations(n: int, labels: int) -> np.ndarray:
    """Return all ways to write `n` as an ordered product of `labels` numbers, large first ones first.

    Where there is no label, that is the empty product.
    """
    if labels == 0:
        return np.ones((1, 0), np.int64)
    if labels == 1:
        return np.array([[n]], np.int64)
    rows = []
    for first in reversed(divisors(n)):
        rest = factorisations(n // first, labels - 1)
        rows.append(np.column_stack([np.full(len(rest), first), rest]))
    return np.concatenate(rows)


@lru_cache(maxsize=4096)
def divisors(n: int) -> tuple[int, ...]:
    """Return the divisors of `n`, ascending."""
    low = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return tuple(sorted({*low, *(n // d for d in low)}))


def strict(node: Node, p: int) -> np.ndarray:
    """Return the cuts into exactly `p` blocks, or where extents forbid that, into as many as they allow."""
    rows = _spread(node, factorisations(p, len(node.cuttable)))
    within = rows[(rows <= _limits(node)).all(axis=1)]
    if len(within):
        return within
    clipped = _distinct(np.minimum(rows, _limits(node)))
    blocks = clipped.prod(axis=1)
    return clipped[blocks == blocks.max()]


@lru_cache(maxsize=4096)
def _numbers(p: int, labels: int) -> tuple[int, ...]:
    """Return the numbers of blocks to try for `p`: itself, and where it factors badly some just below it."""
    tried = [p]
    if _largest_prime(p) > SMALL_PRIME:
        below = range(p - 1, int(np.ceil(p / SLACK)) - 1, -1)
        budget = EXTRA
        for n in sorted(below, key=lambda n: -len(factorisations(n, labels))):
            budget -= len(factorisations(n, labels))
            if budget < 0:
                break
            tried.append(n)
    return tuple(tried)


def _largest_prime(n: int) -> int:
    largest, d = 1, 2
    while d * d <= n:
        while n % d == 0:
            largest, n = d, n // d
        d += 1
    return max(largest, n)


def balanced(node: Node, p: int, load: float = 0.0) -> np.ndarray:
    """Return the cuts into about `p` blocks whose largest block is about as small as any cut can make it.

    Besides those, cuts into fewer blocks are returned if their largest block has at most `load` points.
    """
    labels = len(node.cuttable)
    rows = np.concatenate([factorisations(n, labels) for n in _numbers(p, labels)])
    rows = _distinct(np.minimum(_spread(node, rows), _limits(node)))
    loads = largest_block(node, rows)
    rows = rows[loads <= SLACK * loads.min()]
    if load > loads.min():
        fewer = coarse(node, p)
        rows = union(rows, fewer[largest_block(node, fewer) <= load])
    aggregated = [d for d, (label, _) in enumerate(node.space) if label in getattr(node, "aggregated", ())]
    # Of equals, those with fewer partial results come first.
    return rows[np.argsort(rows[:, aggregated].prod(axis=1), kind="stable")]


def coarse(node: Node, p: int) -> np.ndarray:
    """Return the cuts into any number of blocks that divides `p`, one included."""
    labels = len(node.cuttable)
    rows = factorisations(p, labels + 1)[:, :labels]
    return _distinct(np.minimum(_spread(node, rows), _limits(node)))


def largest_block(node: Node, rows: np.ndarray) -> np.ndarray:
    """Return the points of the iteration space that the largest block of each row has."""
    extents = np.array([n for _, n in node.space], np.int64).reshape(1, -1)
    return np.prod(-(-extents // rows), axis=1, dtype=np.float64)


def union(*tables: np.ndarray) -> np.ndarray:
    """Return the distinct rows of all `tables`, those of the first table first."""
    return _distinct(np.concatenate(tables))


def _limits(node: Node) -> np.ndarray:
    return np.array([max(n, 1) for _, n in node.space], np.int64).reshape(1, -1)


def _spread(node: Node, rows: np.ndarray) -> np.ndarray:
    """Put columns for the cuttable labels into tables for all labels."""
    columns = [d for d, (label, _) in enumerate(node.space) if label in node.cuttable]
    table = np.ones((len(rows), len(node.space)), np.int64)
    table[:, columns] = rows
    return table


def _distinct(rows: np.ndarray) -> np.ndarray:
    """Drop repeated rows and keep the order of first occurrence."""
    if not rows.shape[1]:
        return rows[:1]
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]


def light_nodes(work: list[int], p: int, share: float = 0.05) -> frozenset[int]:
    """Return the nodes so small that cutting them is not about balance.

    The smallest nodes are taken as long as all of them on one site would add at most `share` to what that
    site has to do anyway, a p-th of the whole.
    """
    budget, limit = share * sum(work) / p, -1
    for each, equal in sorted(Counter(work).items()):
        budget -= each * equal
        if budget < 0:
            break
        limit = each  # equal nodes are treated alike
    return frozenset(i for i, each in enumerate(work) if each <= limit)


def restricted(node: Node, rows: np.ndarray, fixed: dict[str, int]) -> np.ndarray:
    """Return the rows that cut the labels of `fixed` just so, else the one row that cuts nothing more."""
    labels = [label for label, _ in node.space]
    columns = [labels.index(label) for label in fixed]
    wanted = np.array(list(fixed.values()), np.int64)
    kept = rows[(rows[:, columns] == wanted).all(axis=1)]
    if len(kept):
        return kept
    alone = np.ones((1, len(labels)), np.int64)
    alone[0, columns] = wanted
    return alone


def blocks(rows: np.ndarray) -> np.ndarray:
    """Return the number of blocks of each row."""
    return rows.prod(axis=1)
