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
from itertools import pairwise
from math import prod

import numpy as np

from einsummable import graph as eingraph
from einsummable.codec import register_union
from einsummable.errors import TaskError
from einsummable.evaluate import check_inputs, evaluate_node, read_params
from einsummable.graph import Box, EinGraph, box_shape, flops
from einsummable.scalar import AGGREGATES


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
        where = f"#{i} ({type(task).__name__} of %{task.origin})"
        if not 0 <= task.site < taskgraph.sites:
            raise TaskError(f"{where} is on site {task.site}, there are {taskgraph.sites}")
        for j in task.inputs:
            if not 0 <= j < i:
                raise TaskError(f"{where} reads #{j}, which does not come before it: a cycle")
        if not 0 <= task.origin < len(taskgraph.graph.nodes):
            raise TaskError(f"{where} belongs to %{task.origin}, which does not exist")
        sources = [taskgraph.tasks[j] for j in task.inputs]
        _check_sites(where, task, sources)
        _check_kind(where, taskgraph, task, sources)
        if isinstance(task, Fused):
            _check_steps(where, taskgraph, task, sources)
        else:
            _check_shape(where, taskgraph, task, sources)
    _check_moves(taskgraph)
    for out in taskgraph.outputs:
        boxes = [box for _, box in out.blocks]
        for t, box in out.blocks:
            if not 0 <= t < len(taskgraph.tasks) or taskgraph.tasks[t].shape != box_shape(box):
                raise TaskError(f"a block of the output {out.name!r} is not made: #{t}, {_ranges(box)}")
        if not covers_once(boxes, out.shape):
            raise TaskError(f"the blocks of the output {out.name!r} do not cover it exactly once")


def _check_sites(where: str, task: Task, sources: list[Task]) -> None:
    if isinstance(task, Move):
        if len(sources) != 1 or isinstance(sources[0], Move):
            raise TaskError(f"{where}: a move has one input, which is no move")
        if sources[0].site == task.site:
            raise TaskError(f"{where}: a move within site {task.site} is no move")
        return
    for j, source in zip(task.inputs, sources, strict=True):
        if source.site != task.site:
            raise TaskError(
                f"{where} is on site {task.site} and reads #{j} on site {source.site}: a move is missing"
            )


def _check_kind(where: str, taskgraph: TaskGraph, task: Task, sources: list[Task]) -> None:
    node = taskgraph.graph.nodes[task.origin]
    match task:
        case Read() if task.name not in taskgraph.graph.inputs:
            raise TaskError(f"{where} reads {task.name!r}, which is no input")
        case Apply() if isinstance(node, eingraph.Input):
            raise TaskError(f"{where} is a kernel call of an input")
        case Apply() if len(sources) != len(node.inputs):
            raise TaskError(f"{where} has {len(sources)} inputs, its node reads {len(node.inputs)}")
        case Aggregate() if not sources:
            raise TaskError(f"{where} combines nothing")
        case Aggregate() if task.aggregate not in AGGREGATES:
            raise TaskError(f"{where}: {task.aggregate!r} is no aggregate")
        case Slice() if len(sources) != 1:
            raise TaskError(f"{where}: a slice has one input")
        case Assemble() if len(sources) != len(task.places):
            raise TaskError(f"{where} has {len(sources)} pieces for {len(task.places)} places")
    odd = [] if isinstance(task, Apply | Fused) else [s.dtype for s in sources if s.dtype != task.dtype]
    if odd:
        raise TaskError(f"{where} is {task.dtype}, it reads {odd[0]}")


