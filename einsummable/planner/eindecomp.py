"""EinDecomp: cut every node of a graph so that the least data moves.

Contract: `plan(graph, p)` returns a checked `Plan` for p sites.  Every node is a variable whose values are
its candidate cuts (`candidates`), what it costs is a table on one variable, and what a tensor costs between
its producer and a reader a table on two (`tables`); `elimination` finds the cheapest choice, on a tree
exactly.

``model="moved"`` counts bytes that travel between sites when calls are placed sensibly.  Every node is cut as
evenly as its extents allow, the few that hardly count excepted, and inputs lie where they are used.
``model="paper"`` is the published model, in elements: every node and input is cut into exactly p blocks, and
a node's result is first repartitioned into p blocks, then into what each reader wants.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from einsummable.errors import PlanError, UnknownNameError, nearest
from einsummable.graph import EinGraph, Input, Node
from einsummable.planner import candidates, cost, tables
from einsummable.planner.elimination import Factor, minimise
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Layout, Plan

#: By name of a tensor, the parts of some of its node's labels.
Pins = Mapping[str, Mapping[str, int]]


def plan(
    graph: EinGraph,
    p: int,
    *,
    model: str = "moved",
    layouts: Mapping[str, Layout] | None = None,
    pins: Pins | None = None,
) -> Plan:
    """Return the cheapest plan for `graph` on `p` sites.

    Parameters
    ----------
    p
        The number of kernel calls each node is cut into, as nearly as its extents allow; any number from 1.
    model
        ``"moved"`` (bytes) or ``"paper"`` (the published model, elements); `Plan.cost` is in its unit.
    layouts
        Inputs that already lie on sites, by name: they are cut as they lie.
    pins
        Cuts that are given, by name of a tensor and label.  A dimension of a pinned tensor that is not
        named is not cut; aggregated labels stay free unless they are named.

    Raises
    ------
    PlanError
        `p`, a pin or a layout cannot be.
    UnknownNameError
        A pin or a layout is for a tensor that does not exist.
    """
    if isinstance(p, bool) or p < 1:
        raise PlanError(f"p must be a whole number from 1, not {p!r}")
    layouts, fixed = _checked_layouts(graph, layouts or {}), _checked_pins(graph, pins or {})
    if model == "moved":
        rows = moved_candidates(graph, p, layouts, fixed)
        factors = moved_factors(graph, rows, layouts)
    elif model == "paper":
        rows = _paper_candidates(graph, p, layouts, fixed)
        factors = _paper_factors(graph, rows)
    else:
        raise PlanError(f"no cost model is called {model!r}", notes=("there are 'moved' and 'paper'",))
    values, total = minimise([len(table) for table in rows], factors)
    chosen = tuple(
        Partition(tuple(label for label, _ in node.space), tuple(map(int, table[value])))
        for node, table, value in zip(graph.nodes, rows, values, strict=False)
    )
    found = Plan(graph, chosen, p, "eindecomp", total)
    found.check()
    return found


# ------------------------------------------------------------------------------------ moved bytes


def moved_candidates(
    graph: EinGraph,
    p: int,
    layouts: Mapping[str, Layout],
    fixed: Mapping[int, Mapping[str, int]],
) -> list[np.ndarray]:
    """Return the candidates of every node; those of a free input are what its readers read it in."""
    light = candidates.light_nodes([cost.flops(node) for node in graph.nodes], p)
    rows: list[np.ndarray] = [np.ones((1, 0), np.int64)] * len(graph.nodes)
    inputs = [i for i, node in enumerate(graph.nodes) if isinstance(node, Input)]
    for i, node in enumerate(graph.nodes):
        if not isinstance(node, Input):
            rows[i] = candidates.balanced(node, p)
            if i in light:
                rows[i] = candidates.union(rows[i], candidates.coarse(node, p))
            if i in fixed:
                rows[i] = candidates.restricted(node, rows[i], dict(fixed[i]))
    for i in inputs:
        rows[i] = _input_candidates(graph, i, rows, layouts.get(graph.nodes[i].name))
        if i in fixed:
            rows[i] = candidates.restricted(graph.nodes[i], rows[i], dict(fixed[i]))
    return rows


def _input_candidates(graph: EinGraph, i: int, rows: list[np.ndarray], layout: Layout | None) -> np.ndarray:
    node = graph.nodes[i]
    if layout is not None:
        return np.array([layout.parts], np.int64).reshape(1, len(node.shape))
    wanted = [
        tables.in_rows(graph.nodes[reader], rows[reader], k)
        for reader in graph.consumers[i]
        for k, source in enumerate(graph.nodes[reader].inputs)
        if source == i
    ]
    return candidates.union(*wanted) if wanted else np.ones((1, len(node.shape)), np.int64)


def moved_factors(graph: EinGraph, rows: list[np.ndarray], layouts: Mapping[str, Layout]) -> list[Factor]:
    """Return the tables of the moved-bytes model: one a node, one an input of a node."""
    factors: list[Factor] = []
    for i, node in enumerate(graph.nodes):
        factors.append(((i,), tables.aggregation(node, rows[i]) * node.dtype.itemsize))
        for k, j in enumerate(node.inputs):
            source = graph.nodes[j]
            layout = layouts.get(source.name) if isinstance(source, Input) else None
            held = rows[j].prod(axis=1) if layout is None else np.array([len(set(layout.sites))])
            have = tables.out_rows(source, rows[j])
            factors.append(((j, i), tables.moved(source, have, held, node, k, rows[i])))
    return factors


# ---------------------------------------------------------------------------- the published model


def _paper_candidates(
    graph: EinGraph,
    p: int,
    layouts: Mapping[str, Layout],
    fixed: Mapping[int, Mapping[str, int]],
) -> list[np.ndarray]:
    """Return the cuts of every node, then those of every node's result."""
    rows = []
    for i, node in enumerate(graph.nodes):
        table = candidates.strict(node, p)
        if isinstance(node, Input) and node.name in layouts:
            table = np.array([layouts[node.name].parts], np.int64).reshape(1, len(node.shape))
        rows.append(candidates.restricted(node, table, dict(fixed[i])) if i in fixed else table)
    return rows + [
        rows[i] if isinstance(node, Input) else candidates.strict(Input("", node.shape, node.dtype), p)
        for i, node in enumerate(graph.nodes)
    ]


