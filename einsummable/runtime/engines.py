"""The driver's end of the wire: which engines there are, what is asked of them, and who is still alive.

Contract: `Engines` opens a `Service` on every engine of an ipyparallel client and joins their mesh.  Large
messages, orders and answers take the mesh, in an `Exchange`; calls of functions take ipyparallel (`call`).
Whoever waits learns within seconds that an engine died (its connection ends) or hangs (its heartbeat stops,
as the ipyparallel controller is set to notice), and every error names the engine.
"""

from __future__ import annotations

import html
import importlib
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from einsummable.errors import EngineError
from einsummable.mapped import File
from einsummable.runtime import wire
from einsummable.runtime.address import Address, machine
from einsummable.runtime.service import SiteFacts
from einsummable.runtime.transport import Mesh, Payload
from einsummable.runtime.wire import DRIVER

_LOOK_SECONDS = 0.5  # how often a driver that waits looks at the heartbeats
_STOPPED_SECONDS = 5.0
_PROCESS_SECONDS = 0.25  # how often it looks at their processes
_DIAL_SECONDS = 5.0
_MEET_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """One engine: its site, its ipyparallel id, where it runs, and the BLAS threads measured on it."""

    site: int
    id: int
    host: str
    pid: int
    threads: int
    blas: str

    def __str__(self) -> str:
        return f"engine {self.id} (site {self.site}, pid {self.pid} on {self.host})"


