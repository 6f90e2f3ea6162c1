"""Minimise a sum of tables over discrete variables, by eliminating one variable after another.

Contract: `minimise(sizes, factors)` takes the number of values of each variable and factors, each a tuple of
distinct variables and an array with one axis a variable; it answers a value for each variable.  Eliminating a
leaf is the step of the classic dynamic program on a tree; eliminating any other variable leaves a table over
its neighbours, so the answer is a minimum on every graph where these tables stay small (Dechter, *Bucket
elimination*, 1999).  Where they would not (a variable with many neighbours, or a table beyond `limit`), a
variable is frozen at the value that looks best, and later thawed, chosen anew and frozen again.

Equal work is done once: a step is known by the identity of its tables, so that the equal layers of a program,
which share their tables, share the steps inside a layer as well.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

#: A table and the variables of its axes.
Factor = tuple[tuple[int, ...], np.ndarray]
#: A variable with more neighbours is frozen before anything is eliminated.
HUB = 16
#: Entries of a broadcast sum that are made at a time: what a cache holds.
CHUNK = 100_000
#: How often frozen variables are chosen anew.
ROUNDS = 4


def minimise(
    sizes: Sequence[int], factors: Sequence[Factor], limit: int = 200_000_000
) -> tuple[list[int], float]:
    """Return the values that minimise the sum of `factors`, and that sum.

    Parameters
    ----------
    sizes
        The number of values of each variable.
    factors
        Variables and table of each term.
    limit
        The most entries that the sum of tables in one step may have.
    """
    memo: dict[tuple, tuple[np.ndarray, object]] = {}
    search = _Elimination(sizes, factors, limit, memo, {})
    best, frozen = search.run(), search.frozen
    cost = evaluate(factors, best)
    for _ in range(ROUNDS if frozen else 0):
        thawed = improve(sizes, factors, best)
        now = _Elimination(sizes, factors, limit, memo, {v: thawed[v] for v in frozen}).run()
        new = evaluate(factors, now)
        if new >= cost:
            break
        best, cost = now, new
    return best, cost


def evaluate(factors: Sequence[Factor], values: Sequence[int]) -> float:
    """Return the sum of `factors` at `values`."""
    return float(sum(table[tuple(values[v] for v in scope)] for scope, table in factors))


def improve(sizes: Sequence[int], factors: Sequence[Factor], values: Sequence[int]) -> list[int]:
    """Return `values` after changing one variable at a time for the better until none gains."""
    touching: list[list[Factor]] = [[] for _ in sizes]
    for factor in factors:
        for v in factor[0]:
            touching[v].append(factor)
    now, queue = list(values), list(range(len(sizes)))
    waiting = set(queue)
    while queue:
        v = queue.pop()
        waiting.remove(v)
        costs = np.zeros(sizes[v])
        for scope, table in touching[v]:
            costs += table[tuple(slice(None) if u == v else now[u] for u in scope)]
        best = int(costs.argmin())
        if costs[best] < costs[now[v]] * (1 - 1e-12):
            now[v] = best
            again = {u for scope, _ in touching[v] for u in scope} - {v, *waiting}
            queue += again
            waiting |= again
    return now


class _Elimination:
    """One run: the factors that are left by variable, and the steps to undo.

    `frozen` names the variables that were not chosen by elimination; those of `given` keep their value.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        factors: Sequence[Factor],
        limit: int,
        memo: dict[tuple, tuple[np.ndarray, object]],
        given: Mapping[int, int],
    ) -> None:
        self.sizes, self.limit, self.memo, self.given = sizes, limit, memo, given
        self.frozen: list[int] = list(given)
        self.touching: list[dict[int, Factor]] = [{} for _ in sizes]
        self.count = 0
        self.steps: list[tuple[int, list[Factor]]] = []
        for scope, table in factors:
            self.add(scope, table)

    def add(self, scope: tuple[int, ...], table: np.ndarray) -> None:
        for v in scope:
            self.touching[v][self.count] = (scope, table)
        self.count += 1

    def take(self, v: int) -> list[Factor]:
        """Remove and return the factors of variable `v`."""
        found = dict(self.touching[v])
        for key, (scope, _) in found.items():
            for u in scope:
                del self.touching[u][key]
        return list(found.values())

    def near(self, v: int) -> list[int]:
        """Return the variables that share a factor with `v`, in order."""
        return sorted({u for scope, _ in self.touching[v].values() for u in scope} - {v})

    def width(self, v: int) -> int:
        return self.sizes[v] * prod(self.sizes[u] for u in self.near(v))

    def run(self) -> list[int]:
        """Eliminate all variables, those with the smallest tables first; return their values."""
        for v in self.given:
            self.freeze(v)
        hubs = [v for v in range(len(self.sizes)) if v not in self.given and len(self.near(v)) > HUB]
        for v in hubs:
            self.freeze(v)
        left = set(range(len(self.sizes))) - set(self.given) - set(hubs)
        heap = [(self.width(v), v) for v in left]
        heapq.heapify(heap)
        while left:
            width, v = heapq.heappop(heap)
            if v not in left or width != self.width(v):
                continue  # an old entry; a newer one is in the heap
            if width > self.limit:
                v = max(left, key=lambda v: (len(self.near(v)), self.sizes[v], -v))
                heapq.heappush(heap, (width, v))
            near = self.near(v)
            left.remove(v)
            if width > self.limit:
                self.freeze(v)
            else:
                self.eliminate(v, near)
            for u in near:
                heapq.heappush(heap, (self.width(u), u))
        return self.values()

    def eliminate(self, v: int, near: list[int]) -> None:
        """Replace the factors of `v` by their sum's minimum over `v`."""
        taken = self.take(v)
        self.steps.append((v, taken))
        if not near:
            return
        axes = {u: d for d, u in enumerate((v, *near))}
        parts = sorted(
            ((tuple(axes[u] for u in scope), table) for scope, table in taken), key=lambda p: (p[0], id(p[1]))
        )
        key = (*(self.sizes[u] for u in axes), *((at, id(table)) for at, table in parts))
        self.add(tuple(near), self.once(key, parts, lambda: _min_first(parts, [self.sizes[u] for u in axes])))

    def once(self, key: tuple, needs: object, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the table known by `key`; `needs` is kept, so that the identities in the key stay true."""
        if key not in self.memo:
            self.memo[key] = (make(), needs)
        return self.memo[key][0]

    def freeze(self, v: int) -> None:
        """Fix `v` where it is given, else where it is best if all its neighbours could choose freely."""
        taken = self.take(v)
        if v in self.given:
            value = self.given[v]
        else:
            self.frozen.append(v)
            costs = np.zeros(self.sizes[v])
            for scope, table in taken:
                costs += table.min(axis=tuple(d for d, u in enumerate(scope) if u != v))
            value = int(costs.argmin())
        only = np.where(np.arange(self.sizes[v]) == value, 0.0, np.inf)
        self.steps.append((v, [((v,), only)]))
        for scope, table in taken:
            rest, axis = tuple(u for u in scope if u != v), scope.index(v)
            if rest:
                key = (id(table), axis, value)
                self.add(rest, self.once(key, table, lambda t=table, a=axis: t.take(value, axis=a)))

    def values(self) -> list[int]:
        """Return the value of every variable: the last eliminated first, each given those it met."""
        found = [0] * len(self.sizes)
        for v, taken in reversed(self.steps):
            costs = np.zeros(self.sizes[v])
            for scope, table in taken:
                costs += table[tuple(slice(None) if u == v else found[u] for u in scope)]
            found[v] = int(costs.argmin())
        return found


def _min_first(parts: Sequence[Factor], sizes: Sequence[int]) -> np.ndarray:
    """Return the minimum over the first axis of the sum of `parts`, whose scopes are axes."""
    merged: dict[tuple[int, ...], np.ndarray] = {}
    for axes, table in parts:
        order = tuple(np.argsort(axes))
        scope = tuple(axes[d] for d in order)
        table = table.transpose(order)
        merged[scope] = merged[scope] + table if scope in merged else table
    views = [
        table.reshape([sizes[d] if d in scope else 1 for d in range(len(sizes))])
        for scope, table in merged.items()
    ]
    views.sort(key=lambda view: view.size)
    best = np.full(sizes[1:], np.inf)
    rows = max(1, CHUNK // max(best.size, 1))
    for start in range(0, sizes[0], rows):
        pieces = [view[start : start + rows] if view.shape[0] > 1 else view for view in views]
        whole = pieces[0]
        for piece in pieces[1:]:
            whole = whole + piece
        np.minimum(best, np.broadcast_to(whole, (whole.shape[0], *sizes[1:])).min(axis=0), out=best)
    return best
