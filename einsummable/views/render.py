"""From a view to SVG, HTML or terminal text, whatever its kind."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any
from urllib.parse import quote

from einsummable.errors import EinsummableError
from einsummable.views import (
    charts,
    clusters,
    collapsed,
    curves,
    eingraphs,
    gauges,
    joins,
    lanes,
    plans,
    scaling,
    stepcards,
    timelines,
)
from einsummable.views.drawing import Drawing, clean, wrap

#: What need not be escaped in an address within double quotes, so that it stays short.
_SAFE = " =:/,;.()!*'@$-_~[]{}|^`+"

_KINDS: dict[str, ModuleType] = {
    "cluster": clusters,
    "graph": eingraphs,
    "join": joins,
    "meter": gauges,
    "partition": plans,
    "plan": plans,
    "taskgraph": lanes,
    "timeline": timelines,
    "traffic": charts,
    "costs": charts,
    "curve": curves,
    "scaling": scaling,
    "steps": stepcards,
}


def _module(view: dict[str, Any]) -> ModuleType:
    kind = view.get("kind")
    if kind not in _KINDS:
        raise EinsummableError(f"{kind!r} is no kind of view: {', '.join(_KINDS)}")
    if kind == "taskgraph" and not view["tasks"]:  # too many to draw each
        return collapsed
    return _KINDS[kind]


def text(view: dict[str, Any]) -> str:
    """Return `view` for a terminal: its caption, then the picture in characters."""
    return _module(view).text(view)


def svg(view: dict[str, Any], *, caption: bool = True) -> str:
    """Return `view` as one SVG element that stands by itself, its `caption` under the picture."""
    return _module(view).draw(view).finish(view["caption"], view["caption"] if caption else "")


def sheet(shown: Sequence[dict[str, Any]]) -> str:
    """Return several views as one SVG element, under each other, each with its caption: for a file."""
    if len(shown) == 1:
        return svg(shown[0])
    d = Drawing()
    for view in shown:
        width, _ = d.place(_module(view).draw(view), 0, d.box[3] + (28 if d.box[3] else 0))
        y = d.box[3]
        for line in wrap(view["caption"], max(width, 360)):
            y += 19
            d.text(0, y, line, muted=True)
    return d.finish("; ".join(view["caption"] for view in shown))


def html(view: dict[str, Any] | Sequence[dict[str, Any]]) -> str:
    """Return a view, or several under each other, as HTML: inline SVG, each with its caption.

    A picture shrinks a little to fit its column and scrolls beyond that, so that its text stays readable.
    JupyterLab takes inline SVG out of what it does not trust, a notebook that somebody else ran for instance,
    and leaves its words.  These then have no size, and an image is seen that pages with scripts do not parse.
    """
    views = [view] if isinstance(view, dict) else view
    return "".join(_figure(v) for v in views)


def _figure(view: dict[str, Any]) -> str:
    picture = _module(view).draw(view).finish(view["caption"])
    still = f"data:image/svg+xml,{quote(picture, safe=_SAFE)}"
    return (
        '<figure style="margin:0 0 16px 0">'
        f'<div style="overflow-x:auto;font-size:0">{picture}</div>'
        f'<noscript><img style="background:#fff;max-width:100%" src="{still}"/></noscript>'
        '<figcaption style="font-size:13px;padding:4px 8px;color:var(--jp-ui-font-color1,inherit)">'
        f"{clean(view['caption'])}</figcaption></figure>"
    )
