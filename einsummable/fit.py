"""Plans that fit: the best of those whose sites never hold more bytes than they have.

Contract: `fitting` answers the choice of `choose` where that fits, as a simulated run tells; else the best
of the other plans that do, with more and smaller blocks where none of the same number does; else the one
that brings the fewest bytes to disk and back, as a MemoryPlan tells; else it refuses, with what is needed,
what there is, and what would help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
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
    tried = [_simulated(best)]
    if _peak(tried[0]) <= memory:
        return tried[0]
    for plans in _others(best.plan, graph, p, layouts or {}, pins, hardware):
        found = [_simulated(realised(plan, sites, layouts or {}, hardware)) for plan in plans]
        tried += found
        fit = [choice for choice in found if _peak(choice) <= memory]
        if fit:
            return min(fit, key=lambda c: c.simulation.makespan if by == "seconds" else c.tasks.bytes_moved)
    evicting = [choice for choice in tried if _can_evict(choice, memory)]
    if evicting:
        return min(evicting, key=lambda c: _evicted(c, memory))
    closest = min(tried, key=lambda c: max(least_budgets(c.tasks)))
    raise _refusal(closest, memory, "no plan fits: the one that needs least")


def fitted(choice: Choice, memory: float) -> Choice:
    """Return `choice`, or raise `CapacityError` where it does not fit sites of `memory` bytes."""
    if memory == inf:
        return choice
    choice = _simulated(choice)
    if _peak(choice) > memory and not _can_evict(choice, memory):
        raise _refusal(choice, memory, "the plan does not fit: it")
    return choice


def _others(
    best: Plan,
    graph: EinGraph,
    p: int,
    layouts: Mapping[str, Layout],
    pins: Pins | None,
    hardware: Hardware | None,
) -> Iterator[list[Plan]]:
    """Yield plans to try: those of other strategies, then finer ones."""
    plans = [eindecomp(graph, p, layouts=layouts, pins=pins)]
    if not pins:
        plans += named_plans(graph, p, layouts=layouts)
    yield [plan for plan in plans if plan.partitions != best.partitions]
    for times in FINER:
        finer = [eindecomp(graph, times * p, layouts=layouts, pins=pins, hardware=hardware)]
        yield finer if pins else [*finer, *named_plans(graph, times * p, layouts=layouts)]


def _simulated(choice: Choice) -> Choice:
    """Return `choice` with a simulated run: where no hardware is known, on a server."""
    if choice.simulation is not None:
        return choice
    return replace(choice, simulation=simulate(choice.tasks, host(choice.tasks.sites)))


def _peak(choice: Choice) -> int:
    return max(choice.simulation.peaks, default=0)


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
