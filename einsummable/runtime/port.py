"""How an engine's site hands blocks over when it runs within a budget.

Contract: an `EnginePort` serves one run (see `handover.Port`).  A block stays in its sender's arena until the
receiver has said that there is space (READY), and is then received right there, so that nothing that is
under way takes memory; boxes of inputs are asked for when there is space for them (NEED).  `arrived`, `ready`
and `place` are called by the threads that read the mesh, the rest by the one that runs.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Mapping
from functools import partial
from queue import SimpleQueue

import numpy as np

from einsummable.mapped import Region
from einsummable.runtime import wire
from einsummable.runtime.handover import Done, Key
from einsummable.runtime.part import Source
from einsummable.runtime.transport import Mesh, NotConnectedError
from einsummable.runtime.wire import DRIVER

_ARRIVES = {wire.BLOCK: "arrived", wire.INPUT: "input"}


class EnginePort:
    """One run of one site.

    Parameters
    ----------
    inbox
        Takes what is done.

    Attributes
    ----------
    reads
        The index in ``SitePart.reads`` of what is to be asked for.
    files
        What is read from files instead.
    keep, blocks
        Under which numbers blocks of results stay here, and where they are put then.
    in_place
        The tasks whose blocks are where they may stay.
    """

    def __init__(self, mesh: Mesh, run: int, inbox: SimpleQueue) -> None:
        self._mesh, self._run, self._inbox = mesh, run, inbox
        self._lock = threading.Lock()
        self._offered: dict[int, tuple[int, np.ndarray]] = {}
        self._ready: set[int] = set()
        self._places: dict[tuple[int, int], np.ndarray] = {}
        self.reads: Mapping[Source, int] = {}
        self.files: Mapping[Source, Region] = {}
        self.keep: Mapping[int, tuple[int, ...]] = {}
        self.in_place: Collection[int] = ()
        self.blocks: dict[int, np.ndarray] = {}

    # ------------------------------------------------------------- on the threads that read the mesh

    def ready(self, tag: int) -> None:
        """Take the word of a receiver that there is space."""
        with self._lock:
            offered = self._offered.pop(tag, None)
            if offered is None:
                self._ready.add(tag)
        if offered is not None:
            with contextlib.suppress(NotConnectedError):  # then the run is being stopped
                self._send(tag, *offered)

    def place(self, kind: int, tag: int) -> np.ndarray | None:
        """Return where a payload is to go."""
        return self._places.get((kind, tag))

    def arrived(self, kind: int, tag: int, payload: np.ndarray) -> bool:
        """Take a payload that was waited for; return whether this one was."""
        place = self._places.pop((kind, tag), None)
        if place is None:
            return False
        if payload is not place:
            place[...] = payload
        self._done((_ARRIVES[kind], tag))
        return True

    # ------------------------------------------------------------------- on the thread that runs

    def offer(self, site: int, tag: int, block: np.ndarray) -> None:
        """Send a block when there is space (see `handover.Port`)."""
        with self._lock:
            if tag not in self._ready:
                self._offered[tag] = site, block
                return
            self._ready.remove(tag)
        self._send(tag, site, block)

    def accept(self, site: int, tag: int, place: np.ndarray) -> None:
        """Say that there is space (see `handover.Port`)."""
        self._places[wire.BLOCK, tag] = _flat(place)
        self._mesh.send(site, wire.READY, self._run, tag)

    def fetch(self, source: Source, number: int, place: np.ndarray) -> None:
        """Ask the driver for a box of an input, or read it (see `handover.Port`)."""
        if source in self.files:
            self.files[source].read_into(place)
            self._done(("input", number))
            return
        self._places[wire.INPUT, number] = _flat(place)
        self._mesh.send(DRIVER, wire.NEED, self._run, number, np.array([self.reads[source]], np.uint64))

    def deliver(self, task: int, block: np.ndarray) -> None:
        """Send a block of results to the driver, or keep it (see `handover.Port`)."""
        for n, number in enumerate(self.keep.get(task, ())):
            self.blocks[number] = block.copy() if n or task not in self.in_place else block
        if task in self.keep:
            self._done(("result", task))
            return
        gone = partial(self._done, ("result", task))
        self._mesh.send(DRIVER, wire.RESULT, self._run, task, block, pooled=False, gone=gone)

    def _send(self, tag: int, site: int, block: np.ndarray) -> None:
        gone = partial(self._done, ("sent", tag))
        # Out of the arena and into another one: what goes through a pool is in memory twice.
        self._mesh.send(site, wire.BLOCK, self._run, tag, block, pooled=False, gone=gone)

    def _done(self, key: Key) -> None:
        self._inbox.put(Done(key))


def _flat(place: np.ndarray) -> np.ndarray:
    return place.reshape(-1).view(np.uint8)
