"""The local executor: sites are threads of this process.

Contract: see `executor`.  Kernels run side by side because numpy lets go of the interpreter in BLAS and in
ufuncs; a move passes a reference.  BLAS is limited to `threads` threads while a run needs it and set back
afterwards, whatever happened.  When a kernel raises, the time is over, an observer raises or the user
interrupts, all sites are stopped after the task they are in, and nothing is waited for longer than a second.
Runs from several threads at once do not disturb each other.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue

import numpy as np
from threadpoolctl import ThreadpoolController

from einsummable.errors import EngineError, PlanError
from einsummable.evaluate import check_inputs, read_params
from einsummable.runtime.engine import (
    Inbox,
    SiteProgram,
    SiteResult,
    Stop,
    TaskFailedError,
    load,
    run_site,
)
from einsummable.runtime.events import Event, EventReader, Observer, RunEnded, RunRecord, SiteLog
from einsummable.runtime.executor import blame, gather
from einsummable.runtime.part import split, take
from einsummable.taskgraph.tasks import TaskGraph

_POLL_SECONDS = 0.05  # how often observers hear of what happened
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
    """

    def __init__(self, sites: int, threads: int = 1) -> None:
        if sites < 1 or threads < 1:
            raise PlanError(f"{sites} sites of {threads} threads cannot run anything")
        self.sites, self.threads = sites, threads
        self.last: RunRecord | None = None
        self._lock = threading.Lock()
        self._programs: OrderedDict[int, tuple[TaskGraph, tuple[SiteProgram, ...]]] = OrderedDict()

    def run(
        self,
        taskgraph: TaskGraph,
        arrays: Mapping[str, np.ndarray],
        params: Mapping[str, object] | None = None,
        *,
        observers: Sequence[Observer] = (),
        timeout: float | None = None,
    ) -> dict[str, np.ndarray]:
        """Run `taskgraph` and return its outputs by name (see `executor.Executor.run`)."""
        if taskgraph.sites > self.sites:
            raise PlanError(f"the program is for {taskgraph.sites} sites, this executor has {self.sites}")
        check_inputs(taskgraph.graph, arrays)
        scalars = read_params(taskgraph.graph, params or {})
        arrays = {name: np.asarray(arrays[name]) for name in taskgraph.graph.inputs}
        programs = self._load(taskgraph)
        run = _Run(taskgraph, programs, observers)
        try:
            with _BLAS.limited(self.threads):
                results = run.results(arrays, scalars, timeout)
            whole = gather(taskgraph, results)
        except BaseException as error:
            run.end(f"{type(error).__name__}: {error}")
            raise
        else:
            run.end()
        finally:
            self.last = run.record
        return whole

    def _load(self, taskgraph: TaskGraph) -> tuple[SiteProgram, ...]:
        with self._lock:
            if id(taskgraph) in self._programs:
                self._programs.move_to_end(id(taskgraph))
                return self._programs[id(taskgraph)][1]
        programs = tuple(map(load, split(taskgraph)))
        with self._lock:
            # The task graph is kept with its programs, so that its id is not given to another one.
            self._programs[id(taskgraph)] = taskgraph, programs
            while len(self._programs) > _KEPT_PROGRAMS:
                self._programs.popitem(last=False)
        return programs


class _Run:
    """One run: a thread a site, and the driver that waits for them."""

    def __init__(
        self, taskgraph: TaskGraph, programs: tuple[SiteProgram, ...], observers: Sequence[Observer]
    ) -> None:
        self._taskgraph, self._programs, self._observers = taskgraph, programs, tuple(observers)
        self._inboxes: list[Inbox] = [SimpleQueue() for _ in programs]
        self._answers: SimpleQueue[SiteResult | BaseException] = SimpleQueue()
        self._began, self._clock = time.time(), time.perf_counter()
        self._logs = tuple(SiteLog(program.part.site) for program in programs)
        self._reader = EventReader(taskgraph, self._logs, self._began)
        self.record = RunRecord(taskgraph, self._logs, self._began, 0.0, "it is still running")

    def results(
        self, arrays: Mapping[str, np.ndarray], params: Mapping[str, np.generic], timeout: float | None
    ) -> list[SiteResult]:
        """Run all sites to their end and return their results."""
        threads = [
            threading.Thread(
                target=self._work,
                args=(program, log, arrays, params),
                name=f"einsummable site {log.site}",
                daemon=True,
            )
            for program, log in zip(self._programs, self._logs, strict=True)
        ]
        results: list[SiteResult] = []
        try:
            self._tell([self.record.start])
            for thread in threads:
                thread.start()
            while len(results) < len(threads):
                results += self._wait(timeout)
        finally:
            self._stop([t for t in threads if t.ident is not None])
        return results

    def _work(
        self,
        program: SiteProgram,
        log: SiteLog,
        arrays: Mapping[str, np.ndarray],
        params: Mapping[str, np.generic],
    ) -> None:
        part = program.part
        try:
            answer: SiteResult | BaseException = run_site(
                program,
                inputs=take(part, arrays),
                params=params,
                send=self._send,
                inbox=self._inboxes[part.site],
                log=log,
            )
        except BaseException as error:  # noqa: BLE001 - the driver raises it
            answer = error
        self._answers.put(answer)

    def _send(self, site: int, tag: int, block: np.ndarray) -> None:
        view = block.view()
        view.flags.writeable = False  # both sites have it now
        self._inboxes[site].put((tag, view))

    def _wait(self, timeout: float | None) -> list[SiteResult]:
        """Wait a little; return the result of a site that ended, and tell observers what happened."""
        pause = _POLL_SECONDS if self._observers else _LINGER_SECONDS
        if timeout is not None:
            left = self._clock + timeout - time.perf_counter()
            if left <= 0:
                raise self._overdue(timeout)
            pause = min(pause, left)
        try:
            answer = self._answers.get(timeout=pause)
        except Empty:
            answer = None
        self._tell(self._reader.poll())
        match answer:
            case None:
                return []
            case SiteResult():
                return [answer]
            case TaskFailedError():
                raise blame(self._taskgraph, answer) from answer.__cause__
            case _:
                raise answer

    def _overdue(self, timeout: float) -> EngineError:
        graph, busy = self._taskgraph.graph, []
        for log in self._logs:
            if log.running >= 0:
                node = self._taskgraph.tasks[log.running].origin
                busy.append(f"site {log.site} was working on {graph.name_of(node)}")
        return EngineError(f"the run was given up: it took longer than {timeout:g} s", notes=tuple(busy))

    def _stop(self, threads: Sequence[threading.Thread]) -> None:
        for inbox in self._inboxes:
            inbox.put(Stop("the run is over"))
        deadline = time.perf_counter() + _LINGER_SECONDS
        for thread in threads:
            thread.join(max(deadline - time.perf_counter(), 0))

    def _tell(self, events: Iterator[Event] | Sequence[Event]) -> None:
        for event in events if self._observers else ():
            for observer in self._observers:
                observer(event)

    def end(self, error: str = "") -> None:
        """Close the record, and tell observers the rest."""
        wall = time.perf_counter() - self._clock
        self.record = RunRecord(self._taskgraph, self._logs, self._began, wall, error)
        if not error:
            self._tell(self._reader.poll())
            self._tell([RunEnded(wall)])


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
