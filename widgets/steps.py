"""Running a small program step by step, with the numbers of every block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import traitlets

from einsummable import views
from einsummable.taskgraph.tasks import TaskGraph
from einsummable.taskgraph.unfuse import unfuse
from einsummable.views.links import graph_links, merge, task_links
from einsummable.widgets.base import Widget, bundle


class Steps(Widget):
    """A program of a few tasks, run one by one: which block is made of which, and what travels.

    Parameters
    ----------
    taskgraph, arrays, params
        The program, its inputs and its scalars.

    Attributes
    ----------
    step
        How many states of blocks the reader has seen; a sum has several while it grows.

    Raises
    ------
    PlanError
        The program has too many tasks for a reader.
    ShapeError, UnknownNameError, DtypeError
        An input or a scalar is missing or does not fit.
    """

    _esm = bundle("steps")
    graph = traitlets.Unicode("").tag(sync=True)
    blocks = traitlets.Unicode("").tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        taskgraph: TaskGraph,
        arrays: Mapping[str, np.ndarray],
        params: Mapping[str, object] | None = None,
    ) -> None:
        view = views.steps_view(taskgraph, arrays, params)
        super().__init__(
            view=view,
            links=merge(graph_links(taskgraph.graph), task_links(unfuse(taskgraph))),
            graph=views.svg(views.graph_view(taskgraph.graph), caption=False),
            blocks=views.svg(view, caption=False),
        )

    def pictures(self) -> list[dict[str, Any]]:
        """Return the blocks as they are at the end."""
        return [self.view]

    def python(self) -> str:
        """Return Python that makes this widget, for a program called ``net``."""
        return "net.steps()"
