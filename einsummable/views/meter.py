"""How far a run is: tasks done, bytes over every link, bytes held, what every site is at.

Contract: a `Meter` takes events in the order in which an observer hears them, and `view` says at any time how
things stand, all of it in figures and words that a page only has to show.
"""

from __future__ import annotations

from typing import Any

from einsummable.runtime.events import Event, MoveEnded, Progress, RunEnded, RunStarted, TaskEnded
from einsummable.taskgraph.held import Held
from einsummable.taskgraph.tasks import TaskGraph, work
from einsummable.views import amounts
from einsummable.views.colours import palette


class Meter:
    """What is known of a run so far.

    Parameters
    ----------
    taskgraph
        What runs.
    predicted
        How long it should take in seconds, where somebody knows.
    names
        What a reader calls the sites, an engine and its host for instance; by default "site 0" and so on.
    """

    def __init__(
        self, taskgraph: TaskGraph, *, predicted: float | None = None, names: tuple[str, ...] = ()
    ) -> None:
        self._taskgraph, self._predicted = taskgraph, predicted
        self._names = names or tuple(f"site {k}" for k in range(taskgraph.sites))
        sites = taskgraph.sites
        self._colours = palette(sites)
        self._held = Held(taskgraph)
        self._level, self._peak = [0] * sites, [0] * sites
        self._done, self._busy, self._all = [0] * sites, [0.0] * sites, [0] * sites
        for task in taskgraph.tasks:
            self._all[task.site] += 1
        self._links = [[0] * sites for _ in range(sites)]
        self._work = [work(taskgraph.graph, task) for task in taskgraph.tasks]
        self._flops = 0.0
        self._working: tuple[int, ...] = (-1,) * sites
        self._at, self._state, self._error = 0.0, "waiting", ""

    @property
    def over(self) -> bool:
        """Whether the run has ended."""
        return self._state in ("done", "failed")

    def hear(self, event: Event) -> None:
        """Take one event."""
        match event:
            case RunStarted():
                self._state = "running"
            case TaskEnded(task, site, started, ended):
                self._busy[site] += ended - started
                self._flops += self._work[task]
                self._end(task, site, started, ended)
            case MoveEnded(task, source, site, sent, received, size):
                self._links[source][site] += size
                self._end(task, site, sent, received)
            case Progress(at, working):
                self._at, self._working = at, working
            case RunEnded(at, error):
                self._at, self._error = at, error
                self._state = "failed" if error else "done"
                self._working = (-1,) * self._taskgraph.sites

    def _end(self, task: int, site: int, started: float, ended: float) -> None:
        self._done[site] += 1
        self._at = max(self._at, ended)
        for where, _, more in self._held.ended(task, started, ended):
            self._level[where] += more
            self._peak[where] = max(self._peak[where], self._level[where])

    def view(self) -> dict[str, Any]:
        """Return how things stand."""
        done, count, moved = sum(self._done), sum(self._all), sum(map(sum, self._links))
        view = {
            "kind": "meter",
            "state": self._state,
            "error": self._error,
            "at": round(self._at, 6),
            "predicted": self._predicted,
            "done": done,
            "tasks": count,
            "sites": self._taskgraph.sites,
            "hosts": None,
            "moved": moved,
            "moves": self._taskgraph.bytes_moved,
            "rows": [self._row(site) for site in range(self._taskgraph.sites)],
            "links": [list(row) for row in self._links],
            "flows": self._flows(),
            "figures": self._figures(done, count, moved),
        }
        return view | {"caption": _caption(view)}

    def _row(self, site: int) -> dict[str, Any]:
        task = self._working[site] if site < len(self._working) else -1
        graph, busy = self._taskgraph.graph, self._busy[site]
        return {
            "site": site,
            "name": self._names[site],
            "colour": self._colours[site],
            "done": self._done[site],
            "tasks": self._all[site],
            "busy": amounts.share(busy, self._at),
            "working": graph.name_of(self._taskgraph.tasks[task].origin) if task >= 0 else "",
            "held": self._level[site],
            "peak": self._peak[site],
            "held_text": amounts.nbytes(self._level[site]),
            "peak_text": amounts.nbytes(self._peak[site]),
        }

    def _flows(self) -> list[list[Any]]:
        """Return source, target, bytes and their text of every link that was used, the busiest first."""
        sites = range(self._taskgraph.sites)
        used = [(a, b, self._links[a][b]) for a in sites for b in sites if self._links[a][b]]
        return [[a, b, size, amounts.nbytes(size)] for a, b, size in sorted(used, key=lambda flow: -flow[2])]

    def _figures(self, done: int, count: int, moved: int) -> list[list[str]]:
        """Return names and values of what stands above the sites."""
        figures = [["tasks", f"{amounts.count(done)} of {amounts.count(count)}"]]
        figures.append(["time", amounts.seconds(self._at)])
        if self._predicted is not None:
            figures.append(["predicted", amounts.seconds(self._predicted)])
        if self._at > 0:
            figures.append(["work", f"{_rate(self._flops / self._at)}flop/s"])
            figures.append(["tasks a second", amounts.count(round(done / self._at))])
        total = self._taskgraph.bytes_moved
        figures.append(
            ["moved", f"{amounts.nbytes(moved)} of {amounts.nbytes(total)}" if total else "nothing"]
        )
        return figures


def _rate(value: float) -> str:
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{amounts.digits(value / size)} {unit}"
    return f"{value:.0f} "


def _caption(view: dict[str, Any]) -> str:
    done = f"{amounts.count(view['done'])} of {amounts.many(view['tasks'], 'task')}"
    match view["state"]:
        case "waiting":
            return (
                f"not begun: {amounts.many(view['tasks'], 'task')} on {amounts.many(view['sites'], 'site')}"
            )
        case "running":
            words = f"running for {amounts.seconds(view['at'])}: {done} done"
        case "done":
            words = f"done in {amounts.seconds(view['at'])}: {done}"
        case _:
            words = f"ended after {amounts.seconds(view['at'])}, {done} done: {view['error']}"
    return words + (f"; {amounts.nbytes(view['moved'])} moved" if view["moved"] else "")
