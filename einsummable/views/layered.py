"""A layered drawing of a directed acyclic graph, left to right, for boxes of given sizes.

Contract: `arrange` answers where the centre of each box is and how each edge runs; boxes and edge labels do
not overlap.

Layers by longest paths (boxes without predecessors stand just before their first reader), order within a
layer by barycentres, positions by isotonic regression towards the mean of the neighbours.  Sources:
K. Sugiyama, S. Tagawa, M. Toda, *Methods for visual understanding of hierarchical system structures* (1981);
E. Gansner et al., *A technique for drawing directed graphs* (1993); the pool-adjacent-violators algorithm.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Point = tuple[float, float]
Size = tuple[float, float]

LAYER_GAP = 22.0
BOX_GAP = 16.0
LINE_GAP = 10.0


@dataclass(frozen=True, slots=True)
class Edge:
    """From box `source` to box `target`, with room of size `label` on its way."""

    source: int
    target: int
    label: Size = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Route:
    """How an edge runs: a start, then three points for each cubic Bézier curve; the centre of its label."""

    points: tuple[Point, ...]
    label: Point


@dataclass(slots=True)
class _Item:
    """A box, or a place where an edge passes a layer."""

    width: float
    height: float
    thin: bool = False
    x: float = 0.0
    y: float = 0.0
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Centres of boxes and routes of edges; the whole has `size`, its top left corner is the origin."""

    boxes: tuple[Point, ...]
    routes: tuple[Route, ...]
    size: Size


def arrange(
    sizes: Sequence[Size],
    edges: Sequence[Edge],
    ends: Sequence[tuple[float | None, float | None]],
    first: frozenset[int] | set[int] = frozenset(),
    last: frozenset[int] | set[int] = frozenset(),
) -> Arrangement:
    """Return a layout.

    `ends` fixes the heights, relative to a box's centre, at which an edge leaves and arrives; `first` and
    `last` are the boxes that must stand in the outermost layers.
    """
    ranks = _ranks(len(sizes), edges, first, last)
    items = [_Item(w, h) for w, h in sizes]
    layers: list[list[int]] = [[] for _ in range(2 * max(ranks, default=0) + 1)]
    for i, rank in enumerate(ranks):
        layers[2 * rank].append(i)
    chains = [_add_chain(items, layers, ranks, edge) for edge in edges]
    _order(items, layers)
    _place_vertically(items, layers)
    edges_x = _place_horizontally(items, layers)
    routes = _routes(items, edges, chains, ends, edges_x, layers)
    top = min((item.y - item.height / 2 for item in items), default=0.0)
    bottom = max((item.y + item.height / 2 for item in items), default=0.0)
    right = edges_x[-1][1] if edges_x else 0.0
    boxes = tuple((items[i].x, items[i].y - top) for i in range(len(sizes)))
    moved = tuple(
        Route(tuple((x, y - top) for x, y in r.points), (r.label[0], r.label[1] - top)) for r in routes
    )
    return Arrangement(boxes, moved, (right, bottom - top))


def _ranks(n: int, edges: Sequence[Edge], first: set[int], last: set[int]) -> list[int]:
    after: list[list[int]] = [[] for _ in range(n)]
    missing = [0] * n
    for edge in edges:
        after[edge.source].append(edge.target)
        missing[edge.target] += 1
    ranks = [0] * n
    sources = [i for i in range(n) if not missing[i]]
    queue = list(sources)
    for i in queue:
        for j in after[i]:
            ranks[j] = max(ranks[j], ranks[i] + 1)
            missing[j] -= 1
            if not missing[j]:
                queue.append(j)
    for i in sources:
        if after[i] and i not in first:
            ranks[i] = min(ranks[j] for j in after[i]) - 1
    end = max(ranks, default=0)
    for i in last:
        ranks[i] = end
    return ranks


def _add_chain(items: list[_Item], layers: list[list[int]], ranks: list[int], edge: Edge) -> list[int]:
    """Add a place for `edge` in each layer it passes; its label stands just before the target."""
    chain = [edge.source]
    at_label = 2 * ranks[edge.target] - 1
    for rank in range(2 * ranks[edge.source] + 1, 2 * ranks[edge.target]):
        size = edge.label if rank == at_label else (0.0, 0.0)
        items.append(_Item(*size, thin=rank != at_label))
        layers[rank].append(len(items) - 1)
        chain.append(len(items) - 1)
    chain.append(edge.target)
    for a, b in pairwise(chain):
        items[a].after.append(b)
        items[b].before.append(a)
    return chain


