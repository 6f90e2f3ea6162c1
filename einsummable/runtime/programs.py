"""Which engines have which programs: each is shipped once and dropped when nobody has it any more.

Contract: `Programs.load` sends every engine its part of a TaskGraph through ipyparallel, in one message, the
first time it is asked for; the engines forget it when the TaskGraph is garbage-collected.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from einsummable.runtime import wire
from einsummable.runtime.engines import Engines
from einsummable.runtime.part import SitePart, Source, split
from einsummable.taskgraph.tasks import TaskGraph


@dataclass(frozen=True, slots=True)
class Program:
    """A TaskGraph that the engines have, under a number; the part of each site and what it reads."""

    number: int
    taskgraph: weakref.ref[TaskGraph]
    parts: tuple[SitePart, ...]
    reads: tuple[tuple[Source, ...], ...]


class Programs:
    """The programs that some engines have."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._known: dict[int, Program] = {}  # by the identity of the TaskGraph: comparing would take long

    def load(self, taskgraph: TaskGraph) -> Program:
        """Ship each engine its part of `taskgraph`, unless it has it already."""
        known = self._known.get(id(taskgraph))
        if known is not None and known.taskgraph() is taskgraph:
            return known
        parts, number = split(taskgraph), self._engines.number()
        forget = weakref.finalize(taskgraph, self._forget, id(taskgraph), number)
        forget.atexit = False
        try:
            self._engines.call({p.site: ("load_program", self._engines.session, number, p) for p in parts})
        except BaseException:
            forget()
            raise
        program = Program(number, weakref.ref(taskgraph), parts, tuple(part.reads for part in parts))
        self._known[id(taskgraph)] = program
        return program

    def clear(self) -> None:
        """Forget all, so that engines that are new get what they need."""
        for key, program in list(self._known.items()):
            self._forget(key, program.number)

    def _forget(self, key: int, number: int) -> None:
        known = self._known.get(key)
        if known is not None and known.number == number:
            del self._known[key]
        for site in self._engines.info:
            self._engines.tell(site, wire.FORGET, number)
