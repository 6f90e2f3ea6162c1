"""What all widgets share: a view, its links, one selection, and a twin that stands still.

Contract: a widget is thin.  Its `view` (JSON), its `links` (what belongs to what, see `views.links`) and the
`error` of its last attempt come from pure functions; the browser sends back what is selected.  `pictures` are
views for where no browser is connected: they make the SVG of nbconvert and forges, the text of terminals, and
the files that "Save" writes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from einsummable import views
from einsummable.views.render import sheet

STATIC = Path(__file__).parent / "static"
STYLE = STATIC / "einsummable.css"


def bundle(name: str) -> Path:
    """Return the JavaScript of the widget called `name`, as ``npm run build`` made it."""
    return STATIC / f"{name}.js"


class Widget(anywidget.AnyWidget):
    """The base of all widgets.

    Attributes
    ----------
    view
        What is shown.
    links
        For each key of `views.links` what else belongs to it.
    selection
        The key that the reader selected, or nothing.
    error
        The sentence of what was refused last, or nothing; the last good picture stays.
    """

    _css = STYLE
    view = traitlets.Dict().tag(sync=True)
    links = traitlets.Dict().tag(sync=True)
    selection = traitlets.Unicode("").tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.on_msg(self._answer)

    def pictures(self) -> list[dict[str, Any]]:
        """Return the views that stand for this widget where there is no browser."""
        return []

    def python(self) -> str:
        """Return Python that makes what is shown."""
        return ""

    def _answer(self, _: Any, content: dict[str, Any], __: Any) -> None:
        """Answer the browser's "Save" menu."""
        match content.get("ask"):
            case "svg":
                text = sheet(self.pictures())
            case "json":
                text = json.dumps(self.view, ensure_ascii=False)
            case "python":
                text = self.python()
            case _:
                return
        self.send({"answer": content["ask"], "text": text})

    def _repr_mimebundle_(self, **options: Any) -> Any:
        made = super()._repr_mimebundle_(**options)
        data, metadata = made if isinstance(made, tuple) else (made, {})
        shown = self.pictures()
        twin = {"text/html": views.html(shown), "text/plain": "\n\n".join(map(views.text, shown))}
        return {**(data or {}), **twin}, metadata
