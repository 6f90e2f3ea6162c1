"""The plan explorer: formula, graph, blocks and costs side by side, planned anew while the reader asks.

Contract: the browser writes `setting` (see `exploring.Setting`), `shown` and `selection`, and asks for what
`Explorer.ask` lists; everything else is Python's.  Plans are made in a thread; the newest setting counts, and
the plan for an older one is given up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

from einsummable.errors import EinsummableError
from einsummable.exploring import Answer, Explored, asked
from einsummable.graph import EinGraph
from einsummable.planner.hardware import Hardware
from einsummable.planner.plan import Layout
from einsummable.setting import Setting, python
from einsummable.views import explorer, graph_view
from einsummable.widgets.base import Widget, bundle
from einsummable.widgets.history import History
from einsummable.widgets.latest import Latest

#: Seconds that a new explorer waits for its first plan before it shows itself.
FIRST = 2.0


class Explorer(Widget):
    """A program whose plan can be asked about.

    Attributes
    ----------
    setting, shown
        What is asked for, as JSON of `Setting`; the strategy whose blocks are seen.
    answer
        The last answer, None before the first.
    """

    _esm = bundle("explorer")
    setting = traitlets.Dict().tag(sync=True)
    shown = traitlets.Unicode("").tag(sync=True)
    undoable = traitlets.Int(0).tag(sync=True)
    busy = traitlets.Dict().tag(sync=True)
    graph = traitlets.Unicode("").tag(sync=True)
    cards = traitlets.Dict().tag(sync=True)
    strip = traitlets.Dict().tag(sync=True)
    detail = traitlets.Dict().tag(sync=True)

    def __init__(
        self, graph: EinGraph, setting: Setting, base: Hardware, layouts: Mapping[str, Layout] | None = None
    ) -> None:
        self._program, self._explored = graph, Explored(graph, base, layouts)
        self.answer: Answer | None = None
        self._refused: EinsummableError | None = None
        self._history = History(setting.json())
        self._latest = Latest(lambda what, since: self.set_trait("busy", {"what": what, "since": since}))
        super().__init__(setting=setting.json(), graph=explorer.explorer_graph(graph))
        self.observe(self._asked, "setting")
        self.observe(self._look, ["shown", "selection"])
        self._latest.submit(lambda: self._plan(setting.json()))
        if self._latest.wait(FIRST) and self._refused is not None:
            raise self._refused

    def _answer(self, widget: Any, content: dict[str, Any], buffers: Any) -> None:
        super()._answer(widget, content, buffers)
        if "do" in content:
            try:
                self.ask(**content)
            except EinsummableError as error:
                self.error = str(error)

    def ask(self, do: str, node: int = 0, label: str = "", parts: int = 1) -> None:
        """Do what a reader asks for: undo, reset or cancel; edit, pin or free a node."""
        if do == "cancel":
            self._latest.cancel()
            self.set_trait("error", "planning was stopped; the last plan is shown")
        elif do in ("undo", "reset"):
            self.setting = self._history.back() if do == "undo" else self._history.first
        elif self.answer is not None:
            name, now = self._program.name_of(node), Setting.of(self.setting)
            changed = asked(now, self.answer, do, name, {label: parts}, self.shown)
            self.shown = "" if do == "edit" else self.shown
            self.setting = changed.json()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the plan for the present setting is there; return whether it is."""
        return self._latest.wait(timeout)

    def _asked(self, change: Any) -> None:
        self.undoable = self._history.note(change.new)
        self._latest.submit(lambda: self._plan(change.new))

    def _plan(self, setting: dict[str, Any]) -> None:
        try:
            for answer in self._explored.answers(Setting.of(setting)):
                self.answer = answer
                self._show()
        except EinsummableError as error:
            self._refused = error
            self.error = str(error)
        finally:
            self.busy = {}

    def _show(self) -> None:
        with self.hold_sync():
            for name, value in explorer.explorer_parts(self._program, self.answer, self.shown).items():
                self.set_trait(name, value)
            self.error = ""
            self._detail()

    def _look(self, change: Any) -> None:
        if self.answer is not None:
            self._detail() if change.name == "selection" else self._show()

    def _detail(self) -> None:
        self.detail = explorer.explorer_detail(self.answer, self.selection, self.links, self.shown)

    def pictures(self) -> list[dict[str, Any]]:
        """Return the graph, the blocks, the costs and the simulated run."""
        known = self.answer is not None
        return explorer.still_views(self.answer, self.shown) if known else [graph_view(self._program)]

    def python(self) -> str:
        """Return Python that plans for the same setting."""
        return python(Setting.of(self.setting))
