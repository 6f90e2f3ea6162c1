"""One site's loop within a budget: the steps of a MemoryPlan, in one arena.

Contract: `bounded` cuts a MemoryPlan into what each site needs of it, `BoundedProgram` has its kernels, and
`run_bounded` takes the steps in their order.  Blocks leave, come, are written and are loaded meanwhile; a
step waits only for what it reads, and for whatever still uses the place that it writes to.  All memory that
blocks take is the `Arena`, which is used again by the next run.

Transport is the caller's `handover.Port`.  Whatever a port does ends with a `Done` in the site's inbox;
``Stop(reason)`` there ends the run after the current task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np

from einsummable.errors import EngineError
from einsummable.functions import AGGREGATES
from einsummable.kernels import blocks as kernels
from einsummable.kernels.warm import budget
from einsummable.runtime.arena import Arena
from einsummable.runtime.disk import Disk
from einsummable.runtime.engine import SiteProgram, SiteStoppedError, Stop, TaskFailedError, load
from einsummable.runtime.events import SiteLog, clock
from einsummable.runtime.handover import Done, Key, Port
from einsummable.runtime.part import SitePart, Source, split
from einsummable.taskgraph.memory import (
    Evict,
    Free,
    Load,
    MemoryPlan,
    MemoryStep,
    Receive,
    Run,
    Send,
    SiteMemory,
    aligned,
)
from einsummable.taskgraph.tasks import Aggregate, Assemble, Move, Read, Slice, Task, nbytes


@dataclass(frozen=True, slots=True)
class BoundedPart:
    """What one site needs of a MemoryPlan: `sources` has the site that each Move comes from.

    `in_place` has, for all sites, the tasks that replace an input's block, and the Read of each.
    """

    part: SitePart
    memory: SiteMemory
    views: tuple[str, ...]
    sources: tuple[tuple[int, int], ...]
    in_place: tuple[tuple[int, int], ...] = ()

    @property
    def site(self) -> int:
        """The site."""
        return self.part.site

    @property
    def reads(self) -> tuple[Source, ...]:
        """The boxes of the program's inputs that this site reads, each once."""
        return self.part.reads


def bounded(plan: MemoryPlan) -> tuple[BoundedPart, ...]:
    """Return the part of every site."""
    tasks = plan.taskgraph.tasks

    def sources(part: SitePart) -> tuple[tuple[int, int], ...]:
        return tuple((tag, tasks[tasks[tag].inputs[0]].site) for tag, *_ in part.arrivals)

    parts = zip(split(plan.taskgraph), plan.sites, strict=True)
    replaced = tuple(plan.in_place.items())
    return tuple(BoundedPart(part, memory, plan.views, sources(part), replaced) for part, memory in parts)


class BoundedProgram:
    """A part with its kernels chosen, and places on disk for what it evicts."""

    def __init__(self, bounded_part: BoundedPart) -> None:
        self.part, self.memory = bounded_part.part, bounded_part.memory
        self.views, self.sources = frozenset(bounded_part.views), dict(bounded_part.sources)
        self.in_place = dict(bounded_part.in_place)
        self.program: SiteProgram = load(self.part)
        self.slots = {task: slot for slot, task in enumerate(self.part.ids)}
        self.tasks: dict[int, Task] = dict(zip(self.part.ids, self.part.tasks, strict=True))
        self.inputs = {
            task: tuple(map(self.part.task_of, slots))
            for task, slots in zip(self.part.ids, self.part.inputs, strict=True)
        }
        self.moves = {
            tag: (task, site)
            for task, sends in zip(self.part.ids, self.part.sends, strict=True)
            for site, tag in sends
        }
        for tag, shape, dtype in self.part.arrivals:
            self.tasks[tag] = Move(self.part.site, (), shape, dtype, 0)
        self.on_disk, size = {}, 0
        for step in self.memory.steps:
            if isinstance(step, Evict) and step.write:
                self.on_disk[step.task] = size
                size += aligned(nbytes(self.tasks[step.task]))


def run_bounded(
    program: BoundedProgram,
    arena: Arena,
    *,
    inputs: Mapping[Source, np.ndarray],
    params: Mapping[str, np.generic],
    port: Port,
    inbox: SimpleQueue[Done | Stop],
    log: SiteLog,
) -> None:
    """Run all steps of a site; results go out through ``port.deliver``.

    Parameters
    ----------
    inputs
        The boxes of those inputs that the plan treats as views.
    params
        The scalars of the program, as `evaluate.read_params` casts them.

    Raises
    ------
    TaskFailedError
        A task raised.
    SiteStoppedError
        A `Stop` was in the inbox.
    EngineError
        The disk is full.
    """
    try:
        with budget(), np.errstate(all="ignore"), Disk() if program.on_disk else nullcontext() as disk:
            _Run(program, arena.of(program.memory.size), inputs, params, port, inbox, log, disk).run()
    except BaseException:
        arena.abandon()
        raise


