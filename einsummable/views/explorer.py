"""The plan explorer: an `Answer` as data for the browser.

Contract: `explorer_view` holds the setting, the formula with its cuts, for each node its labels and their
parts, the strategies in figures, and a caption.  What is drawn beside it comes from other views: the blocks
of every tensor (`explorer_cards`), the kernel calls of one node (`explorer_join`), the simulated run
(`explorer_strip`).  `still_views` are what a reader without a browser sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from einsummable.exploring import PARTS, Answer, Row
from einsummable.graph import EinGraph
from einsummable.nodes import Input, Node
from einsummable.planner.candidates import divisors
from einsummable.planner.plan import Plan
from einsummable.runtime.events import simulated
from einsummable.taskgraph.tasks import Move
from einsummable.views import amounts, eingraphs, formulas, joins, legends, links, naming
from einsummable.views.blocks import Scale, card, table_title
from einsummable.views.charts import costs_view
from einsummable.views.drawing import Drawing
from einsummable.views.eingraphs import graph_view
from einsummable.views.partitions import join_view, plan_view
from einsummable.views.plans import second_line
from einsummable.views.taskgraphs import describe
from einsummable.views.timelines import timeline_view

#: Pixels that a card may be wide, more or less.
_CARD = 380.0
#: Programs of more tasks are shown without a timeline of each.
MOST_TASKS = 3000


def explorer_view(graph: EinGraph, answer: Answer, shown: str = "") -> dict[str, Any]:
    """Return what the explorer shows.

    Parameters
    ----------
    shown
        The strategy whose blocks are shown; by default the cut by hand where there is one, else the plan.
    """
    row = answer.row(shown)
    pins, edits = answer.setting.pins, answer.setting.edits
    nodes, colours = [], formulas.cut_colours(row.plan)
    for i in range(len(graph.nodes)):
        name = graph.name_of(i)
        nodes.append(
            {
                "id": i,
                "name": name,
                "title": naming.tensor(graph, i),
                "formula": naming.formula(graph, i),
                "labels": _labels(row.plan, i, answer.setting.sites, colours),
                "pinned": name in pins,
                "edited": name in edits,
            }
        )
    return {
        "kind": "explorer",
        "setting": answer.setting.json(),
        "shown": row.name,
        "formula": formulas.formula(row.plan),
        "nodes": nodes,
        "parts": list(PARTS),
        "strategies": [_strategy(r) for r in answer.rows],
        "bound": answer.bound,
        "bound_text": amounts.nbytes(answer.bound),
        "done": answer.done,
        "caption": _caption(row, answer),
    }


def explorer_parts(graph: EinGraph, answer: Answer, shown: str = "") -> dict[str, Any]:
    """Return all that changes with the plan, but the calls of one node: ``view cards strip links``."""
    return {
        "view": explorer_view(graph, answer, shown),
        "cards": explorer_cards(answer, shown),
        "strip": explorer_strip(answer, shown),
        "links": explorer_links(answer, shown),
    }


def _labels(plan: Plan, i: int, sites: int, colours: Mapping[tuple[int, str], str]) -> list[dict[str, Any]]:
    node, cuts = plan.graph.nodes[i], plan.partitions[i]
    names = naming.space_labels(plan.graph, i)
    return [
        {
            "label": label,
            "name": name,
            "extent": extent,
            "parts": parts,
            "colour": colours.get((i, label)),
            "aggregated": not isinstance(node, Input) and label not in node.out,
            "steps": steps(node, label, sites, parts),
        }
        for (label, extent), name, parts in zip(node.space, names, cuts.parts, strict=True)
    ]


def steps(node: Node, label: str, sites: int, parts: int) -> list[int]:
    """Return the numbers of parts of a label that a reader is led through: small ones, and what divides."""
    extent = max(dict(node.space)[label], 1)
    if label not in node.cuttable:
        return [1]
    tried = {1, 2, 3, 4, 5, 6, 7, 8, parts, *divisors(sites), 2 * sites, 4 * sites}
    return sorted(n for n in tried if n <= extent)


def _strategy(row: Row) -> dict[str, Any]:
    known = row.choice is not None
    return {
        "name": row.name,
        "parts": list(row.parts),
        "cost": row.cost,
        "moved": row.moved,
        "balance": row.balance,
        "seconds": row.seconds,
        "peak": row.peak,
        "text": {
            "parts": [amounts.nbytes(n) for n in row.parts],
            "cost": amounts.nbytes(row.cost),
            "moved": amounts.nbytes(row.moved) if known else "…",
            "balance": f"{row.balance:.2f}×" if known else "…",
            "seconds": amounts.seconds(row.seconds) if known else "…",
            "peak": amounts.nbytes(row.peak) if known else "…",
        },
    }


def _caption(row: Row, answer: Answer) -> str:
    setting = answer.setting
    words = f"{row.name}: {amounts.many(setting.sites, 'site')}"
    words += f" on {setting.hosts} hosts" if setting.hosts > 1 else ""
    words += f", {amounts.nbytes(row.moved)} moved"
    partial = row.parts[1]
    if partial and row.cost:
        words += f", of the {amounts.nbytes(row.cost)} predicted {amounts.nbytes(partial)} are partial sums"
    words += f", {amounts.seconds(row.seconds)} simulated"
    rest = [r for r in answer.rows if r is not row and r.choice is not None and r.balance <= 1.1]
    if rest:
        other = min(rest, key=lambda r: r.moved)
        words += f"; the best other strategy that shares the work evenly, {other.name}, moves"
        words += f" {amounts.nbytes(other.moved)}"
    return words


# -------------------------------------------------------------------------------------- pictures


def explorer_graph(graph: EinGraph) -> str:
    """Return the graph as SVG."""
    view = graph_view(graph)
    return eingraphs.draw(view).finish(view["caption"])


def explorer_cards(answer: Answer, shown: str = "") -> dict[str, str]:
    """Return the blocks of every tensor as SVG, by id of the node."""
    view = _plan_view(answer, shown)
    scale = Scale.of(view["tensors"], 180.0 if len(view["tensors"]) <= 5 else 130.0, _CARD)
    return {
        str(table["id"]): card(table, view, scale, second_line(table)).finish(
            f"{table_title(table)}: {second_line(table)}", margin=3
        )
        for table in view["tensors"]
    }


def explorer_join(answer: Answer, node_id: int, shown: str = "") -> str:
    """Return the kernel calls of a node as SVG; nothing where fewer than two labels are cut."""
    row = answer.row(shown)
    node, cuts = row.plan.graph.nodes[node_id], row.plan.partitions[node_id]
    if isinstance(node, Input) or sum(n > 1 for n in cuts.parts) < 2:
        return ""
    view = join_view(row.plan, row.choice.placement, node_id, hosts=_hosts(answer))
    d = Drawing()
    d.flow(joins.calls(view), _CARD / 2, gap=20)
    return d.finish(view["caption"], margin=3)


def explorer_detail(answer: Answer, key: str, known: links.Links, shown: str = "") -> dict[str, Any]:
    """Return the ``node`` that a selected key belongs to, None where there is none, and its calls as SVG."""
    node = node_of(key, known)
    return {"node": node, "svg": "" if node is None else explorer_join(answer, node, shown)}


def explorer_strip(answer: Answer, shown: str = "") -> dict[str, Any]:
    """Return the simulated run: ``lanes`` of [site, start, stop, node, keys, title], and moves alike."""
    run = answer.row(shown).choice.simulation
    tasks, small = run.taskgraph.tasks, len(run.taskgraph.tasks) <= MOST_TASKS
    bars: list[list[Any]] = []
    for t, (task, start, stop) in enumerate(zip(tasks, run.starts, run.ends, strict=True)):
        if stop <= start or (not small and isinstance(task, Move)):
            continue
        source = tasks[task.inputs[0]].site if isinstance(task, Move) else None
        title = f"{describe(run.taskgraph, t)}, {amounts.seconds(stop - start)}" if small else ""
        keys = links.keys(links.task_key(t), links.site_key(task.site))
        bars.append([task.site, source, start, stop, keys, title])
    return {
        "wall": run.makespan,
        "wall_text": amounts.seconds(run.makespan),
        "sites": run.taskgraph.sites,
        "bars": bars if small else _joined(bars, run.makespan),
        "each": small,
        "busy": [amounts.share(b, run.makespan) for b in run.busy],
        "colours": list(legends.site_colours({"sites": run.taskgraph.sites, "hosts": _hosts(answer)})),
    }


def _joined(bars: list[list[Any]], wall: float) -> list[list[Any]]:
    """Return the bars with those of a site that (nearly) touch drawn as one, which is nobody's own."""
    found: list[list[Any]] = []
    for bar in sorted(bars, key=lambda b: (b[0], b[2])):
        last = found[-1] if found else None
        if last is not None and last[0] == bar[0] and bar[2] - last[3] < wall / 1000:
            last[3] = max(last[3], bar[3])
        else:
            found.append([*bar[:4], links.site_key(bar[0]), ""])
    return found


