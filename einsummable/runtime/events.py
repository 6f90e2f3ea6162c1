"""What a run tells about itself: events, and the record of a finished run that views draw.

Contract: a site appends plain tuples to its `SiteLog` while it works, which costs well under a microsecond;
`EventReader` turns what was appended since it last looked into events, so an observer (any callable of one
event) is called by the driver and never by a site, every `REPORT_SECONDS` with what happened since then.
All times of events are seconds since the run began, on one scale: each log knows how far its site's clock
is from the Unix epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from einsummable.taskgraph.tasks import Move, TaskGraph, nbytes

if TYPE_CHECKING:  # an engine needs no simulator
    from einsummable.taskgraph.simulate import Simulation

#: The clock of a site, in seconds from an arbitrary moment.
clock = time.perf_counter

#: The `error` of the record of a run that goes on.
RUNNING = "it is still running"

#: How often observers hear of a run that goes on.
REPORT_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The sites were told to begin; `at` is 0, and `tasks` counts moves too.

    `taskgraph` is what the tasks of all later events are indices into.
    """

    at: float
    sites: int
    tasks: int
    taskgraph: TaskGraph | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, taskgraph: TaskGraph) -> RunStarted:
        """Return the first event of a run of `taskgraph`."""
        return cls(0.0, taskgraph.sites, len(taskgraph.tasks), taskgraph)


@dataclass(frozen=True, slots=True)
class TaskEnded:
    """Site `site` worked on `task` (an index into ``TaskGraph.tasks``, no Move) from `started` to `ended`."""

    task: int
    site: int
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class MoveEnded:
    """The block of a Move left site `source` at `sent` and was at site `site` by `received`."""

    task: int
    source: int
    site: int
    sent: float
    received: float
    nbytes: int


@dataclass(frozen=True, slots=True)
class Evicted:
    """Site `site` put the block of `task` on disk, or dropped it (at once) where that has it already."""

    task: int
    site: int
    started: float
    ended: float
    nbytes: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """Site `site` has the block of `task` in memory again."""

    task: int
    site: int
    started: float
    ended: float
    nbytes: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The run goes on: what ended before `at` has been told, as far as the driver knows.

    `working` has the task that each site works on, -1 where it waits; `done` counts tasks and moves that have
    ended.  Not part of the record of a run.
    """

    at: float
    working: tuple[int, ...]
    done: int = 0


@dataclass(frozen=True, slots=True)
class RunEnded:
    """All sites are done, or the run was given up and `error` says why."""

    at: float
    error: str = ""


Event: TypeAlias = "RunStarted | TaskEnded | MoveEnded | Evicted | Loaded | Progress | RunEnded"
Ended: TypeAlias = "TaskEnded | MoveEnded | Evicted | Loaded"
Observer: TypeAlias = Callable[[Event], None]


@dataclass(slots=True)
class SiteLog:
    """What one site did: tuples in the order things ended, times on the site's own `clock`.

    Attributes
    ----------
    ran
        ``(task, started, ended)`` for each task but moves; tasks are indices into ``TaskGraph.tasks``.
    sent, received
        ``(move, time)`` at the source, and at the destination.
    evicted, loaded
        ``(task, started, ended)`` of blocks that went to disk, and came back.
    offset
        Seconds to add to a time of this log to get seconds of the Unix epoch on the driver's clock.
    running
        The task that was begun last, -1 before the first and after the last.
    """

    site: int
    ran: list[tuple[int, float, float]] = field(default_factory=list)
    sent: list[tuple[int, float]] = field(default_factory=list)
    received: list[tuple[int, float]] = field(default_factory=list)
    evicted: list[tuple[int, float, float]] = field(default_factory=list)
    loaded: list[tuple[int, float, float]] = field(default_factory=list)
    offset: float = field(default_factory=lambda: time.time() - clock())
    running: int = -1

    @property
    def working(self) -> int:
        """The task being worked on, -1 if the site waits."""
        return -1 if self.ran and self.ran[-1][0] == self.running else self.running


class Audience:
    """The observers of one run.

    One with a true attribute `ticks` wants no single tasks and moves; where nobody wants them, they are not
    even read from the logs.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._all = tuple(observers)
        self._keen = tuple(o for o in self._all if not getattr(o, "ticks", False))

    def __bool__(self) -> bool:
        return bool(self._all)

    def tell(self, event: Event) -> None:
        """Tell everybody an event of the whole run."""
        for observer in self._all:
            observer(event)

    def read(self, reader: EventReader) -> None:
        """Tell what ended since the last time."""
        for event in reader.poll() if self._keen else ():
            for observer in self._keen:
                observer(event)

    def progress(self, at: float, working: tuple[int, ...], logs: Sequence[SiteLog]) -> None:
        """Tell how far a run is."""
        self.tell(Progress(at, working, sum(len(log.ran) + len(log.received) for log in logs)))


