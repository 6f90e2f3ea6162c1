"""The picture of how far a run is: a bar for all tasks, a row a site, and who sent how much to whom."""

from __future__ import annotations

from typing import Any

from einsummable.views import amounts, charts, legends
from einsummable.views.colours import INK
from einsummable.views.drawing import Drawing, text_width

_SIZE = 12
_WIDTH = 620.0
_ROW = 30.0
_BAR = 180.0


def draw(view: dict[str, Any]) -> Drawing:
    """Draw a view of `Meter.view`."""
    d = Drawing()
    share = view["done"] / view["tasks"] if view["tasks"] else 1.0
    d.rect(0, 0, _WIDTH, 12, radius=3, fill=INK, fill_opacity=0.1)
    if share:
        d.rect(0, 0, _WIDTH * share, 12, radius=3, fill=INK, fill_opacity=0.55)
    x = 0.0
    for name, value in view["figures"]:
        width = max(text_width(name, _SIZE), text_width(value, 14, bold=True)) + 26
        d.text(x, 34, name, size=_SIZE, muted=True)
        d.text(x, 53, value, size=14, bold=True)
        x += width
    _draw_rows(d, view, 78.0)
    if view["moved"]:
        traffic = charts.draw(
            {"kind": "traffic", "sites": view["sites"], "hosts": None, "bytes": view["links"]}
        )
        d.place(traffic, 0, d.box[3] + 18)
    return d


def _draw_rows(d: Drawing, view: dict[str, Any], top: float) -> None:
    """Draw a row a site: tasks done, how busy it was, what it is at, what it holds."""
    colours = legends.site_colours(view)
    names = max((text_width(row["name"], _SIZE) for row in view["rows"]), default=0.0)
    done, held = names + 30, names + 30 + _BAR + 110
    for x, word in ((done, "tasks done"), (done + _BAR + 70, "busy"), (held + 10, "bytes held, and at most")):
        d.text(x, top, word, size=_SIZE, muted=True)
    most = max([row["peak"] for row in view["rows"]] or [0]) or 1
    for k, row in enumerate(view["rows"]):
        y = top + 10 + k * _ROW
        with d.group(f"{row['name']}: {row['done']} of {row['tasks']} tasks", keys=f"site:{row['site']}"):
            d.rect(0, y + 4, 12, 12, fill=colours[row["site"]], stroke=INK, stroke_opacity=0.3)
            d.text(20, y + 15, row["name"], size=_SIZE)
            _bar(d, done, y + 3, row["done"] / row["tasks"] if row["tasks"] else 0.0, colours[row["site"]])
            d.text(done + _BAR + 8, y + 15, f"{row['done']}/{row['tasks']}", size=_SIZE)
            d.text(done + _BAR + 70, y + 15, row["busy"], size=_SIZE)
            _bar(d, held + 10, y + 3, row["held"] / most, colours[row["site"]], tick=row["peak"] / most)
            words = f"{row['held_text']}, {row['peak_text']}"
            d.text(held + _BAR + 18, y + 15, words, size=_SIZE)
            if row["working"]:
                at = held + _BAR + 34 + text_width(words, _SIZE)
                d.text(at, y + 15, f"at {row['working']}", size=_SIZE, muted=True)


def _bar(d: Drawing, x: float, y: float, share: float, colour: str, tick: float | None = None) -> None:
    d.rect(x, y, _BAR, 14, radius=2, fill=INK, fill_opacity=0.08)
    if share > 0:
        d.rect(x, y, _BAR * min(share, 1.0), 14, radius=2, fill=colour)
    if tick is not None:
        d.line((x + _BAR * tick, y - 2), (x + _BAR * tick, y + 16), weight=1.5)


def text(view: dict[str, Any], columns: int = 30) -> str:
    """Return the bars in characters, a line a site."""
    lines = [view["caption"]]
    names = max((len(row["name"]) for row in view["rows"]), default=0)
    for row in view["rows"]:
        full = round(columns * row["done"] / row["tasks"]) if row["tasks"] else columns
        bar = "█" * full + "·" * (columns - full)
        line = f"{row['name']:{names}} ▕{bar}▏ {row['done']}/{row['tasks']} tasks, busy {row['busy']}"
        line += f", holds {row['held_text']} (at most {row['peak_text']})"
        lines.append(line + (f", at {row['working']}" if row["working"] else ""))
    sites = range(view["sites"])
    sent = [(a, b, view["links"][a][b]) for a in sites for b in sites if view["links"][a][b]]
    lines += [f"{amounts.nbytes(size)} from site {a} to site {b}" for a, b, size in sent[:12]]
    return "\n".join(lines)
