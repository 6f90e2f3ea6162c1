"""The MemoryPlan: where in one arena a site every block is, from when to when.

Contract: every site has a fixed order of steps.  A block that takes space is at one offset from the step
that makes it (`Run`, `Receive`, `Load`) to the one that ends it (`Free`, `Evict`), and no two live ones
overlap.  An evicted block is loaded back before it is read; a clean one, which the disk or an input still
has, is dropped without being written.  Slices are views, and so are Reads of the inputs in `views`: neither
takes space, nor does what is made in the place of such an input that is `given` up (see `updates`).  Sites
may run at different speeds; the order of sends and receives lets none wait for ever.

    plan = allocate(taskgraph, "64MB")        # `allocate.allocate`
    evaluate(plan, arrays)                    # `replay.evaluate`
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from einsummable.codec import register_union
from einsummable.errors import CapacityError, TaskError
from einsummable.taskgraph.tasks import Move, Read, Slice, TaskGraph, nbytes
from einsummable.taskgraph.updates import in_place

#: Offsets are multiples of this, for vector instructions and cache lines.
ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Run:
    """Do `task`; its block is at `offset`, -1 for outside, or in the place of block `reuses`, which ends."""

    task: int
    offset: int
    reuses: int = -1


@dataclass(frozen=True, slots=True)
class Send:
    """From here on the block of the Move `task` may leave; its source keeps its place until it has."""

    task: int


@dataclass(frozen=True, slots=True)
class Receive:
    """From here on there is space at `offset` for the block of the Move `task`."""

    task: int
    offset: int


@dataclass(frozen=True, slots=True)
class Load:
    """Bring the block of `task` to `offset`: from disk, or for a Read from the input."""

    task: int
    offset: int


@dataclass(frozen=True, slots=True)
class Evict:
    """End the place of a block that is still needed; `write` it to disk if nothing else has it."""

    task: int
    write: bool


@dataclass(frozen=True, slots=True)
class Free:
    """End the place of a block that nothing needs any more."""

    task: int


MemoryStep = register_union(Run | Send | Receive | Load | Evict | Free)

#: A block's stay in the arena: task, offset, bytes, and the steps ``[start, stop)`` of its site.
Lifetime: TypeAlias = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class SiteMemory:
    """The steps of one site, the bytes of its arena, and how many that may be, -1 if that is open."""

    site: int
    budget: int
    size: int
    steps: tuple[MemoryStep, ...]


@dataclass(frozen=True, repr=False)
class MemoryPlan:
    """A TaskGraph with a place for every block."""

    taskgraph: TaskGraph
    sites: tuple[SiteMemory, ...]
    views: tuple[str, ...] = field(default=())
    given: tuple[str, ...] = field(default=())

    @cached_property
    def in_place(self) -> dict[int, int]:
        """The tasks whose blocks replace those of inputs that are given up, and the Reads of these."""
        return in_place(self.taskgraph, set(self.given) & set(self.views))

    @cached_property
    def lifetimes(self) -> tuple[tuple[Lifetime, ...], ...]:
        """The stays of blocks in the arena of each site, in the order in which they begin."""
        return tuple(tuple(sorted(_lifetimes(self, s), key=_begin)) for s in self.sites)

    @cached_property
    def peaks(self) -> tuple[int, ...]:
        """For each site the end of the highest block: what it really needs of its arena."""
        return tuple(max((at + n for _, at, n, _, _ in stays), default=0) for stays in self.lifetimes)

    @property
    def written(self) -> int:
        """Bytes that are written to disk."""
        evicted = (s.task for m in self.sites for s in m.steps if isinstance(s, Evict) and s.write)
        return sum(nbytes(self.taskgraph.tasks[t]) for t in evicted)

    @property
    def loaded(self) -> int:
        """Bytes that are loaded, from disk and from inputs."""
        loads = (s.task for m in self.sites for s in m.steps if isinstance(s, Load))
        return sum(nbytes(self.taskgraph.tasks[t]) for t in loads)

    def __str__(self) -> str:
        lines = [f"memoryplan on {len(self.sites)} sites: {self.written} bytes written, {self.loaded} loaded"]
        for memory, peak in zip(self.sites, self.peaks, strict=True):
            allowed = f" of {memory.budget}" if memory.budget >= 0 else ""
            lines.append(f"@{memory.site}: {peak}{allowed} bytes")
            lines += [f"  {_describe(step)}" for step in memory.steps]
        return "\n".join(lines)

    __repr__ = __str__


def _begin(stay: Lifetime) -> tuple[int, int]:
    return stay[3], stay[0]


def _describe(step: MemoryStep) -> str:
    match step:
        case Run(task, -1):
            return f"run #{task}"
        case Run(task, offset, -1):
            return f"run #{task} at {offset}"
        case Run(task, offset, reuses):
            return f"run #{task} at {offset} in place of #{reuses}"
        case Receive(task, offset) | Load(task, offset):
            return f"{type(step).__name__.lower()} #{task} at {offset}"
        case Evict(task, True):
            return f"evict #{task}, written"
    return f"{type(step).__name__.lower()} #{step.task}"


def aligned(n: int) -> int:
    """Return `n` bytes rounded up to the alignment of offsets."""
    return -(-n // ALIGNMENT) * ALIGNMENT


def takes_space(plan: MemoryPlan, task: int) -> bool:
    """Return whether the block of `task` has a place of its own."""
    kind = plan.taskgraph.tasks[task]
    viewed = isinstance(kind, Read) and kind.name in plan.views
    return not isinstance(kind, Slice) and not viewed and task not in plan.in_place


def root(taskgraph: TaskGraph, task: int) -> int:
    """Return the task whose block `task` is, or is a view of."""
    while isinstance(taskgraph.tasks[task], Slice):
        task = taskgraph.tasks[task].inputs[0]
    return task


def _lifetimes(plan: MemoryPlan, memory: SiteMemory) -> Iterator[Lifetime]:
    tasks, since = plan.taskgraph.tasks, {}
    for n, step in enumerate(memory.steps):
        ended = getattr(step, "reuses", -1) if not isinstance(step, Evict | Free) else step.task
        if ended in since:
            at, start = since.pop(ended)
            yield ended, at, aligned(nbytes(tasks[ended])), start, n
        if isinstance(step, Run | Receive | Load) and step.offset >= 0:
            since[step.task] = step.offset, n
    for task, (at, start) in since.items():
        yield task, at, aligned(nbytes(tasks[task])), start, len(memory.steps)


# ------------------------------------------------------------------------------------------- check


class _SiteState:
    """What of a site's arena is taken, while its steps are gone through."""

    def __init__(self, plan: MemoryPlan, memory: SiteMemory) -> None:
        self.plan, self.memory = plan, memory
        self.where: dict[int, int] = {}
        self.saved: set[int] = set()
        self.done: set[int] = set()
        self._taken: list[tuple[int, int, int]] = []  # offset, end, task; sorted

    def step(self, n: int, step: MemoryStep) -> None:
        """Take one step, or raise what is wrong with it."""
        where = f"step {n} of site {self.memory.site} ({_describe(step)})"
        if not 0 <= step.task < len(self.plan.taskgraph.tasks):
            raise TaskError(f"{where}: there is no such task")
        task = self.plan.taskgraph.tasks[step.task]
        match step:
            case Run():
                self._once(where, step.task, task.site)
                if isinstance(task, Move) or (step.offset < 0) == takes_space(self.plan, step.task):
                    raise TaskError(f"{where}: a {type(task).__name__} has no such place")
                self._need(where, () if isinstance(task, Slice) else task.inputs)
                self._run(where, step)
            case Send():
                self._once(where, step.task, self.plan.taskgraph.tasks[task.inputs[0]].site)
                self._need(where, task.inputs)
            case Receive():
                self._once(where, step.task, task.site)
                self._place(where, step.task, step.offset)
            case Load():
                if not isinstance(task, Read) and step.task not in self.saved:
                    raise TaskError(f"{where}: it was not written to disk")
                self.done.add(step.task)
                self._place(where, step.task, step.offset)
            case Evict() | Free():
                self._end(where, step.task)
                if isinstance(step, Evict):
                    if not (step.write or isinstance(task, Read) or step.task in self.saved):
                        raise TaskError(f"{where}: it is lost, for nothing else has it")
                    self.saved.add(step.task)

    def _once(self, where: str, task: int, site: int) -> None:
        if site != self.memory.site:
            raise TaskError(f"{where}: it belongs to site {site}")
        if task in self.done:
            raise TaskError(f"{where}: it was done before")
        self.done.add(task)

    def _need(self, where: str, inputs: tuple[int, ...]) -> None:
        for j in inputs:
            r = root(self.plan.taskgraph, j)
            there = r in self.where if takes_space(self.plan, r) else r in self.done
            if not there or j not in self.done:
                raise TaskError(f"{where} reads #{j}, which is not in memory")

    def _run(self, where: str, step: Run) -> None:
        if step.reuses >= 0:
            if self.where.get(step.reuses) != step.offset:
                raise TaskError(f"{where}: #{step.reuses} is not there")
            if step.reuses not in self.plan.taskgraph.tasks[step.task].inputs:
                raise TaskError(f"{where}: it does not read #{step.reuses}")
            self._end(where, step.reuses)
        if step.offset >= 0:
            self._place(where, step.task, step.offset)

    def _place(self, where: str, task: int, offset: int) -> None:
        end = offset + aligned(nbytes(self.plan.taskgraph.tasks[task]))
        if task in self.where:
            raise TaskError(f"{where}: it is in memory already")
        if offset < 0 or offset % ALIGNMENT:
            raise TaskError(f"{where}: offsets are multiples of {ALIGNMENT}")
        limit = min(n for n in (self.memory.size, self.memory.budget) if n >= 0)
        if end > limit:
            raise CapacityError(f"{where} ends at {end}, beyond the {limit} bytes of the site")
        if end > offset:
            i = bisect_right(self._taken, (offset, end, task))
            for start, stop, other in self._taken[max(i - 1, 0) : i + 1]:
                if start < end and offset < stop:
                    raise TaskError(f"{where} overlaps #{other} at {start}")
            insort(self._taken, (offset, end, task))
        self.where[task] = offset

    def _end(self, where: str, task: int) -> None:
        if task not in self.where:
            raise TaskError(f"{where}: #{task} is not in memory")
        offset = self.where.pop(task)
        end = offset + aligned(nbytes(self.plan.taskgraph.tasks[task]))
        if end > offset:
            self._taken.remove((offset, end, task))


