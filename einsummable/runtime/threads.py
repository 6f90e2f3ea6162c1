"""The sites of one run as threads of this process, with and without a budget.

Contract: `work` is called once for each site, each in a thread of its own; `stop` ends them all after the
task they are in; `whole` answers the outputs when all have come back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Protocol

import numpy as np

from einsummable.kernels.warm import empty
from einsummable.nodes import Concat, Einsummable, Gather, Reshape
from einsummable.runtime.arena import Arena
from einsummable.runtime.bounded import BoundedProgram, run_bounded
from einsummable.runtime.engine import Inbox, SiteProgram, SiteResult, Stop, run_site
from einsummable.runtime.events import SiteLog
from einsummable.runtime.executor import gather
from einsummable.runtime.meeting import Meeting
from einsummable.runtime.part import SitePart, take
from einsummable.taskgraph.tasks import Apply, Fused, TaskGraph
from einsummable.taskgraph.updates import successors


class Sites(Protocol):
    """What a run in this process consists of."""

    def work(self, log: SiteLog, arrays: Mapping[str, np.ndarray], params: Mapping[str, np.generic]) -> None:
        """Do all that the site of `log` has to do."""

    def stop(self) -> None:
        """End all sites after the task they are in."""

    def whole(self) -> dict[str, np.ndarray]:
        """Return the outputs."""


class FreeSites:
    """Sites that take what memory they need, and that of `given` inputs; a move passes a reference."""

    def __init__(
        self, taskgraph: TaskGraph, programs: Sequence[SiteProgram], given: Mapping[str, np.ndarray]
    ) -> None:
        self._taskgraph, self._programs = taskgraph, programs
        self._inboxes: list[Inbox] = [SimpleQueue() for _ in programs]
        self._results: list[SiteResult] = []
        self._whole = {
            out.name: empty(out.shape, out.dtype) for out in taskgraph.outputs if len(out.blocks) > 1
        } | _continued(taskgraph, given)

    def work(self, log: SiteLog, arrays: Mapping[str, np.ndarray], params: Mapping[str, np.generic]) -> None:
        """Run one site (see `Sites`)."""
        program = self._programs[log.site]
        result = run_site(
            program,
            inputs=take(program.part, arrays),
            params=params,
            send=self._send,
            inbox=self._inboxes[log.site],
            log=log,
            into=targets(self._taskgraph, program.part, self._whole),
        )
        self._results.append(result)

    def _send(self, site: int, tag: int, block: np.ndarray) -> None:
        view = block.view()
        view.flags.writeable = False  # both sites have it now
        self._inboxes[site].put((tag, view))

    def stop(self) -> None:
        """End all sites (see `Sites`)."""
        _stop(self._inboxes)

    def whole(self) -> dict[str, np.ndarray]:
        """Return the outputs."""
        return gather(self._taskgraph, self._results, into=self._whole)


def _continued(taskgraph: TaskGraph, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of inputs that outputs take over."""
    followed = successors(taskgraph) if given else {}
    return {out: given[name] for out, name in followed.items() if name in given}


def targets(taskgraph: TaskGraph, part: SitePart, whole: Mapping[str, np.ndarray]) -> dict[int, np.ndarray]:
    """Return, by slot of a site, where in the `whole` outputs kernels may write at once."""
    slot_of = {task: slot for slot, task in enumerate(part.ids)}
    found: dict[int, np.ndarray] = {}
    for out in taskgraph.outputs:
        if out.name not in whole:
            continue
        for task, box in out.blocks:
            place = whole[out.name][(*[slice(start, stop) for start, stop in box], ...)]
            made, only = taskgraph.tasks[task], True
            if isinstance(made, Apply) and isinstance(taskgraph.graph.nodes[made.origin], Reshape):
                # What is regrouped is made where it will stand, if nobody else reads it.
                (task,) = made.inputs
                made, only = taskgraph.tasks[task], len(taskgraph.consumers[task]) == 1
                place = _regrouped(place, made.shape)
            computes = isinstance(made, Fused) or (
                isinstance(made, Apply)
                and isinstance(taskgraph.graph.nodes[made.origin], Einsummable | Concat | Gather)
            )
            if computes and only and place is not None and task in slot_of:
                found.setdefault(slot_of[task], place)
    return found


def _regrouped(place: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    try:
        return place.reshape(shape, copy=False)
    except ValueError:  # no view of it has that shape
        return None


class BoundedSites:
    """Sites that keep to their arenas; a move is a copy from one to another."""

    def __init__(
        self,
        taskgraph: TaskGraph,
        programs: Sequence[BoundedProgram],
        arenas: Sequence[Arena],
        given: Mapping[str, np.ndarray],
    ) -> None:
        self._programs, self._arenas = programs, arenas
        self._inboxes: list[SimpleQueue] = [SimpleQueue() for _ in programs]
        self._whole = {out.name: empty(out.shape, out.dtype) for out in taskgraph.outputs} | _continued(
            taskgraph, given
        )
        targets: dict[int, list] = {}
        for out in taskgraph.outputs:
            for task, box in out.blocks:
                targets.setdefault(task, []).append((self._whole[out.name], box))
        self._meeting = Meeting(self._inboxes, targets)

    def work(self, log: SiteLog, arrays: Mapping[str, np.ndarray], params: Mapping[str, np.generic]) -> None:
        """Run one site (see `Sites`)."""
        program = self._programs[log.site]
        run_bounded(
            program,
            self._arenas[log.site],
            inputs=take(program.part, arrays),
            params=params,
            port=self._meeting.port(log.site),
            inbox=self._inboxes[log.site],
            log=log,
        )

    def stop(self) -> None:
        """End all sites (see `Sites`)."""
        _stop(self._inboxes)

    def whole(self) -> dict[str, np.ndarray]:
        """Return the outputs."""
        return self._whole


def _stop(inboxes: Sequence[SimpleQueue]) -> None:
    for inbox in inboxes:
        inbox.put(Stop("the run is over"))
