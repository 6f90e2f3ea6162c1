"""The shapes of tasks in pictures of TaskGraphs: arrows as wide as their bytes, diamonds, piles."""

from __future__ import annotations

from einsummable.views.colours import INK, ink_on
from einsummable.views.drawing import Drawing, Point

_SIZE = 12


def move_weight(size: int, largest: int) -> float:
    """Return how wide the arrow of `size` bytes is: the area tells the bytes, the thinnest is still seen."""
    return 1.2 + 5.8 * (size / largest) ** 0.5 if largest else 1.2


def draw_arrow(
    d: Drawing,
    start: Point,
    tip: Point,
    weight: float,
    colour: str,
    *,
    at: float = 0.5,
    strength: float = 0.9,
) -> None:
    """Draw a move: a band in the colour of the site it comes from, edged so that it is seen on any page.

    `at` is the part of the way after which it turns, `strength` its opacity.
    """
    head = 6 + weight * 0.8
    end = (tip[0] - head * 0.8, tip[1])
    turn = start[0] + (end[0] - start[0]) * at
    points = [start, (turn, start[1]), (turn, end[1]), end]
    d.curve(points, stroke=INK, weight=weight + 1.2, stroke_opacity=0.35 * strength)
    d.curve(points, stroke=colour, weight=weight, stroke_opacity=strength)
    d.arrow_head(tip, (1, 0), size=head, fill=colour, stroke=INK, stroke_opacity=0.4)


def draw_bow(d: Drawing, start: Point, tip: Point, weight: float, colour: str) -> None:
    """Draw a move within a column: out to the right and back, the wider the longer its way."""
    head = 6 + weight * 0.8
    end = (tip[0] + 3 + head * 0.8, tip[1])
    out = max(start[0], end[0]) + min(14 + abs(tip[1] - start[1]) * 0.12, 60)
    points = [start, (out, start[1]), (out, end[1]), end]
    d.curve(points, stroke=INK, weight=weight + 1.2, stroke_opacity=0.3)
    d.curve(points, stroke=colour, weight=weight, stroke_opacity=0.9)
    d.arrow_head((tip[0] + 3, tip[1]), (-1, 0), size=head, fill=colour, stroke=INK, stroke_opacity=0.4)


def draw_fold(d: Drawing, middle: Point, width: float, name: str, colour: str) -> None:
    """Draw several tasks as a pile."""
    x, y = middle
    left, top = x - width / 2, y - 9
    for shift in (3, 0):
        d.rect(left + shift, top - shift, width, 18, radius=4, fill=colour, stroke=INK, stroke_opacity=0.6)
    d.text(x, y + 4.3, name, size=_SIZE, anchor="middle", fill=ink_on(colour))


def draw_diamond(d: Drawing, x: float, y: float, colour: str) -> None:
    """Draw an aggregation."""
    d.polygon(
        [(x - 10, y), (x, y - 10), (x + 10, y), (x, y + 10)], fill=colour, stroke=INK, stroke_opacity=0.6
    )
