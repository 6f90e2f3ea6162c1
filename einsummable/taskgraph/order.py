"""An order of all tasks that keeps few blocks alive: depth first, from the results back.

Contract: a topological order of the whole TaskGraph.  A task comes right after what it needs was made, the
longest of the ways there first, so that partial results are combined, and blocks forgotten, early.  Results
that take fewer steps come before others: of gradients, those of the last layer, from which the others follow.
"""

from __future__ import annotations

from einsummable.taskgraph.tasks import TaskGraph


def depth_first(taskgraph: TaskGraph) -> list[int]:
    """Return the ids of all tasks in such an order."""
    tasks = taskgraph.tasks
    depth = [0] * len(tasks)
    for i, task in enumerate(tasks):
        depth[i] = 1 + max((depth[j] for j in task.inputs), default=0)
    wanted = sorted((t for out in taskgraph.outputs for t, _ in out.blocks), key=depth.__getitem__)
    order: list[int] = []
    seen = [False] * len(tasks)
    # What no output needs comes at the end, sinks first so that it is depth first as well.
    for end in (*wanted, *range(len(tasks) - 1, -1, -1)):
        stack = [end]
        while stack:
            i = stack.pop()
            if i < 0:
                order.append(~i)
            elif not seen[i]:
                seen[i] = True
                stack.append(~i)
                # The last one pushed is the first one made.
                stack += sorted(tasks[i].inputs, key=depth.__getitem__)
    return order
