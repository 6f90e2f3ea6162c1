"""What a reader asks of a plan explorer, and the answer: the plan, the named strategies, a cut by hand.

Contract: a `Setting` is the question.  `answers` yields the `Answer` as it grows, the plan first, then a
strategy more each time.  Every figure is the planner's:
`cost` is `planner.cost.moved_bytes`, bytes moved are those of the TaskGraph, seconds and memory those of a
simulated run.  The plan is the one that `Compiled.replan` makes for the same setting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf

from einsummable.choose import Choice, realised
from einsummable.errors import PlanError, UnknownNameError
from einsummable.fit import fitting
from einsummable.graph import EinGraph
from einsummable.nodes import Input
from einsummable.planner import bounds, cost
from einsummable.planner.eindecomp import Pins
from einsummable.planner.hardware import Hardware
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Layout, Plan
from einsummable.planner.strategies import named_plans
from einsummable.progress import step
from einsummable.setting import Setting
from einsummable.taskgraph.simulate import simulate

#: What the first and the last row of an answer are called.
BEST, YOURS = "EinDecomp", "yours"

#: The parts of a plan's cost, in the order in which they are stacked.
PARTS = ("inputs to readers", "partial sums", "between nodes")


@dataclass(frozen=True, slots=True)
class Row:
    """One strategy in figures; what is None is not known yet.

    Attributes
    ----------
    plan, choice
        The plan, and its placement, tasks and simulated run.
    parts
        The bytes of `PARTS` by prediction; their sum is `cost` up to rounding.
    cost
        The bytes that `planner.cost.moved_bytes` predicts.
    """

    name: str
    plan: Plan
    parts: tuple[float, float, float]
    cost: float
    choice: Choice | None = None

    @property
    def moved(self) -> int | None:
        """The bytes that move between sites."""
        return None if self.choice is None else self.choice.tasks.bytes_moved

    @property
    def balance(self) -> float | None:
        """The work of the busiest site over the mean."""
        return None if self.choice is None else self.choice.work_balance

    @property
    def seconds(self) -> float | None:
        """How long a simulated run takes."""
        return None if self.choice is None else self.choice.simulation.makespan

    @property
    def peak(self) -> int | None:
        """The most bytes that a site holds."""
        return None if self.choice is None else max(self.choice.simulation.peaks, default=0)


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a setting: that of the plan first, that of the cut by hand last, if there is one.

    `bound` is what moves at least if every product is evenly shared (see `planner.bounds`); `done` is whether
    every figure is there.
    """

    setting: Setting
    rows: tuple[Row, ...]
    bound: float
    done: bool

    @property
    def plan(self) -> Plan:
        """The plan that was found."""
        return self.rows[0].plan

    def row(self, name: str) -> Row:
        """Return the row called `name`; where there is none yet, the cut by hand or else the plan's."""
        found = {row.name: row for row in self.rows if row.choice is not None}
        return found.get(name) or found.get(YOURS) or found[BEST]


def answers(
    graph: EinGraph,
    setting: Setting,
    base: Hardware,
    layouts: Mapping[str, Layout] | None = None,
    before: Answer | None = None,
) -> Iterator[Answer]:
    """Yield the answer to `setting`, more of it each time.

    Parameters
    ----------
    base
        What the sites are like; `setting` says how many there are and what joins them.
    layouts
        Inputs that already live on sites; those on sites that there are none of any more are free again.
    before
        An answer for the same graph and sites: what differs in cuts by hand only is not planned again.

    Raises
    ------
    CapacityError
        No plan fits the memory.
    PlanError, UnknownNameError
        A pin or an edit cannot be.
    """
    setting.check()
    hardware = setting.hardware(base)
    here = {n: at for n, at in (layouts or {}).items() if max(at.sites, default=0) < setting.sites}
    timed = hardware if setting.objective == "time" else None
    step("planning")
    if before is not None and replace(before.setting, edits={}) == replace(setting, edits={}):
        plans = {row.name: row.plan for row in before.rows if row.name != YOURS}
        known = {row.plan.partitions: row.choice for row in before.rows if row.choice is not None}
    else:
        plans, known = _planned(graph, setting, hardware, timed, here)
    if setting.edits:
        yours = plans[YOURS] = by_hand(plans[BEST], setting.edits)
        if yours.partitions not in known:
            known[yours.partitions] = _realised(yours, setting.sites, here, hardware, timed)
    bound = bounds.moved(graph, setting.sites, here)

    rows = [row_of(name, plan, here) for name, plan in plans.items()]

    def answer(*, done: bool) -> Answer:
        grown = (replace(row, choice=known.get(row.plan.partitions)) for row in rows)
        return Answer(setting, tuple(grown), bound, done)

    for plan in plans.values():
        if plan.partitions not in known:
            yield answer(done=False)
            known[plan.partitions] = _realised(plan, setting.sites, here, hardware, timed)
    yield answer(done=True)


class Explored:
    """Answers for one program; the last ones that were complete are known when they are asked for again."""

    def __init__(
        self, graph: EinGraph, base: Hardware, layouts: Mapping[str, Layout] | None = None, *, kept: int = 8
    ) -> None:
        self._about, self._most = (graph, base, layouts), kept
        self._kept: dict[str, Answer] = {}
        self._last: Answer | None = None

    def answers(self, setting: Setting) -> Iterator[Answer]:
        """Yield the answer to `setting`, as `answers` does."""
        key = json.dumps(setting.json(), sort_keys=True)
        if key in self._kept:
            self._last = self._kept[key]
            yield self._last
            return
        graph, base, layouts = self._about
        for answer in answers(graph, setting, base, layouts, self._last):
            self._last = answer
            yield answer
        self._kept[key] = self._last
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]


