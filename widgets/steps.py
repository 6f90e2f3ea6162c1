"""Running a small program step by step, with the numbers of every block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

from einsummable import views
from einsummable.compiled import Compiled
from einsummable.taskgraph.unfuse import unfuse
from einsummable.views.links import graph_links, merge, task_links
from einsummable.widgets.base import Widget, bundle


class Steps(Widget):
    """A program of a few tasks, run one by one: which block is made of which, and what travels.

    Parameters
    ----------
    net
        The program; what it computes with is what `Compiled.run` would take.
    inputs, **data
        Arrays and scalars in place of those given to `compile`.

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

    def __init__(self, net: Compiled, inputs: Mapping[str, Any] | None = None, /, **data: Any) -> None:
        arrays, scalars = net.values(inputs, **data)
        view = views.steps_view(net.tasks, arrays, scalars)
        super().__init__(
            view=view,
            links=merge(graph_links(net.graph), task_links(unfuse(net.tasks))),
            graph=views.svg(views.graph_view(net.graph), caption=False),
            blocks=views.svg(view, caption=False),
        )

    def pictures(self) -> list[dict[str, Any]]:
        """Return the blocks as they are at the end."""
        return [self.view]

    def python(self) -> str:
        """Return Python that makes this widget, for a program called ``net``."""
        return "from einsummable.widgets.steps import Steps\n\nSteps(net)\n"
