"""Which results may take the place of an input that nobody needs any more.

Contract: `replaced` names the calls that change few elements of an input's block that nothing else reads
(see `kernels.update`), and make a block of a result of it.  Where the caller gives that input up, such a
call may write into the input's own memory.  This is asked of the TaskGraph alone, so that whoever plans,
runs or counts memory gets one answer.
"""

from __future__ import annotations

from collections.abc import Collection

from einsummable.kernels.update import update_of
from einsummable.nodes import Box, Einsummable
from einsummable.taskgraph.tasks import Apply, Read, TaskGraph


def replaced(taskgraph: TaskGraph) -> dict[int, int]:
    """Return for each such call the `Read` whose block it may replace."""
    kept = {t for out in taskgraph.outputs for t, _ in out.blocks}
    found = {}
    for i in kept:
        j = _old(taskgraph, i)
        if j is not None and j not in kept and taskgraph.consumers[j] == (i,):
            found[i] = j
    return found


def in_place(taskgraph: TaskGraph, given: Collection[str]) -> dict[int, int]:
    """Return those of `replaced` whose block is of an input in `given`."""
    found = replaced(taskgraph) if given else {}
    return {i: j for i, j in found.items() if taskgraph.tasks[j].name in given}


def _old(taskgraph: TaskGraph, i: int) -> int | None:
    """Return the Read whose block task `i` changes a little, None if it does not."""
    task, graph = taskgraph.tasks[i], taskgraph.graph
    if not isinstance(task, Apply) or not isinstance(graph.nodes[task.origin], Einsummable):
        return None
    node = graph.nodes[task.origin]
    update = update_of(node, [graph.nodes[j].dtype for j in node.inputs], graph.param_types)
    if update is None:
        return None
    j = task.inputs[update.old]
    old = taskgraph.tasks[j]
    same = isinstance(old, Read) and (old.shape, old.dtype) == (task.shape, task.dtype)
    return j if same and task.inputs.count(j) == 1 else None


def successors(taskgraph: TaskGraph) -> dict[str, str]:
    """Return the outputs of which every block may replace the block of one input, and that input's name."""
    old = replaced(taskgraph)
    found = {}
    for out in taskgraph.outputs:
        reads = [taskgraph.tasks[old[t]] if t in old else None for t, _ in out.blocks]
        names = {None if read is None else read.name for read in reads}
        if len(names) == 1 and None not in names and _boxes(reads) == [box for _, box in out.blocks]:
            found[out.name] = names.pop()
    return found


def _boxes(reads: list[Read]) -> list[Box]:
    return [read.box for read in reads]
