"""How a program would run: plan, placement and TaskGraph, each made when it is first asked for, and kept.

Contract: a `Planned` is a graph and what the plan is made for; nothing here runs anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from math import inf

from einsummable import views
from einsummable.choose import Choice, figures, realised, routed
from einsummable.display import Picture
from einsummable.errors import PlanError
from einsummable.fit import fitted, fitting
from einsummable.graph import EinGraph
from einsummable.nodes import Input
from einsummable.options import positive
from einsummable.planner import saved, strategies
from einsummable.planner.eindecomp import Pins
from einsummable.planner.explain import Explanation, StrategyRow, explain, strategy_row
from einsummable.planner.hardware import Hardware, host
from einsummable.planner.plan import Layout, Placement, Plan
from einsummable.planner.saved import SavedPlan
from einsummable.runtime.executor import Executor
from einsummable.taskgraph.allocate import parse_bytes
from einsummable.taskgraph.fuse import fuse
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.simulate import Simulation, simulate
from einsummable.taskgraph.tasks import TaskGraph


class Planned:
    """A graph with what its plan is made for, and every rung of the ladder below it.

    Attributes
    ----------
    graph
        The EinGraph.
    executor
        Where it is to run; as many sites as it has are the most there may be.
    layouts
        Where the inputs that already live on engines are.
    sites, p
        How many sites there are, and how many kernel calls each node is to be cut into.
    hardware, memory, pins
        What the plan is made for (see `compile`).
    plan, placement, tasks
        How every node is cut; where every block is; what happens on which site.
    """

    def __init__(
        self,
        graph: EinGraph,
        executor: Executor,
        layouts: Mapping[str, Layout],
        *,
        sites: int,
        p: int | None,
        hardware: Hardware | None,
        memory: float | str | None,
        pins: Pins | None,
        plan: Plan | str | os.PathLike[str] | None,
    ) -> None:
        if hardware is not None and hardware.sites != sites:
            raise PlanError(f"{hardware.name} has {hardware.sites} sites, the program is for {sites}")
        self.graph, self.executor, self.layouts, self.sites = graph, executor, dict(layouts), sites
        self.hardware, self.pins = hardware, dict(pins or {})
        self.memory = parse_bytes(memory) if isinstance(memory, str) else memory
        self._saved = _saved(plan, graph)
        self.p = positive("p", p if p is not None else self._saved.plan.p if self._saved else sites)

    @cached_property
    def choice(self) -> Choice:
        """Plan, placement and tasks: of all that were tried, those that move least or take the least time."""
        if self._saved is not None:
            return self._reused(self._saved)
        found = fitting(
            self.graph,
            self.sites,
            memory=self.limit,
            p=self.p,
            by="bytes" if self.hardware is None else "seconds",
            layouts=self.layouts,
            pins=self.pins,
            hardware=self.hardware,
        )
        return replace(found, plan=replace(found.plan, strategy="eindecomp"))

    def _reused(self, saved: SavedPlan) -> Choice:
        """Return the tasks of a plan that was given, placed as it says if it is for as many sites."""
        placement = saved.placement
        if placement is None or placement.sites != self.sites or self.layouts:
            choice = realised(saved.plan, self.sites, self.layouts, self.hardware)
        elif self.hardware is not None:
            choice = routed(saved.plan, placement, self.hardware)
        else:
            choice = Choice(saved.plan, placement, fuse(lower(saved.plan, placement)))
        return fitted(choice, self.limit)

    @property
    def limit(self) -> float:
        """The bytes that a site may hold: the least of `memory`, of the hardware and of where it runs."""
        given = [self.memory, getattr(self.hardware, "memory", None), getattr(self.executor, "memory", None)]
        return min((n for n in given if n is not None), default=inf)

    @cached_property
    def budget(self) -> int | None:
        """The bytes that runs keep to: `memory`, or what the hardware has where one would hold more."""
        if self.memory is not None:
            return int(self.memory)
        short = self.limit < inf and max(self.simulation.peaks, default=0) > self.limit
        return int(self.limit) if short else None

    @property
    def plan(self) -> Plan:
        """How every node is cut."""
        return self.choice.plan

    @property
    def placement(self) -> Placement:
        """Where every kernel call and every block is."""
        return self.choice.placement

    @property
    def tasks(self) -> TaskGraph:
        """What happens on which site."""
        return self.choice.tasks

    def layout(self, name: str) -> Layout:
        """Return where the plan has the blocks of an input."""
        return self._planned[name]

    @cached_property
    def _planned(self) -> dict[str, Layout]:
        parts, homes = self.plan.partitions, self.placement.homes
        return {
            node.name: Layout(parts[i].parts, homes[i])
            for i, node in enumerate(self.plan.graph.nodes)
            if isinstance(node, Input)
        }

    @cached_property
    def simulation(self) -> Simulation:
        """How the program would run on `hardware`, or on a server of as many sites where none was given."""
        return self.choice.simulation or simulate(self.tasks, self.hardware or host(self.sites))

    def explain(self) -> Explanation:
        """Return the plan in figures: totals, a row a node, and the named strategies on the same scale."""
        rivals, rows = [], dict(self.choice.tried)
        for plan in strategies.named_plans(self.graph, self.p, layouts=self.layouts):
            if plan.partitions not in rows:
                rows[plan.partitions] = self._figures(plan)
            rivals.append(replace(rows[plan.partitions], name=plan.strategy))
        return explain(
            self.plan,
            self.placement,
            self.tasks,
            rivals,
            run=self.simulation,
            hardware=self.simulation.hardware.name,
            memory=self.limit,
            layouts=self.layouts,
            pins=self.pins,
        )

    def _figures(self, plan: Plan) -> StrategyRow:
        """Return what another plan comes to."""
        if self.hardware is not None:
            return figures(plan, self.sites, self.layouts, self.hardware)
        rival = realised(plan, self.sites, self.layouts, None)
        return strategy_row(plan.strategy, rival.tasks, simulate(rival.tasks, self.simulation.hardware))

    def save_plan(self, path: str | os.PathLike[str]) -> None:
        """Write plan and placement to a file, for `compile` to use again."""
        saved.save(path, self.plan, self.placement)

    def picture(self, name: str | None = None) -> Picture:
        """Return every tensor's blocks, coloured by site; or the kernel calls of the tensor called `name`."""
        if name is None:
            return Picture(views.plan_view(self.plan, self.placement))
        return Picture(views.join_view(self.plan, self.placement, self.plan.graph.id_of(name)))


def _saved(plan: Plan | str | os.PathLike[str] | None, graph: EinGraph) -> SavedPlan | None:
    """Return the plan that is given, held against `graph`."""
    if plan is None:
        return None
    given = SavedPlan(plan) if isinstance(plan, Plan) else saved.load(plan)
    return replace(given, plan=saved.for_graph(given.plan, graph))
