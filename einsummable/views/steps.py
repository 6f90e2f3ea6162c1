"""A small program run task by task: the numbers in every block, and how each came about.

Contract: `steps_view` runs the oracle and returns one entry a task, in the order in which they run.  Its
``frames`` are the states of a block while it is made: a sum grows with the label it runs over, a block is put
together piece by piece; the last frame is the block.  ``reads`` of a frame are the boxes of the blocks that
it takes, in their own coordinates.  A block of more than `CELLS` elements has its shape only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from einsummable.errors import PlanError
from einsummable.evaluate import check_inputs, evaluate_node, read_params
from einsummable.graph import EinGraph
from einsummable.nodes import Box, Einsummable, box_shape, whole
from einsummable.planner.partition import cut
from einsummable.taskgraph.tasks import (
    Aggregate,
    Apply,
    Assemble,
    Move,
    Read,
    Slice,
    Task,
    TaskGraph,
    evaluate_task,
    nbytes,
)
from einsummable.taskgraph.unfuse import unfuse
from einsummable.views import amounts, digits, naming

#: A block of more elements is shown as its shape only.
CELLS = 400
#: So many tasks can be stepped through.
TASKS = 400
#: The most states of a block while it is made.
FRAMES = 12
#: The oracle is slow: beyond so many points of iteration spaces nothing is computed.
_POINTS = 2_000_000


def steps_view(
    taskgraph: TaskGraph, arrays: Mapping[str, np.ndarray], params: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """Return every step of a run of `taskgraph` on `arrays`, with the numbers.

    Raises
    ------
    PlanError
        There are too many tasks for a reader.
    ShapeError, UnknownNameError, DtypeError
        An input or a scalar is missing or does not fit.
    """
    taskgraph = unfuse(taskgraph)
    graph, count = taskgraph.graph, len(taskgraph.tasks)
    if count > TASKS:
        raise PlanError(
            f"the program has {count} tasks, too many to step through: {TASKS} at most",
            notes=("take fewer sites or a smaller program; the timeline shows long runs",),
        )
    check_inputs(graph, arrays)
    scalars = read_params(graph, params or {})
    boxes, partial = _boxes(taskgraph), _partial(taskgraph)
    tensors = _tensors(taskgraph)
    results = {t for out in taskgraph.outputs for t, _ in out.blocks}
    made = _Run(taskgraph, arrays, scalars)
    tasks = []
    for i, task in enumerate(taskgraph.tasks):
        tasks.append(
            {
                "id": i,
                "type": type(task).__name__,
                "site": task.site,
                "node": task.origin,
                "tensor": tensors[i],
                "box": [list(r) for r in boxes[i]],
                "shape": list(task.shape),
                "inputs": list(task.inputs),
                "partial": partial[i],
                "result": i in results,
                "last": max(taskgraph.consumers[i], default=i) if i not in results else count,
                "words": _words(taskgraph, i, boxes, tensors),
                "frames": list(made.frames(i)),
            }
        )
    view = {
        "kind": "steps",
        "sites": taskgraph.sites,
        "hosts": None,
        "text": graph.text,
        "nodes": [_node(graph, n) for n in sorted({*tensors, *(t.origin for t in taskgraph.tasks)})],
        "tasks": tasks,
    }
    return view | {"caption": _caption(taskgraph)}


def _node(graph: EinGraph, n: int) -> dict[str, Any]:
    span = graph.nodes[n].origin.span
    return {
        "id": n,
        "name": graph.name_of(n),
        "tensor": naming.tensor(graph, n),
        "formula": naming.formula(graph, n),
        "span": [span.start, span.stop] if span else None,
    }


def _caption(taskgraph: TaskGraph) -> str:
    kinds = [type(task) for task in taskgraph.tasks]
    words = f"{amounts.many(len(kinds), 'step')} on {amounts.many(taskgraph.sites, 'site')}: "
    words += amounts.many(kinds.count(Apply), "kernel call")
    if kinds.count(Aggregate):
        words += f", {amounts.many(kinds.count(Aggregate), 'aggregation')} of partial results"
    if not kinds.count(Move):
        return words + "; nothing moves"
    return words + f"; {amounts.many(kinds.count(Move), 'move')} of {amounts.nbytes(taskgraph.bytes_moved)}"


# ----------------------------------------------------------------------------- what a block is


def _tensors(taskgraph: TaskGraph) -> list[int]:
    """Return for each task the node whose output its block is a part of."""
    nodes: list[int] = []
    for task in taskgraph.tasks:
        passes = isinstance(task, Slice | Move | Assemble)
        nodes.append(nodes[task.inputs[0]] if passes and task.inputs else task.origin)
    return nodes


def _boxes(taskgraph: TaskGraph) -> list[Box]:
    """Return for each task the box of the whole tensor that its block is."""
    boxes: list[Box] = []
    for task in taskgraph.tasks:
        match task:
            case Read():
                box = task.box
            case Apply():
                box = taskgraph.graph.nodes[task.origin].out_box(task.ranges)
            case Slice():
                box = tuple(
                    (start + a, start + b)
                    for (start, _), (a, b) in zip(boxes[task.inputs[0]], task.box, strict=True)
                )
            case Assemble() if task.inputs:
                corners = zip(boxes[task.inputs[0]], task.places[0], task.shape, strict=True)
                box = tuple((start - at, start - at + n) for (start, _), (at, _), n in corners)
            case Move() | Aggregate():
                box = boxes[task.inputs[0]]
            case _:
                box = whole(task.shape)
        boxes.append(box)
    return boxes


def _partial(taskgraph: TaskGraph) -> list[bool]:
    """Return for each task whether its block is a partial result that an `Aggregate` takes."""
    partial = [False] * len(taskgraph.tasks)
    for i in reversed(range(len(partial))):
        for j in taskgraph.consumers[i]:
            reader = taskgraph.tasks[j]
            partial[i] |= isinstance(reader, Aggregate)
            partial[i] |= isinstance(reader, Slice | Move | Assemble) and partial[j]
    return partial


def _words(taskgraph: TaskGraph, i: int, boxes: list[Box], tensors: list[int]) -> str:
    task, graph = taskgraph.tasks[i], taskgraph.graph
    block = graph.name_of(tensors[i]) + _index(boxes[i])
    match task:
        case Read():
            return f"site {task.site} has {block}"
        case Apply():
            node = graph.nodes[task.origin]
            formula = naming.formula(graph, task.origin)
            over = list(zip(node.space, task.ranges, strict=True))[len(box_shape(boxes[i])) :]
            cut_ = [f"{label} = {a}…{b - 1}" for (label, n), (a, b) in over if b - a < n]
            partial = f", but only for {', '.join(cut_)}: a partial result" if cut_ else ""
            return f"site {task.site} computes {block} = {formula}{partial}"
        case Slice():
            return f"site {task.site} takes {block} out of a block that it has"
        case Move():
            source = taskgraph.tasks[task.inputs[0]].site
            return f"{block} travels from site {source} to site {task.site}: {amounts.nbytes(nbytes(task))}"
        case Assemble():
            return f"site {task.site} puts {block} together from {amounts.many(len(task.inputs), 'piece')}"
        case Aggregate():
            n = amounts.many(len(task.inputs), "partial result")
            return f"site {task.site} combines {n} of {block} by {task.aggregate}"
    raise AssertionError(f"unfused, and yet a {type(task).__name__}")


def _index(box: Box) -> str:
    return f"[{', '.join(f'{a}:{b}' for a, b in box)}]" if box else ""


# ----------------------------------------------------------------------------------- the numbers


class _Run:
    """The oracle, task by task; `frames` must be asked for in the order of the tasks."""

    def __init__(
        self, taskgraph: TaskGraph, arrays: Mapping[str, np.ndarray], scalars: Mapping[str, np.generic]
    ) -> None:
        self._taskgraph, self._arrays, self._scalars = taskgraph, arrays, scalars
        work = sum(prod(box_shape(t.ranges)) for t in taskgraph.tasks if isinstance(t, Apply))
        self._computes = work <= _POINTS
        self._blocks: list[np.ndarray] = []

    def frames(self, i: int) -> Iterator[dict[str, Any]]:
        """Yield the states of the block of task `i` while it is made."""
        graph, task = self._taskgraph.graph, self._taskgraph.tasks[i]
        everything = [_whole(self._taskgraph.tasks[j].shape) for j in task.inputs]
        if not self._computes:
            yield {"cells": None, "words": "", "reads": everything}
            return
        args = [self._blocks[j] for j in task.inputs]
        block = evaluate_task(graph, task, args, self._arrays, self._scalars)
        self._blocks.append(block)
        if block.size > CELLS:
            yield {"cells": None, "words": "", "reads": everything}
        elif (growing := self._growing(task, args)) is not None:
            yield from growing
        else:
            taken = [[list(r) for r in task.box]] if isinstance(task, Slice) else everything
            yield {"cells": digits.cells(block), "words": "", "reads": taken}

    def _growing(self, task: Task, args: list[np.ndarray]) -> Iterator[dict[str, Any]] | None:
        """Return the states on the way to a block that is made in several, else None."""
        match task:
            case Apply():
                node = self._taskgraph.graph.nodes[task.origin]
                if isinstance(node, Einsummable) and (at := _grown(node, task.ranges)) is not None:
                    return self._sums(node, task.ranges, at, args)
            case Aggregate() if 1 < len(args) <= FRAMES:
                return self._added(task, args)
            case Assemble() if 1 < len(args) <= FRAMES:
                return _pieces(task, args)
        return None

    def _sums(
        self, node: Einsummable, ranges: Box, at: int, args: list[np.ndarray]
    ) -> Iterator[dict[str, Any]]:
        """Yield the aggregate over more and more of one label."""
        (label, _), (first, last) = node.space[at], ranges[at]
        full = [node.in_box(k, ranges) for k in range(len(args))]
        for start, stop in cut(last - first, min(last - first, FRAMES)):
            grown = (*ranges[:at], (first, first + stop), *ranges[at + 1 :])
            new = (*ranges[:at], (first + start, first + stop), *ranges[at + 1 :])
            taken = [
                x[tuple(slice(*r) for r in _relative(node.in_box(k, grown), full[k]))]
                for k, x in enumerate(args)
            ]
            block = evaluate_node(self._taskgraph.graph, node, grown, taken, self._scalars)
            values = f"{first + start}" if stop == start + 1 else f"{first + start}…{first + stop - 1}"
            reads = [[list(r) for r in _relative(node.in_box(k, new), full[k])] for k in range(len(args))]
            yield {"cells": digits.cells(block), "words": f"{label} = {values}", "reads": reads}

    def _added(self, task: Aggregate, args: list[np.ndarray]) -> Iterator[dict[str, Any]]:
        """Yield the aggregate of more and more partial results."""
        graph = self._taskgraph.graph
        for k in range(len(args)):
            block = evaluate_task(graph, task, args[: k + 1], self._arrays, self._scalars)
            yield {
                "cells": digits.cells(block),
                "words": f"partial result {k + 1} of {len(args)}",
                "reads": [_whole(x.shape) if j == k else None for j, x in enumerate(args)],
            }


def _pieces(task: Assemble, args: list[np.ndarray]) -> Iterator[dict[str, Any]]:
    """Yield a block with more and more of it filled in."""
    shown = np.full(task.shape, "", dtype=object)
    for k, (piece, place) in enumerate(zip(args, task.places, strict=True)):
        texts = np.array(digits.cells(piece), dtype=object)
        shown[tuple(slice(*r) for r in place)] = texts.reshape(piece.shape)
        yield {
            "cells": shown.reshape(-1).tolist(),
            "words": f"piece {k + 1} of {len(args)}",
            "reads": [_whole(x.shape) if j == k else None for j, x in enumerate(args)],
        }


def _grown(node: Einsummable, ranges: Box) -> int | None:
    """Return the place in the space of the first aggregated label that runs over several values."""
    places = range(len(node.out), len(ranges))
    return next((d for d in places if ranges[d][1] - ranges[d][0] > 1), None)


def _relative(box: Box, frame: Box) -> Box:
    return tuple((a - start, b - start) for (a, b), (start, _) in zip(box, frame, strict=True))


def _whole(shape: tuple[int, ...]) -> list[list[int]]:
    return [[0, n] for n in shape]
