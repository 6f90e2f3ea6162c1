"""What an engine does for a driver: one `Service` for each driver that is connected to it.

Contract: the functions at the end are called by the driver through ipyparallel, by reference; everything
else goes over the mesh (see `wire`).  A thread of its own runs the programs, one after another, so the
threads that read the mesh always answer.  The service ends, and forgets all blocks, when its driver is gone.
An engine imports this module and nothing of IPython.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TypeAlias

import numpy as np
import threadpoolctl

from einsummable.errors import EinsummableError, EngineError
from einsummable.mapped import Region
from einsummable.runtime import wire
from einsummable.runtime.address import Address, machine
from einsummable.runtime.arena import Arena
from einsummable.runtime.bounded import BoundedPart, BoundedProgram, run_bounded
from einsummable.runtime.engine import SiteProgram, SiteStoppedError, Stop, TaskFailedError, load, run_site
from einsummable.runtime.events import SiteLog, clock
from einsummable.runtime.launch import THREAD_VARIABLES
from einsummable.runtime.part import SitePart, Source
from einsummable.runtime.port import EnginePort
from einsummable.runtime.transport import Mesh, NotConnectedError
from einsummable.runtime.wire import DRIVER, Order
from einsummable.taskgraph.tasks import Read


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What an engine tells about itself when its service is open."""

    host: str
    pid: int
    threads: int
    blas: str
    address: Address


#: A box of an input that a part reads, with the shape and dtype of its block.
_Read: TypeAlias = tuple[Source, tuple[int, ...], np.dtype]


@dataclass(slots=True)
class _Run:
    """A run that is to come or under way."""

    log: SiteLog
    inbox: SimpleQueue
    port: EnginePort
    inputs: dict[int, np.ndarray] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    telling: threading.Lock = field(default_factory=threading.Lock)


