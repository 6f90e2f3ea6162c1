"""Layouts with groups of boxes in frames.

Contract: boxes of one group are laid out by themselves in a frame, and the frame as one box among the others,
so that a frame holds its members and nothing else.  Edges that cross a frame enter and leave it at ports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from einsummable.views.layered import Arrangement, Edge, Point, Route, Size, arrange, curve

FRAME = 14.0
FRAME_TITLE = 20.0


@dataclass(frozen=True, slots=True)
class Frame:
    """The rectangle around the members of one group."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Centres of the boxes, routes of the edges, frames of the groups, each in the order they were given."""

    boxes: tuple[Point, ...]
    routes: tuple[Route, ...]
    frames: tuple[Frame | None, ...]


def lay_out(sizes: Sequence[Size], edges: Sequence[Edge], groups: Sequence[Sequence[int]] = ()) -> Layout:
    """Return a layout of boxes of `sizes`.

    A group that a path leaves and enters again is not framed: its members stand where they would anyway.
    """
    owner: dict[int, int] = {}
    for g, members in enumerate(groups):
        tried = owner | dict.fromkeys(members, g)
        if _can_frame(tried, len(sizes), edges):
            owner = tried
    inner = {g: _lay_out_group(g, owner, sizes, edges) for g in sorted(set(owner.values()))}
    # Outside, a frame is one box; what is not in a frame is itself.
    outside = [*(i for i in range(len(sizes)) if i not in owner), *(("frame", g) for g in inner)]
    index = {key: k for k, key in enumerate(outside)}
    outer_sizes = [inner[key[1]].size if isinstance(key, tuple) else sizes[key] for key in outside]
    outer_edges, ends, numbers = [], [], []
    for e, edge in enumerate(edges):
        a, b = owner.get(edge.source), owner.get(edge.target)
        if a is not None and a == b:
            continue
        source = index["frame", a] if a is not None else index[edge.source]
        target = index["frame", b] if b is not None else index[edge.target]
        outer_edges.append(Edge(source, target, edge.label))
        tail = inner[a].exits[edge.source] if a is not None else None
        head = inner[b].entries[edge.source] if b is not None else None
        ends.append((tail, head))
        numbers.append(e)
    flat = arrange(outer_sizes, outer_edges, ends)
    return _assemble(sizes, edges, outside, flat, numbers, inner, len(groups))


def _can_frame(owner: dict[int, int], boxes: int, edges: Sequence[Edge]) -> bool:
    """Return whether no path leaves a group and enters it again, not even by way of other groups."""
    key = [owner.get(i, -1 - i) for i in range(boxes)]
    after: dict[int, set[int]] = defaultdict(set)
    missing: dict[int, int] = dict.fromkeys(key, 0)
    for edge in edges:
        a, b = key[edge.source], key[edge.target]
        if a != b and b not in after[a]:
            after[a].add(b)
            missing[b] += 1
    ready = [k for k, n in missing.items() if not n]
    for k in ready:
        for other in after[k]:
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    return len(ready) == len(missing)


@dataclass(frozen=True, slots=True)
class _Inner:
    """A group laid out: positions relative to its frame; heights at which sources enter and members leave."""

    members: tuple[int, ...]
    flat: Arrangement
    size: Size
    entries: dict[int, float]
    exits: dict[int, float]
    routes: dict[int, list[Point]]
    labels: dict[int, Point]


