"""Why a plan is as it is: totals, a row a node, and the named strategies on the same scale.

Contract: `explain` only gathers and `str` only prints, in lines of at most `WIDTH` columns; nothing is
planned or run here.  Bytes are those of the TaskGraph where one is given, else those the moved model
predicts; seconds and peaks of memory are those of a simulated run, and missing where none is given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from einsummable.nodes import Input
from einsummable.planner import bounds
from einsummable.planner.cost import balance, tensor_bytes
from einsummable.planner.plan import Layout, Placement, Plan
from einsummable.planner.reasons import copies, reasons
from einsummable.rematerialise import computed_again
from einsummable.work import flops

#: The longest line.
WIDTH = 110
#: So many rows of nodes are printed, those that move most.
ROWS = 60
#: How a formula refers to a node.
_ID = re.compile(r"%(\d+)")
#: The most columns of a name and a partition, the fewest of a formula.
_NAME, _PARTITION, _FORMULA = 14, 18, 30


class Tasks(Protocol):
    """What is read of a TaskGraph; its class is a layer above."""

    @property
    def bytes_moved(self) -> int:
        """Bytes that cross between sites."""

    @property
    def moved_by_node(self) -> Sequence[int]:
        """The same by the node that needs them."""

    @property
    def work_by_site(self) -> Sequence[float]:
        """Scalar operations of each site."""


class Run(Protocol):
    """What is read of a simulated run."""

    @property
    def makespan(self) -> float:
        """Seconds from its start to its end."""

    @property
    def peaks(self) -> Sequence[int]:
        """The most bytes that every site holds at once."""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node: its name, what it computes, its cut, its kernel calls, the bytes of it that travel, and why.

    `copied` names what a cut multiplies: inputs that several calls read alike, and partial results.
    """

    id: int
    name: str
    formula: str
    partition: str
    calls: int
    moved: float
    copied: str
    why: str


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """One strategy: the bytes it moves, its balance (1.0 is even), and how it would run.

    `seconds` and `peak`, bytes of the fullest site, are None where no run was simulated; `at_least` says that
    the seconds are a bound from below, as are the bytes moved.
    """

    name: str
    moved: float
    balance: float
    seconds: float | None = None
    peak: float | None = None
    at_least: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """A plan in figures.

    Attributes
    ----------
    p, sites
        The number of calls asked for, the number of sites (p where nothing is placed).
    measured
        Whether bytes are counted in a TaskGraph; else they are predicted.
    calls, flops
        Totals.
    bound
        What every plan moves that shares every product evenly; 0 where nothing is known.
    hardware
        What the runs are simulated on.
    memory
        The bytes a site may hold.
    again
        How many nodes compute what was computed before, to hold less at once.
    rows, strategies
        The nodes, and all strategies, that of the plan first.
    """

    p: int
    sites: int
    measured: bool
    calls: int
    flops: int
    rows: tuple[NodeRow, ...]
    strategies: tuple[StrategyRow, ...]
    bound: float = 0.0
    hardware: str = ""
    memory: float = inf
    again: int = 0

    @property
    def strategy(self) -> str:
        """What found the plan."""
        return self.strategies[0].name

    @property
    def moved(self) -> float:
        """The bytes that travel."""
        return self.strategies[0].moved

    @property
    def balance(self) -> float:
        """The most operations a site has over the mean."""
        return self.strategies[0].balance

    @property
    def seconds(self) -> float | None:
        """How long it would take."""
        return self.strategies[0].seconds

    @property
    def peak(self) -> float | None:
        """The most bytes that a site would hold."""
        return self.strategies[0].peak

    def __str__(self) -> str:
        lines = [f"plan by {self.strategy}, p = {self.p}, {self.sites} sites", *self._totals(), ""]
        return "\n".join([*lines, *self._nodes(), "", *self._comparison()])

    __repr__ = __str__

    def _totals(self) -> list[str]:
        how = "counted in the task graph" if self.measured else "predicted"
        if self.bound:
            how += f"; at least {amount(self.bound)}B if every product is evenly shared"
        lines = [f"  bytes moved   {amount(self.moved)}B ({how})"]
        if self.seconds is not None:
            lines.append(f"  time          {amount(self.seconds)}s (simulated on {self.hardware})")
        if self.peak is not None:
            limit = f" of {amount(self.memory)}B" if self.memory < inf else ""
            lines.append(f"  memory        {amount(self.peak)}B{limit} on the fullest site (simulated)")
        if self.again:
            lines.append(f"  made again    {self.again} of {len(self.rows)} nodes, to hold less at once")
        lines.append(f"  kernel calls  {self.calls}")
        busiest = f"the busiest site has {self.balance:.2f} × the mean"
        lines.append(f"  operations    {amount(self.flops)}, {busiest}")
        return lines

    def _nodes(self) -> list[str]:
        shown = sorted(self.rows, key=lambda r: (-r.moved, r.id))[:ROWS]
        left = len(self.rows) - len(shown)
        rows = [
            (
                short(r.name, _NAME),
                r.formula,
                short(r.partition, _PARTITION),
                str(r.calls),
                f"{amount(r.moved)}B",
                r.why,
            )
            for r in sorted(shown, key=lambda r: r.id)
        ]
        head = ("node", "formula", "partition", "calls", "moved", "why")
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        left_for_formula = WIDTH - 2 * (len(head) - 1) - sum(widths) + widths[1]
        rows = [(r[0], short(r[1], max(left_for_formula, _FORMULA)), *r[2:]) for r in rows]
        lines = table(head, rows, right=(3, 4))
        if left:
            rest = self.moved - sum(r.moved for r in shown)
            lines.append(f"… and {left} more nodes, which move {amount(max(rest, 0))}B in all")
        return lines

    def _comparison(self) -> list[str]:
        timed = any(s.seconds is not None for s in self.strategies)
        head = ("strategy", "moved", "balance", *(("time", "memory") if timed else ()))
        rows = []
        for s in self.strategies:
            row = [s.name, f"{amount(s.moved)}B", f"{s.balance:.2f}"]
            if timed:
                row += ["" if s.seconds is None else f"{'> ' * s.at_least}{amount(s.seconds)}s"]
                row += ["" if s.peak is None else f"{amount(s.peak)}B"]
            rows.append(tuple(row))
        return table(head, rows, right=range(1, len(head)))


