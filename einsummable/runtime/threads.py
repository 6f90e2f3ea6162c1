"""The sites of one run as threads of this process, with and without a budget.

Contract: `work` is called once for each site, each in a thread of its own; `stop` ends them all after the
task they are in; `whole` answers the outputs when all have come back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Protocol

import numpy as np

from einsummable.runtime.bounded import Arena, BoundedProgram, run_bounded
from einsummable.runtime.engine import Inbox, SiteProgram, SiteResult, Stop, run_site
from einsummable.runtime.events import SiteLog
from einsummable.runtime.executor import gather
from einsummable.runtime.meeting import Meeting
from einsummable.runtime.part import take
from einsummable.taskgraph.tasks import TaskGraph


class Sites(Protocol):
    """What a run in this process consists of."""

    def work(self, log: SiteLog, arrays: Mapping[str, np.ndarray], params: Mapping[str, np.generic]) -> None:
        """Do all that the site of `log` has to do."""

    def stop(self) -> None:
        """End all sites after the task they are in."""

    def whole(self) -> dict[str, np.ndarray]:
        """Return the outputs."""


class FreeSites:
    """Sites that take what memory they need; a move passes a reference."""

    def __init__(self, taskgraph: TaskGraph, programs: Sequence[SiteProgram]) -> None:
        self._taskgraph, self._programs = taskgraph, programs
        self._inboxes: list[Inbox] = [SimpleQueue() for _ in programs]
        self._results: list[SiteResult] = []

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
        return gather(self._taskgraph, self._results)


class BoundedSites:
    """Sites that keep to their arenas; a move is a copy from one to another."""

    def __init__(
        self, taskgraph: TaskGraph, programs: Sequence[BoundedProgram], arenas: Sequence[Arena]
    ) -> None:
        self._programs, self._arenas = programs, arenas
        self._inboxes: list[SimpleQueue] = [SimpleQueue() for _ in programs]
        self._whole = {out.name: np.empty(out.shape, out.dtype) for out in taskgraph.outputs}
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
