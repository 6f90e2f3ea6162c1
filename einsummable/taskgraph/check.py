"""Whether a TaskGraph is well formed.

Contract: `check` raises a `TaskError` that names the first task which breaks a rule of `tasks`, or the output
that is not all there.  Each kind of task has a function that answers what is wrong with it, in words that
follow its name, or None.
"""

from __future__ import annotations

from collections.abc import Sequence

from einsummable.errors import TaskError
from einsummable.functions import AGGREGATES
from einsummable.nodes import Input, box_shape
from einsummable.taskgraph.covers import covers_once
from einsummable.taskgraph.tasks import (
    Aggregate,
    Apply,
    Assemble,
    Fused,
    Move,
    Read,
    Slice,
    Task,
    TaskGraph,
    show_box,
)


def check(taskgraph: TaskGraph) -> None:
    """Raise `TaskError` unless the program is well formed; return nothing."""
    tasks, sites, nodes = taskgraph.tasks, range(taskgraph.sites), range(len(taskgraph.graph.nodes))
    for i, task in enumerate(tasks):
        if (
            isinstance(task, Move)
            and task.site in sites
            and task.origin in nodes
            and _is_right(tasks, i, task)
        ):
            continue  # most tasks of large programs are moves
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
                raise TaskError(f"a block of the output {out.name!r} is not made: #{t}, {show_box(box)}")
        if not covers_once(boxes, out.shape):
            raise TaskError(f"the blocks of the output {out.name!r} do not cover it exactly once")


def _is_right(tasks: Sequence[Task], i: int, move: Move) -> bool:
    """Return whether task `i`, a move, has one input, from another site, and makes the same block."""
    if len(move.inputs) != 1 or not 0 <= move.inputs[0] < i:
        return False
    source = tasks[move.inputs[0]]
    same = source.shape == move.shape and source.dtype == move.dtype
    return same and source.site != move.site and not isinstance(source, Move)


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
    if isinstance(node, Input):
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
            return f" slices {show_box(task.box)} out of a block of {sources[0].shape}"
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
        if isinstance(node, Input) or len(step.reads) != len(node.inputs):
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
