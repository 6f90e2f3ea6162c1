"""The loss over the steps of a training.

Contract: `curve_view` takes numbers in order and keeps at most `POINTS` of them: the mean of each stretch of
steps.  What is not finite is left out and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log10
from typing import Any

from einsummable.views import amounts
from einsummable.views.drawing import Drawing
from einsummable.views.timelines import ticks

POINTS = 200
#: From this ratio of the largest to the smallest on, the scale is logarithmic.
WIDE = 20.0
_WIDTH, _HEIGHT, _SIZE = 460.0, 170.0, 12
_BLUE = "#0072b2"
_BARS = "▁▂▃▄▅▆▇█"


def curve_view(losses: Sequence[float], *, name: str = "loss") -> dict[str, Any]:
    """Return the loss of each step, from step 1 on, as a view."""
    finite = [(step, float(loss)) for step, loss in enumerate(losses, 1) if isfinite(loss)]
    stretch = max(1, -(-len(finite) // POINTS))
    points = []
    for start in range(0, len(finite), stretch):
        part = finite[start : start + stretch]
        points.append([part[-1][0], sum(loss for _, loss in part) / len(part)])
    words = f"{amounts.many(len(losses), 'step')}"
    if finite:
        first, last = finite[0][1], finite[-1][1]
        words += f"; {name} {first:.4g} at first, {last:.4g} at last"
    if len(finite) < len(losses):
        words += f"; {amounts.many(len(losses) - len(finite), 'step')} without a finite {name}"
    if stretch > 1:
        words += f"; each point is the mean of {stretch} steps"
    return {"kind": "curve", "name": name, "steps": len(losses), "points": points, "caption": words}


def _scale(values: Sequence[float]) -> tuple[list[float], list[tuple[float, str]]]:
    """Return heights from 0 to 1, and the marks of the axis with theirs."""
    low, high = min(values), max(values)
    if low > 0 and high / low >= WIDE:
        start, end = log10(low), log10(high)
        marks = [(10.0**k, f"{10.0**k:g}") for k in range(floor(start), floor(end) + 1) if k >= start]
        span = end - start
        return [(log10(v) - start) / span for v in values], [
            ((log10(mark) - start) / span, label) for mark, label in marks
        ]
    low, high = min(low, 0.0), max(high, 0.0)
    span = high - low or 1.0
    marks = [*ticks(high, 4), *(-mark for mark in ticks(-low, 4) if mark)]
    return [(v - low) / span for v in values], [((mark - low) / span, f"{mark:g}") for mark in marks]


def draw(view: dict[str, Any]) -> Drawing:
    """Draw a view of `curve_view`."""
    d = Drawing()
    d.line((0, 0), (0, _HEIGHT), (_WIDTH, _HEIGHT), stroke_opacity=0.5)
    d.text(0, -10, view["name"], size=_SIZE, muted=True)
    across = _WIDTH / max(view["steps"], 1)
    for mark in ticks(view["steps"], 5):
        if mark == int(mark):
            d.line((mark * across, _HEIGHT), (mark * across, _HEIGHT + 4), stroke_opacity=0.5)
            label = f"{mark:g}"
            d.text(mark * across, _HEIGHT + 18, label, size=_SIZE, anchor="middle", muted=True)
    d.text(_WIDTH, _HEIGHT + 34, "step", size=_SIZE, anchor="end", muted=True)
    if not view["points"]:
        return d
    heights, marks = _scale([loss for _, loss in view["points"]])
    for height, label in marks:
        y = _HEIGHT * (1 - height)
        d.line((0, y), (_WIDTH, y), stroke_opacity=0.18, weight=0.8)
        d.text(-6, y + 4, label, size=_SIZE, anchor="end", muted=True)
    points = [
        (step * across, _HEIGHT * (1 - height))
        for (step, _), height in zip(view["points"], heights, strict=True)
    ]
    with d.group(view["caption"]):
        d.line(*points, stroke=_BLUE, weight=1.8)
    return d


def text(view: dict[str, Any], columns: int = 60) -> str:
    """Return the curve in characters."""
    points = view["points"]
    if not points:
        return view["caption"]
    heights, _ = _scale([loss for _, loss in points])
    shown = (
        [heights[k * len(heights) // columns] for k in range(columns)] if len(heights) > columns else heights
    )
    return f"{view['caption']}\n{''.join(_BARS[round(h * (len(_BARS) - 1))] for h in shown)}"
