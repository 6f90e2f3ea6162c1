"""The timeline of a run: where time went, site by site.

Contract: `timeline_view` takes a `RunRecord`; times are seconds since the run began.  ``bars`` are tasks,
``moves`` the time from leaving a site to being there, ``held`` the bytes that every site holds from a time
on, ``critical`` the tasks and moves that the end waited for.  Waiting is where a lane is empty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import floor, log10
from typing import Any

from einsummable.runtime.critical import critical_path
from einsummable.runtime.events import RUNNING, RunRecord
from einsummable.runtime.holding import held
from einsummable.taskgraph.tasks import Aggregate, Apply, Fused
from einsummable.views import amounts, legends
from einsummable.views.colours import CATEGORIES, INK, ink_on
from einsummable.views.drawing import Drawing, text_width
from einsummable.views.spills import draw_spills, spills
from einsummable.views.spills import words as spilled
from einsummable.views.taskgraphs import describe

_SIZE = 12
_WIDTH = 640.0
_OTHER = "#9a9a9a"
#: The height of the bytes that are held, their colour, and that of the budget.
_MEMORY, _HELD, _BUDGET = 14.0, "#4a90c8", "#d0342c"
#: Bars nearer than this many pixels are drawn as one.
_TOUCH = 0.4
_COPYING = "copying"
#: For so many tasks there are words.
_TEXTS = 2000


def timeline_view(
    record: RunRecord,
    *,
    hosts: Sequence[int] | None = None,
    budget: float | None = None,
    until: float = 0.0,
) -> dict[str, Any]:
    """Return what ran where and when, and what moved, as a view.

    Parameters
    ----------
    hosts
        The host of every site, where sites have hosts.
    budget
        The bytes that a site may hold, where there is a limit.
    until
        The time to which the picture goes at least, so that several can have one scale.
    """
    graph = record.taskgraph.graph
    bars, moves = _bars(record), _moves(record)
    spent: dict[int, float] = defaultdict(float)
    for bar in bars:
        if bar["computes"]:
            spent[bar["node"]] += bar["stop"] - bar["start"]
    longest = sorted(spent.items(), key=lambda s: (-s[1], s[0]))
    view = {
        "kind": "timeline",
        "sites": record.taskgraph.sites,
        "hosts": list(hosts) if hosts is not None else None,
        "wall": record.wall,
        "until": until,
        "budget": budget,
        "critical": [event.task for event in critical_path(record)],
        "held": [list(map(list, steps)) for steps in held(record)],
        "error": record.error,
        "bars": bars,
        "moves": moves,
        "spills": spills(record),
        "nodes": [{"id": i, "name": graph.name_of(i), "seconds": t} for i, t in longest],
        "texts": {str(b["task"]): describe(record.taskgraph, b["task"]) for b in bars[:_TEXTS]},
    }
    return view | {"caption": _caption(view)}


def _bars(record: RunRecord) -> list[dict[str, Any]]:
    """Return the tasks that ended."""
    tasks = record.taskgraph.tasks
    return [
        {
            "task": e.task,
            "site": e.site,
            "node": tasks[e.task].origin,
            "type": type(tasks[e.task]).__name__,
            "computes": isinstance(tasks[e.task], Apply | Fused | Aggregate),
            "start": e.started,
            "stop": e.ended,
        }
        for e in record.tasks
    ]


def _moves(record: RunRecord) -> list[dict[str, Any]]:
    """Return the moves that ended."""
    tasks = record.taskgraph.tasks
    return [
        {
            "task": m.task,
            "source": m.source,
            "site": m.site,
            "node": tasks[m.task].origin,
            "start": m.sent,
            "stop": m.received,
            "bytes": m.nbytes,
        }
        for m in record.moves
    ]


def _caption(view: dict[str, Any]) -> str:
    wall, sites = view["wall"], view["sites"]
    kernels = sum(b["stop"] - b["start"] for b in view["bars"] if b["computes"])
    copying = sum(b["stop"] - b["start"] for b in view["bars"] if not b["computes"])
    idle = wall * sites - sum(_busy(view, site) for site in range(sites))
    words = f"{amounts.seconds(wall)} on {amounts.many(sites, 'site')}: "
    words += f"{amounts.share(kernels, wall * sites)} of it in kernels"
    words += f", {amounts.share(copying, wall * sites)} copying"
    words += f", {amounts.share(max(idle, 0.0), wall * sites)} waiting"
    if view["moves"]:
        moved = sum(m["bytes"] for m in view["moves"])
        words += f"; {amounts.nbytes(moved)} in {amounts.many(len(view['moves']), 'move')}"
    else:
        words += "; nothing moved"
    words += spilled(view["spills"])
    if view["error"] == RUNNING:
        return f"{words}; {RUNNING}"
    return words + (f"; given up: {view['error']}" if view["error"] else "")


def _busy(view: dict[str, Any], site: int) -> float:
    """Return how long `site` worked."""
    return _union([(b["start"], b["stop"]) for b in view["bars"] if b["site"] == site])


def _union(spans: list[tuple[float, float]]) -> float:
    """Return how long at least one of `spans` lasted."""
    total, reached = 0.0, float("-inf")
    for start, stop in sorted(spans):
        total += max(stop - max(start, reached), 0.0)
        reached = max(reached, stop)
    return total


# --------------------------------------------------------------------------------------- picture


def draw(view: dict[str, Any]) -> Drawing:
    """Draw a view of `timeline_view`."""
    stops = (thing["stop"] for kind in ("bars", "moves") for thing in view[kind])
    end = max(view["wall"], view["until"], *stops)
    scale = _WIDTH / end if end > 0 else 0.0
    lane = min(max(620.0 / max(view["sites"], 1), 7.0), 36.0)
    gap = (_MEMORY + 8.0 if lane > 30 else 6.0) if lane > 14 else 2.0
    most = _most(view)
    colours = node_colours(view)
    d = Drawing()
    by_site: dict[str, dict[int, list[dict[str, Any]]]] = {
        "bars": defaultdict(list),
        "moves": defaultdict(list),
    }
    for kind, of_site in by_site.items():
        for thing in view[kind]:
            of_site[thing["site"]].append(thing)
    for site in range(view["sites"]):
        top = site * (lane + gap)
        d.rect(0, top, _WIDTH, lane, fill=INK, fill_opacity=0.045)
        _name_lane(d, view, site, top, lane)
        _draw_moves(d, by_site["moves"][site], top + lane * 0.74, lane * 0.26, scale)
        _draw_bars(d, view, by_site["bars"][site], (top, lane * 0.7), scale, colours)
        draw_spills(d, view["spills"], site, top + lane - 3, scale)
        if lane > 30:
            _draw_held(d, view, site, top + lane + _MEMORY + 1, scale, most)
        _write_share(d, view, site, top, lane)
    bottom = view["sites"] * (lane + gap) - gap + (_MEMORY + 2 if lane > 30 else 0)
    _axis(d, end, scale, bottom)
    names = {n["id"]: n["name"] for n in view["nodes"]}
    shown = [(names[i], colour) for i, colour in colours.items() if colour != _OTHER]
    shown += [("other kernels", _OTHER)] if len(colours) > len(shown) else []
    keys = [*legends.categories(shown), *map(_key, (_COPYING, "move arriving", "waiting", "critical path"))]
    if lane > 30:
        keys.append(_key(f"bytes held, at most {amounts.nbytes(most)}"))
    d.flow(keys, _WIDTH + 40, gap=16, top=d.box[3] + 14)
    return d


def node_colours(view: dict[str, Any]) -> dict[int, str]:
    """Return a colour for each node: of its own for those that took longest, one for all others."""
    return colours_of([n["id"] for n in view["nodes"]])


def colours_of(nodes: Sequence[int]) -> dict[int, str]:
    """Return a colour for each node: of its own for the first few, one for all others."""
    return dict(sorted((i, CATEGORIES[k] if k < len(CATEGORIES) else _OTHER) for k, i in enumerate(nodes)))


def _every(sites: int, lane: float) -> int:
    """Return how many lanes share one name."""
    return 1 if lane > 13 else 5 if sites <= 100 else 10


def _name_lane(d: Drawing, view: dict[str, Any], site: int, top: float, lane: float) -> None:
    colours = legends.site_colours(view)
    d.rect(-14, top, 8, lane, fill=colours[site], stroke=INK, stroke_opacity=0.3)
    if site % _every(view["sites"], lane) == 0:
        d.text(-20, top + lane / 2 + 4, f"site {site}", size=_SIZE, anchor="end")


def _write_share(d: Drawing, view: dict[str, Any], site: int, top: float, lane: float) -> None:
    if lane > 13:
        share = amounts.share(_busy(view, site), view["wall"])
        d.text(_WIDTH + 8, top + lane / 2 + 4, share, size=_SIZE, muted=True)
        if site == 0:
            d.text(_WIDTH + 8, top - 6, "busy", size=_SIZE, muted=True)


def _draw_bars(
    d: Drawing,
    view: dict[str, Any],
    bars: list[dict[str, Any]],
    at: tuple[float, float],
    scale: float,
    colours: dict[int, str],
) -> None:
    top, height = at
    names = {n["id"]: n["name"] for n in view["nodes"]}
    critical = set(view["critical"])
    for merged in _merge([bar | {"critical": bar["task"] in critical} for bar in bars], scale):
        x, width = merged["start"] * scale, max((merged["stop"] - merged["start"]) * scale, 0.6)
        with d.group(
            _bar_title(view, merged, names), node=merged["node"], site=merged["site"], task=merged["task"]
        ):
            if not merged["computes"]:
                d.rect(x, top + height * 0.25, width, height * 0.5, fill=INK, fill_opacity=0.4)
                continue
            colour = colours[merged["node"]]
            # The weight of a critical task is inside, so that its bar is no longer than the others.
            weight = min(2.0, width / 2) if merged["critical"] else 1.0 if width > 3 else 0.2
            edge = {"stroke_opacity": 1 if merged["critical"] else 0.35, "weight": weight}
            inset = weight / 2 if merged["critical"] else 0.0
            d.rect(
                x + inset, top + inset, width - 2 * inset, height - 2 * inset, fill=colour, stroke=INK, **edge
            )
            name = names[merged["node"]]
            if height > 15 and text_width(name, _SIZE) + 8 <= width:
                d.text(
                    x + width / 2,
                    top + height / 2 + 4.3,
                    name,
                    size=_SIZE,
                    anchor="middle",
                    fill=ink_on(colour),
                )


def _merge(bars: list[dict[str, Any]], scale: float) -> list[dict[str, Any]]:
    """Return bars in order: neighbours of one node as one, what falls in a pixel already drawn left out."""
    merged: list[dict[str, Any]] = []
    for bar in sorted(bars, key=lambda b: (b["start"], b["stop"])):
        last = merged[-1] if merged else None
        near = last is not None and (bar["start"] - last["stop"]) * scale < _TOUCH
        if near and _look(bar) == _look(last):
            last["stop"] = max(last["stop"], bar["stop"])
            last["count"] += 1
            last["task"] = None
        elif near and (bar["stop"] - last["stop"]) * scale < _TOUCH:
            last["stop"] = max(last["stop"], bar["stop"])
            last["count"] += 1
        else:
            merged.append(bar | {"count": 1})
    return merged


def _look(bar: dict[str, Any]) -> tuple:
    """Return what two bars have in common that can be drawn as one."""
    return bar["node"] if bar["computes"] else None, bar["computes"], bar["critical"]


def _most(view: dict[str, Any]) -> float:
    """Return the most bytes that any site holds; the budget where that is in sight of it."""
    peak = max((size for steps in view["held"] for _, size in steps), default=0)
    budget = view["budget"] or 0
    return max(peak, budget if budget < 4 * peak else 0, 1)


def _draw_held(d: Drawing, view: dict[str, Any], site: int, base: float, scale: float, most: float) -> None:
    """Draw the bytes that a site holds as an area, and the budget as a line."""
    points, level = [(0.0, base)], base
    for at, size in view["held"][site]:
        x = at * scale
        points += [(x, level), (x, base - _MEMORY * size / most)]
        level = points[-1][1]
    points += [(view["wall"] * scale, level), (view["wall"] * scale, base)]
    peak = max((size for _, size in view["held"][site]), default=0)
    with d.group(f"site {site} holds at most {amounts.nbytes(peak)}", site=site):
        d.polygon(points, fill=_HELD, fill_opacity=0.4)
    d.line((0, base), (_WIDTH, base), stroke_opacity=0.3, weight=0.6)
    if view["budget"] and view["budget"] <= most:
        y = base - _MEMORY * view["budget"] / most
        with d.group(f"budget of {amounts.nbytes(view['budget'])}"):
            d.line((0, y), (_WIDTH, y), stroke=_BUDGET, dash="4 3")


def _bar_title(view: dict[str, Any], bar: dict[str, Any], names: dict[int, str]) -> str:
    span = f"{amounts.seconds(bar['stop'] - bar['start'])} from {amounts.seconds(bar['start'])}"
    span += f", site {bar['site']}"
    if bar["count"] == 1:
        return f"{view['texts'].get(str(bar['task']), names.get(bar['node'], bar['type']))}\n{span}"
    what = f"of {names[bar['node']]}" if bar["computes"] else _COPYING
    return f"{amounts.many(bar['count'], 'task')} {what}\n{span}"


def _draw_moves(d: Drawing, moves: list[dict[str, Any]], top: float, height: float, scale: float) -> None:
    """Draw when something was on its way to a site; what overlaps is one stretch."""
    stretches: list[list[float]] = []  # start, stop, moves, bytes
    for move in sorted(moves, key=lambda m: m["start"]):
        if stretches and (move["start"] - stretches[-1][1]) * scale < _TOUCH:
            stretches[-1][1] = max(stretches[-1][1], move["stop"])
            stretches[-1][2] += 1
            stretches[-1][3] += move["bytes"]
        else:
            stretches.append([move["start"], move["stop"], 1, move["bytes"]])
    for start, stop, count, size in stretches:
        x, width = start * scale, max((stop - start) * scale, 0.8)
        title = f"{amounts.nbytes(size)} in {amounts.many(int(count), 'move')}\n"
        with d.group(f"{title}{amounts.seconds(stop - start)} from {amounts.seconds(start)}"):
            d.rect(x, top, width, height, stroke=INK, stroke_opacity=0.6, weight=0.8)
            d.hatch(x, top, width, height, step=5 if height > 4 else 9, stroke_opacity=0.6, weight=0.9)


def ticks(end: float, wanted: int = 6) -> list[float]:
    """Return round numbers from 0 to at most `end`, about `wanted` of them, steps of 1, 2 or 5."""
    if end <= 0:
        return [0.0]
    rough = end / wanted
    power = 10.0 ** floor(log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
    return [k * step for k in range(int(end / step + 1e-9) + 1)]


def _axis(d: Drawing, end: float, scale: float, bottom: float) -> None:
    unit, name = next(
        (u, n) for u, n in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")) if end >= u or u == 1e-9
    )
    marks = ticks(end)
    for mark in marks:
        x = mark * scale
        d.line((x, 0), (x, bottom + 4), stroke_opacity=0.18, weight=0.8)
        label = f"{mark / unit:g}" + (f" {name}" if mark == marks[-1] else "")
        d.text(x, bottom + 18, label, size=_SIZE, anchor="middle", muted=True)


def _key(what: str) -> Drawing:
    d = Drawing()
    match what:
        case "copying":
            d.rect(0, 5, 18, 8, fill=INK, fill_opacity=0.4)
        case "waiting":
            d.rect(0, 2, 18, 14, fill=INK, fill_opacity=0.045, stroke=INK, stroke_opacity=0.2)
        case "critical path":
            d.rect(1, 3, 16, 12, stroke=INK, weight=2)
        case _ if what.startswith("bytes"):
            d.rect(0, 6, 18, 8, fill=_HELD, fill_opacity=0.4)
        case _:
            d.rect(0, 5, 18, 8, stroke=INK, stroke_opacity=0.6, weight=0.8)
            d.hatch(0, 5, 18, 8, step=5, stroke_opacity=0.6, weight=0.9)
    d.text(24, 13, what, size=_SIZE, muted=True)
    return d


# ------------------------------------------------------------------------------------------ text


def text(view: dict[str, Any], columns: int = 60) -> str:
    """Return a line a site: ``█`` kernels, ``▒`` copying, ``─`` moves arriving, blank where it waits."""
    end = max([view["wall"], *(b["stop"] for b in view["bars"])])
    lines = [view["caption"]]
    for site in range(view["sites"]):
        cells = [" "] * columns
        things = [(m, "─") for m in view["moves"] if m["site"] == site]
        things += [
            (b, "█" if b["computes"] else "▒")
            for b in sorted(view["bars"], key=lambda b: b["computes"])
            if b["site"] == site
        ]
        for thing, mark in things:
            first = int(thing["start"] / end * columns) if end else 0
            last = int(thing["stop"] / end * columns) if end else 0
            for k in range(first, min(max(last, first + 1), columns)):
                cells[k] = mark
        busy = _busy(view, site)
        lines.append(f"site {site:<3} ▕{''.join(cells)}▏ {amounts.share(busy, view['wall'])}")
    lines.append(f"{'':9}0{amounts.seconds(end):>{columns}}   █ kernels ▒ copying ─ moves arriving")
    lines += [f"{amounts.seconds(node['seconds']):>9}  {node['name']}" for node in view["nodes"][:8]]
    return "\n".join(lines)
