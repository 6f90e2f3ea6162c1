"""Minimise a sum of tables over discrete variables, by eliminating one variable after another.

Contract: `minimise(sizes, factors)` takes the number of values of each variable and factors, each a tuple of
distinct variables and an array with one axis a variable; it answers a value for each variable.  Eliminating a
leaf is the step of the classic dynamic program on a tree; eliminating any other variable leaves a table over
its neighbours, so the answer is a minimum on every graph where these tables stay small (Dechter, *Bucket
elimination*, 1999).  Where they would not (a variable with many neighbours, or a table beyond `limit`), the
variable on which least depends is set aside and chosen when the rest is; then the rest is chosen anew around
it, with one of those set aside at a time, as long as that gains.

Equal work is done once: a step is known by the identity of its tables, so that the equal layers of a program,
which share their tables, share the steps inside a layer as well.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from einsummable.progress import step

#: A table and the variables of its axes.
Factor = tuple[tuple[int, ...], np.ndarray]
#: A variable with more neighbours is set aside before anything is eliminated.
HUB = 16
#: Entries of a broadcast sum that are made at a time: what a cache holds.
CHUNK = 100_000
#: Steps of more entries are worth avoiding, if a variable can be set aside with hardly a loss ...
EASY = 300_000
#: ... one on which no more than this share depends of what depends on the strongest.
WEAK = 0.02
#: Variables set aside, times all variables, up to which each gets its turn.
PATIENCE = 3000


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
    best = improve(sizes, factors, search.run(), search.aside)
    cost = evaluate(factors, best)
    # Around what was set aside the rest is chosen anew, and with it in turn each of these variables.
    turns: list[int | None] = [None] if search.aside else []
    if len(sizes) * len(search.aside) <= PATIENCE:
        turns += [v for v in search.aside if v not in search.hubs]
    failed = 0
    while turns and failed < len(turns):
        turn = turns.pop(0)
        turns.append(turn)
        given = {v: best[v] for v in search.aside if v != turn}
        now = improve(sizes, factors, _Elimination(sizes, factors, limit, memo, given, 20 * EASY).run())
        new = evaluate(factors, now)
        failed += 1
        if new < cost * (1 - 1e-12):
            best, cost, failed = now, new, 0
    return best, cost


def evaluate(factors: Sequence[Factor], values: Sequence[int]) -> float:
    """Return the sum of `factors` at `values`."""
    return float(sum(table[tuple(values[v] for v in scope)] for scope, table in factors))


def improve(
    sizes: Sequence[int], factors: Sequence[Factor], values: Sequence[int], first: Sequence[int] = ()
) -> list[int]:
    """Return `values` after changing one variable at a time, those of `first` first, until none gains."""
    touching: list[list[Factor]] = [[] for _ in sizes]
    for factor in factors:
        for v in factor[0]:
            touching[v].append(factor)
    now = list(values)
    queue = [*(v for v in range(len(sizes)) if v not in first), *first]
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

    `aside` names the variables that were set aside; those of `given` have their value from before.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        factors: Sequence[Factor],
        limit: int,
        memo: dict[tuple, tuple[np.ndarray, object]],
        given: Mapping[int, int],
        easy: int = EASY,
    ) -> None:
        self.sizes, self.limit, self.memo, self.easy = sizes, limit, memo, easy
        self.given = {v: 0 for v, n in enumerate(sizes) if n == 1} | dict(given)
        self.aside: list[int] = []
        self.hubs: list[int] = []
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
            self.set_aside(v)
        left = set(range(len(self.sizes))) - set(self.given)
        self.hubs = [v for v in left if len(self.near(v)) > HUB]
        for v in self.hubs:
            self.set_aside(v)
        left -= set(self.hubs)
        heap = [(self.width(v), v) for v in left]
        heapq.heapify(heap)
        while left:
            width, v = heapq.heappop(heap)
            if v not in left or width != self.width(v):
                continue  # an old entry; a newer one is in the heap
            weak = self.weakest(left, width)
            if weak is not None and weak != v:
                heapq.heappush(heap, (width, v))
                v = weak
            step()
            near = self.near(v)
            left.remove(v)
            if weak is None:
                self.eliminate(v, near)
            else:
                self.set_aside(v)
            for u in near:
                heapq.heappush(heap, (self.width(u), u))
        return self.values()

    def weakest(self, left: set[int], width: int) -> int | None:
        """Return the variable to set aside where the next step costs `width`, None where that is no need.

        It is the one on which least depends, and below the limit that must be next to nothing.
        """
        influence = {v: self.influence(v) for v in left if width > self.easy and len(self.near(v)) > 2}
        if not influence:
            return None
        v = min(influence, key=lambda v: (influence[v], v))
        return v if width > self.limit or influence[v] <= WEAK * max(influence.values()) else None

    def influence(self, v: int) -> float:
        """Return at most how much the choice of `v` changes the sum of the factors."""
        return sum(float(table.max() - table.min()) for _, table in self.touching[v].values())

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

    def set_aside(self, v: int) -> None:
        """Take `v` out: with the value given for it, else without its factors, to be chosen at the end."""
        taken = self.take(v)
        if v not in self.given:
            self.aside.append(v)
            self.steps.append((v, taken))
            return
        value = self.given[v]
        self.steps.append((v, [((v,), np.where(np.arange(self.sizes[v]) == value, 0.0, np.inf))]))
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