def _paper_factors(graph: EinGraph, rows: list[np.ndarray]) -> list[Factor]:
    """Return the tables of the published model; variable ``n + i`` is the cut of the result of node i."""
    n = len(graph.nodes)
    factors: list[Factor] = []
    for i, node in enumerate(graph.nodes):
        if isinstance(node, Input):
            # The input's own variable is its result's: no other choice costs less than nothing.
            factors.append(((i, n + i), np.where(np.eye(len(rows[i])) > 0, 0.0, np.inf)))
            continue
        own = tables.join(node, rows[i]) + tables.aggregation(node, rows[i])
        shift = tables.repartition(node.shape, tables.out_rows(node, rows[i]), rows[n + i])
        factors.append(((i, n + i), own[:, None] + shift))
        for k, j in enumerate(node.inputs):
            want = tables.in_rows(node, rows[i], k)
            factors.append(((n + j, i), tables.repartition(cost.read_shape(node, k), rows[n + j], want)))
    return factors


# --------------------------------------------------------------------------------- what is given


def _checked_layouts(graph: EinGraph, layouts: Mapping[str, Layout]) -> Mapping[str, Layout]:
    for name, layout in layouts.items():
        if name not in graph.inputs:
            raise UnknownNameError(
                f"a layout is given for {name!r}, which is no input", notes=nearest(name, graph.inputs)
            )
        node = graph.inputs[name]
        if len(layout.parts) != len(node.shape) or prod(layout.parts) != len(layout.sites):
            raise PlanError(
                f"the layout of {name!r} has parts {layout.parts} and {len(layout.sites)} sites"
                f" for a tensor of shape {node.shape}"
            )
        _partition(node, layout.parts).check(node.space, node.cuttable)
    return layouts


def _checked_pins(graph: EinGraph, pins: Pins) -> dict[int, dict[str, int]]:
    """Return the pins by node, with a 1 for each label of the output that they leave out."""
    ids = {graph.name_of(i): i for i in range(len(graph.nodes))}
    found = {}
    for name, parts in pins.items():
        if name not in ids:
            raise UnknownNameError(
                f"a cut is given for {name!r}, which is no tensor", notes=nearest(name, ids)
            )
        node = graph.nodes[ids[name]]
        labels = [label for label, _ in node.space]
        for label in parts:
            if label not in labels:
                raise UnknownNameError(
                    f"a cut is given for label {label!r} of {name!r}, whose labels are {', '.join(labels)}"
                )
        fixed = {label: 1 for label in node.out if label} | dict(parts)
        _partition(node, [fixed.get(label, 1) for label in labels]).check(node.space, node.cuttable)
        found[ids[name]] = fixed
    return found


def _partition(node: Node, parts: tuple[int, ...] | list[int]) -> Partition:
    return Partition(tuple(label for label, _ in node.space), tuple(parts))