class EventReader:
    """Reads logs while they grow.

    Parameters
    ----------
    logs
        Of any of the sites; the list may grow, too.
    began
        When the run began, in seconds of the Unix epoch.
    """

    def __init__(self, taskgraph: TaskGraph, logs: Sequence[SiteLog], began: float) -> None:
        self._taskgraph, self._logs, self._began = taskgraph, logs, began
        self._seen: dict[tuple[int, str], int] = {}
        self._sent: dict[int, float] = {}
        self._arrived: dict[int, float] = {}

    def poll(self) -> Iterator[Ended]:
        """Yield what ended since the last call; a move is told once both of its ends have logged it."""
        for log in self._logs:
            shift = log.offset - self._began
            for task, started, ended in self._new(log, "ran"):
                yield TaskEnded(task, log.site, started + shift, ended + shift)
            for kind, event in (("evicted", Evicted), ("loaded", Loaded)):
                for task, started, ended in self._new(log, kind):
                    size = nbytes(self._taskgraph.tasks[task])
                    yield event(task, log.site, started + shift, ended + shift, size)
            self._sent.update((move, at + shift) for move, at in self._new(log, "sent"))
            self._arrived.update((move, at + shift) for move, at in self._new(log, "received"))
        for move in [m for m in self._arrived if m in self._sent]:
            task = self._taskgraph.tasks[move]
            source = self._taskgraph.tasks[task.inputs[0]].site
            sent, received = self._sent.pop(move), self._arrived.pop(move)
            yield MoveEnded(move, source, task.site, sent, received, nbytes(task))

    def _new(self, log: SiteLog, kind: str) -> list[tuple]:
        entries: list[tuple] = getattr(log, kind)
        start = self._seen.get((log.site, kind), 0)
        new = entries[start : len(entries)]
        self._seen[log.site, kind] = start + len(new)
        return new


@dataclass(frozen=True, repr=False)
class RunRecord:
    """One run, as it went.

    Attributes
    ----------
    logs
        Of the sites.
    began, wall
        When it began (seconds of the Unix epoch) and how long it took.
    error
        Why it was given up; empty if it was not, `RUNNING` before its end.
    """

    taskgraph: TaskGraph
    logs: tuple[SiteLog, ...]
    began: float
    wall: float
    error: str = ""

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """All events but `Progress`, in the order of the times at which they ended."""
        ended = sorted(EventReader(self.taskgraph, self.logs, self.began).poll(), key=_when)
        over = () if self.error == RUNNING else (RunEnded(self.wall, self.error),)
        return (self.start, *ended, *over)

    @property
    def start(self) -> RunStarted:
        """The first event."""
        return RunStarted.of(self.taskgraph)

    @property
    def tasks(self) -> tuple[TaskEnded, ...]:
        """The tasks that ended, in the order in which they did."""
        return tuple(e for e in self.events if isinstance(e, TaskEnded))

    @property
    def moves(self) -> tuple[MoveEnded, ...]:
        """The moves that ended, in the order in which they did."""
        return tuple(e for e in self.events if isinstance(e, MoveEnded))

    @property
    def disk(self) -> tuple[Evicted | Loaded, ...]:
        """What went to disk and came back, in the order in which that ended."""
        return tuple(e for e in self.events if isinstance(e, Evicted | Loaded))

    def busy(self, site: int) -> float:
        """Return the seconds that `site` spent in tasks."""
        return sum(ended - started for log in self.logs if log.site == site for _, started, ended in log.ran)

    def __str__(self) -> str:
        moved = sum(e.nbytes for e in self.moves)
        tasks = sum(not isinstance(t, Move) for t in self.taskgraph.tasks)
        ran = sum(len(log.ran) for log in self.logs)
        done = f"{ran} of {tasks} tasks, {moved} bytes moved"
        loaded = [e.nbytes for e in self.disk if isinstance(e, Loaded)]
        if self.disk:
            done += f", {len(self.disk) - len(loaded)} blocks evicted, {sum(loaded)} bytes loaded again"
        lines = [f"run of {self.wall * 1e3:.1f} ms on {self.taskgraph.sites} sites, {done}"]
        for log in self.logs:
            share = self.busy(log.site) / self.wall if self.wall else 0.0
            lines.append(f"site {log.site}: {len(log.ran)} tasks, busy {share:.0%}")
        return "\n".join(lines + ([f"error: {self.error}"] if self.error else []))

    __repr__ = __str__


def recorded(taskgraph: TaskGraph, events: Iterable[Event], began: float = 0.0) -> RunRecord:
    """Return what an observer heard as the record of a run; of one that goes on, so far."""
    logs = [SiteLog(site, offset=began) for site in range(taskgraph.sites)]
    wall, error = 0.0, RUNNING
    for event in events:
        match event:
            case TaskEnded(task, site, started, ended):
                logs[site].ran.append((task, started, ended))
            case MoveEnded(task, source, site, sent, received):
                logs[source].sent.append((task, sent))
                logs[site].received.append((task, received))
            case Evicted(task, site, started, ended):
                logs[site].evicted.append((task, started, ended))
            case Loaded(task, site, started, ended):
                logs[site].loaded.append((task, started, ended))
            case RunEnded(at, why):
                wall, error = at, why
            case _:
                wall = event.at
    return RunRecord(taskgraph, tuple(logs), began, wall, error)


def simulated(simulation: Simulation) -> RunRecord:
    """Return what `simulation` says as the record of a run, so that the pictures of runs show it."""
    tasks = simulation.taskgraph.tasks
    ended: list[Ended] = []
    for i, (task, start, end) in enumerate(zip(tasks, simulation.starts, simulation.ends, strict=True)):
        if isinstance(task, Move):
            ended.append(MoveEnded(i, tasks[task.inputs[0]].site, task.site, start, end, nbytes(task)))
        else:
            ended.append(TaskEnded(i, task.site, start, end))
    return recorded(simulation.taskgraph, [*sorted(ended, key=_when), RunEnded(simulation.makespan)])


def _when(event: Ended) -> float:
    return event.received if isinstance(event, MoveEnded) else event.ended
