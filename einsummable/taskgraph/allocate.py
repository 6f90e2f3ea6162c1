"""From a TaskGraph to a MemoryPlan that keeps every site within its budget.

Contract: `allocate` goes once through all tasks, in an order that keeps few blocks alive, and gives each
block the smallest hole it fits into.  Where there is none it evicts the block whose next use is farthest away
(the rule of Belady, IBM Systems Journal 5, 1966); what is needed again is loaded a little ahead where there
is space.  A plan is found for every budget that holds, for each task alone, what it reads and makes; else
`CapacityError` names that task.  Quick enough for a hundred thousand tasks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from heapq import heappop, heappush
from math import inf

from einsummable.errors import CapacityError, PlanError
from einsummable.taskgraph.memory import (
    Evict,
    Free,
    Load,
    MemoryPlan,
    MemoryStep,
    Receive,
    Run,
    Send,
    SiteMemory,
    aligned,
    root,
)
from einsummable.taskgraph.order import depth_first
from einsummable.taskgraph.space import Space
from einsummable.taskgraph.tasks import Aggregate, Move, Read, Slice, TaskGraph, nbytes
from einsummable.taskgraph.updates import in_place

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_AHEAD = 2  # so many tasks ahead blocks are loaded


def parse_bytes(memory: float | str) -> int:
    """Return a number of bytes that is given as such, or as text like ``"2GB"`` or ``"512 MiB"``.

    >>> parse_bytes("1.5GB"), parse_bytes("2 KiB"), parse_bytes(64)
    (1500000000, 2048, 64)

    Raises
    ------
    PlanError
        It is neither, or negative.
    """
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]?)(i?)b?\s*", memory.lower())
        if found and not (found[3] and not found[2]):
            scale = _UNITS[found[2]]
            if found[3]:
                scale = 1024 ** list(_UNITS).index(found[2])
            return int(float(found[1]) * scale)
    elif not isinstance(memory, bool) and isinstance(memory, int | float) and 0 <= memory < inf:
        return int(memory)
    raise PlanError(f"a memory is a number of bytes, or text like '2GB', not {memory!r}")


def allocate(
    taskgraph: TaskGraph,
    budget: int | str | Sequence[int | str] | None = None,
    *,
    views: Collection[str] = (),
    given: Collection[str] = (),
) -> MemoryPlan:
    """Return a place for every block of `taskgraph`.

    Parameters
    ----------
    budget
        The bytes that each site may use, one figure for all or one for each; without it a site takes what
        it needs, and nothing is evicted.
    views
        The inputs that are in each site's memory anyway, outside the budget: their blocks take no space.
    given
        Those of them that may be written over.

    Raises
    ------
    CapacityError
        A task reads and makes more than its site may hold; the message names the worst one.
    """
    if budget is None or isinstance(budget, int | float | str):
        budget = [budget] * taskgraph.sites  # type: ignore[list-item]
    budgets = [None if b is None else parse_bytes(b) for b in budget]
    if len(budgets) != taskgraph.sites:
        raise PlanError(f"{len(budgets)} budgets are given for {taskgraph.sites} sites")
    allocation = _Allocation(taskgraph, frozenset(views), budgets, frozenset(given))
    allocation.check()
    for i in allocation.order:
        allocation.take(i)
    sites = tuple(
        SiteMemory(s.number, -1 if s.budget is None else s.budget, s.space.used, tuple(s.steps))
        for s in allocation.sites
    )
    return MemoryPlan(taskgraph, sites, tuple(sorted(views)), tuple(sorted(given)))


def least_budgets(taskgraph: TaskGraph, *, views: Collection[str] = ()) -> tuple[int, ...]:
    """Return the smallest budget of each site for which there is a plan."""
    needs = _Allocation(taskgraph, frozenset(views), [None] * taskgraph.sites).needs
    return tuple(max(of_site, default=(0, 0))[0] for of_site in needs)


class _Allocation:
    """The sites of a plan that is being made, and what every task reads."""

    def __init__(
        self,
        taskgraph: TaskGraph,
        views: frozenset[str],
        budgets: list[int | None],
        given: frozenset[str] = frozenset(),
    ) -> None:
        self.taskgraph, self.order = taskgraph, depth_first(taskgraph)
        tasks = taskgraph.tasks
        self.roots = [root(taskgraph, i) for i in range(len(tasks))]
        self.outside = [isinstance(t, Read) and t.name in views for t in tasks]
        for i in in_place(taskgraph, views & given):
            self.outside[i] = True
        kept = {self.roots[t] for out in taskgraph.outputs for t, _ in out.blocks}
        self.sizes = [aligned(nbytes(t)) for t in tasks]
        #: What must be in memory for a task: blocks of its site, or for a Move of the one it comes from.
        self.operands = [self._operands(i) for i in range(len(tasks))]
        uses: list[list[int]] = [[] for _ in tasks]
        for position, i in reversed(list(enumerate(self.order))):
            for r in self.operands[i]:
                uses[r].append(position)
        self.sites = [_Site(self, n, budget, uses, kept) for n, budget in enumerate(budgets)]
        self.donors = [-1] * len(tasks)
        #: For each site the bytes that each task needs at once, with its id.
        self.needs: list[list[tuple[int, int]]] = [[] for _ in budgets]
        for position, i in enumerate(self.order):
            self._prepare(position, i, uses, kept)

    def _prepare(self, position: int, i: int, uses: list[list[int]], kept: set[int]) -> None:
        """Find what task `i` needs at once, and the block that an aggregate is accumulated in place of."""
        task, operands = self.taskgraph.tasks[i], self.operands[i]
        read = sum(self.sizes[r] for r in operands)
        made = 0 if isinstance(task, Slice) or self.outside[i] else self.sizes[i]
        if isinstance(task, Aggregate) and len(set(task.inputs)) == len(task.inputs):
            # It must end with this task: the list has the last use first.
            ending = (r for r in operands if r in task.inputs and uses[r] == [position] and r not in kept)
            self.donors[i] = next(ending, -1)
            made = made if self.donors[i] < 0 else 0
        if operands:
            here = self.taskgraph.tasks[operands[0]].site
            self.sites[here].queue.append(operands)
            self.needs[here].append((read, i))
        self.needs[task.site].append((made if isinstance(task, Move) else made + read, i))

    def check(self) -> None:
        """Raise `CapacityError` if a task does not fit."""
        for site, needs in zip(self.sites, self.needs, strict=True):
            needed, i = max(needs, default=(0, -1))
            if site.budget is not None and needed > site.budget:
                raise _too_much(self.taskgraph, i, needed, site)

    def _operands(self, i: int) -> tuple[int, ...]:
        if isinstance(self.taskgraph.tasks[i], Slice):
            return ()
        found = dict.fromkeys(self.roots[j] for j in self.taskgraph.tasks[i].inputs)
        return tuple(r for r in found if not self.outside[r])

    def take(self, i: int) -> None:
        """Plan one task."""
        task = self.taskgraph.tasks[i]
        here = self.sites[task.site]
        if isinstance(task, Move):
            source = self.taskgraph.tasks[task.inputs[0]].site
            self.sites[source].do(i, Send(i))
            here.make(i)
            here.steps.append(Receive(i, here.where[i]))
            here.drop_if_unused(i)
        elif isinstance(task, Slice) or (self.outside[i] and isinstance(task, Read)):
            here.steps.append(Run(i, -1))
        elif not isinstance(task, Read):  # those are loaded when they are needed
            here.do(i, None)
        elif not here.uses[i]:
            here.load(i)
            here.drop_if_unused(i)


class _Site:
    """One site: what is where, and when it is needed next."""

    def __init__(
        self,
        allocation: _Allocation,
        number: int,
        budget: int | None,
        uses: list[list[int]],
        kept: set[int],
    ) -> None:
        self.number, self.budget, self.uses, self.kept = number, budget, uses, kept
        self.steps: list[MemoryStep] = []
        self.where: dict[int, int] = {}
        self.space = Space(budget)
        #: The operands of the tasks that are to come, and how many of them came.
        self.queue: list[tuple[int, ...]] = []
        self._came = 0
        self._saved: set[int] = set()
        self._farthest: list[tuple[float, int]] = []  # a heap of (-next use, block), some out of date
        self._all = allocation
        self._sizes, self._tasks = allocation.sizes, allocation.taskgraph.tasks

    def do(self, i: int, send: Send | None) -> None:
        """Plan a task that reads blocks here: a Move that leaves, or one that makes a block."""
        operands = self._all.operands[i]
        self._came += bool(operands)
        reused, outside = -1 if send else self._all.donors[i], send is None and self._all.outside[i]
        made = send is None and reused < 0 and not outside
        if not self._bring(operands, i if made else -1):
            self._rearrange(operands, i if made else -1)
        self._load_ahead((*operands, i) if made else operands)
        if reused >= 0:
            self.where[i] = self.where.pop(reused)
        self.steps.append(send or Run(i, -1 if outside else self.where[i], reused))
        for r in operands:
            self.uses[r].pop()
            if r != reused:
                self.drop_if_unused(r)
                self._note(r)
        if send is None and not outside:
            self.drop_if_unused(i)
            self._note(i)

    def make(self, i: int) -> None:
        """Find a place for a block that nothing here is read for."""
        if not self._bring((), i):
            self._rearrange((), i)
        self._note(i)

    def load(self, i: int) -> None:
        """Bring a block of an input here."""
        self.make(i)
        self.steps.append(Load(i, self.where[i]))

    def drop_if_unused(self, r: int) -> None:
        """End the place of a block that nothing needs any more."""
        if not self.uses[r] and r not in self.kept:
            self.space.give(self.where.pop(r), self._sizes[r])
            self.steps.append(Free(r))

    # ------------------------------------------------------------------------------------- space

    def _bring(self, operands: tuple[int, ...], made: int) -> bool:
        """Bring `operands` into memory and find a place for `made` (-1: for nothing), evicting others."""
        for r in operands:
            if r not in self.where:
                if not self._place(r, operands):
                    return False
                self.steps.append(Load(r, self.where[r]))
        return made < 0 or self._place(made, operands)

    def _place(self, i: int, pinned: tuple[int, ...]) -> bool:
        offset = self.space.take(self._sizes[i])
        while offset is None:
            if not self._evict_farthest(pinned):
                return False
            offset = self.space.take(self._sizes[i])
        self.where[i] = offset
        return True

    def _rearrange(self, operands: tuple[int, ...], made: int) -> None:
        """Start again with an empty arena, where it fits: what is pinned was in the way."""
        for r in list(self.where):
            self._evict(r)
        self._bring(operands, made)

    def _evict_farthest(self, pinned: tuple[int, ...]) -> bool:
        """Evict the block whose next use is farthest away; return whether there was one."""
        aside = []
        found = False
        while self._farthest and not found:
            entry = heappop(self._farthest)
            r = entry[1]
            if r not in self.where or -entry[0] != self._next_use(r):
                continue
            if r in pinned:
                aside.append(entry)
            else:
                self._evict(r)
                found = True
        for entry in aside:
            heappush(self._farthest, entry)
        return found

    def _evict(self, r: int) -> None:
        write = not isinstance(self._tasks[r], Read) and r not in self._saved
        self._saved.add(r)
        self.space.give(self.where.pop(r), self._sizes[r])
        self.steps.append(Evict(r, write))

    def _next_use(self, r: int) -> float:
        return self.uses[r][-1] if self.uses[r] else inf

    def _note(self, r: int) -> None:
        # Only a budget makes anybody ask.
        if self.budget is not None and r in self.where:
            heappush(self._farthest, (-self._next_use(r), r))

    def _load_ahead(self, pinned: tuple[int, ...]) -> None:
        """Load what the next tasks read and fits beside all that is there."""
        if self.budget is None:
            return
        for operands in self.queue[self._came : self._came + _AHEAD]:
            for r in operands:
                lost = isinstance(self._tasks[r], Read) or r in self._saved
                if r in self.where or r in pinned or not lost:
                    continue
                offset = self.space.take(self._sizes[r])
                if offset is None:
                    return
                self.where[r] = offset
                self.steps.append(Load(r, offset))
                self._note(r)


def _too_much(taskgraph: TaskGraph, i: int, needed: int, site: _Site) -> CapacityError:
    task, graph = taskgraph.tasks[i], taskgraph.graph
    node, what = graph.nodes[task.origin], graph.name_of(task.origin)
    spans = (node.origin.span,) if node.origin.span is not None else ()
    reads = " + ".join(str(nbytes(taskgraph.tasks[j])) for j in task.inputs) or "nothing"
    kind = type(task).__name__.lower()
    return CapacityError(
        f"{what} needs {needed} bytes at once on site {site.number}, {site.budget} are allowed",
        text=graph.text,
        spans=spans,
        notes=(
            f"the worst is its task #{i}, {kind}: it reads {reads} bytes and makes {nbytes(task)}",
            f"a memory of {needed} bytes, or smaller blocks (a greater p), would do",
        ),
    )
