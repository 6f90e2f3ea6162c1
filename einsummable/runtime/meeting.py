"""Where the sites of one process hand blocks over: a sender with a block, a receiver with a place.

Contract: a `Meeting` serves one run; `port` is the `handover.Port` of one of its sites.  Whoever of the two
comes second copies.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeAlias

import numpy as np

from einsummable.errors import EngineError
from einsummable.nodes import Box
from einsummable.runtime.executor import is_there
from einsummable.runtime.handover import Done
from einsummable.runtime.part import Source

#: For each task the arrays of results that take its block, and where in them.
Targets: TypeAlias = Mapping[int, Sequence[tuple[np.ndarray, Box]]]


class Meeting:
    """The hand-over of one run.

    Parameters
    ----------
    inboxes
        Of all sites.
    targets
        Where the blocks of results go.
    """

    def __init__(self, inboxes: Sequence[SimpleQueue], targets: Targets) -> None:
        self.inboxes, self.targets = inboxes, targets
        self._lock = threading.Lock()
        self._waiting: dict[int, np.ndarray] = {}

    def port(self, site: int) -> SitePort:
        """Return the port of `site`."""
        return SitePort(self, site)

    def come(self, tag: int, mine: np.ndarray) -> np.ndarray | None:
        """Return what the other one left, or leave `mine` for it."""
        with self._lock:
            other = self._waiting.pop(tag, None)
            if other is None:
                self._waiting[tag] = mine
        return other


@dataclass(frozen=True, slots=True)
class SitePort:
    """One site's way to the others."""

    meeting: Meeting
    site: int

    def offer(self, site: int, tag: int, block: np.ndarray) -> None:
        """Send a block (see `handover.Port`)."""
        place = self.meeting.come(tag, block)
        if place is not None:
            self._copy(self.site, site, tag, block, place)

    def accept(self, site: int, tag: int, place: np.ndarray) -> None:
        """Take a block (see `handover.Port`)."""
        block = self.meeting.come(tag, place)
        if block is not None:
            self._copy(site, self.site, tag, block, place)

    def fetch(self, source: Source, number: int, place: np.ndarray) -> None:  # noqa: ARG002
        """Fail: in one process every input is there."""
        raise EngineError(f"{source[0]} is not there")

    def deliver(self, task: int, block: np.ndarray) -> None:
        """Put a block of results where it belongs."""
        for array, box in self.meeting.targets[task]:
            place = array[(*(slice(*r) for r in box), ...)]
            if not is_there(block, place):
                place[...] = block
        self.meeting.inboxes[self.site].put(Done(("result", task)))

    def _copy(self, source: int, site: int, tag: int, block: np.ndarray, place: np.ndarray) -> None:
        place[...] = block
        self.meeting.inboxes[source].put(Done(("sent", tag)))
        self.meeting.inboxes[site].put(Done(("arrived", tag)))