def _check_steps(where: str, taskgraph: TaskGraph, task: Fused, sources: list[Task]) -> None:
    shapes, made = [s.shape for s in sources], task.dtype
    if not task.steps or task.steps[-1].origin != task.origin:
        raise TaskError(f"{where} does not end in a kernel call of its own node")
    for s, step in enumerate(task.steps):
        if not 0 <= step.origin < len(taskgraph.graph.nodes):
            raise TaskError(f"{where}: its step {s} belongs to %{step.origin}, which does not exist")
        node = taskgraph.graph.nodes[step.origin]
        if isinstance(node, eingraph.Input) or len(step.reads) != len(node.inputs):
            raise TaskError(f"{where}: its step {s} is no kernel call of %{step.origin}")
        for k, j in enumerate(step.reads):
            if not 0 <= j < len(shapes):
                raise TaskError(f"{where}: its step {s} reads {j}, which does not come before it")
            if shapes[j] != box_shape(node.in_box(k, step.ranges)):
                raise TaskError(f"{where}: input {k} of step {s} has shape {shapes[j]}, not what it reads")
        shapes.append(box_shape(node.out_box(step.ranges)))
        made = node.dtype
    if (shapes[-1], made) != (task.shape, task.dtype):
        raise TaskError(f"{where} has shape {task.shape}, what it makes has {shapes[-1]}")


def _check_shape(where: str, taskgraph: TaskGraph, task: Task, sources: list[Task]) -> None:
    match task:
        case Read():
            wanted = [box_shape(task.box)]
        case Slice():
            wanted = [box_shape(task.box)]
            if any(a < 0 or b > n for (a, b), n in zip(task.box, sources[0].shape, strict=True)):
                raise TaskError(f"{where} slices {_ranges(task.box)} out of a block of {sources[0].shape}")
        case Apply():
            node = taskgraph.graph.nodes[task.origin]
            wanted = [box_shape(node.out_box(task.ranges))]
            for k, source in enumerate(sources):
                if source.shape != box_shape(node.in_box(k, task.ranges)):
                    raise TaskError(
                        f"{where}: its input {k} has shape {source.shape}, not that of the box it reads"
                    )
        case Move() | Aggregate():
            wanted = [source.shape for source in sources]
        case Assemble():
            wanted = [task.shape]
            if [box_shape(b) for b in task.places] != [s.shape for s in sources]:
                raise TaskError(f"{where}: a piece does not fit its place")
            if not covers_once(task.places, task.shape):
                raise TaskError(f"{where}: the pieces do not cover the block exactly once")
    if any(shape != task.shape for shape in wanted):
        raise TaskError(f"{where} has shape {task.shape}, what it makes has {wanted}")


def _check_moves(taskgraph: TaskGraph) -> None:
    seen: dict[tuple[int, int], int] = {}
    for i, task in enumerate(taskgraph.tasks):
        if isinstance(task, Move) and seen.setdefault((task.inputs[0], task.site), i) != i:
            raise TaskError(f"#{i} moves #{task.inputs[0]} to site {task.site} a second time")


def covers_once(boxes: tuple[Box, ...] | list[Box], shape: tuple[int, ...]) -> bool:
    """Return whether `boxes` cover a tensor of `shape` exactly once."""
    if sum(prod(box_shape(b)) for b in boxes) != prod(shape):
        return False
    solid = [b for b in boxes if all(start < stop for start, stop in b)]
    if any(start < 0 or stop > n for b in solid for (start, stop), n in zip(b, shape, strict=True)):
        return False
    return _is_grid(solid) or not _overlap(solid)  # equal volume and no overlap is a cover


def _is_grid(boxes: list[Box]) -> bool:
    """Return whether `boxes` are the distinct cells of one grid: found without comparing any two."""
    edges = [sorted({x for r in column for x in r}) for column in zip(*boxes, strict=True)]
    steps = [set(pairwise(e)) for e in edges]
    cells = all(
        r in step for column, step in zip(zip(*boxes, strict=True), steps, strict=True) for r in column
    )
    return cells and len(set(boxes)) == len(boxes)


def _overlap(boxes: list[Box]) -> bool:
    """Return whether any two of `boxes` overlap; sorted by their first range, only near ones can."""
    boxes = sorted(boxes)
    for i, a in enumerate(boxes):
        for b in boxes[i + 1 :]:
            if a and b[0][0] >= a[0][1]:
                break
            if all(s < t2 and s2 < t for (s, t), (s2, t2) in zip(a, b, strict=True)):
                return True
    return False


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