def explain(
    plan: Plan,
    placement: Placement | None = None,
    taskgraph: Tasks | None = None,
    rivals: Sequence[StrategyRow] = (),
    *,
    run: Run | None = None,
    hardware: str = "",
    memory: float = inf,
    layouts: Mapping[str, Layout] | None = None,
    pins: Mapping[str, object] | None = None,
) -> Explanation:
    """Return `plan` in figures.

    Parameters
    ----------
    placement, taskgraph, run
        Those of the plan, as far as they are made.
    rivals
        What to compare with (see `strategy_row`).
    hardware, memory
        What the run was simulated on, and the bytes a site may hold.
    layouts, pins
        Inputs that lay on sites when it was made, and tensors whose cut was given, by name.
    """
    graph = plan.graph
    moved: Sequence[float] = predicted(plan, layouts) if taskgraph is None else taskgraph.moved_by_node
    names = graph.names
    why = reasons(plan, names, layouts, pins)
    rows = tuple(
        NodeRow(
            id=i,
            name=names[i],
            formula=_ID.sub(lambda m: names[int(m[1])], str(node)),
            partition=str(cut),
            calls=0 if isinstance(node, Input) else cut.blocks,
            moved=moved[i],
            copied=", ".join(copies(node, cut, names)),
            why=why[i],
        )
        for i, (node, cut) in enumerate(zip(graph.nodes, plan.partitions, strict=True))
    )
    sites = plan.p if placement is None else placement.sites
    return Explanation(
        plan.p,
        sites,
        taskgraph is not None,
        sum(row.calls for row in rows),
        sum(map(flops, graph.nodes)),
        rows,
        (strategy_row(plan.strategy, plan if taskgraph is None else taskgraph, run), *rivals),
        bounds.moved(graph, sites, layouts),
        hardware,
        memory,
        len(computed_again(graph)),
    )


def strategy_row(name: str, what: Tasks | Plan, run: Run | None = None) -> StrategyRow:
    """Return the figures of a strategy: of its TaskGraph, or by prediction of its plan."""
    seconds, peak = (None, None) if run is None else (run.makespan, max(run.peaks, default=0))
    if isinstance(what, Plan):
        even = balance(what.graph, what.partitions, what.p)
        return StrategyRow(name, sum(predicted(what)), even, seconds, peak)
    work = what.work_by_site
    mean = sum(work) / len(work)
    return StrategyRow(name, what.bytes_moved, max(work) / mean if mean else 1.0, seconds, peak)


def predicted(plan: Plan, layouts: Mapping[str, Layout] | None = None) -> list[float]:
    """Return the bytes that each node makes travel by the moved model."""
    return [tensor_bytes(plan.graph, plan.partitions, i, layouts) for i in range(len(plan.graph.nodes))]


def amount(n: float) -> str:
    """Return `n` with three digits and a prefix: ``1.26 G``, ``46.2 m``."""
    prefixes = ["", "m", "µ", "n"] if abs(n) < 0.9995 and n else ["", "k", "M", "G", "T", "P"]
    step = 1e3 if len(prefixes) == 4 else 1e-3
    prefix = prefixes.pop(0)
    while prefixes and not 0.9995 <= abs(n) < 999.5 and n:
        n *= step
        prefix = prefixes.pop(0)
    text = f"{n:.3g}" if abs(n) < 100 else f"{n:.0f}"
    return f"{text} {prefix}"


def short(text: str, width: int) -> str:
    """Return `text` in at most `width` columns, with an ellipsis where something is left out."""
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Return lines of aligned columns under a rule, those of `right` to the right."""
    lines_of = [tuple(head), *map(tuple, rows)]
    width = [max(len(row[c]) for row in lines_of) for c in range(len(head))]
    lines = [
        "  ".join(
            x.rjust(w) if c in right else x.ljust(w) for c, (x, w) in enumerate(zip(row, width, strict=True))
        )
        for row in lines_of
    ]
    lines = [short(line.rstrip(), WIDTH) for line in lines]
    lines.insert(1, "-" * max(map(len, lines)))
    return lines
