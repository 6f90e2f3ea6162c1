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

from einsummable import graph as eingraph
from einsummable.codec import register_union
from einsummable.errors import TaskError
from einsummable.evaluate import check_inputs, evaluate_node, read_params
from einsummable.graph import Box, EinGraph, box_shape, flops
from einsummable.scalar import AGGREGATES
from einsummable.taskgraph.covers import covers_once


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
            for j in dict.fromkeys(task.inputs):
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
        work = [0.0] * self.sites
        for task in self.tasks:
            for origin, ranges in calls(task):
                node = self.graph.nodes[origin]
                share = prod(box_shape(ranges)) / max(prod(n for _, n in node.space), 1)
                work[task.site] += flops(node) * share
        return tuple(work)

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
            return f"read {task.name}{_ranges(task.box)}"
        case Apply():
            return f"apply {_call(taskgraph, task.origin, task.ranges)}"
        case Fused():
            return "fused " + ", ".join(_call(taskgraph, *call) for call in calls(task))
        case Slice():
            return f"slice {_ranges(task.box)}"
        case Move():
            return f"move from @{taskgraph.tasks[task.inputs[0]].site}"
        case Assemble():
            return "assemble"
        case Aggregate():
            return f"aggregate {task.aggregate}"


def _call(taskgraph: TaskGraph, origin: int, ranges: Box) -> str:
    names = (label for label, _ in taskgraph.graph.nodes[origin].space)
    return f"%{origin} " + ",".join(f"{n}={a}:{b}" for n, (a, b) in zip(names, ranges, strict=True))


def _ranges(box: Box) -> str:
    return "[" + ",".join(f"{a}:{b}" for a, b in box) + "]"


def check(taskgraph: TaskGraph) -> None:
    """Raise `TaskError` unless the program is well formed; return nothing."""
    for i, task in enumerate(taskgraph.tasks):
        wrong = _wrong_place(taskgraph, i, task)
        if wrong is None:
            wrong = _wrong_task(taskgraph, task, [taskgraph.tasks[j] for j in task.inputs])
        if wrong is not None:
            raise TaskError(f"#{i} ({type(task).__name__} of %{task.origin}){wrong}")
    _check_moves(taskgraph)
    for out in taskgraph.outputs:
        boxes = [box for _, box in out.blocks]
        for t, box in out.blocks:
            if not 0 <= t < len(taskgraph.tasks) or taskgraph.tasks[t].shape != box_shape(box):
                raise TaskError(f"a block of the output {out.name!r} is not made: #{t}, {_ranges(box)}")
        if not covers_once(boxes, out.shape):
            raise TaskError(f"the blocks of the output {out.name!r} do not cover it exactly once")


def _wrong_place(taskgraph: TaskGraph, i: int, task: Task) -> str | None:
    """Return what is wrong with where task `i` stands and what it reads, in words that follow its name."""
    if not 0 <= task.site < taskgraph.sites:
        return f" is on site {task.site}, there are {taskgraph.sites}"
    for j in task.inputs:
        if not 0 <= j < i:
            return f" reads #{j}, which does not come before it: a cycle"
    if not 0 <= task.origin < len(taskgraph.graph.nodes):
        return f" belongs to %{task.origin}, which does not exist"
    if isinstance(task, Move):
        if len(task.inputs) != 1 or isinstance(taskgraph.tasks[task.inputs[0]], Move):
            return ": a move has one input, which is no move"
        if taskgraph.tasks[task.inputs[0]].site == task.site:
            return f": a move within site {task.site} is no move"
        return None
    for j in task.inputs:
        site = taskgraph.tasks[j].site
        if site != task.site:
            return f" is on site {task.site} and reads #{j} on site {site}: a move is missing"
    return None


