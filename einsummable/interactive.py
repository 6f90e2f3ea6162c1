"""What a program shows in a notebook besides pictures: its widgets.

Contract: a mixin of `Compiled`.  Widgets need anywidget, which is imported when one is asked for; a run in
the background shows itself as a widget where there is anywidget, else as a picture.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.util import find_spec
from math import isfinite
from typing import TYPE_CHECKING, Any

from einsummable.background import LiveRun
from einsummable.graph import EinGraph
from einsummable.planner.eindecomp import Pins
from einsummable.planner.hardware import Hardware, host
from einsummable.planner.plan import Layout
from einsummable.runtime.cluster import Cluster
from einsummable.runtime.events import Observer, RunRecord
from einsummable.setting import Setting
from einsummable.taskgraph.simulate import Simulation
from einsummable.taskgraph.tasks import TaskGraph

if TYPE_CHECKING:
    from einsummable.widgets.explorer import Explorer
    from einsummable.widgets.steps import Steps
    from einsummable.widgets.taskgraph import Tasks
    from einsummable.widgets.timeline import Timeline

#: Simulating more tasks would take longer than a reader waits for a run to begin.
_SIMULATED = 5000


class Interactive:
    """Widgets of a program."""

    graph: EinGraph
    sites: int
    p: int
    hardware: Hardware | None
    limit: float
    pins: Pins
    layouts: Mapping[str, Layout]
    tasks: TaskGraph
    cluster: Cluster | None
    simulation: Simulation
    last: RunRecord | None
    records: Mapping[str, RunRecord]
    observers: list[Observer]

    def explore(self) -> Explorer:
        """Show formula, graph, blocks and costs side by side, for any number of sites, links and memory.

        Raises
        ------
        CapacityError, PlanError
            There is no plan for the program as it was compiled.
        """
        from einsummable.widgets.explorer import Explorer

        base = self.hardware or host(self.sites)
        p = None if self.p == self.sites else self.p
        setting = Setting.start(base, timed=self.hardware is not None, memory=self.limit, p=p, pins=self.pins)
        return Explorer(self.graph, setting, base, self.layouts)

    def steps(self, inputs: Mapping[str, Any] | None = None, /, **data: Any) -> Steps:
        """Show a small program task by task: the numbers in the blocks, sums that grow, what travels.

        Parameters
        ----------
        inputs, **data
            As for `run`.

        Raises
        ------
        PlanError
            The program has too many tasks for a reader.
        ShapeError, UnknownNameError, DtypeError
            An input or a scalar is missing or does not fit.
        """
        from einsummable.widgets.steps import Steps

        arrays, scalars = self.values(inputs, **data)
        return Steps(self.tasks, arrays, scalars)

    def show_tasks(self) -> Tasks:
        """Show what happens on which site: lanes to pan, zoom and fold, with the figures of each task."""
        from einsummable.widgets.taskgraph import Tasks

        return Tasks(self.tasks, self.records, hosts=self.hardware and self.hardware.hosts)

    def timeline(self, *, live: bool = False) -> Timeline:
        """Show where time goes: the last run, if there was one, above the simulated one on one scale.

        Parameters
        ----------
        live
            Whether it is to follow the runs to come, too, while they go on.  A program has one such timeline;
            the one before it stays as it is.
        """
        from einsummable.widgets.timeline import Timeline

        made = Timeline(
            self.tasks if self.last is None else self.last.taskgraph,
            self.records,
            hosts=self.hardware and self.hardware.hosts,
            budget=self.limit if isfinite(self.limit) else None,
        )
        if live:
            self.observers[:] = [*(o for o in self.observers if not isinstance(o, Timeline)), made]
        return made

    def run_live(
        self,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        keep: bool | Collection[str] = False,
        timeout: float | None = None,
        **data: Any,
    ) -> LiveRun:
        """Start a run and return at once: it can be watched, waited for, and cancelled.

        Parameters
        ----------
        inputs, keep, timeout, **data
            As for `run`.

        Returns
        -------
        LiveRun
            ``result()`` waits for what `run` returns; ``cancel()`` ends the run on all sites.

        Raises
        ------
        UnknownNameError, ShapeError, DtypeError
            An input or a scalar is missing, or an array cannot be one; what else `run` refuses, ``result()``
            raises.
        """
        given = self._given(inputs, data)
        self._values(given)
        taskgraph = self._lowered_for(given)
        simulated = len(taskgraph.tasks) <= _SIMULATED
        names = () if self.cluster is None else tuple(f"engine {e.id}, {e.host}" for e in self.cluster.info())
        return LiveRun(
            lambda hear: self.run(given, keep=keep, timeout=timeout, observers=[hear], progress=False),
            taskgraph,
            predicted=self.simulation.makespan if simulated else None,
            names=names[: taskgraph.sites],
        )


def widgets_installed() -> bool:
    """Return whether a notebook can show widgets."""
    return find_spec("anywidget") is not None


def _shown(run: LiveRun, **options: Any) -> Any:
    """Return what a notebook shows of a run under way."""
    if not widgets_installed():
        return {"text/html": run._repr_html_(), "text/plain": str(run)}
    from einsummable.widgets.live import Live

    return Live(run)._repr_mimebundle_(**options)


LiveRun._repr_mimebundle_ = _shown