class Service:
    """One site for one driver."""

    def __init__(self, session: str, site: int, key: bytes, threads: int, bind: str) -> None:
        self.session, self.site, self.threads = session, site, threads
        self.programs: dict[int, tuple[SiteProgram | BoundedProgram, list[_Read]]] = {}
        self.blocks: dict[int, np.ndarray] = {}
        self._runs: dict[int, _Run] = {}
        self._arena = Arena()
        self._over = -1  # the latest run that is over: what still comes for it is dropped
        self._orders: SimpleQueue[tuple[int, int, Order | tuple[Region, np.dtype]] | None] = SimpleQueue()
        self._limited: SimpleQueue[tuple[int, str]] = SimpleQueue()
        self._runner = threading.Thread(target=self._work, name=f"site {site}", daemon=True)
        self._runner.start()
        threads, blas = self._limited.get()
        self.mesh = Mesh(site, key, self._on_frame, self._on_lost, bind=bind, place=self._place)
        self.facts = SiteFacts(socket.gethostname(), os.getpid(), threads, blas, self.mesh.address)

    def close(self) -> None:
        """End the service and forget everything."""
        _services.pop(self.session, None)
        for run in list(self._runs):
            self._abort(run)
        self._orders.put(None)
        self.mesh.close()
        self.blocks.clear()
        self.programs.clear()
        self._arena.abandon()

    # ------------------------------------------------------------- on the threads that read the mesh

    def _on_frame(self, peer: int, kind: int, run: int, tag: int, payload: np.ndarray) -> None:
        if kind == wire.BLOCK:
            state = self._run(run)
            if state is not None and not state.port.arrived(kind, tag, payload):
                state.inbox.put((tag, payload))
        elif kind == wire.READY:
            if (state := self._run(run)) is not None:
                state.port.ready(tag)
        elif peer == DRIVER:
            self._on_order(kind, run, tag, payload)

    def _place(self, _peer: int, kind: int, run: int, tag: int, _nbytes: int) -> np.ndarray | None:
        state = self._runs.get(run)
        return None if state is None else state.port.place(kind, tag)

    def _on_order(self, kind: int, run: int, tag: int, payload: np.ndarray) -> None:
        match kind:
            case wire.INPUT:
                state = self._run(run)
                if state is not None and not state.port.arrived(kind, tag, payload):
                    state.inputs[tag] = payload
            case wire.RUN:
                self._orders.put((run, tag, Order.unpack(payload)))
            case wire.ABORT:
                self._abort(run)
            case wire.REPORT:
                if (state := self._run(run)) is not None:
                    self._tell(run, state)
                    self._answer(wire.BUSY, run, state.log.working + 1)
            case wire.STORE:
                self.blocks[tag] = _own(payload)
                self._answer(wire.DONE, run, tag)
            case wire.SEES:
                self._answer(wire.DONE, run, tag, bytes([wire.unpack_file(payload).is_here()]))
            case wire.LOAD:
                self._orders.put((run, tag, wire.unpack_load(payload)))
            case wire.FETCH if tag in self.blocks:
                self._answer(wire.RESULT, run, tag, self.blocks[tag])
            case wire.FETCH:
                self._answer(wire.FAILED, run, tag, wire.pack_failure(-1, "the block is not here any more"))
            case wire.FREE:
                self.blocks.pop(tag, None)
            case wire.FORGET:
                self.programs.pop(tag, None)
            case wire.CLOCK:
                self._answer(wire.DONE, run, 0, np.array([time.time(), time.time() - clock()]))
            case wire.USAGE:
                self._answer(wire.DONE, run, 0, np.array([_resident()], np.uint64))

    def _on_lost(self, peer: int, reason: str) -> None:
        if peer == DRIVER:
            self.close()
        else:
            self._stop_all(f"the connection to site {peer} is lost ({reason})")

    def _abort(self, run: int) -> None:
        state = self._run(run)
        if state is None:
            return
        state.inbox.put(Stop("the driver ended the run"))
        if state.log.working >= 0:
            # A kernel written in Python ends at its next bytecode; one inside BLAS when it comes back.
            thread = ctypes.c_ulong(self._runner.ident)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(KeyboardInterrupt))

    def _stop_all(self, reason: str) -> None:
        for state in list(self._runs.values()):
            state.inbox.put(Stop(reason))

    def _run(self, run: int) -> _Run | None:
        """Return the state of a run that is not over: blocks of others may come before the order to run."""
        if run <= self._over:
            return None
        state = self._runs.get(run)
        if state is None:
            inbox: SimpleQueue = SimpleQueue()
            new = _Run(SiteLog(self.site), inbox, EnginePort(self.mesh, run, inbox))
            state = self._runs.setdefault(run, new)
        return state

    # ------------------------------------------------------------------- on the thread that runs

    def _work(self) -> None:
        # In this thread, because OpenMP counts threads per thread.
        self._limited.put(_limit_threads(self.threads))
        order = (-1, -1, Order())
        try:
            while True:
                try:
                    order = self._orders.get()
                    if order is None:
                        return
                    if isinstance(order[2], Order):
                        self._obey(*order)
                    else:
                        self._load(*order)
                except KeyboardInterrupt:  # see _abort; it may come a little late
                    self._finish(order[0], wire.FAILED, wire.pack_failure(-1, "was interrupted"))
        finally:
            self.close()  # if anything unforeseen ends this thread, the driver sees the site go

    def _load(self, exchange: int, number: int, what: tuple[Region, np.dtype]) -> None:
        """Read a block from a file and keep it."""
        region, dtype = what
        try:
            block = region.read(dtype)
        except EinsummableError as error:
            self._answer(wire.FAILED, exchange, number, wire.pack_failure(-1, error.message))
            return
        self.blocks[number] = block.reshape(-1).view(np.uint8)
        self._answer(wire.DONE, exchange, number, np.array([region.nbytes], np.uint64))

    def _obey(self, run: int, program: int, order: Order) -> None:
        state = self._run(run)
        if state is None:
            return
        try:
            blocks = self._compute(run, program, order, state)
        except TaskFailedError as error:
            self._finish(run, wire.FAILED, wire.pack_failure(error.task, error.reason))
        except (SiteStoppedError, NotConnectedError) as error:
            self._finish(run, wire.FAILED, wire.pack_failure(wire.CUT_OFF, error.message))
        except EinsummableError as error:
            self._finish(run, wire.FAILED, wire.pack_failure(-1, error.message))
        else:
            for task, block in blocks.items():
                for n, number in enumerate(order.keep.get(task, ())):
                    # Each in memory of its own: one of them may be given up.
                    self.blocks[number] = block.copy() if n else _own(block)
                if task not in order.keep:
                    self._answer(wire.RESULT, run, task, block)
            self._finish(run, wire.DONE)

    def _compute(self, run: int, program: int, order: Order, state: _Run) -> dict[int, np.ndarray]:
        loaded, reads = self.programs[program]
        if isinstance(loaded, BoundedProgram):
            self._compute_within(loaded, reads, order, state)
            return {}
        inputs = {}
        for i, (source, shape, dtype) in enumerate(reads):
            if i in order.files:
                inputs[source] = order.files[i].read()
                continue
            raw = self.blocks.get(order.blocks[i]) if i in order.blocks else state.inputs.get(i)
            if raw is None:
                raise EngineError(f"a block of {source[0]} is not on site {self.site} any more")
            inputs[source] = raw.view(dtype).reshape(shape)
        donated = self._give_up(reads, order)
        into = {
            slot: inputs[source]
            for slot, source in loaded.part.replaces
            if source in donated and inputs[source].flags.writeable
        }

        def send(site: int, tag: int, block: np.ndarray) -> None:
            self.mesh.send(site, wire.BLOCK, run, tag, block)

        result = run_site(
            loaded,
            inputs=inputs,
            params=order.params,
            send=send,
            inbox=state.inbox,
            log=state.log,
            into=into,
        )
        return result.blocks

    def _give_up(self, reads: list[_Read], order: Order) -> set[Source]:
        """Forget the blocks that a run may write over, and return which they are."""
        for i in order.donated:
            self.blocks.pop(order.blocks.get(i, -1), None)
        return {reads[i][0] for i in order.donated}

    def _compute_within(self, loaded: BoundedProgram, reads: list[_Read], order: Order, state: _Run) -> None:
        """Run a program within its budget; its results go out on their way."""
        inputs = {}
        for i, number in order.blocks.items():
            source, shape, dtype = reads[i]
            if number not in self.blocks:
                raise EngineError(f"a block of {source[0]} is not on site {self.site} any more")
            inputs[source] = self.blocks[number].view(dtype).reshape(shape)
        self._give_up(reads, order)
        state.port.files = {reads[i][0]: region for i, region in order.files.items()}
        state.port.reads = {source: i for i, (source, *_) in enumerate(reads)}
        state.port.keep, state.port.blocks = order.keep, self.blocks
        state.port.in_place = loaded.in_place
        run_bounded(
            loaded,
            self._arena,
            inputs=inputs,
            params=order.params,
            port=state.port,
            inbox=state.inbox,
            log=state.log,
        )

    def _finish(self, run: int, kind: int, payload: bytes = b"") -> None:
        state = self._runs.get(run)
        if state is not None:
            self._tell(run, state)
        self._over = max(self._over, run)
        for old in [number for number in list(self._runs) if number <= run]:
            self._runs.pop(old, None)
        self._answer(kind, run, 0, payload)

    # ------------------------------------------------------------------------------------ on either

    def _tell(self, run: int, state: _Run) -> None:
        with state.telling:
            new = []
            for name in wire.LISTS:
                entries = getattr(state.log, name)
                new.append(entries[state.told[name] : len(entries)])
                state.told[name] += len(new[-1])
            if any(new):
                self._answer(wire.LOG, run, 0, wire.pack_rows(new))

    def _answer(self, kind: int, run: int, tag: int = 0, payload: np.ndarray | bytes = b"") -> None:
        with contextlib.suppress(EngineError):  # the driver is gone; `_on_lost` sees to it
            self.mesh.send(DRIVER, kind, run, tag, payload)


