"""One computation at a time, in a thread, and always the newest that was asked for.

Contract: `submit` stops the computation that runs at its next `progress.step` and starts the new one;
`cancel` only stops.  The thread lives as long as there is something to do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from einsummable import progress

#: Seconds for which a computation is not worth mentioning, and between two words about it.
QUIET, EVERY = 0.15, 0.1


class Latest:
    """Runs the newest job; `told` hears, at most every `EVERY` seconds, what one that takes long is at."""

    def __init__(self, told: Callable[[str, float], None]) -> None:
        self._told = told
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._next: Callable[[], None] | None = None
        self._turn = 0

    def submit(self, job: Callable[[], None]) -> None:
        """Run `job` as soon as the present one has stopped; one that waits is forgotten."""
        with self._lock:
            self._turn += 1
            self._next = job
            if self._idle.is_set():
                self._idle.clear()
                threading.Thread(target=self._run, name="einsummable-explorer", daemon=True).start()

    def cancel(self) -> None:
        """Stop the present job, and forget the one that waits."""
        with self._lock:
            self._turn += 1
            self._next = None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until there is nothing to do; return whether that is so."""
        return self._idle.wait(timeout)

    def _run(self) -> None:
        while True:
            with self._lock:
                job, self._next, turn = self._next, None, self._turn
                if job is None:
                    self._idle.set()
                    return
            try:
                with progress.watched(self._watcher(turn)):
                    job()
            except progress.Stopped:
                continue
            except BaseException:  # a mistake of ours: threading tells of it, nobody shall wait for this
                self._idle.set()
                raise

    def _watcher(self, turn: int) -> progress.Watcher:
        """Return a watcher that stops what is not the newest job, and now and then says how it goes."""
        began = said = time.perf_counter()
        doing = ""

        def watch(what: str) -> None:
            nonlocal said, doing
            if self._turn != turn:
                raise progress.Stopped
            now = time.perf_counter()
            doing = what or doing
            if now - began > QUIET and now - said > EVERY:
                said = now
                self._told(doing, now - began)

        return watch
