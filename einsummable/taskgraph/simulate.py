"""A run of a TaskGraph on a Hardware that nobody has at hand: discrete events.

Contract: `simulate` answers when every task would start and end.  A site runs one task at a time, the most
urgent of those that are ready (or, in order, the next one only).  A move passes its site's port, where it
leaves its host both hosts' ports, and the port of the site it goes to; every port serves one move at a time,
first come first served, and the move streams through them.  Kernels take what flops or memory bandwidth
allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from math import prod

from einsummable import dtypes
from einsummable.errors import PlanError
from einsummable.graph import Einsummable, box_shape, flops
from einsummable.planner.hardware import Hardware
from einsummable.taskgraph.held import Held, series
from einsummable.taskgraph.tasks import (
    Aggregate,
    Apply,
    Assemble,
    Fused,
    Move,
    Read,
    Slice,
    Task,
    TaskGraph,
    calls,
    nbytes,
)


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
        return tuple(max((held for _, held in steps), default=0) for steps in self.memory)

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
    costs = [_seconds(taskgraph, hardware, task) for task in taskgraph.tasks]
    return _Run(taskgraph, hardware, costs, in_order).run()


def _seconds(taskgraph: TaskGraph, hardware: Hardware, task: Task) -> float:
    """Return how long a site works on `task`, or, of a move, a message of its size takes on its link."""
    match task:
        case Read() | Slice():
            return 0.0  # views
        case Move():
            return hardware.link(taskgraph.tasks[task.inputs[0]].site, task.site).seconds(nbytes(task))
        case Apply() | Fused():
            return hardware.overhead + _kernel_seconds(taskgraph, hardware, task)
        case Assemble():
            return hardware.overhead + 2 * nbytes(task) / hardware.memory_bandwidth
        case Aggregate():
            touched = (len(task.inputs) + 1) * nbytes(task)
            work = (len(task.inputs) - 1) * prod(task.shape)
            return hardware.overhead + max(touched / hardware.memory_bandwidth, work / hardware.map_flops)


def _kernel_seconds(taskgraph: TaskGraph, hardware: Hardware, task: Apply | Fused) -> float:
    seconds = 0.0
    for origin, ranges in calls(task):
        node = taskgraph.graph.nodes[origin]
        whole = prod(n for _, n in node.space)
        work = flops(node) * prod(box_shape(ranges)) / whole if whole else 0.0
        product = isinstance(node, Einsummable) and node.is_contraction
        rate = hardware.product_flops(dtypes.accumulator(node.dtype)) if product else hardware.map_flops
        seconds += work / rate
    touched = nbytes(task) + sum(nbytes(taskgraph.tasks[j]) for j in task.inputs)
    return max(seconds, touched / hardware.memory_bandwidth)


class _Run:
    """The state of a simulation.  Events are ``(time, serial, what, task)``; `what` is a stage of a move."""

    def __init__(
        self, taskgraph: TaskGraph, hardware: Hardware, costs: Sequence[float], in_order: bool
    ) -> None:
        self.taskgraph, self.hardware, self.costs, self.in_order = taskgraph, hardware, costs, in_order
        tasks = taskgraph.tasks
        self.waiting = [len(set(task.inputs)) for task in tasks]
        self.starts, self.ends = [0.0] * len(tasks), [0.0] * len(tasks)
        self.urgency = _urgencies(taskgraph, costs)
        self.ready: list[list[tuple[float, int]]] = [[] for _ in range(taskgraph.sites)]
        self.idle = [True] * taskgraph.sites
        self.queue: list[list[int]] = [
            [] for _ in range(taskgraph.sites)
        ]  # in order: what is left, last first
        for i in range(len(tasks) - 1, -1, -1):
            if not isinstance(tasks[i], Move):
                self.queue[tasks[i].site].append(i)
        self.free: dict[tuple[str, int], float] = {}  # when a port is
        self.events: list[tuple[float, int, int, int]] = []
        self.serial = 0

    def run(self) -> Simulation:
        for i, n in enumerate(self.waiting):
            if not n:
                self.enable(0.0, i)
        for site in range(self.taskgraph.sites):
            self.dispatch(0.0, site)
        while self.events:
            now, _, stage, i = heappop(self.events)
            if stage == DONE:
                self.finish(now, i)
            else:
                self.pass_port(now, i, stage)
        return Simulation(self.taskgraph, self.hardware, tuple(self.starts), tuple(self.ends))

    def post(self, at: float, stage: int, i: int) -> None:
        self.serial += 1
        heappush(self.events, (at, self.serial, stage, i))

    def enable(self, now: float, i: int) -> None:
        """All that task `i` reads is there."""
        task = self.taskgraph.tasks[i]
        if isinstance(task, Move):
            self.post(now, 0, i)
        else:
            heappush(self.ready[task.site], (-self.urgency[i], i))

    def dispatch(self, now: float, site: int) -> None:
        """Give `site` its next task, if it is idle and there is one."""
        if not self.idle[site] or not self.ready[site]:
            return
        if self.in_order:
            i = self.queue[site][-1]
            if self.waiting[i]:
                return
            self.queue[site].pop()
            self.ready[site].remove((-self.urgency[i], i))
        else:
            i = heappop(self.ready[site])[1]
        self.idle[site] = False
        self.starts[i] = now
        self.post(now + self.costs[i], DONE, i)

    def finish(self, now: float, i: int) -> None:
        task = self.taskgraph.tasks[i]
        self.ends[i] = now
        if not isinstance(task, Move):
            self.idle[task.site] = True
        touched = {task.site}
        for r in self.taskgraph.consumers[i]:
            self.waiting[r] -= 1
            if not self.waiting[r]:
                self.enable(now, r)
                touched.add(self.taskgraph.tasks[r].site)
        for site in sorted(touched):
            self.dispatch(now, site)

    def pass_port(self, now: float, i: int, stage: int) -> None:
        """Let move `i` wait for, and stream through, its next port."""
        ports = self.ports(i)
        port, bandwidth = ports[stage]
        size = nbytes(self.taskgraph.tasks[i])
        start = max(now, self.free.get(port, 0.0))
        self.free[port] = start + size / bandwidth
        if stage == 0:
            self.starts[i] = start
        if stage + 1 < len(ports):
            self.post(start, stage + 1, i)
            return
        # It is there when the last byte is through the slowest port.
        slowest = max(size / b for _, b in ports)
        a, b = self.taskgraph.tasks[self.taskgraph.tasks[i].inputs[0]].site, self.taskgraph.tasks[i].site
        self.post(start + slowest + self.hardware.link(a, b).latency, DONE, i)

    def ports(self, i: int) -> list[tuple[tuple[str, int], float]]:
        task, hardware = self.taskgraph.tasks[i], self.hardware
        a, b = self.taskgraph.tasks[task.inputs[0]].site, task.site
        near, far = hardware.near.bandwidth, hardware.far.bandwidth
        if hardware.hosts[a] == hardware.hosts[b]:
            return [(("site out", a), near), (("site in", b), near)]
        out, into = ("host out", hardware.hosts[a]), ("host in", hardware.hosts[b])
        return [(("site out", a), near), (out, far), (into, far), (("site in", b), near)]


#: The stage of an event that ends a task; others count the ports of a move.
DONE = -1


def _urgencies(taskgraph: TaskGraph, costs: Sequence[float]) -> list[float]:
    """Return for each task the time from its start to the end of the program if nothing has to wait."""
    urgency = list(costs)
    for i in range(len(costs) - 1, -1, -1):
        urgency[i] += max((urgency[r] for r in taskgraph.consumers[i]), default=0.0)
    return urgency