def explorer_links(answer: Answer, shown: str = "") -> links.Links:
    """Return what belongs to what, tasks included where there are not too many."""
    row = answer.row(shown)
    choice, graph = row.choice, row.plan.graph
    if len(choice.tasks.tasks) > MOST_TASKS:
        return graph_links(graph)
    tasks = links.task_links(choice.tasks)
    return links.merge(graph_links(graph), tasks, links.block_links(row.plan, choice.placement, choice.tasks))


@lru_cache(maxsize=16)
def graph_links(graph: EinGraph) -> links.Links:
    """Return the links that no plan changes."""
    return links.graph_links(graph)


def node_of(key: str, known: links.Links) -> int | None:
    """Return the node that a selected key is, or that belongs to it; None for sites and for nothing."""
    if key.startswith("label:"):
        return int(key.split(":")[1])
    found = [k for k in (key, *known.get(key, ())) if k.startswith("node:")]
    return int(found[0].removeprefix("node:")) if found else None


def still_views(answer: Answer, shown: str = "") -> list[dict[str, Any]]:
    """Return the views that show the same where there is no browser."""
    row = answer.row(shown)
    even = max(1.1, answer.rows[0].balance)  # what leaves sites idle moves less, and says nothing
    compared = [r for r in answer.rows if r.choice is None or r.balance <= even or r is row]
    rows = [{"name": r.name, **dict(zip(PARTS, r.parts, strict=True))} for r in compared]
    return [
        graph_view(row.plan.graph),
        _plan_view(answer, shown),
        costs_view(rows, bound=answer.bound or None),
        timeline_view(simulated(row.choice.simulation), hosts=_hosts(answer)),
    ]


def _plan_view(answer: Answer, shown: str) -> dict[str, Any]:
    row = answer.row(shown)
    return plan_view(row.plan, row.choice.placement, hosts=_hosts(answer))


def _hosts(answer: Answer) -> tuple[int, ...] | None:
    return answer.setting.host_of if answer.setting.hosts > 1 else None
