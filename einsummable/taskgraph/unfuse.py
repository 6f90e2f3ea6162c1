"""Fused tasks taken apart again, for a reader who wants to see every kernel call and its block.

Contract: `unfuse` answers a TaskGraph that computes the same and holds no `Fused`.  It is no inverse of
`fuse`: what fusing left out (a block that nobody reads whole) is there again, in the order of the steps.
"""

from __future__ import annotations

from dataclasses import replace

from einsummable.nodes import box_shape
from einsummable.taskgraph.tasks import Apply, Fused, Output, Task, TaskGraph


def unfuse(taskgraph: TaskGraph) -> TaskGraph:
    """Return `taskgraph` with each step of a fused task as a task of its own."""
    new: list[int] = []
    tasks: list[Task] = []
    for task in taskgraph.tasks:
        values = [new[j] for j in task.inputs]
        if not isinstance(task, Fused):
            tasks.append(replace(task, inputs=tuple(values)))
        else:
            for step in task.steps:
                node = taskgraph.graph.nodes[step.origin]
                reads = tuple(values[k] for k in step.reads)
                shape = box_shape(node.out_box(step.ranges))
                values.append(len(tasks))
                tasks.append(Apply(task.site, reads, step.ranges, shape, node.dtype, step.origin))
        new.append(len(tasks) - 1)
    outputs = tuple(
        Output(out.name, out.shape, out.dtype, tuple((new[t], box) for t, box in out.blocks))
        for out in taskgraph.outputs
    )
    return TaskGraph(taskgraph.graph, taskgraph.sites, tuple(tasks), outputs)
