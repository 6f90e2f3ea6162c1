"""Plans in files: saved, loaded, and held against the graph they shall be used for.

Contract: a file is JSON with the plan, its graph included, and the placement where there is one.  What is
loaded is checked: a file that is none, or a plan for another graph, is an error that says what differs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from einsummable import codec, dtypes
from einsummable.errors import PlanError
from einsummable.graph import EinGraph
from einsummable.nodes import Input
from einsummable.planner.plan import Placement, Plan
from einsummable.rematerialise import candidates, computed_again

#: The version of the format.
FORMAT = "einsummable plan 1"


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """What a file holds; `format` names its version."""

    plan: Plan
    placement: Placement | None = None
    format: str = FORMAT


def save(path: str | os.PathLike[str], plan: Plan, placement: Placement | None = None) -> None:
    """Write `plan`, and its `placement` if given, to the file `path`."""
    codec.write(SavedPlan(plan, placement), path)


def load(path: str | os.PathLike[str]) -> SavedPlan:
    """Return what `save` wrote to the file `path`.

    Raises
    ------
    PlanError
        There is no such file, or it holds no plan.
    """
    saved = codec.read(SavedPlan, path, "plan")
    if saved.format != FORMAT:
        raise PlanError(f"the file {os.fspath(path)!r} has the format {saved.format!r}, which is not known")
    return saved


def for_graph(plan: Plan, graph: EinGraph) -> Plan:
    """Return `plan` for `graph`, which may have been written in other words but must compute the same.

    A plan that computes tensors again to hold less (see `rematerialise`) is one for `graph`, too.

    Raises
    ------
    PlanError
        It is a plan for another graph.
    """
    if plan.graph != graph and computed_again(plan.graph):
        graph = next((made for made in candidates(graph) if made == plan.graph), graph)
    if plan.graph != graph:
        raise PlanError("the plan is for another program", notes=(_difference(plan.graph, graph),))
    plan = replace(plan, graph=graph)
    plan.check()
    return plan


def _difference(planned: EinGraph, graph: EinGraph) -> str:
    """Return the first difference, in words."""
    for name in dict.fromkeys([*planned.inputs, *graph.inputs]):
        there, here = planned.inputs.get(name), graph.inputs.get(name)
        if there is None or here is None:
            return f"the input {name!r} is only in {'this program' if there is None else 'the plan'}"
        if (there.shape, there.dtype) != (here.shape, here.dtype):
            return f"{name} is {_described(there)} in the plan, {_described(here)} in this program"
    for i, (theirs, ours) in enumerate(zip(planned.nodes, graph.nodes, strict=False)):
        if theirs != ours:
            return f"{graph.name_of(i)} is {ours} here, {theirs} in the plan"
    if len(planned.nodes) != len(graph.nodes):
        return f"the plan has {len(planned.nodes)} nodes, this program {len(graph.nodes)}"
    return "the results or the scalars have other names"


def _described(node: Input) -> str:
    return f"{list(node.shape)} {dtypes.name(node.dtype)}"
