"""Which engines have which programs: each is shipped once and dropped when nobody has it any more.

Contract: `Programs.load` sends every engine its part of a TaskGraph through ipyparallel, in one message, the
first time it is asked for; the engines forget it when the TaskGraph is garbage-collected.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from einsummable.runtime import wire
from einsummable.runtime.bounded import BoundedPart, bounded
from einsummable.runtime.engines import Engines
from einsummable.runtime.part import SitePart, Source, split
from einsummable.taskgraph.allocate import allocate
from einsummable.taskgraph.tasks import TaskGraph


@dataclass(frozen=True, slots=True)
class Program:
    """A TaskGraph that the engines have, under a number; the part of each site and what it reads.

    `within` says whether it runs within a budget: then sites ask for inputs when they have space.
    """

    number: int
    taskgraph: weakref.ref[TaskGraph]
    parts: tuple[SitePart, ...]
    reads: tuple[tuple[Source, ...], ...]
    within: bool


class Programs:
    """The programs that some engines have."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        # By the identity of the TaskGraph, for comparing would take long, and what else they depend on.
        self._known: dict[tuple, Program] = {}

    def load(
        self,
        taskgraph: TaskGraph,
        budgets: Sequence[int] | None = None,
        views: Collection[str] = (),
        given: Collection[str] = (),
    ) -> Program:
        """Ship each engine its part of `taskgraph`, unless it has it already.

        Parameters
        ----------
        budgets
            The bytes that the blocks of each site may take, if that matters.
        views
            The inputs that are on the engines anyway; this matters only within a budget.
        given
            Those of them that may be written over.

        Raises
        ------
        CapacityError
            A task does not fit.
        """
        within = None if budgets is None else (tuple(budgets), frozenset(views), frozenset(given))
        key = id(taskgraph), within
        known = self._known.get(key)
        if known is not None and known.taskgraph() is taskgraph:
            return known
        shipped: Sequence[SitePart | BoundedPart] = split(taskgraph)
        if budgets is not None:
            shipped = bounded(allocate(taskgraph, budgets, views=views, given=given))
        number = self._engines.number()
        forget = weakref.finalize(taskgraph, self._forget, key, number)
        forget.atexit = False
        calls = {p.site: ("load_program", self._engines.session, number, p) for p in shipped}
        try:
            self._engines.call(calls)
        except BaseException:
            forget()
            raise
        parts = tuple(p.part if isinstance(p, BoundedPart) else p for p in shipped)
        program = Program(
            number,
            weakref.ref(taskgraph),
            parts,
            tuple(part.reads for part in parts),
            within=budgets is not None,
        )
        self._known[key] = program
        return program

    def clear(self) -> None:
        """Forget all, so that engines that are new get what they need."""
        for key, program in list(self._known.items()):
            self._forget(key, program.number)

    def _forget(self, key: tuple, number: int) -> None:
        known = self._known.get(key)
        if known is not None and known.number == number:
            del self._known[key]
        for site in self._engines.info:
            self._engines.tell(site, wire.FORGET, number)
