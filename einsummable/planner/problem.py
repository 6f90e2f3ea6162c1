"""A planning problem as variables and tables, ready for `elimination`.

Contract: a `Problem` has variables, the first of which are the nodes of the graph, with `rows[i]` the
candidates of node i, and factors, the terms of the cost.  `published` is the model of the paper in elements;
`moved` counts bytes that travel, `timed` predicted seconds.

In the last two a tensor that several nodes read has a variable of its own: the form in which it is brought
about for all of them (see `cost.tensor_bytes`), so that what serves several readers is paid once.

Equal nodes share their tables, the very same arrays: `elimination` knows equal steps by that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from einsummable.graph import EinGraph
from einsummable.nodes import Concat, Einsummable, Gather, Input, Node, Reshape, Select
from einsummable.planner import candidates, cost, tables
from einsummable.planner.elimination import Factor
from einsummable.planner.hardware import Hardware
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Layout, Plan
from einsummable.planner.tables import Forms
from einsummable.planner.timing import candidates_in_time, kernels, travel
from einsummable.work import operations

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
        case Concat():
            return ("concat", extents, node.axis, node.lengths, node.dtype.itemsize)
        case Gather():
            reads = tuple(tuple(at[label] for label in labels) for labels in node.labels)
            return ("gather", extents, reads, len(node.out), node.dtype.itemsize)


class _Once:
    """Makes a value once for each key; arrays in keys stand for themselves."""

    def __init__(self) -> None:
        self._known: dict[tuple, tuple[Any, Any]] = {}

    def __call__(self, make: Callable[[], Any], *key: Hashable) -> Any:
        short = tuple(id(k) if isinstance(k, np.ndarray | Forms) else k for k in key)
        if short not in self._known:
            self._known[short] = (make(), key)  # the key keeps its arrays alive, and so their identities
        return self._known[short][0]


class _Builder(ABC):
    """Builds a problem; what counts is left to subclasses."""

    def __init__(self, graph: EinGraph, p: int, layouts: Mapping[str, Layout], fixed: Fixed) -> None:
        self.graph, self.p, self.layouts, self.fixed = graph, p, layouts, fixed
        self.once = _Once()
        self.signatures = [signature(node) for node in graph.nodes]
        self.rows: list[np.ndarray] = [np.ones((1, 0), np.int64)] * len(graph.nodes)

    @abstractmethod
    def cuts(self, i: int) -> np.ndarray:
        """Return the candidates of node `i`, no input."""

    @abstractmethod
    def own(self, i: int) -> np.ndarray:
        """Return the cost of each candidate of node `i` by itself."""

    @abstractmethod
    def travelling(self, nbytes: np.ndarray, receivers: np.ndarray) -> np.ndarray:
        """Return the cost of so many bytes in all that travel to so many sites."""

    def build(self) -> Problem:
        order = sorted(range(len(self.rows)), key=lambda i: isinstance(self.graph.nodes[i], Input))
        for i in order:  # inputs last: their candidates are what their readers want
            self.rows[i] = self.candidates(i)
        problem = Problem(self.rows, [len(rows) for rows in self.rows])
        for i in range(len(self.rows)):
            problem.factors.append(((i,), self.own(i)))
            self.deliver(i, problem)
        return problem

    def candidates(self, i: int) -> np.ndarray:
        """Return the candidates of node `i`; those of a free input are what its readers read it in."""
        node = self.graph.nodes[i]
        layout = self.layouts.get(node.name) if isinstance(node, Input) else None
        if layout is not None:
            rows = self.once(lambda: _row(layout.parts), "lying", layout.parts)
        elif isinstance(node, Input):
            wanted = [self.within(node, self.read(reader, k).parts) for reader, k in self.readers(i)]
            wanted = wanted or [_row([1] * len(node.shape))]
            rows = self.once(lambda: candidates.union(*wanted), "input", *wanted)
        else:
            rows = self.cuts(i)
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

    def within(self, node: Node, parts: np.ndarray) -> np.ndarray:
        """Return `parts` with no more of them than extents allow: concatenations may be cut finer."""
        limit = np.maximum(np.array(node.shape, np.int64), 1)
        if (parts <= limit).all():
            return parts
        return self.once(lambda: np.minimum(parts, limit), "within", parts, node.shape)

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
            problem.factors.append(((i, variable), self.transfer(node, have, node.shape, shared)))
            have = shared
        for reader, k in readers:
            read = cost.read_shape(self.graph.nodes[reader], k)
            problem.factors.append(
                ((variable, reader), self.transfer(node, have, read, self.read(reader, k)))
            )

    def transfer(self, node: Node, have: Forms, read: tuple[int, ...], want: Forms) -> np.ndarray:
        """Return the cost of bringing the output of `node` from each form of `have` into each of `want`."""

        def make() -> np.ndarray:
            nbytes = tables.transfer(node.shape, have, read, want) * node.dtype.itemsize
            return self.travelling(nbytes, want.holders[None, :])

        return self.once(make, "transfer", node.shape, node.dtype.itemsize, have, read, want)

    def partials(self, i: int) -> np.ndarray:
        """Return the cost of the partial results of node `i` that travel."""
        nbytes = tables.aggregation(self.graph.nodes[i], self.rows[i]) * self.graph.nodes[i].dtype.itemsize
        return self.travelling(nbytes, self.rows[i].prod(axis=1))

    def shared(self, own: Forms, wanted: list[Forms]) -> Forms:
        """Return the forms that may be brought about for all readers: those of each, and the output's own."""

        def make() -> Forms:
            rows = [np.column_stack([own.parts, own.parts.prod(axis=1)])]
            rows += [np.column_stack([w.parts, w.holders]) for w in wanted]
            every = candidates.union(*rows)
            return tables.replicated(every[:, :-1], every[:, -1])

        return self.once(make, "shared", own, *dict.fromkeys(wanted))