class EngineTable(tuple[EngineInfo, ...]):
    """The engines of a cluster, printed as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        head = ("site", "engine", "host", "pid", "threads", "BLAS")
        rows = [tuple(map(str, (e.site, e.id, e.host, e.pid, e.threads, e.blas))) for e in self]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows))
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True, slots=True)
class Answer:
    """A frame from a site."""

    site: int
    kind: int
    tag: int
    payload: np.ndarray


@dataclass(frozen=True, slots=True)
class Lost:
    """A site that answers no more."""

    site: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Remote:
    """A function of `service`, sent by its name: ipyparallel would send its code."""

    function: str

    def __call__(self, *args: object) -> object:
        return getattr(importlib.import_module("einsummable.runtime.service"), self.function)(*args)


class Exchange:
    """What the driver asks some sites under one number, and what they answer."""

    def __init__(self, engines: Engines, number: int) -> None:
        self.number = number
        self.inbox: SimpleQueue[Answer | Lost] = SimpleQueue()
        self._engines = engines

    def send(
        self, site: int, kind: int, tag: int = 0, payload: Payload = b"", *, pooled: bool = True
    ) -> None:
        """Send a frame; raise `EngineError` if the site is lost."""
        self._engines.require(site)
        self._engines.mesh.send(site, kind, self.number, tag, payload, pooled=pooled)

    def receive(self, timeout: float) -> Answer | Lost | None:
        """Return the next answer or loss, None after `timeout` seconds without one."""
        try:
            return self.inbox.get(timeout=min(timeout, _LOOK_SECONDS))
        except Empty:
            self._engines.look()
            return None

    def gather(self, sites: Iterable[int]) -> list[Answer]:
        """Wait for one answer from each of `sites` and return them; raise `EngineError` for a lost site."""
        answers = []
        waiting = list(sites)
        while waiting:
            match self.receive(_LOOK_SECONDS):
                case Answer() as answer:
                    waiting.remove(answer.site)
                    if answer.kind == wire.FAILED:
                        reason = wire.unpack_failure(answer.payload)[1]
                        raise EngineError(f"{self._engines.info[answer.site]}: {reason}")
                    answers.append(answer)
                case Lost(site, reason) if site in waiting:
                    raise EngineError(f"{self._engines.info[site]} {reason}")
        return answers


class Engines:
    """Services on the engines `ids` of an ipyparallel client; site i is the engine ``ids[i]``."""

    def __init__(self, client: Any, ids: list[int], threads: int) -> None:
        self.client, self.session, self._threads = client, secrets.token_hex(8), threads
        self.info: dict[int, EngineInfo] = {}
        self.lost: dict[int, str] = {}
        #: Site and bytes of every block that stays on an engine, by its number.
        self.kept: dict[int, tuple[int, int]] = {}
        self._key = secrets.token_bytes(32)
        self._ids = dict(enumerate(ids))
        self._addresses: dict[int, Address] = {}
        self._inboxes: dict[int, SimpleQueue[Answer | Lost]] = {}
        self._numbers = count(1)
        self._shipped: list[str] = []
        self._closed = False
        places = self.call(dict.fromkeys(self._ids, ("where",)))
        self._here = {site: place == machine() for site, place in places.items()}
        self._stopped_since: dict[int, float] = {}
        self._looked = 0.0
        self._sees: dict[tuple[int, File], bool] = {}
        # Engines elsewhere must get in.
        self._bind = "127.0.0.1" if all(self._here.values()) else "0.0.0.0"  # noqa: S104
        self.mesh = Mesh(DRIVER, self._key, self._on_frame, self._on_lost, bind=self._bind)
        try:
            self.info = self._open(self._ids)
            self._meet({site: [s for s in self._ids if s < site] for site in self._ids})
            self.offsets = {site: self._clock(site) for site in self._ids}
        except BaseException:
            with suppress(EngineError):  # one of them may be the reason
                self.call(dict.fromkeys(self._ids, ("close_service", self.session)), timeout=2)
            self.close()
            raise

    def replace(self, site: int, engine: int) -> None:
        """Let another engine play a site that is lost."""
        why = self.lost.pop(site)
        self._ids[site] = engine
        self._sees.clear()
        try:
            self.info |= self._open([site])
            self._meet({site: [s for s in self._ids if s != site and s not in self.lost]})
            self.offsets[site] = self._clock(site)
        except BaseException:
            self.lost[site] = why
            raise

    def close(self) -> None:
        """Leave the engines; their services notice and end."""
        self._closed = True
        self.mesh.close()

    # --------------------------------------------------------------------------------- the mesh

    @contextmanager
    def exchange(self) -> Iterator[Exchange]:
        """Return an exchange with a number of its own."""
        exchange = Exchange(self, self.number())
        self._inboxes[exchange.number] = exchange.inbox
        try:
            yield exchange
        finally:
            del self._inboxes[exchange.number]

    def number(self) -> int:
        """Return a number that nothing else has: for an exchange, a program or a block."""
        return next(self._numbers)

    def tell(self, site: int, kind: int, tag: int, number: int = 0) -> None:
        """Send a frame that has no answer; takes no lock, so that a finalizer may call it."""
        with suppress(EngineError):  # a lost site has forgotten everything
            self.mesh.send(site, kind, number, tag)

    def sees(self, site: int, file: File) -> bool:
        """Return whether `site` sees a file as it is here."""
        key = site, file
        if key not in self._sees:
            with self.exchange() as exchange:
                exchange.send(site, wire.SEES, payload=wire.pack_file(file))
                self._sees[key] = bool(exchange.gather([site])[0].payload[0])
        return self._sees[key]

    def kept_bytes(self) -> list[int]:
        """Return the bytes of the blocks that stay on each site."""
        found = dict.fromkeys(self._ids, 0)
        for site, size in list(self.kept.values()):
            found[site] += size
        return [found[site] for site in sorted(found)]

    def require(self, site: int) -> None:
        """Raise `EngineError` if `site` is lost, or all were left."""
        if self._closed:
            raise EngineError("the cluster was stopped")
        if site in self.lost:
            raise EngineError(f"{self.info[site]} {self.lost[site]}")

    def look(self) -> None:
        """Give up the engines that the ipyparallel controller has given up, or that somebody has stopped."""
        alive = set(self.client.ids)
        # Looking at processes takes longer than a small run.
        often = time.monotonic() - self._looked < _PROCESS_SECONDS
        if not often:
            self._looked = time.monotonic()
        for site, engine in self._ids.items():
            if site in self.lost:
                continue
            if engine not in alive:
                self.mesh.drop(site, "hangs: its heartbeat stopped")
            elif not often and self._stopped_for(site) > _STOPPED_SECONDS:
                self.mesh.drop(site, "hangs: its process is stopped")

    def _stopped_for(self, site: int) -> float:
        """Return for how long the process of `site` was seen stopped, if it is on this machine.

        A controller of somebody else may take half a minute to miss a heartbeat.
        """
        import psutil

        stopped = False
        if site in self.info and self._here[site]:
            with suppress(psutil.NoSuchProcess):
                stopped = psutil.Process(self.info[site].pid).status() == psutil.STATUS_STOPPED
        if not stopped:
            self._stopped_since.pop(site, None)
            return 0.0
        return time.monotonic() - self._stopped_since.setdefault(site, time.monotonic())

    def _on_frame(self, peer: int, kind: int, run: int, tag: int, payload: np.ndarray) -> None:
        inbox = self._inboxes.get(run)
        if inbox is not None:
            inbox.put(Answer(peer, kind, tag, payload))

    def _on_lost(self, peer: int, reason: str) -> None:
        self.lost[peer] = reason if reason.startswith("hangs") else "died"
        for inbox in list(self._inboxes.values()):
            inbox.put(Lost(peer, self.lost[peer]))

    # ------------------------------------------------------------------------------ ipyparallel

    def call(self, calls: Mapping[int, tuple], timeout: float = _MEET_SECONDS) -> dict[int, Any]:
        """Call a function of `service` on each site, ``(name, *args)``, and return the results."""
        import ipyparallel.error

        for site in calls:
            if site in self.lost:
                self.require(site)
        deadline = time.monotonic() + timeout
        views = {site: self._view(site) for site in calls}
        pending = {
            site: views[site].apply_async(_Remote(name), *args) for site, (name, *args) in calls.items()
        }
        results = {}
        for site, result in pending.items():
            while not result.wait(_LOOK_SECONDS):
                if time.monotonic() > deadline:
                    raise EngineError(f"{self._name(site)} is busy: it did not answer in {timeout:g} s")
            try:
                results[site] = result.get()
            except ipyparallel.error.RemoteError as error:
                raise _explain(self._name(site), error) from error
        self._purge([message for result in pending.values() for message in result.msg_ids])
        return results

    def _view(self, site: int) -> Any:
        """Return ipyparallel's view of the engine of `site`."""
        try:
            return self.client[self._ids[site]]
        except IndexError:  # the client heard of its end before we did
            raise EngineError(f"{self._name(site)} died") from None

    def _purge(self, messages: list[str]) -> None:
        """Let neither the client nor the hub keep what was shipped."""
        import ipyparallel.error

        self.client.purge_local_results(messages)
        self._shipped += messages
        # The hub refuses as long as it has not heard that one of them is done: then it is for the next time.
        with suppress(ipyparallel.error.RemoteError):
            self.client.purge_hub_results(self._shipped)
            self._shipped = []

    def _name(self, site: int) -> str:
        return str(self.info[site]) if site in self.info else f"engine {self._ids[site]}"

    # ----------------------------------------------------------------------------------- set-up

    def _open(self, sites: Iterable[int]) -> dict[int, EngineInfo]:
        args = ("open_service", self.session)
        facts = self.call({site: (*args, site, self._key, self._threads, self._bind) for site in sites})
        self._addresses |= {site: known.address for site, known in facts.items()}
        info = {site: _info(site, self._ids[site], known) for site, known in facts.items()}
        for engine in info.values():
            if engine.threads > self._threads:
                raise EngineError(f"{engine} uses {engine.threads} BLAS threads, not {self._threads}")
        return info

    def _meet(self, pairs: Mapping[int, list[int]]) -> None:
        """Connect each site to those it is to dial, and the driver to each site."""
        dial = {site: {peer: self._addresses[peer] for peer in peers} for site, peers in pairs.items()}
        failed = {
            (site, peer): reason
            for site, reasons in self.call(self._meeting(dial)).items()
            for peer, reason in reasons.items()
        }
        for site in pairs:
            try:
                self.mesh.dial(site, self._addresses[site], _DIAL_SECONDS)
            except EngineError as error:
                failed[DRIVER, site] = "; ".join(error.notes)
        # Behind a firewall one direction may work where the other does not.
        for (site, peer), reason in failed.items():
            mine = self.mesh.address if site == DRIVER else self._addresses[site]
            back = self.call(self._meeting({peer: {site: mine}}))[peer]
            if back:
                who = "the driver" if site == DRIVER else str(self.info[site])
                raise EngineError(
                    f"{who} and {self.info[peer]} cannot reach each other", notes=(reason, *back.values())
                )
        if missing := self.mesh.wait_for(pairs, _DIAL_SECONDS):
            raise EngineError(f"{self.info[missing[0]]} is not connected to the driver")

    def _meeting(self, dial: Mapping[int, dict[int, Address]]) -> dict[int, tuple]:
        return {site: ("meet", self.session, peers, _DIAL_SECONDS) for site, peers in dial.items()}

    def _clock(self, site: int) -> float:
        """Return the `SiteLog.offset` that puts the logs of `site` on the driver's clock."""
        best = (float("inf"), 0.0)
        for _ in range(5):
            with self.exchange() as exchange:
                asked = time.time()
                exchange.send(site, wire.CLOCK)
                theirs, offset = exchange.gather([site])[0].payload.view(np.float64)
                back = time.time()
            best = min(best, (back - asked, float(offset - theirs) + (asked + back) / 2))
        return best[1]


def _info(site: int, engine: int, facts: SiteFacts) -> EngineInfo:
    return EngineInfo(site, engine, facts.host, facts.pid, facts.threads, facts.blas)


def _explain(name: str, error: Any) -> EngineError:
    if getattr(error, "ename", None) == "ModuleNotFoundError":
        return EngineError(f"{name} cannot import the package: {error.evalue}")
    return EngineError(
        f"{name}: {getattr(error, 'ename', type(error).__name__)}: {getattr(error, 'evalue', error)}"
    )
