"""Minimise a sum of tables over discrete variables, by eliminating one variable after another.

Contract: `minimise(sizes, factors)` takes the number of values of each variable and factors, each a tuple of
distinct variables and an array with one axis a variable; it answers a value for each variable.  Where no
elimination needs a table beyond `limit` entries the answer is a minimum, and on a tree none does: eliminating
a leaf is the step of the classic dynamic program.  Else a variable is frozen where it looks best, which cuts
the rest, and at the end every variable is improved while the others stand still.

Equal work is done once: a step is known by the identity of its tables, so that equal layers of a program,
which share their tables, share the steps inside a layer as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

#: A table and the variables of its axes.
Factor = tuple[tuple[int, ...], np.ndarray]
#: Entries that one broadcast sum may have at a time; larger ones are made in slices.
CHUNK = 4_000_000


def minimise(
    sizes: Sequence[int], factors: Sequence[Factor], limit: int = 300_000_000
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
    search = _Elimination(sizes, factors, limit)
    values = search.run()
    if search.frozen:
        values = improve(sizes, factors, values)
    return values, evaluate(factors, values)


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
    while queue:
        v = queue.pop()
        costs = np.zeros(sizes[v])
        for scope, table in touching[v]:
            costs += table[tuple(slice(None) if u == v else now[u] for u in scope)]
        best = int(costs.argmin())
        if costs[best] < costs[now[v]] * (1 - 1e-12):
            now[v] = best
            queue += {u for scope, _ in touching[v] for u in scope} - {v, *queue}
    return now


class _Elimination:
    """One run: factors by variable, and the steps to undo."""

    def __init__(self, sizes: Sequence[int], factors: Sequence[Factor], limit: int) -> None:
        self.sizes, self.limit = sizes, limit
        self.frozen = False
        self.touching: list[dict[int, Factor]] = [{} for _ in sizes]
        self.count = 0
        self.memo: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}
        self.steps: list[tuple[int, tuple[int, ...], np.ndarray]] = []
        self.kept: list[np.ndarray] = []  # alive, so that identities in `memo` stay true
        for scope, table in factors:
            self.add(scope, table)

    def add(self, scope: tuple[int, ...], table: np.ndarray) -> None:
        self.kept.append(table)
        for v in scope:
            self.touching[v][self.count] = (scope, table)
        self.count += 1

    def take(self, v: int) -> list[Factor]:
        """Remove and return the factors of variable `v`."""
        found = dict(sorted(self.touching[v].items()))
        for key, (scope, _) in found.items():
            for u in scope:
                del self.touching[u][key]
        return list(found.values())

    def scope(self, v: int) -> tuple[int, ...]:
        """Return the variables that share a factor with `v`."""
        near = {u for scope, _ in self.touching[v].values() for u in scope}
        return tuple(sorted(near - {v}))

    def run(self) -> list[int]:
        left = set(range(len(self.sizes)))
        width = {v: self.width(v) for v in left}
        while left:
            v = min(left, key=lambda v: (width[v], v))
            near = self.scope(v)
            if width[v] > self.limit:
                v = max(left, key=lambda v: (len(self.scope(v)), self.sizes[v], -v))
                near = self.scope(v)
                self.freeze(v)
            else:
                self.eliminate(v, near)
            left.remove(v)
            for u in near:
                width[u] = self.width(u)
        values = [0] * len(self.sizes)
        for v, near, choice in reversed(self.steps):
            values[v] = int(choice[tuple(values[u] for u in near)])
        return values

    def width(self, v: int) -> int:
        return self.sizes[v] * prod(self.sizes[u] for u in self.scope(v))

    def eliminate(self, v: int, near: tuple[int, ...]) -> None:
        taken = self.take(v)
        axes = (*near, v)
        parts = sorted(((tuple(axes.index(u) for u in scope), id(table)) for scope, table in taken))
        key = (tuple(self.sizes[u] for u in axes), tuple(parts))
        if key not in self.memo:
            self.memo[key] = _min_last([(tuple(axes.index(u) for u in s), t) for s, t in taken], key[0])
        best, choice = self.memo[key]
        self.steps.append((v, near, choice))
        if near:
            self.add(near, best)

    def freeze(self, v: int) -> None:
        """Fix `v` at the value that is best if all its neighbours could choose freely."""
        self.frozen = True
        taken = self.take(v)
        costs = np.zeros(self.sizes[v])
        for scope, table in taken:
            costs += table.min(axis=tuple(d for d, u in enumerate(scope) if u != v))
        value = int(costs.argmin())
        self.steps.append((v, (), np.array(value)))
        for scope, table in taken:
            rest = tuple(u for u in scope if u != v)
            if rest:
                self.add(rest, table.take(value, axis=scope.index(v)))


def _min_last(parts: list[Factor], sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return minimum and argmin over the last axis of the sum of `parts`, whose scopes are axes."""
    views = []
    for axes, table in parts:
        order = np.argsort(axes)
        shape = [sizes[d] if d in axes else 1 for d in range(len(sizes))]
        views.append(table.transpose(order).reshape(shape))
    if len(sizes) == 1:
        whole = sum(views, np.zeros(sizes))
        return whole.min(axis=-1), whole.argmin(axis=-1)
    best = np.empty(sizes[:-1])
    choice = np.empty(sizes[:-1], np.int32)
    rows = max(1, CHUNK // max(prod(sizes[1:]), 1))
    for start in range(0, sizes[0], rows):
        piece = slice(start, start + rows)
        whole = sum(view[piece] if view.shape[0] > 1 else view for view in views)
        whole = np.broadcast_to(whole, (len(range(*piece.indices(sizes[0]))), *sizes[1:]))
        choice[piece] = whole.argmin(axis=-1)
        best[piece] = np.take_along_axis(whole, choice[piece][..., None].astype(np.intp), axis=-1)[..., 0]
    return best, choice
