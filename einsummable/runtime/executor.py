"""What every executor is, and what all of them do on the driver's side.

Contract: an executor runs a TaskGraph on whole arrays, returns the outputs whole, keeps the `RunRecord` of
its last run, and calls observers from the thread that called `run`.  Inputs are never modified, and no
output shares memory with an input or another output, but for inputs that the caller gives up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from einsummable.errors import EngineError
from einsummable.kernels.warm import empty
from einsummable.runtime.engine import SiteResult, TaskFailedError
from einsummable.runtime.events import Observer, RunRecord
from einsummable.taskgraph.tasks import TaskGraph


class Executor(Protocol):
    """Runs TaskGraphs."""

    last: RunRecord | None
    """How the last run went."""

    def run(
        self,
        taskgraph: TaskGraph,
        arrays: Mapping[str, np.ndarray],
        params: Mapping[str, object] | None = None,
        *,
        observers: Sequence[Observer] = (),
        timeout: float | None = None,
        memory: int | None = None,
        donate: Collection[str] = (),
    ) -> dict[str, np.ndarray]:
        """Run `taskgraph` and return its outputs by name.

        Parameters
        ----------
        arrays
            The inputs by name, of the shapes and dtypes that the program was compiled for.
        params
            The scalars that the program reads when it runs.
        observers
            Called with every event.
        timeout
            Seconds after which the run is given up.
        memory
            Bytes that each site may hold during this run, where the executor allows more.
        donate
            Names of inputs that the caller gives up, however the run ends: results may take their memory.

        Raises
        ------
        ShapeError, UnknownNameError
            An input or a scalar is missing or does not fit.
        CapacityError
            A task needs more memory than there is.
        EngineError
            A kernel raised, a site died, or the time was over.
        """


def gather(
    taskgraph: TaskGraph,
    results: Sequence[SiteResult],
    leave: Collection[str] = (),
    into: Mapping[str, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """Return the outputs whole, put together from the blocks that the sites hold.

    Parameters
    ----------
    leave
        Names of outputs that are not asked for.
    into
        Arrays for outputs, in which some blocks may be already.
    """
    made = {task: block for result in results for task, block in result.blocks.items()}
    given_away: set[int] = set()
    whole = {}
    for out in taskgraph.outputs:
        if out.name in leave:
            continue
        if into is not None and out.name in into:
            array = whole[out.name] = into[out.name]
            for task, box in out.blocks:
                place = array[tuple(slice(start, stop) for start, stop in box)]
                if not is_there(made[task], place):
                    place[...] = made[task]
            continue
        if len(out.blocks) == 1:
            block = made[out.blocks[0][0]]
            # What an input or another site may see is read-only, so a writable block is ours to give.
            if block.flags.writeable and _owner(block) not in given_away:
                given_away.add(_owner(block))
                whole[out.name] = block
                continue
        array = whole[out.name] = empty(out.shape, out.dtype)
        for task, box in out.blocks:
            array[tuple(slice(start, stop) for start, stop in box)] = made[task]
    return whole


def is_there(block: np.ndarray, place: np.ndarray) -> bool:
    """Return whether `block` is what stands in `place`, by its memory."""
    mine, other = block.__array_interface__, place.__array_interface__
    return mine["data"][0] == other["data"][0] and block.strides == place.strides


def _owner(array: np.ndarray) -> int:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return id(array)


def blame(taskgraph: TaskGraph, failed: TaskFailedError, who: str = "") -> EngineError:
    """Return the error for the reader of the formula: who (by default the site) failed in which line, why."""
    what, place = locate(taskgraph, failed.task)
    return EngineError(f"{who or f'site {failed.site}'} failed in {what}: {failed.reason}", **place)


def locate(taskgraph: TaskGraph, task: int) -> tuple[str, dict[str, Any]]:
    """Return the name of the tensor that `task` works for, and keywords that make an error point at it."""
    graph, origin = taskgraph.graph, taskgraph.tasks[task].origin
    node = graph.nodes[origin]
    spans = (node.origin.span,) if node.origin.span is not None else ()
    notes = (f"the task was #{task}: %{origin} = {node}",)
    return graph.name_of(origin), {"text": graph.text, "spans": spans, "notes": notes}
