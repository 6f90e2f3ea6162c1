"""EinDecomp: cut every node of a graph so that the least data moves.

Contract: `plan(graph, p)` returns a checked `Plan` for p sites.  Every node is a variable whose values are
its candidate cuts (`candidates`), what it costs is a table on one variable, and what a tensor costs between
its producer and a reader a table on two (`tables`); `elimination` finds the cheapest choice, on a tree
exactly.

``model="moved"`` counts bytes that travel between sites when calls are placed sensibly.  Every node is cut as
evenly as its extents allow, the few that hardly count excepted, and inputs lie where they are used.
``model="paper"`` is the published model, in elements: every node and input is cut into exactly p blocks, and
a node's result is first repartitioned into p blocks, then into what each reader wants.  With a `Hardware` the
predicted time counts (`timing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from einsummable.errors import PlanError, UnknownNameError, nearest
from einsummable.graph import EinGraph
from einsummable.nodes import Node
from einsummable.planner import candidates, cost
from einsummable.planner.elimination import minimise
from einsummable.planner.hardware import Hardware
from einsummable.planner.light import gathered
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Layout, Plan
from einsummable.planner.problem import Problem, moved, published, timed, timed_plan
from einsummable.planner.strategies import named_plans

#: By name of a tensor, the parts of some of its node's labels.
Pins = Mapping[str, Mapping[str, int]]


def plan(
    graph: EinGraph,
    p: int,
    *,
    model: str = "moved",
    layouts: Mapping[str, Layout] | None = None,
    pins: Pins | None = None,
    hardware: Hardware | None = None,
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
    hardware
        What it is to run on.  If given, the plan takes the least predicted time there instead, with up to `p`
        calls a node, and `Plan.cost` is in seconds.

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
    if hardware is not None:
        tried = [_solved(timed(graph, p, layouts, fixed, hardware), graph, p)]
        if not fixed:
            tried += named_plans(graph, p, layouts=layouts)
        tried = [replace(one, cost=seconds(one, hardware, layouts)) for one in tried]
        found = min(tried, key=lambda plan: plan.cost)
    elif model == "paper":
        found = _solved(published(graph, p, layouts, fixed), graph, p)
    elif model == "moved":
        found = _with_bytes(_solved(moved(graph, p, layouts, fixed), graph, p), layouts)
        rival = None if fixed else _rival(found, layouts)
        if rival is not None:
            loads = [_largest(node, cut) for node, cut in zip(graph.nodes, rival.partitions, strict=True)]
            again = _with_bytes(_solved(moved(graph, p, layouts, fixed, loads), graph, p), layouts)
            found = min(found, rival, again, key=lambda plan: plan.cost)
        found = gathered(found, layouts, fixed)
    else:
        raise PlanError(f"no cost model is called {model!r}", notes=("there are 'moved' and 'paper'",))
    found = replace(found, strategy="eindecomp")
    found.check()
    return found


def seconds(plan: Plan, hardware: Hardware, layouts: Mapping[str, Layout] | None = None) -> float:
    """Return the seconds that `plan` is predicted to take on `hardware`."""
    problem = timed_plan(plan, layouts or {}, hardware)
    return minimise(problem.sizes, problem.factors)[1]


def _solved(problem: Problem, graph: EinGraph, p: int) -> Plan:
    values, total = minimise(problem.sizes, problem.factors)
    chosen = tuple(
        _partition(node, table[value].tolist())
        for node, table, value in zip(graph.nodes, problem.rows, values, strict=False)
    )
    return Plan(graph, chosen, p, "eindecomp", total)


def _with_bytes(plan: Plan, layouts: Mapping[str, Layout]) -> Plan:
    return replace(plan, cost=cost.moved_bytes(plan.graph, plan.partitions, layouts))


def _rival(found: Plan, layouts: Mapping[str, Layout]) -> Plan | None:
    """Return the best of the named plans that are about as balanced as `found` and move less, if any.

    Such a plan cuts some node less evenly than a node by itself may be, one that is not much of the whole.
    """
    allowed = max(candidates.SLACK, cost.balance(found.graph, found.partitions, found.p))
    better = [
        plan
        for plan in named_plans(found.graph, found.p, layouts=layouts)
        if plan.cost < found.cost * (1 - 1e-9)
        and cost.balance(plan.graph, plan.partitions, plan.p) <= allowed
    ]
    return min(better, key=lambda plan: plan.cost, default=None)


def _largest(node: Node, cut: Partition) -> float:
    return float(candidates.largest_block(node, np.array([cut.parts], np.int64).reshape(1, -1))[0])


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
    found = {}
    for name, parts in pins.items():
        i = graph.id_of(name)
        node = graph.nodes[i]
        labels = [label for label, _ in node.space]
        for label in parts:
            if label not in labels:
                raise UnknownNameError(
                    f"a cut is given for label {label!r} of {name!r}, whose labels are {', '.join(labels)}"
                )
        fixed = {label: 1 for label in node.out if label} | dict(parts)
        _partition(node, [fixed.get(label, 1) for label in labels]).check(node.space, node.cuttable)
        found[i] = fixed
    return found


def _partition(node: Node, parts: tuple[int, ...] | list[int]) -> Partition:
    return Partition(tuple(label for label, _ in node.space), tuple(parts))
