"""A run under way: how far it is, what moves, what every site is at and holds, and a button to end it."""

from __future__ import annotations

from typing import Any

from einsummable.background import LiveRun
from einsummable.widgets.base import Widget, bundle


class Live(Widget):
    """A run, watched.

    Parameters
    ----------
    run
        A run that somebody started (see `Compiled.run_live`).
    """

    _esm = bundle("live")

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        super().__init__(view=run.view())
        run.listen(self._show)

    def _show(self, run: LiveRun) -> None:
        self.view = run.view()

    def _answer(self, widget: Any, content: dict[str, Any], buffers: Any) -> None:
        if content.get("do") == "cancel":
            self.run.cancel()
            self._show(self.run)
        else:
            super()._answer(widget, content, buffers)

    def pictures(self) -> list[dict[str, Any]]:
        """Return how things stand."""
        return [self.run.view()]

    def python(self) -> str:
        """Return Python that starts such a run."""
        return "net.run_live()"