class _Run:
    """One run of a site."""

    def __init__(
        self,
        program: BoundedProgram,
        memory: np.ndarray,
        inputs: Mapping[Source, np.ndarray],
        params: Mapping[str, np.generic],
        port: Port,
        inbox: SimpleQueue[Done | Stop],
        log: SiteLog,
        disk: Disk | None,
    ) -> None:
        self.program, self.memory, self.inputs, self.params = program, memory, inputs, params
        self.port, self.inbox, self.log, self.disk = port, inbox, log, disk
        self.where: dict[int, int] = {}
        self.read: set[int] = set()
        #: What was begun and is not done: the bytes it concerns, and whether it writes them.
        self.pending: dict[Key, tuple[int, int, bool]] = {}
        #: What of it the log is to know: which list it goes to, the task, and when it was begun.
        self.begun: dict[Key, tuple[str, int, float]] = {}
        self.numbers = iter(range(1 << 62))

    def run(self) -> None:
        """Take all steps, and hand the results over."""
        for step in self.program.memory.steps:
            self.step(step)
            while not self.inbox.empty():
                self.take(self.inbox.get())
        self.deliver()
        self.log.running = -1

    def step(self, step: MemoryStep) -> None:
        """Take one step."""
        match step:
            case Run(task, offset, reuses):
                self.work(task, offset, reuses)
            case Send(tag):
                task, site = self.program.moves[tag]
                block = self.block(task)
                self.begin(("sent", tag), *self.range_of(task), writes=False)
                self.log.sent.append((tag, clock()))
                self.port.offer(site, tag, block)
            case Receive(tag, offset):
                place = self.place(tag, offset)
                self.begin(("arrived", tag), *self.range_of(tag), writes=True)
                self.port.accept(self.program.sources[tag], tag, place)
            case Load(task, offset):
                self.load(task, offset)
            case Evict(task, write):
                if write:
                    self.settle(*self.range_of(task))
                    key = self.begin_on_disk("evicted", task)
                    self.disk.store(self.program.on_disk[task], self.raw(task), self.telling(key))
                else:
                    self.log.evicted.append((task, clock(), clock()))
                del self.where[task]
            case Free(task):
                del self.where[task]

    # ------------------------------------------------------------------------------------- tasks

    def work(self, task: int, offset: int, reuses: int) -> None:
        """Do one task."""
        if offset < 0 and task not in self.program.in_place:  # a view: there is nothing to do
            self.log.ran.append((task, clock(), clock()))
            return
        args = [self.block(j) for j in self.program.inputs[task]]
        if reuses >= 0:
            reused = self.program.inputs[task].index(reuses)
            self.where[task] = self.where.pop(reuses)
            self.clear(*self.range_of(task))
            out = self.view(task)
        elif offset < 0:
            reused, out = -1, self.view(task)
        else:
            reused, out = -1, self.place(task, offset)
        self.log.running = task
        began = clock()
        try:
            self.compute(task, args, out, reused)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise TaskFailedError(self.program.part.site, task, reason) from error
        self.log.ran.append((task, began, clock()))

    def compute(self, t: int, args: list[np.ndarray], out: np.ndarray, reused: int) -> None:
        """Put the block of a task into `out`."""
        match self.program.tasks[t]:
            case Assemble() as task:
                for piece, box in zip(args, task.places, strict=True):
                    out[tuple(slice(*r) for r in box)] = piece
            case Aggregate() as task if out.dtype.itemsize == 2 or len(args) == 1:
                out[...] = kernels.aggregate(args, (task.aggregate, -1))  # accumulated in more digits
            case Aggregate() as task:
                ufunc = AGGREGATES[task.aggregate].ufunc
                rest = args[:reused] + args[reused + 1 :] if reused >= 0 else args[2:]
                if reused < 0:
                    ufunc(args[0], args[1], out=out)
                for block in rest:
                    ufunc(out, block, out=out)
            case _:
                kernel, at = self.program.program.steps[self.program.slots[t]]
                kernel(args, at, self.params, out)

    def load(self, task: int, offset: int) -> None:
        """Begin to bring a block to `offset`."""
        kind = self.program.tasks[task]
        place = self.place(task, offset)
        if task in self.program.on_disk and not isinstance(kind, Read):
            key = self.begin_on_disk("loaded", task)
            self.disk.load(self.program.on_disk[task], self.raw(task), self.telling(key))
            return
        key = "input", next(self.numbers)
        self.begin(key, *self.range_of(task), writes=True)
        if task in self.read:
            self.begun[key] = "loaded", task, clock()
        else:
            self.read.add(task)
            self.log.ran.append((task, clock(), clock()))
        self.port.fetch((kind.name, kind.box), key[1], place)

    def deliver(self) -> None:
        """Hand over the blocks of results: first those in memory, then one by one those on disk."""
        outputs = [self.program.part.task_of(slot) for slot in self.program.part.outputs]
        away = [task for task in outputs if not self.is_here(task)]
        for task in outputs:
            if task not in away:
                self.hand_over(task)
        for task in away:
            self.wait_for(lambda: bool(self.pending))
            base = self.base(task)
            self.where = {}
            self.load(base, 0)
            self.hand_over(task)
        self.wait_for(lambda: bool(self.pending))

    def hand_over(self, task: int) -> None:
        """Give one block to the port."""
        block = self.block(task)
        self.begin(("result", task), *self.range_of(task), writes=False)
        self.port.deliver(task, block)

    # ------------------------------------------------------------------------------------ blocks

    def base(self, task: int) -> int:
        """Return the task whose block `task` is, or is a view of."""
        while isinstance(self.program.tasks[task], Slice):
            task = self.program.inputs[task][0]
        return task

    def is_view(self, task: int) -> bool:
        """Return whether a base is outside the arena."""
        kind, program = self.program.tasks[task], self.program
        return task in program.in_place or (isinstance(kind, Read) and kind.name in program.views)

    def is_here(self, task: int) -> bool:
        """Return whether the block of `task` is in memory."""
        base = self.base(task)
        return base in self.where or self.is_view(base)

    def range_of(self, task: int) -> tuple[int, int]:
        """Return the bytes in which the block of `task` is; none if it is outside."""
        base = self.base(task)
        if base not in self.where:
            return 0, 0
        start = self.where[base]
        return start, start + nbytes(self.program.tasks[base])

    def raw(self, task: int) -> np.ndarray:
        """Return the bytes of a block in the arena."""
        return self.memory[slice(*self.range_of(task))]

    def view(self, task: int) -> np.ndarray:
        """Return a block in the arena, or outside, as it is at this moment."""
        kind = self.program.tasks[task]
        if isinstance(kind, Slice):
            source = self.view(self.program.inputs[task][0])
            return source[(*(slice(*r) for r in kind.box), ...)]
        if task in self.program.in_place:
            kind = self.program.tasks[self.program.in_place[task]]
            return self.inputs[kind.name, kind.box]
        if self.is_view(task):
            outside = self.inputs[kind.name, kind.box].view()
            outside.flags.writeable = False  # whatever goes wrong, the caller's array stays as it is
            return outside
        return self.raw(task).view(kind.dtype).reshape(kind.shape)

    def block(self, task: int) -> np.ndarray:
        """Return the block of `task` once it is there."""
        self.settle(*self.range_of(task))
        return self.view(task)

    def place(self, task: int, offset: int) -> np.ndarray:
        """Return the place of a new block once nothing else uses it."""
        self.where[task] = offset
        self.clear(*self.range_of(task))
        return self.view(task)

    # ----------------------------------------------------------------------------------- waiting

    def begin(self, key: Key, start: int, stop: int, *, writes: bool) -> None:
        """Note what is under way."""
        self.pending[key] = start, stop, writes

    def begin_on_disk(self, kind: str, task: int) -> Key:
        """Note that a block is on its way to disk, "evicted", or back, "loaded"."""
        key = "disk", next(self.numbers)
        self.begin(key, *self.range_of(task), writes=kind == "loaded")
        self.begun[key] = kind, task, clock()
        return key

    def telling(self, key: Key) -> Callable[[BaseException | None], None]:
        """Return what puts the end of something into the inbox."""
        return lambda error: self.inbox.put(Done(key, error))

    def settle(self, start: int, stop: int) -> None:
        """Wait until nothing writes to these bytes any more."""
        if self.pending:
            self.wait_for(lambda: any(w and a < stop and start < b for a, b, w in self.pending.values()))

    def clear(self, start: int, stop: int) -> None:
        """Wait until nothing uses these bytes any more."""
        if self.pending:
            self.wait_for(lambda: any(a < stop and start < b for a, b, _ in self.pending.values()))

    def wait_for(self, busy: Callable[[], bool]) -> None:
        """Take what comes in as long as that is so."""
        while busy():
            self.take(self.inbox.get())

    def take(self, message: Done | Stop) -> None:
        """Take one message."""
        match message:
            case Stop(reason):
                raise SiteStoppedError(f"site {self.program.part.site} was stopped: {reason}")
            case Done(key, None):
                self.pending.pop(key, None)
                if key[0] == "arrived":
                    self.log.received.append((key[1], clock()))
                elif key in self.begun:
                    kind, *row = self.begun.pop(key)
                    getattr(self.log, kind).append((*row, clock()))
            case Done(_, error):
                site = self.program.part.site
                raise EngineError(f"site {site} cannot keep evicted blocks on disk: {error}")