class _Moved(_Builder):
    """Bytes that travel count, and every node is cut evenly."""

    def __init__(self, *given: Any, loads: Sequence[float]) -> None:
        super().__init__(*given)
        self.loads = loads
        work = [cost.work(self.graph, i) for i in range(len(self.rows))]
        self.light = candidates.light_nodes(work, self.p)

    def cuts(self, i: int) -> np.ndarray:
        node, key = self.graph.nodes[i], self.signatures[i]
        load = np.inf if i in self.light else self.loads[i] if self.loads else 0.0
        return self.once(lambda: candidates.balanced(node, self.p, load), "cuts", key, load)

    def own(self, i: int) -> np.ndarray:
        return self.once(lambda: self.partials(i), "own", self.signatures[i], self.rows[i])

    def travelling(self, nbytes: np.ndarray, receivers: np.ndarray) -> np.ndarray:  # noqa: ARG002
        return nbytes


class _Timed(_Builder):
    """Predicted seconds count."""

    def __init__(self, *given: Any, hardware: Hardware) -> None:
        super().__init__(*given)
        self.hardware = hardware

    def key(self, i: int) -> tuple:
        """Return what the time of node `i` depends on."""
        node, sources = self.graph.nodes[i], self.graph.nodes[i].inputs
        sizes = tuple(self.graph.nodes[j].dtype.itemsize for j in sources)
        return (self.signatures[i], operations(node), cost.is_product(node), node.dtype, sizes)

    def cuts(self, i: int) -> np.ndarray:
        graph, hardware = self.graph, self.hardware
        return self.once(lambda: candidates_in_time(graph, i, self.p, hardware), "cuts", self.key(i))

    def own(self, i: int) -> np.ndarray:
        rows = self.rows[i]
        return self.once(
            lambda: self.partials(i) + kernels(self.graph, i, rows, self.hardware), "own", self.key(i), rows
        )

    def travelling(self, nbytes: np.ndarray, receivers: np.ndarray) -> np.ndarray:
        return travel(nbytes, receivers, self.hardware)


class _Given(_Timed):
    """The same with no choice but the forms in which tensors are brought to several readers."""

    def __init__(self, *given: Any, cuts: Sequence[Partition], hardware: Hardware) -> None:
        super().__init__(*given, hardware=hardware)
        self.given = cuts

    def candidates(self, i: int) -> np.ndarray:
        parts = self.given[i].parts
        return self.once(lambda: _row(parts), "given", parts)

    def cuts(self, i: int) -> np.ndarray:
        return self.candidates(i)


def moved(
    graph: EinGraph, p: int, layouts: Mapping[str, Layout], fixed: Fixed, loads: Sequence[float] = ()
) -> Problem:
    """Return the problem of moving the fewest bytes on `p` sites.

    Where `loads` are given, a node may also be cut less evenly, with blocks of up to as many points each.
    """
    return _Moved(graph, p, layouts, fixed, loads=loads).build()


def timed(
    graph: EinGraph, p: int, layouts: Mapping[str, Layout], fixed: Fixed, hardware: Hardware
) -> Problem:
    """Return the problem of taking the least time on `hardware` with up to `p` calls a node."""
    return _Timed(graph, p, layouts, fixed, hardware=hardware).build()


def timed_plan(plan: Plan, layouts: Mapping[str, Layout], hardware: Hardware) -> Problem:
    """Return the problem of `timed` that has no plan but `plan`."""
    return _Given(plan.graph, plan.p, layouts, {}, cuts=plan.partitions, hardware=hardware).build()


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
