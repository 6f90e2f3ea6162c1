"""A planning problem as variables and tables, ready for `elimination`.

Contract: a `Problem` has variables, the first of which are the nodes of the graph, with `rows[i]` the
candidates of node i, and factors, the terms of the cost.  `published` is the model of the paper in elements;
`moved` counts bytes that travel.

There, a tensor that several nodes read has a variable of its own: the form in which it is brought about for
all of them (see `cost.tensor_bytes`), so that what serves several readers is paid once.

Equal nodes share their tables, the very same arrays: `elimination` knows equal steps by that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from einsummable.graph import EinGraph, Einsummable, Input, Node, Reshape, Select
from einsummable.planner import candidates, cost, tables
from einsummable.planner.elimination import Factor
from einsummable.planner.plan import Layout
from einsummable.planner.tables import Forms

#: By node id, the parts that some of its labels must have.
Fixed = Mapping[int, Mapping[str, int]]


@dataclass(slots=True)
class Problem:
    """Variables and terms of the cost; `rows` has the candidates of the nodes, which come first."""

    rows: list[np.ndarray]
    sizes: list[int]
    factors: list[Factor] = field(default_factory=list)


def signature(node: Node) -> tuple:
    """Return all that candidates and costs of `node` depend on, whatever its labels are called."""
    at = {label: d for d, (label, _) in enumerate(node.space)}
    extents = tuple(n for _, n in node.space)
    match node:
        case Input():
            return ("input", extents, node.dtype.itemsize)
        case Einsummable():
            reads = tuple(tuple(at[label] for label in labels) for labels in node.labels)
            return ("einsummable", extents, reads, len(node.out), node.dtype.itemsize)
        case Reshape():
            return ("reshape", extents, node.groups_in, node.groups_out, node.dtype.itemsize)
        case Select():
            reads = tuple((at.get(p.label), p.start, p.step, p.param is None) for p in node.positions)
            return ("select", extents, reads, node.source_shape, node.dtype.itemsize)


class _Once:
    """Makes a value once for each key; arrays in keys stand for themselves."""

    def __init__(self) -> None:
        self._known: dict[tuple, tuple[Any, Any]] = {}

    def __call__(self, make: Callable[[], Any], *key: Hashable) -> Any:
        short = tuple(id(k) if isinstance(k, np.ndarray | Forms) else k for k in key)
        if short not in self._known:
            self._known[short] = (make(), key)  # the key keeps its arrays alive, and so their identities
        return self._known[short][0]


class _Moved:
    """Builds the problem of moved bytes."""

    def __init__(
        self, graph: EinGraph, p: int, layouts: Mapping[str, Layout], fixed: Fixed, loads: Sequence[float]
    ) -> None:
        self.graph, self.p, self.layouts, self.fixed, self.loads = graph, p, layouts, fixed, loads
        self.once = _Once()
        self.signatures = [signature(node) for node in graph.nodes]
        self.light = candidates.light_nodes([cost.work(graph, i) for i in range(len(graph.nodes))], p)
        self.rows: list[np.ndarray] = [np.ones((1, 0), np.int64)] * len(graph.nodes)

    def build(self) -> Problem:
        computed = [i for i, node in enumerate(self.graph.nodes) if not isinstance(node, Input)]
        inputs = [i for i, node in enumerate(self.graph.nodes) if isinstance(node, Input)]
        for i in computed + inputs:
            self.rows[i] = self.candidates(i)
        problem = Problem(self.rows, [len(rows) for rows in self.rows])
        for i, node in enumerate(self.graph.nodes):
            own = self.once(
                lambda i=i, n=node: tables.aggregation(n, self.rows[i]) * n.dtype.itemsize,
                "aggregation",
                self.signatures[i],
                self.rows[i],
            )
            problem.factors.append(((i,), own))
            self.deliver(i, problem)
        return problem

    # ---------------------------------------------------------------------------- candidates

    def candidates(self, i: int) -> np.ndarray:
        """Return the candidates of node `i`; those of a free input are what its readers read it in."""
        node, key = self.graph.nodes[i], (self.signatures[i], i in self.light)
        layout = self.layouts.get(node.name) if isinstance(node, Input) else None
        if layout is not None:
            rows = self.once(lambda: _row(layout.parts), "lying", layout.parts)
        elif isinstance(node, Input):
            wanted = [self.read(reader, k).parts for reader, k in self.readers(i)]
            wanted = wanted or [_row([1] * len(node.shape))]
            rows = self.once(lambda: candidates.union(*wanted), "input", *wanted)
        elif i in self.light:
            both = candidates.balanced, candidates.coarse
            rows = self.once(lambda: candidates.union(*(table(node, self.p) for table in both)), *key)
        else:
            load = self.loads[i] if self.loads else 0.0
            rows = self.once(lambda: candidates.balanced(node, self.p, load), *key, load)
        if i in self.fixed:
            given = dict(self.fixed[i])
            rows = self.once(lambda: candidates.restricted(node, rows, given), "fixed", rows, *given.items())
        return rows

    def readers(self, i: int) -> list[tuple[int, int]]:
        """Return every reader of node `i` and which of its inputs that is."""
        return [
            (r, k)
            for r in self.graph.consumers[i]
            for k, j in enumerate(self.graph.nodes[r].inputs)
            if j == i
        ]

    # --------------------------------------------------------------------------------- tables

    def read(self, reader: int, k: int) -> Forms:
        """Return the forms in which node `reader` reads its input `k`."""
        node, rows = self.graph.nodes[reader], self.rows[reader]
        return self.once(lambda: tables.forms_read(node, k, rows), "read", self.signatures[reader], k, rows)

    def made(self, i: int) -> Forms:
        """Return the forms in which node `i` makes its output."""
        node, rows = self.graph.nodes[i], self.rows[i]
        layout = self.layouts.get(node.name) if isinstance(node, Input) else None
        sites = layout and layout.sites
        return self.once(lambda: tables.forms_of(node, rows, layout), "made", self.signatures[i], rows, sites)

    def deliver(self, i: int, problem: Problem) -> None:
        """Add the tables for bringing the output of node `i` to its readers."""
        node, have, variable = self.graph.nodes[i], self.made(i), i
        readers = self.readers(i)
        if len(readers) > 1:
            shared = self.shared(have, [self.read(reader, k) for reader, k in readers])
            variable = len(problem.sizes)
            problem.sizes.append(len(shared))
            problem.factors.append(((i, variable), self.moved(node, have, node.shape, shared)))
            have = shared
        for reader, k in readers:
            read = cost.read_shape(self.graph.nodes[reader], k)
            problem.factors.append(((variable, reader), self.moved(node, have, read, self.read(reader, k))))

    def moved(self, node: Node, have: Forms, read: tuple[int, ...], want: Forms) -> np.ndarray:
        return self.once(
            lambda: tables.transfer(node.shape, have, read, want) * node.dtype.itemsize,
            "moved",
            node.shape,
            node.dtype.itemsize,
            have,
            read,
            want,
        )

    def shared(self, own: Forms, wanted: list[Forms]) -> Forms:
        """Return the forms that may be brought about for all readers: those of each, and the output's own."""

        def make() -> Forms:
            rows = [np.column_stack([own.parts, own.parts.prod(axis=1)])]
            rows += [np.column_stack([w.parts, w.holders]) for w in wanted]
            every = candidates.union(*rows)
            return tables.replicated(every[:, :-1], every[:, -1])

        return self.once(make, "shared", own, *dict.fromkeys(wanted))


