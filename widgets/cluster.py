"""A cluster: its engines, what they take, and buttons to start and stop them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from einsummable.errors import EinsummableError
from einsummable.runtime.cluster import Cluster
from einsummable.runtime.engines import EngineTable
from einsummable.views.clusters import cluster_view
from einsummable.widgets.base import Widget, bundle

#: Seconds between two looks at a cluster that runs.
PERIOD = 2.0


class ClusterPanel(Widget):
    """The cluster of a notebook.

    Parameters
    ----------
    current
        Returns the cluster, or None where there is none.
    start
        Starts one with so many engines of so many threads.
    stop
        Stops it.
    """

    _esm = bundle("cluster")

    def __init__(
        self,
        current: Callable[[], Cluster | None],
        start: Callable[[int, int], object],
        stop: Callable[[], object],
    ) -> None:
        self._current, self._start, self._stop = current, start, stop
        self._busy, self._over = threading.Lock(), threading.Event()
        super().__init__(view=self._look())
        threading.Thread(target=_follow, args=(weakref.ref(self), self._over), daemon=True).start()

    def refresh(self) -> None:
        """Look at the cluster anew; while it starts or stops there is nothing to see."""
        if not self._busy.locked():
            self.view = self._look()

    def close(self) -> None:
        """Take the panel away."""
        self._over.set()
        super().close()

    def pictures(self) -> list[dict[str, Any]]:
        """Return the engines."""
        return [self.view]

    def python(self) -> str:
        """Return Python that starts such a cluster."""
        rows = self.view["engines"]
        threads = rows[0]["threads"] if rows else 1
        return f"import einsummable as ein\n\ncluster = ein.Cluster(n={len(rows) or 2}, threads={threads})\n"

    def _look(self) -> dict[str, Any]:
        cluster = self._current()
        if cluster is None:
            return cluster_view(EngineTable())
        return cluster_view(cluster.info(), cluster.usage(), memory=cluster.memory)

    def _answer(self, widget: Any, content: dict[str, Any], buffers: Any) -> None:
        match content:
            case {"do": "start", "n": int(n), "threads": int(threads)}:
                self._begin("starting", lambda: self._start(n, threads))
            case {"do": "stop"}:
                self._begin("stopping", self._stop)
            case _:
                super()._answer(widget, content, buffers)

    def _begin(self, state: str, act: Callable[[], object]) -> None:
        """Start or stop on a thread of its own: engines take seconds, and the notebook goes on."""
        if not self._busy.acquire(blocking=False):
            return
        self.error = ""
        self.view = cluster_view(EngineTable(), state=state)
        threading.Thread(target=self._act, args=(act,), daemon=True).start()

    def _act(self, act: Callable[[], object]) -> None:
        try:
            act()
        except EinsummableError as error:
            self.error = str(error)
        finally:
            self._busy.release()
            self.refresh()


def _follow(panel: weakref.ref[ClusterPanel], over: threading.Event) -> None:
    """Refresh a panel that somebody still holds until it is closed."""
    while not over.wait(PERIOD):
        if (alive := panel()) is None:
            return
        alive.refresh()
        del alive