def _planned(
    graph: EinGraph,
    setting: Setting,
    hardware: Hardware,
    timed: Hardware | None,
    layouts: Mapping[str, Layout],
) -> tuple[dict[str, Plan], dict[tuple[Partition, ...], Choice]]:
    """Return the plans to compare by name, and what the one that was found comes to, by its partitions."""
    p = setting.sites if setting.p is None else setting.p
    found = fitting(
        graph,
        setting.sites,
        memory=min(setting.memory, hardware.memory if timed else inf),
        p=p,
        by="bytes" if timed is None else "seconds",
        layouts=layouts,
        pins=setting.pins,
        hardware=timed,
    )
    best = replace(found.plan, strategy="eindecomp")
    known = {best.partitions: _simulated(replace(found, plan=best), hardware)}
    plans = {BEST: best, **{plan.strategy: plan for plan in named_plans(graph, p, layouts=layouts)}}
    return plans, known


def _realised(
    plan: Plan, sites: int, layouts: Mapping[str, Layout], hardware: Hardware, timed: Hardware | None
) -> Choice:
    return _simulated(realised(plan, sites, layouts, timed), hardware)


def _simulated(choice: Choice, hardware: Hardware) -> Choice:
    if choice.simulation is not None and choice.simulation.hardware == hardware:
        return choice
    return replace(choice, simulation=simulate(choice.tasks, hardware))


def row_of(name: str, plan: Plan, layouts: Mapping[str, Layout]) -> Row:
    """Return what is predicted of `plan`."""
    whole = cost.moved_bytes(plan.graph, plan.partitions, layouts)
    return Row(name, plan, parts_of(plan, layouts), whole)


def parts_of(plan: Plan, layouts: Mapping[str, Layout] | None = None) -> tuple[float, float, float]:
    """Return the bytes that `plan` moves by prediction, by `PARTS`."""
    inputs = sums = between = 0.0
    for i, (node, cuts) in enumerate(zip(plan.graph.nodes, plan.partitions, strict=True)):
        moved = cost.tensor_bytes(plan.graph, plan.partitions, i, layouts)
        partial = cost.aggregation_cost(node, cuts) * node.dtype.itemsize
        sums += partial
        if isinstance(node, Input):
            inputs += moved
        else:
            between += moved - partial
    return inputs, sums, between


def by_hand(plan: Plan, edits: Pins) -> Plan:
    """Return `plan` with the parts of some labels changed, by name of the tensor.

    Raises
    ------
    UnknownNameError
        There is no such tensor or label.
    PlanError
        A label cannot be cut so.
    """
    graph, chosen = plan.graph, list(plan.partitions)
    for name, parts in edits.items():
        i = graph.id_of(name)
        have = chosen[i]
        for label in parts:
            if label not in have.labels:
                known = ", ".join(have.labels)
                raise UnknownNameError(f"{name!r} has no label {label!r}, its labels are {known}")
        chosen[i] = Partition(have.labels, tuple(parts.get(label, have[label]) for label in have.labels))
        chosen[i].check(graph.nodes[i].space, graph.nodes[i].cuttable)
    return replace(plan, partitions=tuple(chosen), strategy=YOURS)


def edited(setting: Setting, plan: Plan, name: str, parts: Mapping[str, int]) -> Setting:
    """Return `setting` with the tensor called `name` cut by hand; what is as in `plan` is no edit.

    Raises
    ------
    UnknownNameError
        There is no tensor of that name, or no such label.
    PlanError
        A label cannot be cut so.
    """
    cuts = plan.partitions[plan.graph.id_of(name)]
    wanted = {**setting.edits.get(name, {}), **parts}
    by_hand(plan, {name: wanted})
    left = {label: n for label, n in wanted.items() if n != cuts[label]}
    others = {other: cut for other, cut in setting.edits.items() if other != name}
    return replace(setting, edits=others | ({name: left} if left else {}))


def pinned(setting: Setting, plan: Plan, name: str) -> Setting:
    """Return `setting` with the tensor called `name` pinned as `plan` cuts it, no more an edit."""
    i = plan.graph.id_of(name)
    cuts = plan.partitions[i]
    parts = dict(zip(cuts.labels, cuts.parts, strict=True))
    edits = {other: cut for other, cut in setting.edits.items() if other != name}
    return replace(setting, pins={**setting.pins, name: parts}, edits=edits)


def asked(
    setting: Setting, answer: Answer, do: str, name: str, parts: Mapping[str, int], shown: str = ""
) -> Setting:
    """Return `setting` after the reader edited, pinned or freed the tensor called `name`.

    Parameters
    ----------
    do
        ``"edit"`` cuts labels by hand into `parts`; ``"pin"`` keeps the cut of the strategy that is shown;
        ``"free"`` lets the tensor be planned again.

    Raises
    ------
    UnknownNameError, PlanError
        There is no such tensor or label, or it cannot be cut so.
    """
    match do:
        case "edit":
            return edited(setting, answer.plan, name, parts)
        case "pin":
            return pinned(setting, answer.row(shown).plan, name)
        case "free":
            return replace(setting, pins={n: cut for n, cut in setting.pins.items() if n != name})
    raise PlanError(f"{do!r} is nothing that can be done to a tensor")