def _wrong_task(taskgraph: TaskGraph, task: Task, sources: list[Task]) -> str | None:
    """Return what is wrong with `task` given what it reads."""
    match task:
        case Move():
            return _wrong_dtype(task, sources) or _wrong_shape(task, sources[0].shape)
        case Apply():
            return _wrong_call(taskgraph, task, sources)
        case Slice():
            return _wrong_dtype(task, sources) or _wrong_slice(task, sources)
        case Aggregate():
            if not sources:
                return " combines nothing"
            if task.aggregate not in AGGREGATES:
                return f": {task.aggregate!r} is no aggregate"
            shapes = [_wrong_shape(task, source.shape) for source in sources]
            return _wrong_dtype(task, sources) or next(filter(None, shapes), None)
        case Assemble():
            return _wrong_dtype(task, sources) or _wrong_pieces(task, sources)
        case Read():
            if task.name not in taskgraph.graph.inputs:
                return f" reads {task.name!r}, which is no input"
            return _wrong_dtype(task, sources) or _wrong_shape(task, box_shape(task.box))
        case Fused():
            return _wrong_steps(taskgraph, task, sources)


def _wrong_dtype(task: Task, sources: list[Task]) -> str | None:
    for source in sources:
        if source.dtype != task.dtype:
            return f" is {task.dtype}, it reads {source.dtype}"
    return None


def _wrong_shape(task: Task, made: tuple[int, ...]) -> str | None:
    return None if made == task.shape else f" has shape {task.shape}, what it makes has {made}"


def _wrong_call(taskgraph: TaskGraph, task: Apply, sources: list[Task]) -> str | None:
    node = taskgraph.graph.nodes[task.origin]
    if isinstance(node, eingraph.Input):
        return " is a kernel call of an input"
    if len(sources) != len(node.inputs):
        return f" has {len(sources)} inputs, its node reads {len(node.inputs)}"
    for k, source in enumerate(sources):
        if source.shape != box_shape(node.in_box(k, task.ranges)):
            return f": its input {k} has shape {source.shape}, not that of the box it reads"
    return _wrong_shape(task, box_shape(node.out_box(task.ranges)))


def _wrong_slice(task: Slice, sources: list[Task]) -> str | None:
    if len(sources) != 1:
        return ": a slice has one input"
    for (start, stop), n in zip(task.box, sources[0].shape, strict=True):
        if start < 0 or stop > n:
            return f" slices {_ranges(task.box)} out of a block of {sources[0].shape}"
    return _wrong_shape(task, box_shape(task.box))


def _wrong_pieces(task: Assemble, sources: list[Task]) -> str | None:
    if len(sources) != len(task.places):
        return f" has {len(sources)} pieces for {len(task.places)} places"
    if [box_shape(b) for b in task.places] != [s.shape for s in sources]:
        return ": a piece does not fit its place"
    if not covers_once(task.places, task.shape):
        return ": the pieces do not cover the block exactly once"
    return None


def _wrong_steps(taskgraph: TaskGraph, task: Fused, sources: list[Task]) -> str | None:
    shapes, made = [s.shape for s in sources], task.dtype
    if not task.steps or task.steps[-1].origin != task.origin:
        return " does not end in a kernel call of its own node"
    for s, step in enumerate(task.steps):
        if not 0 <= step.origin < len(taskgraph.graph.nodes):
            return f": its step {s} belongs to %{step.origin}, which does not exist"
        node = taskgraph.graph.nodes[step.origin]
        if isinstance(node, eingraph.Input) or len(step.reads) != len(node.inputs):
            return f": its step {s} is no kernel call of %{step.origin}"
        for k, j in enumerate(step.reads):
            if not 0 <= j < len(shapes):
                return f": its step {s} reads {j}, which does not come before it"
            if shapes[j] != box_shape(node.in_box(k, step.ranges)):
                return f": input {k} of step {s} has shape {shapes[j]}, not what it reads"
        shapes.append(box_shape(node.out_box(step.ranges)))
        made = node.dtype
    if made != task.dtype:
        return f" is {task.dtype}, its last call makes {made}"
    return _wrong_shape(task, shapes[-1])


def _check_moves(taskgraph: TaskGraph) -> None:
    seen: dict[tuple[int, int], int] = {}
    for i, task in enumerate(taskgraph.tasks):
        if isinstance(task, Move) and seen.setdefault((task.inputs[0], task.site), i) != i:
            raise TaskError(f"#{i} moves #{task.inputs[0]} to site {task.site} a second time")


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