def _reads(part: SitePart) -> list[_Read]:
    made = {(t.name, t.box): (t.shape, t.dtype) for t in part.tasks if isinstance(t, Read)}
    return [(source, *made[source]) for source in part.reads]


def _own(block: np.ndarray) -> np.ndarray:
    """Return `block` as an array of its own: not lent, and with no larger one behind it to keep in memory."""
    base = block.base
    larger = isinstance(base, np.ndarray) and base.nbytes > block.nbytes
    return block.copy() if larger or not block.flags.writeable else block


def _resident() -> int:
    """Return the bytes of memory that this process takes."""
    import psutil

    return psutil.Process().memory_info().rss


def _limit_threads(threads: int) -> tuple[int, str]:
    """Limit every BLAS and OpenMP; return how many threads they now use, and which BLAS there is."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))  # for those that are loaded later
    _release_openblas()
    threadpoolctl.threadpool_limits(threads)
    _release_openblas()
    libraries = [lib for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas"]
    names = dict.fromkeys(f"{lib['internal_api']} {lib['version'] or ''}".strip() for lib in libraries)
    return max((lib["num_threads"] for lib in libraries), default=threads), ", ".join(names)


def _release_openblas() -> None:
    # Since 3.8 the first thread that limits OpenBLAS is the only one that can: ours shall not be hindered by
    # that of another service, nor hinder what a user does on the main thread.
    for library in threadpoolctl.ThreadpoolController().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


# ---------------------------------------------------------------------- called through ipyparallel

_services: dict[str, Service] = {}


def where() -> str:
    """Return what is equal for processes that can meet on this machine."""
    return machine()


def open_service(session: str, site: int, key: bytes, threads: int, bind: str) -> SiteFacts:
    """Open the service of `site` for the driver that chose the name `session`."""
    service = Service(session, site, key, threads, bind)
    _services[session] = service
    return service.facts


def meet(session: str, addresses: dict[int, Address], timeout: float) -> dict[int, str]:
    """Dial other sites; return those that cannot be reached, and why."""
    failed = {}
    for peer, address in addresses.items():
        try:
            _services[session].mesh.dial(peer, address, timeout)
        except EngineError as error:
            failed[peer] = "; ".join(error.notes)
    return failed


def load_program(session: str, program: int, part: SitePart | BoundedPart) -> None:
    """Take this site's part of a program and choose its kernels."""
    if isinstance(part, BoundedPart):
        loaded = BoundedProgram(part), _reads(part.part)
    else:
        loaded = load(part), _reads(part)
    _services[session].programs[program] = loaded


def close_service(session: str) -> None:
    """End the service, if it is still there."""
    if session in _services:
        _services[session].close()
