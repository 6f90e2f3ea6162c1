"""From a graph to the TaskGraph that is best of several: what really moves decides, or the simulated time.

Contract: `choose` tries EinDecomp's plans and the named ones, each placed, lowered and fused.  The fewest
bytes that cross between sites win, among plans that share the work about evenly, or the shortest simulated
run on a `Hardware`.  Plans whose predicted cost is far from the best are not tried, and the largest programs
get one try.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from einsummable.errors import PlanError
from einsummable.graph import EinGraph
from einsummable.planner.candidates import SLACK
from einsummable.planner.cost import balance
from einsummable.planner.eindecomp import Pins, seconds
from einsummable.planner.eindecomp import plan as eindecomp
from einsummable.planner.explain import StrategyRow, strategy_row
from einsummable.planner.hardware import Hardware
from einsummable.planner.partition import Partition
from einsummable.planner.placement import place
from einsummable.planner.plan import Layout, Placement, Plan
from einsummable.planner.strategies import named_plans
from einsummable.progress import step
from einsummable.taskgraph.fuse import fuse
from einsummable.taskgraph.least import least
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.simulate import Simulation, simulate
from einsummable.taskgraph.tasks import TaskGraph

#: Plans are tried whose predicted cost is up to so many times that of the best.
NEAR = 2.0
#: Programs of more kernel calls get one try.
LARGE = 100_000
#: Of rivals with more messages the least time is told, not that of a simulated run.
MESSAGES = 2_500_000


@dataclass(frozen=True, slots=True)
class Choice:
    """A plan, where it is, its tasks, and how they would run, where a hardware is given.

    `tried` has the figures of all plans that were simulated to find it, by their partitions.
    """

    plan: Plan
    placement: Placement
    tasks: TaskGraph
    simulation: Simulation | None = None
    tried: Mapping[tuple[Partition, ...], StrategyRow] = field(default_factory=dict, compare=False)

    @property
    def work_balance(self) -> float:
        """The most operations of a site over the mean."""
        work = self.tasks.work_by_site
        total = sum(work)
        return max(work) * len(work) / total if total else 1.0


def choose(
    graph: EinGraph,
    sites: int,
    *,
    p: int | None = None,
    by: str = "bytes",
    layouts: Mapping[str, Layout] | None = None,
    pins: Pins | None = None,
    hardware: Hardware | None = None,
) -> Choice:
    """Return the best of several plans for `graph` on `sites` sites.

    Parameters
    ----------
    p
        Into how many kernel calls each node is cut, about; by default the number of sites.
    by
        What is least: ``"bytes"`` that move, of plans that share the work evenly, or simulated ``"seconds"``.
    layouts, pins
        As for `eindecomp.plan`.
    hardware
        What it is to run on, needed for ``"seconds"``; where bytes decide, it decides on trees only.

    Raises
    ------
    PlanError
        There is no site, the hardware has another number of them, or seconds shall be least and no hardware
        is given.
    """
    if by not in ("bytes", "seconds"):
        raise PlanError(f"a plan cannot be chosen by {by!r}", notes=("choose by 'bytes' or by 'seconds'",))
    if hardware is None and by == "seconds":
        raise PlanError("to choose by seconds, a hardware is needed")
    if hardware is not None and hardware.sites != sites:
        raise PlanError(f"{hardware.name} has {hardware.sites} sites, the program is for {sites}")
    layouts, p = layouts or {}, sites if p is None else p
    if by == "seconds":
        return _fastest(_fast(graph, p, layouts, pins, hardware), sites, layouts, hardware)
    plans = _frugal(graph, p, layouts, pins)
    choices = [realised(plan, sites, layouts, hardware) for plan in plans]
    even = [c for c in choices if c.work_balance <= max(SLACK, choices[0].work_balance)]
    return min(even, key=lambda c: c.tasks.bytes_moved)


def figures(plan: Plan, sites: int, layouts: Mapping[str, Layout], hardware: Hardware) -> StrategyRow:
    """Return what `plan` comes to on `hardware`: simulated, or at least, where its messages are too many."""
    placement = _placed(plan, sites, layouts, hardware)
    bound = least(plan, placement, hardware)
    if bound.messages > MESSAGES:
        even = balance(plan.graph, plan.partitions, sites)
        return StrategyRow(plan.strategy, bound.nbytes, even, bound.seconds, at_least=True)
    found = routed(plan, placement, hardware, layouts)
    return strategy_row(plan.strategy, found.tasks, found.simulation)


def _fastest(plans: list[Plan], sites: int, layouts: Mapping[str, Layout], hardware: Hardware) -> Choice:
    """Return the plan whose simulated run is shortest."""
    best, tried = None, {}
    for plan in plans:
        placement = _placed(plan, sites, layouts, hardware)
        if best is not None:
            bound = least(plan, placement, hardware)
            if bound.messages > MESSAGES and bound.seconds > best.simulation.makespan:
                continue
        found = routed(plan, placement, hardware, layouts)
        tried[plan.partitions] = strategy_row(plan.strategy, found.tasks, found.simulation)
        if best is None or found.simulation.makespan < best.simulation.makespan:
            best = found
    return replace(best, tried=tried)


def _frugal(graph: EinGraph, p: int, layouts: Mapping[str, Layout], pins: Pins | None) -> list[Plan]:
    """Return the plan that moves least by prediction, and others that share the work as evenly."""
    best = eindecomp(graph, p, layouts=layouts, pins=pins)
    if pins or _large(best):
        return [best]
    allowed = max(SLACK, balance(graph, best.partitions, p))
    others = [
        plan
        for plan in named_plans(graph, p, layouts=layouts)
        if plan.cost <= NEAR * best.cost and balance(graph, plan.partitions, p) <= allowed
    ]
    return _distinct([best, *others])


def _fast(
    graph: EinGraph, p: int, layouts: Mapping[str, Layout], pins: Pins | None, hardware: Hardware
) -> list[Plan]:
    """Return plans that are predicted to be fast, the one that moves least among them."""
    moving = eindecomp(graph, p, layouts=layouts, pins=pins)
    timed = eindecomp(graph, p, layouts=layouts, pins=pins, hardware=hardware)
    plans = [timed, replace(moving, cost=seconds(moving, hardware, layouts))]
    if not pins:
        named = named_plans(graph, p, layouts=layouts)
        plans += [replace(plan, cost=seconds(plan, hardware, layouts)) for plan in named]
    plans = _distinct(sorted(plans, key=lambda plan: plan.cost))
    if _large(plans[0]):
        return plans[:1]
    kept = [plan for plan in plans if plan.cost <= NEAR * plans[0].cost]
    return _distinct([*kept, moving])


def _large(plan: Plan) -> bool:
    return sum(cuts.blocks for cuts in plan.partitions) > LARGE


def _distinct(plans: list[Plan]) -> list[Plan]:
    """Return `plans` without those that cut everything as one before does."""
    return list({plan.partitions: plan for plan in reversed(plans)}.values())[::-1]


# ------------------------------------------------------------------------------- placed and lowered


def realised(plan: Plan, sites: int, layouts: Mapping[str, Layout], hardware: Hardware | None) -> Choice:
    """Return `plan` placed and lowered."""
    step(f"placing {plan.strategy}, p = {plan.p}")
    if hardware is None:
        placement = place(plan, sites, layouts)
        return Choice(plan, placement, fuse(lower(plan, placement, layouts)))
    return routed(plan, _placed(plan, sites, layouts, hardware), hardware, layouts)


def _placed(plan: Plan, sites: int, layouts: Mapping[str, Layout], hardware: Hardware) -> Placement:
    return place(plan, sites, layouts, hosts=_hosts(hardware), near=near_cost(hardware))


def routed(
    plan: Plan, placement: Placement, hardware: Hardware, layouts: Mapping[str, Layout] | None = None
) -> Choice:
    """Return `plan` lowered for the hosts of `hardware`, with a simulated run there."""
    tasks = fuse(lower(plan, placement, layouts, hosts=_hosts(hardware)))
    return Choice(plan, placement, tasks, simulate(tasks, hardware))


def _hosts(hardware: Hardware) -> tuple[int, ...] | None:
    """Return the host of every site, None where each has its own."""
    return hardware.hosts if len(set(hardware.hosts)) < hardware.sites else None


def near_cost(hardware: Hardware) -> float:
    """Return what a byte costs that moves within a host, where one between hosts costs 1."""
    each = hardware.sites / len(set(hardware.hosts))  # share the link of a host
    return min(1.0, hardware.far.bandwidth / (each * hardware.near.bandwidth))
