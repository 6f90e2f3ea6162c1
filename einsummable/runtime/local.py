"""The local executor: sites are threads of this process.

Contract: see `executor`.  Kernels run side by side because numpy lets go of the interpreter in BLAS and in
ufuncs; a move passes a reference.  With a `memory` every site keeps its blocks in an arena of that size (see
`bounded`): then a move is a copy, and runs take turns.  BLAS is limited to `threads` threads while a run
needs it and set back afterwards, whatever happened.  When a kernel raises, the time is over, an observer
raises or the user interrupts, all sites are stopped after the task they are in, and nothing is waited for
longer than a second.  Runs from several threads at once do not disturb each other.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from queue import Empty, SimpleQueue

import numpy as np
from threadpoolctl import ThreadpoolController

from einsummable.errors import EngineError, PlanError
from einsummable.evaluate import check_inputs, read_params
from einsummable.runtime.arena import Arena
from einsummable.runtime.bounded import BoundedProgram, bounded
from einsummable.runtime.engine import SiteProgram, TaskFailedError, load
from einsummable.runtime.events import (
    REPORT_SECONDS,
    RUNNING,
    Audience,
    EventReader,
    Observer,
    RunEnded,
    RunRecord,
    SiteLog,
)
from einsummable.runtime.executor import blame
from einsummable.runtime.part import split
from einsummable.runtime.threads import BoundedSites, FreeSites, Sites
from einsummable.taskgraph.allocate import allocate, parse_bytes
from einsummable.taskgraph.tasks import TaskGraph

_LINGER_SECONDS = 1.0  # how long a site that is told to stop is waited for
_KEPT_PROGRAMS = 8


class LocalExecutor:
    """Runs TaskGraphs on threads of this process.

    Parameters
    ----------
    sites
        The most sites a program may have.
    threads
        BLAS threads of each kernel.
    memory
        The bytes that the blocks of each site may take, as a number or as text like ``"2GB"``; by default
        as many as they need.  Inputs and outputs are the caller's and do not count.
    """

    def __init__(self, sites: int, threads: int = 1, *, memory: float | str | None = None) -> None:
        if sites < 1 or threads < 1:
            raise PlanError(f"{sites} sites of {threads} threads cannot run anything")
        self.sites, self.threads = sites, threads
        self.memory = None if memory is None else parse_bytes(memory)
        self._arenas = [Arena() for _ in range(sites)]
        self._turn = threading.Lock()
        self.last: RunRecord | None = None
        self._lock = threading.Lock()
        self._programs: OrderedDict[tuple, tuple[TaskGraph, tuple[SiteProgram | BoundedProgram, ...]]] = (
            OrderedDict()
        )

    def run(
        self,
        taskgraph: TaskGraph,
        arrays: Mapping[str, np.ndarray],
        params: Mapping[str, object] | None = None,
        *,
        observers: Sequence[Observer] = (),
        timeout: float | None = None,
        memory: int | None = None,
        donate: Collection[str] = (),
    ) -> dict[str, np.ndarray]:
        """Run `taskgraph` and return its outputs by name (see `executor.Executor.run`)."""
        if taskgraph.sites > self.sites:
            raise PlanError(f"the program is for {taskgraph.sites} sites, this executor has {self.sites}")
        check_inputs(taskgraph.graph, arrays)
        scalars = read_params(taskgraph.graph, params or {})
        arrays = {name: np.asarray(arrays[name]) for name in taskgraph.graph.inputs}
        memory = min((n for n in (memory, self.memory) if n is not None), default=None)
        given = {name: arrays[name] for name in donate if arrays[name].flags.writeable}
        run = _Run(taskgraph, self._sites(taskgraph, memory, given), observers)
        try:
            with _BLAS.limited(self.threads), nullcontext() if memory is None else self._turn:
                whole = run.results(arrays, scalars, timeout)
        except BaseException as error:
            for arena in self._arenas:
                arena.abandon()  # a site inside a long kernel still writes to it
            run.end(f"{type(error).__name__}: {error}")
            raise
        else:
            run.end()
        finally:
            self.last = run.record
        return whole

    def _sites(self, taskgraph: TaskGraph, memory: int | None, given: Mapping[str, np.ndarray]) -> Sites:
        """Return the sites of a run, their kernels chosen the first time; `given` may be written over."""
        key = id(taskgraph), memory, frozenset(given) if memory is not None else None
        with self._lock:
            known = self._programs.get(key)
        if known is not None:
            programs = known[1]
        elif memory is None:
            programs = tuple(map(load, split(taskgraph)))
        else:
            plan = allocate(taskgraph, memory, views=tuple(taskgraph.graph.inputs), given=given)
            programs = tuple(map(BoundedProgram, bounded(plan)))
        with self._lock:
            # The task graph is kept with its programs, so that its id is not given to another one.
            self._programs[key] = taskgraph, programs
            self._programs.move_to_end(key)
            while len(self._programs) > _KEPT_PROGRAMS:
                self._programs.popitem(last=False)
        if memory is None:
            return FreeSites(taskgraph, programs, given)
        return BoundedSites(taskgraph, programs, self._arenas, given)


class _Run:
    """One run: a thread a site, and the driver that waits for them."""

    def __init__(self, taskgraph: TaskGraph, sites: Sites, observers: Sequence[Observer]) -> None:
        self._taskgraph, self._sites, self._audience = taskgraph, sites, Audience(observers)
        self._answers: SimpleQueue[BaseException | None] = SimpleQueue()
        self._began, self._clock = time.time(), time.perf_counter()
        self._logs = tuple(map(SiteLog, range(taskgraph.sites)))
        self._reader = EventReader(taskgraph, self._logs, self._began)
        self._next_report = self._clock + REPORT_SECONDS
        self.record = RunRecord(taskgraph, self._logs, self._began, 0.0, RUNNING)

    def results(
        self, arrays: Mapping[str, np.ndarray], params: Mapping[str, np.generic], timeout: float | None
    ) -> dict[str, np.ndarray]:
        """Run all sites to their end and return the outputs."""
        threads = [
            threading.Thread(
                target=self._work,
                args=(log, arrays, params),
                name=f"einsummable site {log.site}",
                daemon=True,
            )
            for log in self._logs
        ]
        ended = 0
        try:
            self._audience.tell(self.record.start)
            for thread in threads:
                thread.start()
            while ended < len(threads):
                ended += self._wait(timeout)
        finally:
            self._stop([t for t in threads if t.ident is not None])
        return self._sites.whole()

    def _work(self, log: SiteLog, arrays: Mapping[str, np.ndarray], params: Mapping[str, np.generic]) -> None:
        try:
            self._sites.work(log, arrays, params)
        except BaseException as error:  # noqa: BLE001 - the driver raises it
            self._answers.put(error)
        else:
            self._answers.put(None)

    def _wait(self, timeout: float | None) -> bool:
        """Wait a little; return whether a site ended, and tell observers what happened."""
        pause = max(self._next_report - time.perf_counter(), 0.0) if self._audience else _LINGER_SECONDS
        if timeout is not None:
            left = self._clock + timeout - time.perf_counter()
            if left <= 0:
                raise self._overdue(timeout)
            pause = min(pause, left)
        ended = True
        answer = None
        try:
            answer = self._answers.get(timeout=pause)
        except Empty:
            ended = False
        if time.perf_counter() >= self._next_report:
            self._report()
        if isinstance(answer, TaskFailedError):
            raise blame(self._taskgraph, answer) from answer.__cause__
        if answer is not None:
            raise answer
        return ended

    def _report(self) -> None:
        """Tell observers what happened, and what each site is at."""
        self._audience.read(self._reader)
        at = time.perf_counter() - self._clock
        self._audience.progress(at, tuple(log.working for log in self._logs), self._logs)
        self._next_report = time.perf_counter() + REPORT_SECONDS

    def _overdue(self, timeout: float) -> EngineError:
        graph, busy = self._taskgraph.graph, []
        for log in self._logs:
            if log.running >= 0:
                node = self._taskgraph.tasks[log.running].origin
                busy.append(f"site {log.site} was working on {graph.name_of(node)}")
        return EngineError(f"the run was given up: it took longer than {timeout:g} s", notes=tuple(busy))

    def _stop(self, threads: Sequence[threading.Thread]) -> None:
        self._sites.stop()
        deadline = time.perf_counter() + _LINGER_SECONDS
        for thread in threads:
            thread.join(max(deadline - time.perf_counter(), 0))

    def end(self, error: str = "") -> None:
        """Close the record, and tell observers the rest."""
        wall = time.perf_counter() - self._clock
        self.record = RunRecord(self._taskgraph, self._logs, self._began, wall, error)
        self._audience.read(self._reader)
        self._audience.tell(RunEnded(wall, error))


class _BlasLimits:
    """How many threads BLAS may use in this process: the least that any run in progress asks for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: list[int] = []
        self._controller: ThreadpoolController | None = None
        self._before: object = None

    @contextmanager
    def limited(self, threads: int) -> Iterator[None]:
        """Limit BLAS to `threads` threads; the last one to leave sets it back."""
        with self._lock:
            if self._controller is None:
                self._controller = ThreadpoolController()  # looks at all loaded libraries: slow, so once
            limit = self._controller.limit(limits=min([threads, *self._wanted]), user_api="blas")
            if not self._wanted:
                self._before = limit
            self._wanted.append(threads)
        try:
            yield
        finally:
            with self._lock:
                self._wanted.remove(threads)
                if self._wanted:
                    self._controller.limit(limits=min(self._wanted), user_api="blas")
                else:
                    self._before.restore_original_limits()


_BLAS = _BlasLimits()
