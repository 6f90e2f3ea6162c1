"""What is known of a task, a node or a site of a TaskGraph, in words and figures: for whoever selected it.

Contract: `facts` takes a key (see `links`) and answers a heading and rows of a name and a value; nothing for
a key that is no task, fold, node or site.  Times are those of the records that are given.  ``before`` are the
calls that a fused task makes before the one that it is named after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from einsummable.runtime.critical import span
from einsummable.runtime.events import MoveEnded, RunRecord, TaskEnded
from einsummable.taskgraph.tasks import Aggregate, Apply, Fused, Move, TaskGraph, calls, nbytes, work
from einsummable.views import amounts, naming
from einsummable.views.taskgraphs import describe, lanes_of

Rows = list[list[str]]


def facts(taskgraph: TaskGraph, key: str, records: Mapping[str, RunRecord]) -> dict[str, Any]:
    """Return the heading and the rows for `key`."""
    kind, _, name = key.partition(":")
    match kind:
        case "task" if name.isdecimal() and int(name) < len(taskgraph.tasks):
            return _task(taskgraph, int(name), records)
        case "node" if name.isdecimal() and int(name) < len(taskgraph.graph.nodes):
            members = [i for i, task in enumerate(taskgraph.tasks) if int(name) in _nodes(task)]
            return _node(taskgraph, int(name), members, records)
        case "fold":
            node, _, lane = name.partition(":")
            sites = lanes_of(taskgraph.sites)[int(lane)] if lane else range(taskgraph.sites)
            members = [
                i for i, task in enumerate(taskgraph.tasks) if task.origin == int(node) and task.site in sites
            ]
            return _node(taskgraph, int(node), members, records)
        case "site" if name.isdecimal() and int(name) < taskgraph.sites:
            return _site(taskgraph, int(name), records)
        case _:
            return {}


def _nodes(task: Any) -> set[int]:
    return {task.origin, *(origin for origin, _ in calls(task))}


def _task(taskgraph: TaskGraph, i: int, records: Mapping[str, RunRecord]) -> dict[str, Any]:
    task = taskgraph.tasks[i]
    operations = work(taskgraph.graph, task)
    made = f"{amounts.shape(task.shape)} {task.dtype}, {amounts.nbytes(nbytes(task))}"
    place = f"{task.site}"
    if isinstance(task, Move):
        place = f"{taskgraph.tasks[task.inputs[0]].site} to {task.site}"
    rows = [["task", f"#{i}, {type(task).__name__}"], ["site", place], ["makes", made]]
    if task.inputs:
        read = sum(nbytes(taskgraph.tasks[j]) for j in task.inputs)
        rows.append(["reads", f"{amounts.many(len(task.inputs), 'block')}, {amounts.nbytes(read)}"])
    readers = taskgraph.consumers[i]
    if readers:
        rows.append(["read by", amounts.many(len(readers), "task")])
    if operations:
        rows.append(["operations", amounts.operations(operations)])
    for name, record in records.items():
        events = [event for event in (*record.tasks, *record.moves) if event.task == i]
        rows += [[name, _spent(event, operations, nbytes(task))] for event in events]
    *before, last = describe(taskgraph, i).split("\n")
    return {"key": f"task:{i}", "title": last, "rows": rows, "before": before}


def _spent(event: TaskEnded | MoveEnded, operations: float, size: int) -> str:
    start, end = span(event)
    words = f"{amounts.seconds(end - start)} from {amounts.seconds(start)}"
    if end <= start:
        return words
    if isinstance(event, MoveEnded):
        return f"{words}, {amounts.nbytes(size / (end - start))}/s"
    return f"{words}, {amounts.operations(operations / (end - start))}/s" if operations else words


def _node(
    taskgraph: TaskGraph, i: int, members: Sequence[int], records: Mapping[str, RunRecord]
) -> dict[str, Any]:
    graph = taskgraph.graph
    formula = naming.formula(graph, i)
    title = naming.tensor(graph, i) + (f" = {formula}" if formula else ", an input")
    return {"key": f"node:{i}", "title": title, "rows": _sums(taskgraph, members, records), "before": []}


def _site(taskgraph: TaskGraph, site: int, records: Mapping[str, RunRecord]) -> dict[str, Any]:
    members = [i for i, task in enumerate(taskgraph.tasks) if task.site == site]
    rows = _sums(taskgraph, members, records)
    sent = sum(
        nbytes(task)
        for task in taskgraph.tasks
        if isinstance(task, Move) and taskgraph.tasks[task.inputs[0]].site == site
    )
    rows.append(["sends", amounts.nbytes(sent)])
    rows += [[name, f"busy {amounts.share(r.busy(site), r.wall)}"] for name, r in records.items()]
    return {"key": f"site:{site}", "title": f"site {site}", "rows": rows, "before": []}


def _sums(taskgraph: TaskGraph, members: Sequence[int], records: Mapping[str, RunRecord]) -> Rows:
    tasks = [taskgraph.tasks[i] for i in members]
    moves = [task for task in tasks if isinstance(task, Move)]
    rows = [["tasks", amounts.count(len(tasks))]]
    for kind, name in ((Apply | Fused, "kernel calls"), (Aggregate, "aggregations")):
        if found := sum(isinstance(task, kind) for task in tasks):
            rows.append([name, amounts.count(found)])
    if operations := sum(work(taskgraph.graph, task) for task in tasks):
        rows.append(["operations", amounts.operations(operations)])
    if moves:
        size = amounts.nbytes(sum(map(nbytes, moves)))
        rows.append(["arrives", f"{size} in {amounts.many(len(moves), 'move')}"])
    these = {i for i in members if isinstance(taskgraph.tasks[i], Apply | Fused | Aggregate)}
    for name, record in records.items():
        seconds = sum(e.ended - e.started for e in record.tasks if e.task in these)
        rows.append([f"{name}, in kernels", amounts.seconds(seconds)])
    return rows
