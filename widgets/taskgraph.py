"""The TaskGraph of a program: swim lanes to pan and zoom in, folded by node or by site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import traitlets

from einsummable.runtime.events import RunRecord
from einsummable.taskgraph.tasks import TaskGraph
from einsummable.views import maps
from einsummable.views.facts import facts
from einsummable.widgets.base import Widget, bundle


class Tasks(Widget):
    """What happens on which site, in the order of dependency.

    Parameters
    ----------
    taskgraph, records
        The program, and runs by name of which the details of a task tell.
    hosts
        The host of every site, where sites have hosts.

    Attributes
    ----------
    detail
        How much is drawn: "tasks", "nodes" (a box a node and site), "sites" (all sites as one lane) or
        "summary"; the first of these that is small enough, unless the reader chooses another.
    folded
        Keys of the nodes and sites that are folded.
    details
        What is known of what is selected.
    """

    _esm = bundle("taskgraph")
    picture = traitlets.Unicode("").tag(sync=True)
    key = traitlets.List(traitlets.Unicode()).tag(sync=True)
    detail = traitlets.Enum(maps.DETAILS, maps.DETAILS[0]).tag(sync=True)
    folded = traitlets.List(traitlets.Unicode()).tag(sync=True)
    details = traitlets.Dict().tag(sync=True)

    def __init__(
        self, taskgraph: TaskGraph, records: Mapping[str, RunRecord], *, hosts: Sequence[int] | None = None
    ) -> None:
        self._tasks, self._records = taskgraph, dict(records)
        self._map = maps.TaskMap(taskgraph, hosts=hosts)
        super().__init__(view=self._map.view(), detail=self._map.choices[0])
        self._draw()
        self.observe(self._draw, ["detail", "folded"])
        self.observe(self._tell, ["selection"])

    def _draw(self, _: Any = None) -> None:
        self._drawn = self._map.drawn(self.detail, self.folded)
        self.links = self._map.links(self._drawn)
        drawn, self.key = maps.pictures(self._drawn)
        self.picture = drawn  # last: then the browser draws anew

    def _tell(self, _: Any = None) -> None:
        told = facts(self._tasks, self.selection, self._records)
        self.details = told | {"folds": self._map.folds(self.selection)} if told else {}

    def pictures(self) -> list[dict[str, Any]]:
        """Return what is drawn, or where that is too much for a page, the counts of it."""
        small = 0 < len(self._drawn["tasks"]) <= maps.STILL
        return [self._drawn if small else self._map.drawn("summary", ())]

    def python(self) -> str:
        """Return Python that makes this widget, for a program called ``net``."""
        return "net.show_tasks()\n"
