"""One site's loop: the same for a thread of this process and for an engine of a cluster.

Contract: `load` chooses the kernels of a `SitePart` once; `run_site` runs it as often as one likes,
data-driven: what is ready runs, the most urgent first, and a block is dropped when its last reader is done.

Transport is the caller's.  ``send(site, tag, block)`` must return at once and not change the block; on the
other side it is put into that site's `Inbox` as ``(tag, array)``: an array of the block's shape and dtype,
or its bytes as flat uint8.  A writable array belongs to the receiver; who passes a reference passes a
read-only view.  ``Stop(reason)`` in the inbox ends the run after the current task with `SiteStoppedError`.

    part = split(taskgraph)[site]
    result = run_site(load(part), inputs=take(part, arrays), params=scalars, send=send, inbox=SimpleQueue())
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from heapq import heapify, heappop, heappush
from queue import SimpleQueue
from typing import TypeAlias

import numpy as np

from einsummable.errors import EngineError
from einsummable.kernels import blocks as kernels
from einsummable.kernels.chain import chain
from einsummable.kernels.compiled import Compiled
from einsummable.kernels.schedule import Link
from einsummable.nodes import box_shape
from einsummable.runtime.events import SiteLog, clock
from einsummable.runtime.part import SitePart, Source
from einsummable.taskgraph.tasks import Aggregate, Apply, Assemble, Fused, Read, Slice


@dataclass(frozen=True, slots=True)
class Stop:
    """Put into an inbox to end the run; `reason` completes "was stopped: …"."""

    reason: str


Inbox: TypeAlias = "SimpleQueue[tuple[int, np.ndarray] | Stop]"
Send: TypeAlias = Callable[[int, int, np.ndarray], None]


class SiteStoppedError(EngineError):
    """The site was told to stop."""


class TaskFailedError(EngineError):
    """A task raised; ``__cause__`` is the exception, in the process where it happened."""

    def __init__(self, site: int, task: int, reason: str) -> None:
        self.site, self.task, self.reason = site, task, reason
        super().__init__(f"task #{task} failed on site {site}: {reason}")

    def __reduce__(self) -> tuple:
        return TaskFailedError, (self.site, self.task, self.reason)


@dataclass(frozen=True, slots=True)
class SiteResult:
    """What a site answers: the blocks of results that it holds, by task, and its log."""

    site: int
    blocks: dict[int, np.ndarray]
    log: SiteLog


_Step: TypeAlias = "tuple[Callable, object]"


class SiteProgram:
    """A part with its kernels chosen; safe to run several times at once."""

    def __init__(self, part: SitePart) -> None:
        self.part = part
        self.steps: list[_Step] = [_step(part, i) for i in range(len(part.tasks))]
        self.distinct = [tuple(dict.fromkeys(slots)) for slots in part.inputs]
        self.waiting = [len(slots) for slots in self.distinct]
        self.readers: list[list[int]] = [[] for _ in range(len(part.tasks) + len(part.arrivals))]
        for i, slots in enumerate(self.distinct):
            for s in slots:
                self.readers[s].append(i)
        self.uses = [len(readers) for readers in self.readers]
        for s in part.outputs:
            self.uses[s] += 1
        self.roots = [i for i, n in enumerate(self.waiting) if not n]

    @cached_property
    def arrivals(self) -> dict[int, tuple[int, tuple[int, ...], np.dtype]]:
        """Slot, shape and dtype by tag."""
        first = len(self.part.tasks)
        return {tag: (first + n, *rest) for n, (tag, *rest) in enumerate(self.part.arrivals)}


def load(part: SitePart) -> SiteProgram:
    """Return `part` with its kernels chosen."""
    return SiteProgram(part)


def _step(part: SitePart, i: int) -> _Step:
    task = part.tasks[i]
    match task:
        case Apply():
            shape = tuple(stop - start for start, stop in task.ranges)
            kernel = kernels.prepare(part.calls[part.calls_of[i][0]], shape)
            if isinstance(kernel, Compiled) and part.overwrites[i] >= 0:
                kernel = partial(_write_over, kernel, part.overwrites[i])
            return kernel, tuple(start for start, _ in task.ranges)
        case Fused():
            links = tuple(
                Link(part.calls[c], box_shape(step.ranges), step.reads)
                for c, step in zip(part.calls_of[i], task.steps, strict=True)
            )
            starts = tuple(tuple(start for start, _ in step.ranges) for step in task.steps)
            kernel = chain(links, len(task.inputs))
            kernel.ready(starts)
            return kernel, starts
        case Slice():
            # The dots keep a block without dimensions an array.
            return kernels.slice_block, (*(slice(start, stop) for start, stop in task.box), ...)
        case Assemble():
            places = tuple(tuple(slice(start, stop) for start, stop in box) for box in task.places)
            return kernels.assemble, (task.shape, task.dtype, places)
        case Aggregate():
            return kernels.aggregate, (task.aggregate, part.overwrites[i])
        case Read():
            return _read, (task.name, task.box)
    raise EngineError(f"a site cannot run a {type(task).__name__}")


def _write_over(
    kernel: Compiled,
    position: int,
    blocks: Sequence[np.ndarray],
    at: tuple[int, ...],
    params: Mapping[str, np.generic],
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Run a map; its result takes the memory of a block that nobody reads any more, if that is ours."""
    if out is None and blocks[position].flags.writeable:
        out = blocks[position]
    return kernel(blocks, at, params, out)


