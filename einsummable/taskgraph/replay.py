"""An interpreter of MemoryPlans that lives in one arena a site.

Contract: ``evaluate(allocate(taskgraph, budget), arrays)`` equals ``tasks.evaluate(taskgraph, arrays)``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from einsummable.evaluate import check_inputs, read_params
from einsummable.taskgraph.memory import (
    Evict,
    Free,
    Load,
    MemoryPlan,
    MemoryStep,
    Receive,
    Run,
    Send,
    in_turn,
)
from einsummable.taskgraph.tasks import Slice, evaluate_task, nbytes


def evaluate(
    plan: MemoryPlan, arrays: Mapping[str, np.ndarray], params: Mapping[str, object] | None = None
) -> dict[str, np.ndarray]:
    """Run the plan in one arena a site, with the graph's own oracle; shares no code with the executors.

    What has no place any more is overwritten, so that a step that still reads it computes nonsense.
    """
    taskgraph = plan.taskgraph
    check_inputs(taskgraph.graph, arrays)
    scalars = read_params(taskgraph.graph, params or {})
    replay = _Replay(plan, {name: np.asarray(a) for name, a in arrays.items()}, scalars)
    for site, n in in_turn(plan):
        replay.step(site, plan.sites[site].steps[n])
    results = {}
    for out in taskgraph.outputs:
        whole = results[out.name] = np.empty(out.shape, out.dtype)
        for t, box in out.blocks:
            whole[tuple(slice(*r) for r in box)] = replay.block(taskgraph.tasks[t].site, t)
    return results


class _Replay:
    """Arenas and disks of all sites."""

    def __init__(
        self, plan: MemoryPlan, arrays: Mapping[str, np.ndarray], scalars: Mapping[str, np.generic]
    ) -> None:
        self.plan, self.tasks, self.arrays, self.scalars = plan, plan.taskgraph.tasks, arrays, scalars
        self.arenas = [np.full(memory.size, 0xA5, np.uint8) for memory in plan.sites]
        self.where: list[dict[int, int]] = [{} for _ in plan.sites]
        self.disks: list[dict[int, np.ndarray]] = [{} for _ in plan.sites]
        self.wire: dict[int, np.ndarray] = {}

    def block(self, site: int, t: int) -> np.ndarray:
        """Return the block of `t` as `site` sees it now."""
        task = self.tasks[t]
        if isinstance(task, Slice):
            return self.block(site, task.inputs[0])[tuple(slice(*r) for r in task.box)]
        if t in self.where[site]:
            return self._place(site, t, self.where[site][t])
        if t in self.disks[site]:
            return self.disks[site][t]
        if t in self.plan.in_place:
            return self.block(site, self.plan.in_place[t])
        return evaluate_task(self.plan.taskgraph.graph, task, [], self.arrays, self.scalars)

    def _place(self, site: int, t: int, offset: int) -> np.ndarray:
        task = self.tasks[t]
        raw = self.arenas[site][offset : offset + nbytes(task)]
        return raw.view(task.dtype).reshape(task.shape)

    def step(self, site: int, step: MemoryStep) -> None:
        """Take one step."""
        task, where = self.tasks[step.task], self.where[site]
        match step:
            case Run(t, offset, reuses) if offset >= 0:
                args = [self.block(site, j) for j in task.inputs]
                made = evaluate_task(self.plan.taskgraph.graph, task, args, self.arrays, self.scalars)
                where.pop(reuses, None)
                where[t] = offset
                self._place(site, t, offset)[...] = made
            case Run(t) if t in self.plan.in_place:
                args = [self.block(site, j) for j in task.inputs]
                made = evaluate_task(self.plan.taskgraph.graph, task, args, self.arrays, self.scalars)
                self.block(site, t)[...] = made
            case Send(t):
                self.wire[t] = self.block(site, task.inputs[0]).copy()
            case Receive(t, offset):
                where[t] = offset
                self._place(site, t, offset)[...] = self.wire.pop(t)
            case Load(t, offset):
                made = self.block(site, t)
                where[t] = offset
                self._place(site, t, offset)[...] = made
            case Evict(t, write):
                if write:
                    self.disks[site][t] = self.block(site, t).copy()
                self._forget(site, t)
            case Free(t):
                self._forget(site, t)

    def _forget(self, site: int, t: int) -> None:
        offset = self.where[site].pop(t)
        self.arenas[site][offset : offset + nbytes(self.tasks[t])] = 0xA5
