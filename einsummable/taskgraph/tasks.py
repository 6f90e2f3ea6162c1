"""The TaskGraph: what happens on which site, as a flat list of tasks.

Contract: tasks stand in topological order, ids are indices, a task's inputs have smaller ids.  Every task
makes one block, a dense array, on its `site`; all but `Move` read only blocks of their own site, and a `Move`
copies one whole block to its site.  Nothing else crosses sites.  `origin` is the id of the graph node a task
belongs to: of several, the last.

========== ==========================================================================================
Read       take a box of an input (of the driver's array, or of a distributed tensor's block there)
Apply      one kernel call: a graph node on some ranges of its iteration space
Fused      kernel calls of several nodes, of which only the last one's block is made whole (see `fuse`)
Slice      a box of a block, in the block's own coordinates; a view
Move       the block of another site
Assemble   a block put together from boxes of others
Aggregate  partial results of one block, combined
========== ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from einsummable.codec import register_union
from einsummable.errors import TaskError
from einsummable.evaluate import check_inputs, evaluate_node, read_params
from einsummable.functions import AGGREGATES
from einsummable.graph import EinGraph
from einsummable.nodes import Box, box_shape
from einsummable.work import flops


@dataclass(frozen=True, slots=True)
class Read:
    """The `box` of the input called `name`."""

    site: int
    name: str
    box: Box
    shape: tuple[int, ...]
    dtype: np.dtype
    origin: int
    inputs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Apply:
    """The kernel call of graph node `origin` on `ranges` of its space; `inputs` are the boxes it reads."""

    site: int
    inputs: tuple[int, ...]
    ranges: Box
    shape: tuple[int, ...]
    dtype: np.dtype
    origin: int


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel call of a `Fused` task: graph node `origin` on `ranges`.

    Below the number of the task's inputs, `reads` name these, from there on the results of earlier steps.
    """

    origin: int
    ranges: Box
    reads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fused:
    """Kernel calls in one task.  The blocks of all steps but the last are nobody else's."""

    site: int
    inputs: tuple[int, ...]
    steps: tuple[Step, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    origin: int


@dataclass(frozen=True, slots=True)
class Slice:
    """The `box` of one block."""

    site: int
    inputs: tuple[int, ...]
    box: Box
    shape: tuple[int, ...]
    dtype: np.dtype
    origin: int


@dataclass(frozen=True, slots=True)
class Move:
    """The block of a task on another site, on this one."""

    site: int
    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    origin: int


@dataclass(frozen=True, slots=True)
class Assemble:
    """A block made of others: input `i` fills box ``places[i]`` of it, and the places cover it once."""

    site: int
    inputs: tuple[int, ...]
    places: tuple[Box, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    origin: int


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The elementwise `aggregate` of partial results of one shape."""

    site: int
    inputs: tuple[int, ...]
    aggregate: str
    shape: tuple[int, ...]
    dtype: np.dtype
    origin: int


Task = register_union(Read | Apply | Fused | Slice | Move | Assemble | Aggregate)


def calls(task: Task) -> tuple[tuple[int, Box], ...]:
    """Return the kernel calls that `task` makes: graph node and ranges of each."""
    match task:
        case Apply():
            return ((task.origin, task.ranges),)
        case Fused():
            return tuple((step.origin, step.ranges) for step in task.steps)
        case _:
            return ()


def work(graph: EinGraph, task: Task) -> float:
    """Return the scalar operations of the kernel calls that `task` makes."""
    total = 0.0
    for origin, ranges in calls(task):
        node = graph.nodes[origin]
        total += flops(node) * prod(box_shape(ranges)) / max(prod(n for _, n in node.space), 1)
    return total


def nbytes(task: Task) -> int:
    """Return the size of the block that `task` makes."""
    return prod(task.shape) * task.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Output:
    """A result: the task that makes each of its blocks, and the box of the whole that the block is."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    blocks: tuple[tuple[int, Box], ...]


@dataclass(frozen=True, repr=False)
class TaskGraph:
    """A program for `sites` sites; `graph` holds the nodes that `Apply` tasks call."""

    graph: EinGraph
    sites: int
    tasks: tuple[Task, ...]
    outputs: tuple[Output, ...] = field(default=())

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """For each task the ids of the tasks that read it, each once."""
        readers: list[list[int]] = [[] for _ in self.tasks]
        for i, task in enumerate(self.tasks):
            for j in task.inputs if len(task.inputs) < 2 else dict.fromkeys(task.inputs):
                readers[j].append(i)
        return tuple(map(tuple, readers))

    @property
    def bytes_moved(self) -> int:
        """Bytes that cross between sites."""
        return sum(nbytes(task) for task in self.tasks if isinstance(task, Move))

    @property
    def moved_by_node(self) -> tuple[int, ...]:
        """The same by the node of the graph that needs them."""
        moved = [0] * len(self.graph.nodes)
        for task in self.tasks:
            if isinstance(task, Move):
                moved[task.origin] += nbytes(task)
        return tuple(moved)

    @property
    def work_by_site(self) -> tuple[float, ...]:
        """The scalar operations of the kernel calls of each site."""
        total = [0.0] * self.sites
        for task in self.tasks:
            total[task.site] += work(self.graph, task)
        return tuple(total)

    def __str__(self) -> str:
        lines = [
            f"taskgraph of {len(self.tasks)} tasks on {self.sites} sites, {self.bytes_moved} bytes moved"
        ]
        for i, task in enumerate(self.tasks):
            reads = ", ".join(f"#{j}" for j in task.inputs)
            lines.append(
                f"#{i} @{task.site} {_describe(self, task)} {list(task.shape)}"
                + (f"  of {reads}" if reads else "")
            )
        for out in self.outputs:
            blocks = ", ".join(f"#{t}" for t, _ in out.blocks)
            lines += [f"return {out.name} = {blocks}"]
        return "\n".join(lines)

    __repr__ = __str__


def _describe(taskgraph: TaskGraph, task: Task) -> str:
    match task:
        case Read():
            return f"read {task.name}{show_box(task.box)}"
        case Apply():
            return f"apply {_call(taskgraph, task.origin, task.ranges)}"
        case Fused():
            return "fused " + ", ".join(_call(taskgraph, *call) for call in calls(task))
        case Slice():
            return f"slice {show_box(task.box)}"
        case Move():
            return f"move from @{taskgraph.tasks[task.inputs[0]].site}"
        case Assemble():
            return "assemble"
        case Aggregate():
            return f"aggregate {task.aggregate}"


def _call(taskgraph: TaskGraph, origin: int, ranges: Box) -> str:
    names = (label for label, _ in taskgraph.graph.nodes[origin].space)
    return f"%{origin} " + ",".join(f"{n}={a}:{b}" for n, (a, b) in zip(names, ranges, strict=True))


def show_box(box: Box) -> str:
    """Return `box` as text: ``[0:4,2:6]``."""
    return "[" + ",".join(f"{a}:{b}" for a, b in box) + "]"


def evaluate(
    taskgraph: TaskGraph, arrays: Mapping[str, np.ndarray], params: Mapping[str, object] | None = None
) -> dict[str, np.ndarray]:
    """Run the tasks one after another with the graph's own oracle; shares no code with the executors."""
    graph = taskgraph.graph
    check_inputs(graph, arrays)
    scalars = read_params(graph, params or {})
    blocks: list[np.ndarray] = []
    for task in taskgraph.tasks:
        args = [blocks[j] for j in task.inputs]
        blocks.append(evaluate_task(graph, task, args, arrays, scalars))
    results = {}
    for out in taskgraph.outputs:
        whole = np.empty(out.shape, out.dtype)
        for t, box in out.blocks:
            whole[_index(box)] = blocks[t]
        results[out.name] = whole
    return results


def evaluate_task(
    graph: EinGraph,
    task: Task,
    args: list[np.ndarray],
    arrays: Mapping[str, np.ndarray],
    scalars: Mapping[str, np.generic],
) -> np.ndarray:
    """Return the block that `task` makes of the blocks `args` that it reads."""
    match task:
        case Read():
            return np.asarray(arrays[task.name])[_index(task.box)]
        case Apply():
            return evaluate_node(graph, graph.nodes[task.origin], task.ranges, args, scalars)
        case Fused():
            values = list(args)
            for step in task.steps:
                reads = [values[j] for j in step.reads]
                node = graph.nodes[step.origin]
                values.append(evaluate_node(graph, node, step.ranges, reads, scalars))
            return values[-1]
        case Slice():
            return args[0][_index(task.box)]
        case Move():
            return args[0].copy()
        case Assemble():
            block = np.empty(task.shape, task.dtype)
            for piece, box in zip(args, task.places, strict=True):
                block[_index(box)] = piece
            return block
        case Aggregate():
            return (
                AGGREGATES[task.aggregate].ufunc.reduce(np.stack(args), axis=0, dtype=None).astype(task.dtype)
            )
    raise TaskError(f"{type(task).__name__} is no task")


def _index(box: Box) -> tuple[slice, ...]:
    return tuple(slice(start, stop) for start, stop in box)
