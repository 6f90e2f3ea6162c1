"""How long the tasks of a TaskGraph take on a Hardware, each by itself.

Contract: a kernel call takes as long as the slower of computing and touching memory, and a fixed cost.  A
matrix product computes at `Hardware.product_rate`, which falls where a block is small; all else at
`Hardware.map_flops`, a costly function counting as many operations as it takes.  A move takes a message of
its size on its link.  Reads and slices are views and take no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from einsummable.nodes import Box, box_shape
from einsummable.planner.hardware import Hardware
from einsummable.planner.timing import computing
from einsummable.taskgraph.tasks import Aggregate, Apply, Assemble, Fused, Move, TaskGraph, calls, nbytes


def durations(taskgraph: TaskGraph, hardware: Hardware) -> list[float]:
    """Return the seconds that every task takes, from when all it reads is there."""
    tasks, sizes = taskgraph.tasks, [nbytes(task) for task in taskgraph.tasks]
    kernels = _Kernels(taskgraph, hardware)
    seconds = []
    for i, task in enumerate(tasks):
        match task:
            case Move():
                taken = hardware.message(tasks[task.inputs[0]].site, task.site, sizes[i])
            case Apply() | Fused():
                taken = kernels.seconds(task, sizes[i] + sum([sizes[j] for j in task.inputs]))
            case Aggregate():
                touched, work = (len(task.inputs) + 1) * sizes[i], (len(task.inputs) - 1) * prod(task.shape)
                slower = max(touched / hardware.memory_bandwidth, work / hardware.map_flops)
                taken = hardware.overhead + slower
            case Assemble():
                taken = hardware.overhead + 2 * sizes[i] / hardware.memory_bandwidth
            case _:
                taken = 0.0  # views
        seconds.append(taken)
    return seconds


class _Kernels:
    """The times of kernel calls; calls of one node on ranges of one shape take equally long."""

    def __init__(self, taskgraph: TaskGraph, hardware: Hardware) -> None:
        self.taskgraph, self.hardware = taskgraph, hardware
        self.known: dict[tuple[int, tuple[int, ...]], float] = {}

    def seconds(self, task: Apply | Fused, touched: int) -> float:
        """Return how long `task` takes, which reads and makes `touched` bytes."""
        taken = sum(self.computing(origin, ranges) for origin, ranges in calls(task))
        return self.hardware.overhead + max(taken, touched / self.hardware.memory_bandwidth)

    def computing(self, origin: int, ranges: Box) -> float:
        key = origin, box_shape(ranges)
        if key not in self.known:
            self.known[key] = computing(self.taskgraph.graph.nodes[origin], key[1], self.hardware)
        return self.known[key]


def urgencies(taskgraph: TaskGraph, seconds: Sequence[float]) -> list[float]:
    """Return for each task the time from its start to the end of the program if nothing has to wait."""
    urgency = list(seconds)
    later = [0.0] * len(urgency)
    for i in range(len(urgency) - 1, -1, -1):
        urgency[i] += later[i]
        for j in taskgraph.tasks[i].inputs:
            later[j] = max(later[j], urgency[i])
    return urgency
