"""Plans that fit: the best of those whose sites never hold more bytes than they have.

Contract: `fitting` answers the choice of `choose` where that fits, as a simulated run tells; else the best
of the other plans that do; else, where one fits as a MemoryPlan tells, that of the same graph or of one that
computes least again (see `rematerialise`); else one with more and smaller blocks; else the one that brings
the fewest bytes to disk and back; else it refuses, with what is needed, what there is, and what would help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from einsummable.choose import Choice, choose, realised
from einsummable.errors import CapacityError, PlanError
from einsummable.graph import EinGraph
from einsummable.planner.eindecomp import Pins
from einsummable.planner.eindecomp import plan as eindecomp
from einsummable.planner.explain import amount
from einsummable.planner.hardware import Hardware, host
from einsummable.planner.plan import Layout, Plan
from einsummable.planner.strategies import named_plans
from einsummable.rematerialise import candidates
from einsummable.taskgraph.allocate import allocate, least_budgets
from einsummable.taskgraph.simulate import Simulation, simulate
from einsummable.taskgraph.tasks import Apply, Fused, nbytes

#: How many times as many blocks are tried.
FINER = (2, 4)


def fitting(
    graph: EinGraph,
    sites: int,
    *,
    memory: float = inf,
    p: int | None = None,
    by: str = "bytes",
    layouts: Mapping[str, Layout] | None = None,
    pins: Pins | None = None,
    hardware: Hardware | None = None,
) -> Choice:
    """Return the best plan for `graph` on `sites` sites of `memory` bytes each.

    Parameters
    ----------
    memory
        What a site has.
    p, by, layouts, pins, hardware
        As for `choose.choose`.

    Raises
    ------
    CapacityError
        No plan that was tried fits.
    PlanError, UnknownNameError
        What is given cannot be.
    """
    if not memory > 0:
        raise PlanError(f"the memory of a site must be more than 0 bytes, not {memory}")
    p = sites if p is None else p
    best = choose(graph, sites, p=p, by=by, layouts=layouts, pins=pins, hardware=hardware)
    if memory == inf:
        return best
    search = _Search(graph, sites, memory, p, layouts or {}, pins, hardware)
    for found in search.stages(best):
        if found:
            return min(found, key=lambda c: c.simulation.makespan if by == "seconds" else c.tasks.bytes_moved)
    closest = min(search.tried, key=lambda c: max(least_budgets(c.tasks)))
    raise _refusal(closest, memory, "no plan fits: the one that needs least")


@dataclass(frozen=True, slots=True)
class _Search:
    """Plans that are tried one after another; `tried` has them all."""

    graph: EinGraph
    sites: int
    memory: float
    p: int
    layouts: Mapping[str, Layout]
    pins: Pins | None
    hardware: Hardware | None
    tried: list[Choice] = field(default_factory=list)

    def stages(self, best: Choice) -> Iterator[list[Choice]]:
        """Yield the choices that fit, of one kind after another."""
        self.tried.append(_simulated(best))
        yield self._fit(self.tried)
        yield self._fit(self._realised(self._others(best.plan)))
        yield [choice for choice in self.tried if _planned(choice) <= self.memory]
        for again in candidates(self.graph):
            made = self._realised([self._eindecomp(again, self.p)])
            yield self._fit(made) or [choice for choice in made if _planned(choice) <= self.memory]
        for times in FINER:
            yield self._fit(self._realised(self._finer(times * self.p)))
        evicting = [choice for choice in self.tried if _can_evict(choice, self.memory)]
        yield sorted(evicting, key=lambda c: _evicted(c, self.memory))[:1]

    def _fit(self, choices: list[Choice]) -> list[Choice]:
        return [choice for choice in choices if _peak(choice) <= self.memory]

    def _realised(self, plans: list[Plan]) -> list[Choice]:
        made = [_simulated(realised(plan, self.sites, self.layouts, self.hardware)) for plan in plans]
        self.tried.extend(made)
        return made

    def _eindecomp(self, graph: EinGraph, p: int) -> Plan:
        return eindecomp(graph, p, layouts=self.layouts, pins=self.pins, hardware=self.hardware)

    def _others(self, best: Plan) -> list[Plan]:
        """Return plans of other strategies."""
        plans = [eindecomp(self.graph, self.p, layouts=self.layouts, pins=self.pins)]
        if not self.pins:
            plans += named_plans(self.graph, self.p, layouts=self.layouts)
        return [plan for plan in plans if plan.partitions != best.partitions]

    def _finer(self, p: int) -> list[Plan]:
        """Return plans of more and smaller blocks."""
        plans = [self._eindecomp(self.graph, p)]
        return plans if self.pins else [*plans, *named_plans(self.graph, p, layouts=self.layouts)]


def fitted(choice: Choice, memory: float) -> Choice:
    """Return `choice`, or raise `CapacityError` where it does not fit sites of `memory` bytes."""
    if memory == inf:
        return choice
    choice = _simulated(choice)
    if _peak(choice) > memory and not _can_evict(choice, memory):
        raise _refusal(choice, memory, "the plan does not fit: it")
    return choice


def _simulated(choice: Choice) -> Choice:
    """Return `choice` with a simulated run: where no hardware is known, on a server."""
    if choice.simulation is not None:
        return choice
    return replace(choice, simulation=simulate(choice.tasks, host(choice.tasks.sites)))


def _peak(choice: Choice) -> int:
    return max(choice.simulation.peaks, default=0)


def _planned(choice: Choice) -> int:
    """Return what the fullest site needs where tasks run in the order of a MemoryPlan."""
    return max(allocate(choice.tasks).peaks, default=0)


def _can_evict(choice: Choice, memory: float) -> bool:
    """Return whether it fits when blocks go to disk for a while."""
    return max(least_budgets(choice.tasks), default=0) <= memory


def _evicted(choice: Choice, memory: float) -> int:
    plan = allocate(choice.tasks, int(memory))
    return plan.written + plan.loaded


# ------------------------------------------------------------------------------------- refusal


def _refusal(closest: Choice, limit: float, what: str) -> CapacityError:
    """Return the error that says by how much a plan is too large, and what would help."""
    run, graph = closest.simulation, closest.plan.graph
    peak = max(run.peaks)
    message = (
        f"{what} ({closest.plan.strategy} with p = {closest.plan.p}) holds up to "
        f"{amount(peak)}B on site {run.peaks.index(peak)}, and a site has {amount(limit)}B"
    )
    node, size = _worst(run)
    notes = [f"its largest kernel call takes {amount(size)}B: {graph.name_of(node)} = {graph.nodes[node]}"]
    least = max(least_budgets(run.taskgraph))
    notes.append(
        f"{amount(least)}B a site would do, with blocks on disk for a while; so may smaller blocks, "
        f"of a greater p"
    )
    origin = graph.nodes[node].origin
    spans = (origin.span,) if graph.text and origin.span is not None else ()
    return CapacityError(message, text=graph.text, spans=spans, notes=tuple(notes))


def _worst(run: Simulation) -> tuple[int, int]:
    """Return the node with the largest kernel call, and the bytes that call reads and writes."""
    tasks = run.taskgraph.tasks
    sizes = {
        task.origin: nbytes(task) + sum(nbytes(tasks[j]) for j in set(task.inputs))
        for task in tasks
        if isinstance(task, Apply | Fused)
    }
    node = max(sizes, key=lambda i: (sizes[i], -i))
    return node, sizes[node]