def _lay_out_group(g: int, owner: dict[int, int], sizes: Sequence[Size], edges: Sequence[Edge]) -> _Inner:
    """Lay out the members of a group, with ports on the frame for what comes in and goes out."""
    members = [i for i, mine in owner.items() if mine == g]
    index = {m: k for k, m in enumerate(members)}
    entries: dict[int, int] = {}
    exits: dict[int, int] = {}
    inner_sizes = [sizes[m] for m in members]
    inner_edges, numbers = [], []
    for e, edge in enumerate(edges):
        a, b = owner.get(edge.source) == g, owner.get(edge.target) == g
        if b and not a:
            if edge.source not in entries:
                entries[edge.source] = len(inner_sizes)
                inner_sizes.append((0.0, 0.0))
            inner_edges.append(Edge(entries[edge.source], index[edge.target]))
        elif a and not b:
            if edge.source in exits:
                continue
            exits[edge.source] = len(inner_sizes)
            inner_sizes.append((0.0, 0.0))
            inner_edges.append(Edge(index[edge.source], exits[edge.source]))
        elif a and b:
            inner_edges.append(Edge(index[edge.source], index[edge.target], edge.label))
        else:
            continue
        numbers.append((e, edge.source if a and not b else None))
    flat = arrange(
        inner_sizes,
        inner_edges,
        [(None, None)] * len(inner_edges),
        set(entries.values()),
        set(exits.values()),
    )
    width, height = flat.size
    size = (width + 2 * FRAME, height + FRAME + FRAME_TITLE)

    def shift(p: Point) -> Point:
        return (p[0] + FRAME, p[1] + FRAME_TITLE)

    routes, labels, leaving = {}, {}, {}
    for (e, source), route in zip(numbers, flat.routes, strict=True):
        points = [shift(p) for p in route.points]
        if source is not None:
            leaving[source] = points
        else:
            routes[e], labels[e] = points, shift(route.label)
    for e, edge in enumerate(edges):
        if owner.get(edge.source) == g and owner.get(edge.target) != g:
            routes[e] = leaving[edge.source]
    return _Inner(
        tuple(members),
        Arrangement(tuple(map(shift, flat.boxes)), (), flat.size),
        size,
        {s: flat.boxes[k][1] + FRAME_TITLE - size[1] / 2 for s, k in entries.items()},
        {s: flat.boxes[k][1] + FRAME_TITLE - size[1] / 2 for s, k in exits.items()},
        routes,
        labels,
    )


def _assemble(
    sizes: Sequence[Size],
    edges: Sequence[Edge],
    outside: Sequence[int | tuple[str, int]],
    flat: Arrangement,
    numbers: Sequence[int],
    inner: dict[int, _Inner],
    groups: int,
) -> Layout:
    """Put the groups' own layouts into their frames and join the pieces of edges that cross a frame."""
    boxes: list[Point] = [(0.0, 0.0)] * len(sizes)
    frames: list[Frame | None] = [None] * groups
    for key, (x, y) in zip(outside, flat.boxes, strict=True):
        if not isinstance(key, tuple):
            boxes[key] = (x, y)
            continue
        group = inner[key[1]]
        left, top = x - group.size[0] / 2, y - group.size[1] / 2
        frames[key[1]] = Frame(left, top, *group.size)
        for member, (mx, my) in zip(group.members, group.flat.boxes, strict=False):
            boxes[member] = (left + mx, top + my)
    outer = dict(zip(numbers, flat.routes, strict=True))
    routes = []
    for e in range(len(edges)):
        pieces: list[Point] = []
        label = outer[e].label if e in outer else (0.0, 0.0)
        found = [(g, group) for g, group in inner.items() if e in group.routes]
        leaving = [(g, group) for g, group in found if edges[e].source in group.members]
        entering = [(g, group) for g, group in found if edges[e].source not in group.members]
        for g, group in leaving:
            frame = frames[g]
            pieces = [(x + frame.left, y + frame.top) for x, y in group.routes[e]]
            if e in group.labels:
                label = (group.labels[e][0] + frame.left, group.labels[e][1] + frame.top)
        if e in outer:
            pieces = _join(pieces, list(outer[e].points))
        for g, group in entering:
            frame = frames[g]
            pieces = _join(pieces, [(x + frame.left, y + frame.top) for x, y in group.routes[e]])
        routes.append(Route(tuple(pieces), label))
    return Layout(tuple(boxes), tuple(routes), tuple(frames))


def _join(one: list[Point], other: list[Point]) -> list[Point]:
    if not one:
        return other
    return [*one, *curve(one[-1], other[0])[1:], *other[1:]]