def check(plan: MemoryPlan) -> None:
    """Raise `TaskError` or `CapacityError` unless `plan` is well formed; return nothing."""
    taskgraph = plan.taskgraph
    if [memory.site for memory in plan.sites] != list(range(taskgraph.sites)):
        raise TaskError(f"the plan has {len(plan.sites)} sites, the program {taskgraph.sites}")
    states = [_SiteState(plan, memory) for memory in plan.sites]
    for site, n in in_turn(plan):
        states[site].step(n, plan.sites[site].steps[n])
    for i, task in enumerate(taskgraph.tasks):
        if i not in states[task.site].done:
            raise TaskError(f"#{i} ({type(task).__name__} of %{task.origin}) is never done")
    for out in taskgraph.outputs:
        for t, _ in out.blocks:
            state, r = states[taskgraph.tasks[t].site], root(taskgraph, t)
            if takes_space(plan, r) and r not in state.where and r not in state.saved:
                raise TaskError(f"a block of the output {out.name!r} is gone at the end: #{t}")


def in_turn(plan: MemoryPlan) -> Iterator[tuple[int, int]]:
    """Yield ``(site, step)`` in an order in which one thread can take all steps.

    A send and its receive are taken together, as if neither end could go on without the other, which is
    stricter than any transport: where this ends, sites at any speeds do.

    Raises
    ------
    TaskError
        Sites wait for each other for ever.
    """
    next_step = [0] * len(plan.sites)
    at: dict[int, int] = {}  # a Move that one end waits with: that end's site
    ready = list(range(len(plan.sites)))
    while ready:
        site = ready.pop()
        steps = plan.sites[site].steps
        while next_step[site] < len(steps):
            n = next_step[site]
            if isinstance(steps[n], Send | Receive):
                other = at.pop(steps[n].task, None)
                if other is None:
                    at[steps[n].task] = site
                    break
                # What is sent must be there before it is received.
                pair = [(site, n), (other, next_step[other])]
                yield from sorted(pair, key=lambda p: isinstance(plan.sites[p[0]].steps[p[1]], Receive))
                next_step[other] += 1
                ready.append(other)
            else:
                yield site, n
            next_step[site] += 1
    if at:
        task, site = next(iter(at.items()))
        raise TaskError(f"site {site} waits for ever for the other end of #{task}")
