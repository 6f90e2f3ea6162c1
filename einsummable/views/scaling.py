"""How something falls or grows with a size, for several things on one scale.

Contract: `scaling_view` takes a series of points a name; both axes are logarithmic, so that a time that
halves where sites double is a straight line.  The first series is the one the picture is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10
from typing import Any

from einsummable.views import amounts
from einsummable.views.colours import CATEGORIES, INK
from einsummable.views.drawing import Drawing

_WIDTH, _HEIGHT, _SIZE = 420.0, 260.0, 12
#: Names at the ends of lines are at least so far apart.
_LINE = 16.0


def scaling_view(
    series: Mapping[str, Sequence[tuple[float, float]]], *, over: str, unit: str = "seconds"
) -> dict[str, Any]:
    """Return series of positive points as a view.

    Parameters
    ----------
    series
        By name, ``(size, value)`` with ascending sizes.
    over
        What the sizes are, ``"hosts"`` for instance.
    unit
        ``"seconds"`` or ``"bytes"``.
    """
    lines = [
        {"name": name, "points": [[float(x), float(y)] for x, y in points]}
        for name, points in series.items()
        if points
    ]
    view = {"kind": "scaling", "over": over, "unit": unit, "series": lines}
    return view | {"caption": _caption(view)}


def _amount(value: float, unit: str) -> str:
    return amounts.nbytes(value) if unit == "bytes" else amounts.seconds(value)


def _caption(view: dict[str, Any]) -> str:
    lines, unit = view["series"], view["unit"]
    if not lines:
        return "nothing to compare"
    (x0, y0), (x1, y1) = lines[0]["points"][0], lines[0]["points"][-1]
    over = view["over"].removesuffix("s") if x0 == 1 else view["over"]
    words = f"{lines[0]['name']}: {_amount(y0, unit)} on {x0:g} {over}, {_amount(y1, unit)} on {x1:g}"
    rivals = [(line["points"][-1][1], line["name"]) for line in lines[1:] if line["points"][-1][0] == x1]
    if rivals:
        best, name = min(rivals)
        words += f"; the best of the others there, {name}: {_amount(best, unit)} ({best / y1:.2f} times)"
    return words


def _marks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten between `low` and `high`; over a wide range the powers only."""
    powers = range(int(log10(low)) - 1, int(log10(high)) + 2)
    steps = (1, 2, 5) if high / low < 300 else (1,)
    return [m * 10.0**k for k in powers for m in steps if low * 0.999 <= m * 10.0**k <= high * 1.001]


def draw(view: dict[str, Any]) -> Drawing:
    """Draw a view of `scaling_view`."""
    d = Drawing()
    points = [point for line in view["series"] for point in line["points"]]
    if not points:
        return d
    xs, ys = sorted({x for x, _ in points}), [y for _, y in points]
    low, high = min(ys) / 1.15, max(ys) * 1.15
    wide = log10(xs[-1] / xs[0]) or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        return _WIDTH * log10(x / xs[0]) / wide, _HEIGHT * (1 - log10(y / low) / log10(high / low))

    for y in _marks(low, high):
        d.line(at(xs[0], y), at(xs[-1], y), stroke_opacity=0.18, weight=0.8)
        label = _amount(y, view["unit"]).split(" ")
        d.text(
            -8, at(xs[0], y)[1] + 4, f"{float(label[0]):g} {label[1]}", size=_SIZE, anchor="end", muted=True
        )
    for x in xs:
        d.line((at(x, low)[0], _HEIGHT), (at(x, low)[0], _HEIGHT + 4), stroke_opacity=0.5)
        d.text(at(x, low)[0], _HEIGHT + 18, f"{x:g}", size=_SIZE, anchor="middle", muted=True)
    d.line((0, 0), (0, _HEIGHT), (_WIDTH, _HEIGHT), stroke_opacity=0.5)
    d.text(_WIDTH / 2, _HEIGHT + 36, view["over"], size=_SIZE, anchor="middle", muted=True)
    for k, line in reversed(list(enumerate(view["series"]))):
        _draw_line(d, line, CATEGORIES[k % len(CATEGORIES)], view["unit"], at, first=k == 0)
    ends = [(at(*line["points"][-1])[1], k) for k, line in enumerate(view["series"])]
    below = -1e9
    for y, k in sorted(ends):
        below = max(y, below + _LINE)
        name, colour = view["series"][k]["name"], CATEGORIES[k % len(CATEGORIES)]
        d.rect(_WIDTH + 12, below - 5, 10, 10, fill=colour, stroke=INK, stroke_opacity=0.4)
        d.text(_WIDTH + 28, below + 4, name, size=_SIZE, bold=k == 0)
    return d


def _draw_line(d: Drawing, line: dict[str, Any], colour: str, unit: str, at: Any, *, first: bool) -> None:
    """Draw one series: its line, and a dot a point that tells its value."""
    path = [at(x, y) for x, y in line["points"]]
    if len(path) > 1:
        if first:
            d.line(*path, weight=5)  # the ink around it: told from the others without its colour
        d.line(*path, stroke=colour, weight=2.5)
    for (x, y), (left, top) in zip(line["points"], path, strict=True):
        with d.group(f"{line['name']}: {_amount(y, unit)} on {x:g}"):
            d.rect(left - 3.5, top - 3.5, 7, 7, fill=colour, stroke=INK, weight=1)


def text(view: dict[str, Any]) -> str:
    """Return the series as a table."""
    xs = sorted({x for line in view["series"] for x, _ in line["points"]})
    wide = max([len(line["name"]) for line in view["series"]] + [len(view["over"])])
    lines = [view["caption"], f"{view['over']:{wide}}" + "".join(f"{x:>12g}" for x in xs)]
    for line in view["series"]:
        known = {x: _amount(y, view["unit"]) for x, y in line["points"]}
        lines.append(f"{line['name']:{wide}}" + "".join(f"{known.get(x, ''):>12}" for x in xs))
    return "\n".join(lines)
