"""Folding a picture of a TaskGraph: all that a site does for a node as one box, or all sites as one lane.

Contract: `fold` takes a view of `taskgraph_view` with all of its tasks and answers one of the same form.  Its
``tasks`` are those that are left and, in place of the others, *folds*: of type "Fold", with what they stand
for in ``members`` and ``kinds``, and what arrives at them in ``arrows``.  Two folds may wait for one another,
as two sites that exchange sums do.  So ``inputs`` have only what stands before, and ``back`` the rest:
what is laid out by ``inputs`` comes out from left to right, the folds of a node under each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from einsummable.views import amounts

_WORDS = {
    "Apply": "kernel call",
    "Fused": "fused call",
    "Aggregate": "aggregation",
    "Read": "part of an input",
    "Move": "move",
}


def fold(
    view: dict[str, Any],
    *,
    nodes: Collection[int] = (),
    sites: Collection[int] = (),
    lanes: Sequence[Sequence[int]] | None = None,
) -> dict[str, Any]:
    """Return `view` with some of its tasks folded.

    Parameters
    ----------
    nodes, sites
        Of which nodes, and on which sites, all tasks are folded: into a box for each node and lane.
    lanes
        The sites of each lane, by default those of `view`.
    """
    lanes = [list(members) for members in (lanes or view["lanes"])]
    lane_of = {site: k for k, members in enumerate(lanes) for site in members}
    tasks = view["tasks"]
    item_of: list[int] = []
    members: list[list[int]] = []
    folds: dict[tuple[int, int], int] = {}
    for task in tasks:
        key = task["node"], lane_of[task["site"]]
        if task["node"] in nodes or task["site"] in sites:
            item = folds.setdefault(key, len(members))
        else:
            item = len(members)
        if item == len(members):
            members.append([])
        members[item].append(task["id"])
        item_of.append(item)
    names = {node["id"]: node["name"] for node in view["nodes"]}
    folded = set(folds.values())
    made = [
        _fold(tasks, i, these, item_of, lane_of, names, folded)
        if i in folded
        else _left(tasks[these[0]], i, item_of, lane_of)
        for i, these in enumerate(members)
    ]
    return view | {"tasks": made, "lanes": lanes}


def _left(task: dict[str, Any], i: int, item_of: Sequence[int], lane_of: dict[int, int]) -> dict[str, Any]:
    reads = [item_of[j] for j in task["inputs"]]
    return task | {
        "id": i,
        "lane": lane_of[task["site"]],
        "inputs": [j for j in reads if j < i],
        "back": [j for j in reads if j > i],
        "members": [task["id"]],
    }


def _fold(
    tasks: Sequence[dict[str, Any]],
    i: int,
    members: Sequence[int],
    item_of: Sequence[int],
    lane_of: dict[int, int],
    names: dict[int, str],
    folded: Collection[int],
) -> dict[str, Any]:
    """Return the box of some tasks; what comes from another lane are arrows, from the same one wires."""
    first = tasks[members[0]]
    lane, kinds = lane_of[first["site"]], Counter(tasks[t]["type"] for t in members)
    reads: dict[int, None] = {}
    moved: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    within = 0
    for t in members:
        for j in tasks[t]["inputs"]:
            source = item_of[j]
            if tasks[t]["type"] == "Move":
                if source != i and lane_of[tasks[j]["site"]] != lane:
                    moved[source][0] += 1
                    moved[source][1] += tasks[t]["bytes"]
                else:
                    within += tasks[t]["bytes"]
            if source != i:
                reads[source] = None
    beside = {
        item_of[j] for t in members for j in tasks[t]["inputs"] if tasks[j]["node"] == first["node"]
    } & folded
    name = names[first["node"]]
    sites = sorted({tasks[t]["site"] for t in members})
    where = f"site{'s' * (len(sites) > 1)} {amounts.ranges(sites)}"
    text = f"{_told(kinds)} of {name} on {where}"
    return {
        "id": i,
        "type": "Fold",
        "site": first["site"],
        "lane": lane,
        "node": first["node"],
        "inputs": [j for j in reads if j < i and j not in beside],
        "back": [j for j in reads if j > i or j in beside],
        "members": list(members),
        "kinds": dict(kinds),
        "calls": kinds["Apply"] + kinds["Fused"],
        "arrows": [
            {
                "source": source,
                "moves": n,
                "bytes": size,
                "text": f"{amounts.nbytes(size)} of {name} in {amounts.many(n, 'move')}",
            }
            for source, (n, size) in moved.items()
        ],
        "shape": [],
        "bytes": within,
        "text": text + (f"; {amounts.nbytes(within)} move inside" if within else ""),
    }


def _told(kinds: Counter[str]) -> str:
    words = [amounts.many(kinds[kind], noun) for kind, noun in _WORDS.items() if kinds[kind]]
    copies = sum(n for kind, n in kinds.items() if kind not in _WORDS)
    return ", ".join([*words, *([amounts.many(copies, "piece")] if copies else [])])