def _read(_blocks: Sequence[np.ndarray], source: Source, inputs: Mapping[Source, np.ndarray]) -> np.ndarray:
    view = inputs[source].view()
    view.flags.writeable = False  # whatever goes wrong, the caller's array stays as it is
    return view


def run_site(
    program: SiteProgram,
    *,
    inputs: Mapping[Source, np.ndarray],
    params: Mapping[str, np.generic],
    send: Send,
    inbox: Inbox,
    log: SiteLog | None = None,
    into: Mapping[int, np.ndarray] | None = None,
) -> SiteResult:
    """Run all tasks of a site and return its part of the results.

    Parameters
    ----------
    inputs
        The boxes that ``program.part.reads`` names; they are not modified.
    params
        The scalars of the program, as `evaluate.read_params` casts them.
    send, inbox
        The way to and from other sites (see the module's contract).
    log
        Where to note what happens; others may read it meanwhile.
    into
        By slot, arrays that blocks of kernel calls are to be written to.

    Raises
    ------
    TaskFailedError
        A task raised.
    SiteStoppedError
        A `Stop` was in the inbox.
    """
    log = SiteLog(program.part.site) if log is None else log
    with np.errstate(all="ignore"):
        blocks = _loop(program, inputs, params, send, inbox, log, into or {})
    part = program.part
    return SiteResult(part.site, {part.task_of(s): blocks[s] for s in part.outputs}, log)


def _loop(
    program: SiteProgram,
    inputs: Mapping[Source, np.ndarray],
    params: Mapping[str, np.generic],
    send: Send,
    inbox: Inbox,
    log: SiteLog,
    into: Mapping[int, np.ndarray],
) -> list[np.ndarray]:
    # Bound to locals on purpose: this loop is all that a small task costs.
    part, steps, distinct, readers = program.part, program.steps, program.distinct, program.readers
    ids, slots, sends, ran, idle = part.ids, part.inputs, part.sends, log.ran.append, inbox.empty
    waiting, uses, ready = program.waiting.copy(), program.uses.copy(), program.roots.copy()
    blocks: list[np.ndarray | None] = [None] * len(readers)
    heapify(ready)
    left, missing = len(steps), len(part.arrivals)
    while left or missing:
        if not ready or not idle():
            slot, block = _receive(program, inbox.get(), log)
            missing -= 1
        else:
            slot = heappop(ready)
            log.running = ids[slot]
            function, at = steps[slot]
            began = clock()
            try:
                read = [blocks[s] for s in slots[slot]]
                if slot in into:
                    block = function(read, at, params, into[slot])
                else:
                    block = function(read, at, inputs if function is _read else params)
                del read
            except Exception as error:
                reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                raise TaskFailedError(part.site, ids[slot], reason) from error
            ran((ids[slot], began, clock()))
            left -= 1
            for s in distinct[slot]:
                uses[s] -= 1
                if not uses[s]:
                    blocks[s] = None
            for site, tag in sends[slot]:
                log.sent.append((tag, clock()))
                send(site, tag, block)
        if uses[slot]:
            blocks[slot] = block
            for r in readers[slot]:
                waiting[r] -= 1
                if not waiting[r]:
                    heappush(ready, r)
        del block  # a block that nobody reads any more must not live until the next one is made
    log.running = -1
    return blocks


def _receive(
    program: SiteProgram, item: tuple[int, np.ndarray] | Stop, log: SiteLog
) -> tuple[int, np.ndarray]:
    if isinstance(item, Stop):
        raise SiteStoppedError(f"site {program.part.site} was stopped: {item.reason}")
    tag, block = item
    if tag not in program.arrivals:
        raise EngineError(f"site {program.part.site} received a block that nobody here waits for: #{tag}")
    slot, shape, dtype = program.arrivals[tag]
    log.received.append((tag, clock()))
    if block.dtype != dtype or block.shape != shape:
        block = block.view(dtype).reshape(shape)
    return slot, block
