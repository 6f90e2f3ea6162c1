"""The timeline of a program: measured above, simulated below, filled while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from einsummable import views
from einsummable.runtime.events import Event, Progress, RunEnded, RunRecord, RunStarted, recorded
from einsummable.taskgraph.tasks import TaskGraph
from einsummable.views.neighbours import neighbour_links
from einsummable.views.tracks import TEXTS, Tracker, run_view, stage, track
from einsummable.widgets.base import Widget, bundle

MEASURED, SIMULATED = "measured", "simulated"


class Timeline(Widget):
    """Where time goes: a lane a site, kernels in the colour of their node, moves hatched, bytes held below.

    It is an observer of runs: ``net.run(observers=[timeline])``, or ``net.observers.append(timeline)``.

    Parameters
    ----------
    taskgraph, records
        The program, and its runs by the names "measured" and "simulated".
    hosts
        The host of every site, where sites have hosts.
    budget
        The bytes that a site may hold, where there is a limit.
    """

    _esm = bundle("timeline")

    def __init__(
        self,
        taskgraph: TaskGraph,
        records: Mapping[str, RunRecord],
        *,
        hosts: Sequence[int] | None = None,
        budget: float | None = None,
    ) -> None:
        self._hosts, self._budget = hosts, budget
        self._below = {name: record for name, record in records.items() if name == SIMULATED}
        self._heard: list[Event] = []
        self._tracker: Tracker | None = None
        super().__init__()
        self._set(taskgraph)
        self._show({name: record for name, record in records.items() if name != SIMULATED})

    def _set(self, taskgraph: TaskGraph) -> None:
        """Make ready for runs of `taskgraph`; what all of them share is made once."""
        self._taskgraph = taskgraph
        self._stage = stage(taskgraph, hosts=self._hosts, budget=self._budget)
        # Inputs that lie elsewhere now make other tasks than those that were simulated.
        same = {name: record for name, record in self._below.items() if record.taskgraph is taskgraph}
        self._simulated, self._tracks = same, [track(record, name) for name, record in same.items()]
        self.links = neighbour_links(taskgraph, each=len(taskgraph.tasks) <= TEXTS)

    def _show(self, records: dict[str, RunRecord]) -> None:
        self._records = records | self._simulated
        above = [track(record, name) for name, record in records.items()]
        self.view = run_view(self._stage, [*above, *self._tracks])

    def __call__(self, event: Event) -> None:
        """Hear one event of a run."""
        if isinstance(event, RunStarted):
            if event.taskgraph is not self._taskgraph:
                self._set(event.taskgraph)
            self._heard, self._tracker = [], Tracker(event.taskgraph)
            self._show({MEASURED: recorded(event.taskgraph, [event])})
        if self._tracker is None:  # it came in the middle of a run
            return
        self._heard.append(event)
        self._tracker.hear(event)
        match event:
            case Progress():
                self.send({"run": MEASURED, "more": self._tracker.take()})
            case RunEnded():
                self._show({MEASURED: recorded(self._taskgraph, self._heard)})
                self._heard, self._tracker = [], None

    def pictures(self) -> list[dict[str, Any]]:
        """Return the timelines one below the other."""
        until = max((record.wall for record in self._records.values()), default=0.0)
        same = {"hosts": self._hosts, "budget": self._budget, "until": until}
        shown = [(name, views.timeline_view(record, **same)) for name, record in self._records.items()]
        return [view | {"caption": f"{name}: {view['caption']}"} for name, view in shown]

    def python(self) -> str:
        """Return Python that makes this widget, for a program called ``net``."""
        return "net.timeline()\n"
