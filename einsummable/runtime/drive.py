"""One run of a program on engines, as the driver sees it.

Contract: `Drive.start` gives every site its order, `collect` waits until all are done and keeps their logs
up to date, `abort` ends the run everywhere.  Whatever goes wrong is one `EngineError` that names the engine
and points at the formula it worked on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from einsummable.errors import EngineError
from einsummable.runtime import wire
from einsummable.runtime.engine import SiteResult, TaskFailedError
from einsummable.runtime.engines import Answer, Engines, Exchange, Lost
from einsummable.runtime.events import REPORT_SECONDS, SiteLog
from einsummable.runtime.executor import blame, locate
from einsummable.runtime.part import SitePart
from einsummable.runtime.wire import Order
from einsummable.taskgraph.tasks import Apply, Fused, TaskGraph

#: How often sites are asked how far they are if nobody listens: an error may have to tell it.
_LOOK_SECONDS = 0.25
#: How long a site that was cut off is given until the cause is known: the end of another site.
_CAUSE_SECONDS = 1.5
#: How long sites are given to end a run that is given up; one inside a long BLAS call takes longer.
_ABORT_SECONDS = 2.0


class Drive:
    """One run.

    Parameters
    ----------
    parts
        The part of each site.

    Attributes
    ----------
    logs, began
        What the sites did so far, and when the run began (seconds of the Unix epoch).
    """

    def __init__(
        self, engines: Engines, exchange: Exchange, taskgraph: TaskGraph, parts: Sequence[SitePart]
    ) -> None:
        self.logs = [SiteLog(part.site, offset=engines.offsets[part.site]) for part in parts]
        self.began = time.time()
        self._engines, self._exchange, self._taskgraph = engines, exchange, taskgraph
        self._asked: Sequence[Mapping[int, np.ndarray]] = ()
        self._parts = parts
        self._waiting: set[int] = set()
        self._blocks: dict[int, dict[int, np.ndarray]] = {part.site: {} for part in parts}
        self._running = {part.site: -1 for part in parts}
        self._cut_off: tuple[float, EngineError] | None = None

    @property
    def working(self) -> tuple[int, ...]:
        """The task that each site worked on when it was asked last, -1 where it waits or is done."""
        return tuple(self._running.values())

    @property
    def results(self) -> list[SiteResult]:
        """What came back."""
        return [SiteResult(log.site, self._blocks[log.site], log) for log in self.logs]

    def start(
        self,
        program: int,
        inputs: Sequence[Mapping[int, np.ndarray]],
        orders: Sequence[Order],
        *,
        ask: bool = False,
    ) -> None:
        """Send every site the order to run, and its inputs unless sites `ask` for them."""
        self._asked = inputs
        for part in self._parts:
            for index, box in inputs[part.site].items() if not ask else ():
                self._exchange.send(part.site, wire.INPUT, index, box)
            self._exchange.send(part.site, wire.RUN, program, orders[part.site].pack())
            self._waiting.add(part.site)

    def collect(self, timeout: float | None, report: Callable[[], None] | None) -> None:
        """Wait until all sites are done; call `report`, if there is one, now and then."""
        end = time.monotonic() + timeout if timeout is not None else float("inf")
        pause = _LOOK_SECONDS if report is None else REPORT_SECONDS
        next_report = time.monotonic() + pause
        while self._waiting:
            now = time.monotonic()
            if now >= end:
                raise self._timed_out(timeout)
            if self._cut_off is not None and now >= self._cut_off[0]:
                raise self._cut_off[1]
            if now >= next_report:
                self._request(wire.REPORT)
                self._engines.look()
                if report is not None:
                    report()
                next_report = time.monotonic() + pause
            self._take(self._exchange.receive(max(min(end, next_report) - now, 0)))
        if self._cut_off is not None:
            raise self._cut_off[1]

    def abort(self) -> None:
        """End the run on every site, and wait a little until they have."""
        self._request(wire.ABORT)
        end = time.monotonic() + _ABORT_SECONDS
        while self._waiting and time.monotonic() < end:
            match self._exchange.receive(0.1):
                case Answer(site=site, kind=wire.DONE | wire.FAILED) | Lost(site=site):
                    self._waiting.discard(site)

    def _request(self, kind: int) -> None:
        for site in self._waiting - self._engines.lost.keys():
            self._engines.tell(site, kind, 0, self._exchange.number)

    # ------------------------------------------------------------------------------------ answers

    def _take(self, message: Answer | Lost | None) -> None:
        match message:
            case Lost(site, reason) if site in self._waiting:
                raise self._gone(site, reason)
            case Answer(site, wire.RESULT, task, payload):
                made = self._taskgraph.tasks[task]
                self._blocks[site][task] = payload.view(made.dtype).reshape(made.shape)
            case Answer(site, wire.LOG, _, payload):
                for name, rows in zip(wire.LISTS, wire.unpack_rows(payload), strict=True):
                    getattr(self.logs[site], name).extend(rows)
            case Answer(site, wire.BUSY, tag):
                self._running[site] = tag - 1
            case Answer(site, wire.DONE):
                self._waiting.discard(site)
                self._running[site] = -1
            case Answer(site, wire.NEED, number, payload):
                box = self._asked[site][int(payload.view(np.uint64)[0])]
                self._exchange.send(site, wire.INPUT, number, box, pooled=False)
            case Answer(site, wire.FAILED, _, payload):
                self._fail(site, *wire.unpack_failure(payload))

    def _fail(self, site: int, task: int, reason: str) -> None:
        self._waiting.discard(site)
        engine = str(self._engines.info[site])
        if task >= 0:
            raise blame(self._taskgraph, TaskFailedError(site, task, reason), engine)
        error = EngineError(f"{engine} cannot go on: {reason}")
        if task != wire.CUT_OFF:
            raise error
        if self._cut_off is None:
            self._cut_off = (time.monotonic() + _CAUSE_SECONDS, error)

    def _gone(self, site: int, reason: str) -> EngineError:
        self._waiting.discard(site)
        what, place = self._place(site)
        return EngineError(f"{self._engines.info[site]} {reason} while it worked on {what}", **place)

    def _timed_out(self, timeout: float) -> EngineError:
        # The report of a moment ago may be old: ask once more, and wait as long as an answer takes.
        self._request(wire.REPORT)
        soon = time.monotonic() + 0.2
        while (left := soon - time.monotonic()) > 0:
            self._take(self._exchange.receive(left))
        busy = [site for site in self._waiting if self._running[site] >= 0] or sorted(self._waiting) or [0]
        what, place = self._place(busy[0])
        return EngineError(
            f"the run was given up after {timeout:g} s, while {self._engines.info[busy[0]]} worked on {what}",
            **place,
        )

    def _place(self, site: int) -> tuple[str, dict]:
        """Return what `site` works on: what it said last, else its most urgent kernel call that is left."""
        task = self._running[site]
        if task < 0:
            ended = {entry[0] for entry in self.logs[site].ran}
            left = [i for i in self._parts[site].ids if i not in ended]
            left.sort(key=lambda i: not isinstance(self._taskgraph.tasks[i], Apply | Fused))
            task = left[0] if left else -1
        return locate(self._taskgraph, task) if task >= 0 else ("nothing", {})
