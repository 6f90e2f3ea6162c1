"""A run in the background: it can be watched, waited for and cancelled.

Contract: `LiveRun` calls a function on a thread of its own and is back at once, so that a notebook's kernel
hears of a "Cancel" button while a program runs.  It is itself the observer of the run; cancelling makes it
raise there, and an executor whose observer raises ends the run everywhere.  Who listens is called in that
thread, at most every `PERIOD` seconds and once at the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from einsummable.errors import EngineError
from einsummable.runtime.events import Event, Observer, RunEnded
from einsummable.taskgraph.tasks import TaskGraph
from einsummable.views import html, text
from einsummable.views.meter import Meter

PERIOD = 0.2
_LOOK_SECONDS = 0.1

Listener = Callable[["LiveRun"], None]


class CancelledError(EngineError):
    """The run was cancelled by its user."""


class LiveRun:
    """A run under way.

    Parameters
    ----------
    run
        Runs the program with an observer, and returns its outputs by name.
    taskgraph
        What runs.
    predicted
        How long it should take in seconds, where somebody knows.
    names
        What a reader calls the sites.
    """

    def __init__(
        self,
        run: Callable[[Observer], dict[str, Any]],
        taskgraph: TaskGraph,
        *,
        predicted: float | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        self.taskgraph = taskgraph
        self.meter = Meter(taskgraph, predicted=predicted, names=names)
        self._run, self._ended = run, threading.Event()
        self._cancelled = self._raised = self._over = False
        self._results: dict[str, Any] | None = None
        self._error: BaseException | None = None
        self._listeners: list[Listener] = []
        self._told = 0.0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="einsummable run", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._over

    @property
    def error(self) -> BaseException | None:
        """Why it ended without results; None while it runs."""
        return self._error

    def cancel(self) -> None:
        """End the run on all sites, a tenth of a second from now; a kernel inside BLAS is not waited for."""
        self._cancelled = True

    def result(self, timeout: float | None = None) -> dict[str, Any]:
        """Wait for the outputs and return them by name; an interrupt cancels the run.

        Raises
        ------
        CancelledError
            It was cancelled.
        TimeoutError
            It is not over after `timeout` seconds; it goes on.
        EinsummableError
            What `Compiled.run` would raise.
        """
        end = time.monotonic() + timeout if timeout is not None else float("inf")
        mine = threading.current_thread() is self._thread  # a listener asks
        try:
            while not mine and not self._ended.wait(min(_LOOK_SECONDS, max(end - time.monotonic(), 0.0))):
                if time.monotonic() >= end:
                    raise TimeoutError(f"the run is not over after {timeout:g} s")
        except KeyboardInterrupt:
            self.cancel()
            raise
        if self._error is not None:
            raise self._error
        return self._results

    def listen(self, listener: Listener) -> None:
        """Have `listener` told how things stand, and once when the run is over, even if it is already."""
        with self._lock:
            self._listeners.append(listener)
            over = self.done
        if over:
            listener(self)

    def view(self) -> dict[str, Any]:
        """Return how things stand, as a view."""
        view = self.meter.view()
        if self._cancelled and not self.done:
            return view | {"state": "cancelling", "caption": f"cancelling: {view['caption']}"}
        if isinstance(self._error, CancelledError):
            words = view["caption"].partition(": ")[0].replace("ended", "cancelled")
            return view | {"state": "cancelled", "error": "", "caption": words}
        return view

    # -------------------------------------------------------------------------- on the run's thread

    def _work(self) -> None:
        try:
            self._results = self._run(self._hear)
        except BaseException as error:  # noqa: BLE001 - `result` raises it
            self._error = error
            if not self.meter.over:  # refused before it began
                self.meter.hear(RunEnded(0.0, str(error) or type(error).__name__))
        with self._lock:
            self._over = True
            listeners = tuple(self._listeners)
        try:
            for listener in listeners:
                listener(self)
        finally:
            self._ended.set()  # whoever waits goes on when all know of the end

    def _hear(self, event: Event) -> None:
        self.meter.hear(event)
        if self._cancelled and not self._raised and not self.meter.over:
            self._raised = True  # once: what is told while the run ends is only noted
            raise CancelledError("the run was cancelled")
        now = time.monotonic()
        if now - self._told >= PERIOD and not self.meter.over:
            self._told = now
            for listener in tuple(self._listeners):
                listener(self)

    # ------------------------------------------------------------------------------------ display

    def __str__(self) -> str:
        return text(self.view())

    def __repr__(self) -> str:
        return f"<LiveRun, {self.view()['caption']}>"

    def _repr_html_(self) -> str:
        return html(self.view())
