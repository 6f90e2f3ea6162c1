"""A run of a TaskGraph on a Hardware that nobody has at hand: discrete events.

Contract: `simulate` answers when every task would start and end.  A site runs one task at a time, the most
urgent of those that are ready (or, in order, the next one only), for as long as `durations` says.  A move
passes its site's port, where it leaves its host both hosts' ports, and the port of the site it goes to; every
port serves one move at a time, first come first served, and the move streams through them.  Inputs are on
their sites from the start.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

from einsummable.errors import PlanError
from einsummable.planner.hardware import Hardware, Link
from einsummable.taskgraph.durations import durations, urgencies
from einsummable.taskgraph.held import Held, peaks, series
from einsummable.taskgraph.tasks import Move, TaskGraph, nbytes
from einsummable.taskgraph.uncollected import uncollected


@dataclass(frozen=True)
class Simulation:
    """When every task of a program started and ended; for a move, when it left and when it was there."""

    taskgraph: TaskGraph
    hardware: Hardware
    starts: tuple[float, ...]
    ends: tuple[float, ...]

    @cached_property
    def makespan(self) -> float:
        """Seconds from the start to the end."""
        return max(self.ends, default=0.0)

    @cached_property
    def busy(self) -> tuple[float, ...]:
        """The seconds that every site worked."""
        seconds = [0.0] * self.taskgraph.sites
        for task, start, end in zip(self.taskgraph.tasks, self.starts, self.ends, strict=True):
            if not isinstance(task, Move):
                seconds[task.site] += end - start
        return tuple(seconds)

    @cached_property
    def moved(self) -> Counter[tuple[int, int]]:
        """Bytes by pair of sites, from and to."""
        tasks = self.taskgraph.tasks
        found: Counter[tuple[int, int]] = Counter()
        for task in tasks:
            if isinstance(task, Move):
                found[tasks[task.inputs[0]].site, task.site] += nbytes(task)
        return found

    @property
    def moved_between_hosts(self) -> int:
        """Bytes that left their host."""
        hosts = self.hardware.hosts
        return sum(n for (a, b), n in self.moved.items() if hosts[a] != hosts[b])

    @cached_property
    def memory(self) -> tuple[tuple[tuple[float, int], ...], ...]:
        """For every site the bytes of its blocks over time: ``(time, bytes from then on)``.

        When a block begins and ends to count is said in `held`.
        """
        held = Held(self.taskgraph)
        spans = enumerate(zip(self.starts, self.ends, strict=True))
        return series((change for i, span in spans for change in held.ended(i, *span)), self.taskgraph.sites)

    @cached_property
    def peaks(self) -> tuple[int, ...]:
        """The most bytes that every site held at once."""
        return peaks(self.taskgraph, self.starts, self.ends)

    def __str__(self) -> str:
        share = sum(self.busy) / (self.makespan * self.taskgraph.sites) if self.makespan else 0.0
        moved = sum(self.moved.values())
        return (
            f"simulated on {self.hardware.name}: {self.makespan:.3g} s, sites busy {share:.0%}, "
            f"{moved} bytes moved ({self.moved_between_hosts} between hosts), "
            f"peak {max(self.peaks, default=0)} bytes a site"
        )


def simulate(taskgraph: TaskGraph, hardware: Hardware, *, in_order: bool = False) -> Simulation:
    """Return how `taskgraph` would run on `hardware`.

    Parameters
    ----------
    in_order
        Whether each site runs its tasks in the order of the program, waiting for each, instead of the most
        urgent one that is ready.

    Raises
    ------
    PlanError
        The hardware has another number of sites.
    """
    hardware.check()
    if taskgraph.sites != hardware.sites:
        raise PlanError(f"the program is for {taskgraph.sites} sites, {hardware.name} has {hardware.sites}")
    with uncollected():
        return _Run(taskgraph, hardware, in_order).run()


#: The stage of an event that ends a task; others count the ports that a move has passed.
_DONE = 0


class _Run:
    """The state of a simulation.  Events are ``(time, serial, stage, task)``."""

    def __init__(self, taskgraph: TaskGraph, hardware: Hardware, in_order: bool) -> None:
        self.taskgraph, self.hardware, self.in_order = taskgraph, hardware, in_order
        tasks, sites = taskgraph.tasks, taskgraph.sites
        self.site = [task.site for task in tasks]
        self.sizes = [nbytes(task) for task in tasks]
        self.moves = [isinstance(task, Move) for task in tasks]
        self.seconds = durations(taskgraph, hardware)
        self.urgency = urgencies(taskgraph, self.seconds)
        self.readers = taskgraph.consumers
        self.waiting = [len(set(task.inputs)) for task in tasks]
        self.starts, self.ends = [0.0] * len(tasks), [0.0] * len(tasks)
        self.ready: list[list[tuple[float, int]]] = [[] for _ in range(sites)]
        self.idle = [True] * sites
        self.queue: list[list[int]] = [[] for _ in range(sites)]  # in order: what is left, last first
        if in_order:
            for i in range(len(tasks) - 1, -1, -1):
                if not self.moves[i]:
                    self.queue[self.site[i]].append(i)
        self.hosts = {host: k for k, host in enumerate(dict.fromkeys(hardware.hosts))}
        self.free = [0.0] * (2 * sites + 2 * len(self.hosts))  # when a port is
        self.routes: dict[tuple[int, int], tuple[tuple[int, Link], ...]] = {}
        self.events: list[tuple[float, int, int, int]] = []
        self.serial = 0

    def run(self) -> Simulation:
        for i, n in enumerate(self.waiting):
            if not n:
                self.enable(0.0, i)
        for site in range(self.taskgraph.sites):
            self.dispatch(0.0, site)
        events = self.events
        while events:
            now, _, stage, i = heappop(events)
            if stage == _DONE:
                self.finish(now, i)
            else:
                self.pass_port(now, i, stage)
        return Simulation(self.taskgraph, self.hardware, tuple(self.starts), tuple(self.ends))

    def post(self, at: float, stage: int, i: int) -> None:
        self.serial += 1
        heappush(self.events, (at, self.serial, stage, i))

    def enable(self, now: float, i: int) -> None:
        """All that task `i` reads is there."""
        if self.moves[i]:
            self.pass_port(now, i, 0)
        else:
            heappush(self.ready[self.site[i]], (-self.urgency[i], i))

    def dispatch(self, now: float, site: int) -> None:
        """Give `site`, which is idle, its next task, if there is one."""
        ready = self.ready[site]
        if not ready:
            return
        if self.in_order:
            i = self.queue[site][-1]
            if self.waiting[i]:
                return
            self.queue[site].pop()
            ready.remove((-self.urgency[i], i))
        else:
            i = heappop(ready)[1]
        self.idle[site] = False
        self.starts[i] = now
        self.post(now + self.seconds[i], _DONE, i)

    def finish(self, now: float, i: int) -> None:
        self.ends[i] = now
        mine, touched = self.site[i], set()
        if not self.moves[i]:
            self.idle[mine] = True
            touched.add(mine)
        for r in self.readers[i]:
            self.waiting[r] -= 1
            if not self.waiting[r]:
                self.enable(now, r)
                if not self.moves[r]:
                    touched.add(self.site[r])
        for site in sorted(touched):
            if self.idle[site]:
                self.dispatch(now, site)

    def pass_port(self, now: float, i: int, stage: int) -> None:
        """Let move `i` wait for, and stream through, its next port."""
        a, b = self.site[self.taskgraph.tasks[i].inputs[0]], self.site[i]
        route = self.routes.get((a, b)) or self.route(a, b)
        port, link = route[stage]
        start = max(now, self.free[port])
        self.free[port] = start + link.gap + self.sizes[i] / link.bandwidth
        if stage == 0:
            self.starts[i] = start
        if stage + 1 < len(route):
            self.post(start, stage + 1, i)
        else:  # it is there when the last byte is through the slowest port
            self.post(start + self.seconds[i], _DONE, i)

    def route(self, a: int, b: int) -> tuple[tuple[int, Link], ...]:
        """Return the ports from site `a` to site `b`, and the link that each belongs to."""
        sites, hardware = self.taskgraph.sites, self.hardware
        out, into = (a, hardware.near), (sites + b, hardware.near)
        route = out, into
        here, there = hardware.hosts[a], hardware.hosts[b]
        if here != there:
            leave, enter = 2 * (sites + self.hosts[here]), 2 * (sites + self.hosts[there]) + 1
            route = out, (leave, hardware.far), (enter, hardware.far), into
        self.routes[a, b] = route
        return route