def _order(items: list[_Item], layers: list[list[int]]) -> None:
    """Order each layer by the barycentres of its neighbours; keep the order with the fewest crossings."""
    best, fewest = [list(layer) for layer in layers], _crossings(items, layers)
    for sweep in range(12):
        forward = sweep % 2 == 0
        place = {i: k for layer in layers for k, i in enumerate(layer)}
        for layer in layers[1:] if forward else layers[-2::-1]:
            wanted = {}
            for i in layer:
                near = items[i].before if forward else items[i].after
                wanted[i] = sum(place[j] for j in near) / len(near) if near else place[i]
            layer.sort(key=lambda i: (wanted[i], place[i]))
            place.update({i: k for k, i in enumerate(layer)})
        crossings = _crossings(items, layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    for layer, ordered in zip(layers, best, strict=True):
        layer[:] = ordered


def _crossings(items: list[_Item], layers: list[list[int]]) -> int:
    total = 0
    for layer, following in pairwise(layers):
        place = {i: k for k, i in enumerate(following)}
        seen: list[int] = []
        for i in layer:
            ends = sorted(place[j] for j in items[i].after)
            total += sum(len(seen) - bisect_right(seen, e) for e in ends)
            for e in ends:
                insort(seen, e)
    return total


def _gap(a: _Item, b: _Item) -> float:
    return (a.height + b.height) / 2 + (LINE_GAP if a.thin or b.thin else BOX_GAP)


def _place_vertically(items: list[_Item], layers: list[list[int]]) -> None:
    for layer in layers:
        y = 0.0
        for a, b in zip([None, *layer], layer, strict=False):
            y += _gap(items[a], items[b]) if a is not None else 0.0
            items[b].y = y
    for sweep in range(24):
        order = layers if sweep % 2 == 0 else layers[::-1]
        for layer in order:
            wanted, weights = [], []
            for i in layer:
                item = items[i]
                sides = (item.before, item.after) if sweep > 15 else ((item.before, item.after)[sweep % 2],)
                near = [j for side in sides for j in side]
                wanted.append(sum(items[j].y for j in near) / len(near) if near else item.y)
                # A bend in a long edge is uglier than a box off its mean.
                weights.append((4.0 if item.thin else 1.0) if near else 0.05)
            _separate(items, layer, wanted, weights)


def _separate(items: list[_Item], layer: list[int], wanted: list[float], weights: list[float]) -> None:
    """Move a layer's items as near to `wanted` as their order and gaps allow, in the least squares sense."""
    offsets, total = [], 0.0
    for k, i in enumerate(layer):
        total += _gap(items[layer[k - 1]], items[i]) if k else 0.0
        offsets.append(total)
    pools: list[list[float]] = []  # mean, weight, members
    for y, offset, weight in zip(wanted, offsets, weights, strict=True):
        pools.append([y - offset, weight, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, heavy, members = pools.pop()
            last = pools[-1]
            last[0] = (last[0] * last[1] + mean * heavy) / (last[1] + heavy)
            last[1] += heavy
            last[2] += members
    k = 0
    for mean, _, members in pools:
        for _ in range(int(members)):
            items[layer[k]].y = mean + offsets[k]
            k += 1


def _place_horizontally(items: list[_Item], layers: list[list[int]]) -> list[tuple[float, float]]:
    """Give every layer a range of x, its widest item's width; return the ranges."""
    edges, x = [], 0.0
    for layer in layers:
        width = max((items[i].width for i in layer), default=0.0)
        edges.append((x, x + width))
        for i in layer:
            items[i].x = x + width / 2
        x += width + LAYER_GAP
    return edges


def _routes(
    items: list[_Item],
    edges: Sequence[Edge],
    chains: list[list[int]],
    ends: Sequence[tuple[float | None, float | None]],
    ranges: list[tuple[float, float]],
    layers: list[list[int]],
) -> list[Route]:
    layer_of = {i: k for k, layer in enumerate(layers) for i in layer}
    tails = _ports(items, edges, chains, leaving=True)
    heads = _ports(items, edges, chains, leaving=False)
    routes = []
    for e, (edge, chain) in enumerate(zip(edges, chains, strict=True)):
        source, target = items[edge.source], items[edge.target]
        tail = ends[e][0] if ends[e][0] is not None else tails[e]
        head = ends[e][1] if ends[e][1] is not None else heads[e]
        points: list[Point] = [(source.x + source.width / 2, source.y + tail)]
        # From the box to the end of its layer the edge runs straight, so that it passes no wider box.
        stops = [(ranges[layer_of[edge.source]][1], source.y + tail)]
        for i in chain[1:-1]:
            left, right = ranges[layer_of[i]]
            stops += [(left, items[i].y), (right, items[i].y)]
        end = (target.x - target.width / 2, target.y + head)
        stops += [(ranges[layer_of[edge.target]][0], end[1]), end]
        for stop in stops:
            if stop != points[-1]:
                points += curve(points[-1], stop)[1:]
        middle = items[chain[-2]] if len(chain) > 2 else source
        routes.append(Route(tuple(points), (middle.x, middle.y)))
    return routes


def _ports(
    items: list[_Item], edges: Sequence[Edge], chains: list[list[int]], *, leaving: bool
) -> list[float]:
    """Return for each edge the height, relative to the box's centre, at which it leaves or arrives."""
    at: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for e, (edge, chain) in enumerate(zip(edges, chains, strict=True)):
        box, near = (edge.source, chain[1]) if leaving else (edge.target, chain[-2])
        at[box].append((items[near].y, e))
    ports = [0.0] * len(edges)
    for box, found in at.items():
        found.sort()
        step = min(12.0, items[box].height / (len(found) + 1))
        for k, (_, e) in enumerate(found):
            ports[e] = (k - (len(found) - 1) / 2) * step
    return ports


def curve(a: Point, b: Point) -> list[Point]:
    """Return a cubic Bézier curve from `a` to `b` that is horizontal at both ends."""
    middle = (a[0] + b[0]) / 2
    return [a, (middle, a[1]), (middle, b[1]), b]
