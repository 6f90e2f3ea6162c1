"""The graphs that a published planner was given, and its answers: partitions, placements, bytes moved.

They are in a folder beside the checkout, or where the environment variable ``EINSUMMABLE_SHARED`` says, and
are not part of this project: `FOLDER` need not exist.  Its README explains the fields.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from einsummable.builder import GraphBuilder
from einsummable.graph import EinGraph
from einsummable.nodes import Input
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Placement, Plan
from einsummable.scalar import COPY, ScalarBuilder, ScalarExpr

_SHARED = os.environ.get("EINSUMMABLE_SHARED")
FOLDER = (Path(_SHARED) if _SHARED else Path(__file__).parents[2] / "shared") / "golden"
#: The files whose answers have a placement.
FILES = ("matmul", "chain", "ffnn", "attention", "mha")
#: The reference's names of aggregates.
AGGREGATES = {"+": "sum", "^": "max"}


@dataclass(frozen=True)
class Case:
    """A graph and the answers for it; `ids` has our node for each node of the reference."""

    file: str
    name: str
    graph: EinGraph
    ids: tuple[int, ...]
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Answer:
    """What the reference planned for `n` sites in a `space` of plans: bytes moved, work of each site.

    `parts` and `locations` are by node of the reference; locations are not given for many sites.
    """

    n: int
    space: str
    branching: int
    nbytes: int
    work: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]
    locations: tuple[tuple[int, ...], ...] | None

    @property
    def balance(self) -> float:
        """The most work of a site over the mean."""
        return max(self.work) * len(self.work) / sum(self.work)


@cache
def cases(files: tuple[str, ...] = FILES) -> tuple[Case, ...]:
    """Return every case of `files` that has placements."""
    found = []
    for file in files:
        raw = json.loads((FOLDER / f"{file}.json").read_text(encoding="utf-8"))
        found += [_case(file, one) for one in raw["cases"]]
    return tuple(case for case in found if case.answers)


def _case(file: str, raw: dict[str, Any]) -> Case:
    graph, ids = _graph(raw["graph"])
    return Case(file, raw["name"], graph, ids, tuple(_answers(raw["results"])))


def _answers(results: list[dict[str, Any]]) -> Iterator[Answer]:
    for raw in results:
        found = raw.get("alocate01")
        if found is None:
            continue
        yield Answer(
            raw["n"],
            raw["space"],
            raw["max_branching"],
            found["bytes_moved"],
            tuple(found["flops_per_loc"]),
            tuple(map(tuple, raw["parts"])),
            tuple(map(tuple, found["locations"])) if "locations" in found else None,
        )


# ---------------------------------------------------------------------------------------- graphs


def _graph(nodes: list[dict[str, Any]]) -> tuple[EinGraph, tuple[int, ...]]:
    """Return the graph, and our node for each of `nodes`: a formation is the node that it materialises."""
    g, ids = GraphBuilder(), []
    for node in nodes:
        if node["kind"] == "input":
            ids.append(g.input(f"T{node['id']}", node["shape"]))
        elif node["kind"] == "formation":
            ids.append(ids[node["inns"][0]])
        else:
            ids.append(_einsummable(g, node, ids))
        if node["save"]:
            g.output(f"Y{node['id']}", ids[-1])
    graph = g.build()
    if len(graph.nodes) != len(set(ids)):
        raise ValueError("the graph has nodes that are equal, or that no result needs")
    return graph, tuple(ids)


def _einsummable(g: GraphBuilder, node: dict[str, Any], ids: list[int]) -> int:
    inputs, out = node["einsum"].split("->")
    operands = [(ids[j], labels) for j, labels in zip(node["inns"], inputs.split(","), strict=True)]
    aggregated = len(node["shape"]) > node["out_rank"]
    aggregate = AGGREGATES[node["castable"]] if aggregated else None
    return g.einsummable(out, operands, _expression(node["join"]), aggregate)


def _expression(text: str) -> ScalarExpr:
    """Parse ``*[hole|f32@0,constant{f32|2}]``: an operator and its operands in brackets."""
    if text == "hole|f32@0":
        return COPY
    words = re.findall(r"[^\[\],]+|[\[\],]", text)
    b = ScalarBuilder()
    return b.build(_operand(b, words))


def _operand(b: ScalarBuilder, words: list[str]) -> int:
    word = words.pop(0)
    if word.startswith("hole"):
        return b.arg(int(word.split("@")[1]))
    if word.startswith("constant"):
        return b.const(float(word.split("|")[1].rstrip("}")))
    words.pop(0)
    args = [_operand(b, words)]
    while words.pop(0) == ",":
        args.append(_operand(b, words))
    if word == "ite_>=":
        return b.call("where", b.call("ge", *args[:2]), *args[2:])
    if word.startswith("power"):
        return b.call("pow", *args, b.const(float(word[6:-1])))
    return b.call({"*": "mul", "+": "add", "exp": "exp"}[word], *args)


# ----------------------------------------------------------------------------------------- plans


def reference_plan(case: Case, answer: Answer) -> tuple[Plan, Placement]:
    """Return what the reference planned, and where it has every call and block; locations must be given."""
    if answer.locations is None:
        raise ValueError(f"no placement is given for {answer.n} sites")
    cuts: dict[int, Partition] = {}
    calls: dict[int, tuple[int, ...]] = {}
    homes: dict[int, tuple[int, ...]] = {}
    for i, parts, sites in zip(case.ids, answer.parts, answer.locations, strict=True):
        node = case.graph.nodes[i]
        if i not in cuts:
            cuts[i] = Partition(tuple(label for label, _ in node.space), parts)
            calls[i] = homes[i] = sites
        homes[i] = sites  # of a formation, where there is one
    order = range(len(case.graph.nodes))
    plan = Plan(case.graph, tuple(cuts[i] for i in order), answer.n, f"reference, {answer.space}")
    placement = Placement(
        answer.n,
        tuple(homes[i] if isinstance(case.graph.nodes[i], Input) else calls[i] for i in order),
        tuple(homes[i] for i in order),
    )
    plan.check()
    placement.check(plan)
    return plan, placement