def moved(
    graph: EinGraph, p: int, layouts: Mapping[str, Layout], fixed: Fixed, loads: Sequence[float] = ()
) -> Problem:
    """Return the problem of moving the fewest bytes on `p` sites.

    Where `loads` are given, a node may also be cut less evenly, with blocks of up to as many points each.
    """
    return _Moved(graph, p, layouts, fixed, loads).build()


# ---------------------------------------------------------------------------- the published model


def published(graph: EinGraph, p: int, layouts: Mapping[str, Layout], fixed: Fixed) -> Problem:
    """Return the problem of the published model; variable ``n + i`` is the cut of the result of node i."""
    n, rows = len(graph.nodes), []
    for i, node in enumerate(graph.nodes):
        table = candidates.strict(node, p)
        if isinstance(node, Input) and node.name in layouts:
            table = _row(layouts[node.name].parts)
        rows.append(candidates.restricted(node, table, dict(fixed[i])) if i in fixed else table)
    for i, node in enumerate(graph.nodes):
        free = Input("", node.shape, node.dtype)
        rows.append(rows[i] if isinstance(node, Input) else candidates.strict(free, p))
    problem = Problem(rows, [len(table) for table in rows])
    for i, node in enumerate(graph.nodes):
        if isinstance(node, Input):
            # An input is not repartitioned before it is read: its own variable is its result's.
            problem.factors.append(((i, n + i), np.where(np.eye(len(rows[i])) > 0, 0.0, np.inf)))
            continue
        own = tables.join(node, rows[i]) + tables.aggregation(node, rows[i])
        shift = tables.repartition(node.shape, tables.out_rows(node, rows[i]), rows[n + i])
        problem.factors.append(((i, n + i), own[:, None] + shift))
        for k, j in enumerate(node.inputs):
            want = tables.in_rows(node, rows[i], k)
            moved_in = tables.repartition(cost.read_shape(node, k), rows[n + j], want)
            problem.factors.append(((n + j, i), moved_in))
    return problem


def _row(parts: tuple[int, ...] | list[int]) -> np.ndarray:
    return np.array([parts], np.int64).reshape(1, len(parts))
