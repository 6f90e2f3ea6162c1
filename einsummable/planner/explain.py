"""Why a plan is as it is: totals, a row a node, and the named strategies on the same scale.

Contract: `explain` only gathers and `str` only prints; nothing is planned or run here.  Bytes are those of
the TaskGraph where one is given, else those the moved model predicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Protocol

from einsummable.graph import Input, Node, flops
from einsummable.planner.cost import balance, in_labels, tensor_bytes
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Placement, Plan


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


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """One strategy: its name, the bytes it moves, and its balance (1.0 is even)."""

    name: str
    moved: float
    balance: float


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """A plan in figures.

    Attributes
    ----------
    strategy, p, sites
        What found the plan, the number of calls asked for, the number of sites (p where nothing is placed).
    measured
        Whether bytes are counted in a TaskGraph; else they are predicted.
    moved, calls, flops, balance
        Totals; `balance` is the most operations a site has over the mean.
    rows, strategies
        The nodes, and all strategies, that of the plan first.
    """

    strategy: str
    p: int
    sites: int
    measured: bool
    moved: float
    calls: int
    flops: int
    balance: float
    rows: tuple[NodeRow, ...]
    strategies: tuple[StrategyRow, ...] = field(default=())

    def __str__(self) -> str:
        how = "counted in the task graph" if self.measured else "predicted"
        lines = [
            f"plan by {self.strategy}, p = {self.p}, {self.sites} sites",
            f"  bytes moved   {amount(self.moved)}B ({how})",
            f"  kernel calls  {self.calls}",
            f"  operations    {amount(self.flops)}, the busiest site has {self.balance:.2f} × the mean",
            "",
        ]
        head = ("node", "formula", "partition", "calls", "moved", "copied")
        rows = [
            (r.name, r.formula, r.partition, str(r.calls), f"{amount(r.moved)}B", r.copied) for r in self.rows
        ]
        lines += _table(head, rows, right=(3, 4))
        if self.strategies:
            rows = [(s.name, f"{amount(s.moved)}B", f"{s.balance:.2f}") for s in self.strategies]
            lines += ["", *_table(("strategy", "moved", "balance"), rows, right=(1, 2))]
        return "\n".join(lines)

    __repr__ = __str__


def explain(
    plan: Plan,
    placement: Placement | None = None,
    taskgraph: Tasks | None = None,
    rivals: Mapping[str, Tasks | Plan] | None = None,
) -> Explanation:
    """Return `plan` in figures.

    Parameters
    ----------
    placement, taskgraph
        Those of the plan, as far as they are made.
    rivals
        What to compare with, by name of the strategy: TaskGraphs, or plans where none are made.
    """
    graph = plan.graph
    moved: Sequence[float] = predicted(plan) if taskgraph is None else taskgraph.moved_by_node
    names = [graph.name_of(i) for i in range(len(graph.nodes))]
    rows = tuple(
        NodeRow(
            id=i,
            name=names[i],
            formula=str(node),
            partition=str(cut),
            calls=0 if isinstance(node, Input) else cut.blocks,
            moved=nbytes,
            copied=_copied(node, cut, names),
        )
        for i, (node, cut, nbytes) in enumerate(zip(graph.nodes, plan.partitions, moved, strict=True))
    )
    mine = _strategy(plan.strategy, plan if taskgraph is None else taskgraph)
    return Explanation(
        plan.strategy,
        plan.p,
        plan.p if placement is None else placement.sites,
        taskgraph is not None,
        mine.moved,
        sum(row.calls for row in rows),
        sum(map(flops, graph.nodes)),
        mine.balance,
        rows,
        (mine, *(_strategy(name, other) for name, other in (rivals or {}).items())),
    )


def _copied(node: Node, cut: Partition, names: Sequence[str]) -> str:
    """Return what `cut` multiplies, and how often: ``W ×2, partial results ×4``."""
    times = []
    for k, j in enumerate(node.inputs):
        mine = in_labels(node, k)
        others = [n for label, n in zip(cut.labels, cut.parts, strict=True) if label not in mine]
        times.append((names[j], prod(others)))
    times.append(("partial results", prod(cut[label] for label in getattr(node, "aggregated", ()))))
    return ", ".join(f"{name} ×{n}" for name, n in dict(times).items() if n > 1)


def predicted(plan: Plan) -> list[float]:
    """Return the bytes that each node makes travel by the moved model."""
    return [tensor_bytes(plan.graph, plan.partitions, i) for i in range(len(plan.graph.nodes))]


def _strategy(name: str, what: Tasks | Plan) -> StrategyRow:
    if isinstance(what, Plan):
        return StrategyRow(name, sum(predicted(what)), balance(what.graph, what.partitions, what.p))
    work = what.work_by_site
    mean = sum(work) / len(work)
    return StrategyRow(name, what.bytes_moved, max(work) / mean if mean else 1.0)


def amount(n: float) -> str:
    """Return `n` with three digits and a prefix: ``1.26 G``."""
    for prefix in ("", "k", "M", "G", "T", "P"):
        if abs(n) < 999.5 or prefix == "P":
            break
        n /= 1000
    text = f"{n:.3g}" if n < 100 else f"{n:.0f}"
    return f"{text} {prefix}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Return lines of aligned columns under a rule, those of `right` to the right."""
    table = [tuple(head), *map(tuple, rows)]
    width = [max(len(row[c]) for row in table) for c in range(len(head))]
    lines = [
        "  ".join(
            x.rjust(w) if c in right else x.ljust(w) for c, (x, w) in enumerate(zip(row, width, strict=True))
        )
        for row in table
    ]
    lines.insert(1, "-" * max(map(len, lines)))
    return [line.rstrip() for line in lines]
