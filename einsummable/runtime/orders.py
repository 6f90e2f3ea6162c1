"""What the engines are told for one run: which inputs come, which are there, which results stay.

Contract: everything here is by site, in order, and touches no engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache

import numpy as np

from einsummable import mapped
from einsummable.errors import EngineError, PlanError
from einsummable.mapped import Region
from einsummable.nodes import Box
from einsummable.planner.plan import Layout
from einsummable.runtime.engines import Engines
from einsummable.runtime.programs import Program
from einsummable.runtime.session import DistributedTensor, layout_of
from einsummable.taskgraph.tasks import Output, TaskGraph


def sort_inputs(
    engines: Engines, program: Program, arrays: Mapping[str, np.ndarray | DistributedTensor]
) -> tuple[list[dict[int, np.ndarray]], list[dict[int, int]], list[dict[int, Region]]]:
    """Return for each site the boxes to send, the numbers of blocks that are there, and what is in files."""
    there = {
        name: _blocks(engines, name, a) for name, a in arrays.items() if isinstance(a, DistributedTensor)
    }
    files = {name: region for name, a in arrays.items() if name not in there and (region := mapped.region(a))}
    sent, stored, read = [], [], []
    for part, reads in zip(program.parts, program.reads, strict=True):
        sent.append({})
        stored.append({})
        read.append({})
        for i, (name, box) in enumerate(reads):
            if name in files and engines.sees(part.site, files[name].file):
                read[-1][i] = files[name].part(box)
            elif name not in there:
                sent[-1][i] = np.asarray(arrays[name])[tuple(slice(*r) for r in box)]
            elif (part.site, box) in there[name]:
                stored[-1][i] = there[name][part.site, box]
            else:
                raise PlanError(
                    f"{name} does not lie on the engines as the program reads it",
                    notes=("compile the program with the tensor, or pass tensor.fetch()",),
                )
    return sent, stored, read


def _blocks(engines: Engines, name: str, tensor: DistributedTensor) -> dict[tuple[int, Box], int]:
    if not tensor.is_on(engines):
        raise EngineError(f"{name} is {tensor!r} of another cluster")
    return tensor.there


def donations(
    program: Program, arrays: Mapping[str, np.ndarray | DistributedTensor], names: Collection[str]
) -> tuple[list[tuple[int, ...]], list[DistributedTensor]]:
    """Return for each site which of its reads are given up, and the tensors that are then no more.

    Raises
    ------
    PlanError
        One of them is another input as well.
    """
    tensors = {name: arrays[name] for name in names if isinstance(arrays[name], DistributedTensor)}
    given = Counter(map(id, arrays.values()))
    for name, tensor in tensors.items():
        if given[id(tensor)] > 1:
            other = next(o for o, a in arrays.items() if a is tensor and o != name)
            raise PlanError(f"the tensor {name} cannot be given up: it is {other} too")
    if not names:
        return [()] * len(program.reads), []
    reads = [tuple(i for i, (name, _) in enumerate(of_site) if name in names) for of_site in program.reads]
    return reads, list(tensors.values())


def tensors_for(
    engines: Engines, taskgraph: TaskGraph, names: Collection[str]
) -> dict[str, DistributedTensor]:
    """Return tensors for those outputs to be kept in that a layout describes and that go nowhere else."""
    layouts = {out.name: _layout(taskgraph, out) for out in taskgraph.outputs if out.name in names}
    returned = {t for out in taskgraph.outputs if layouts.get(out.name) is None for t, _ in out.blocks}
    return {
        out.name: DistributedTensor(engines, out.shape, out.dtype, layout)
        for out in taskgraph.outputs
        if (layout := layouts.get(out.name)) is not None and not returned & {t for t, _ in out.blocks}
    }


def _layout(taskgraph: TaskGraph, out: Output) -> Layout | None:
    """Return how an output lies; None where no layout says that."""
    sites = tuple(taskgraph.tasks[t].site for t, _ in out.blocks)
    return _layout_of(out.shape, tuple(box for _, box in out.blocks), sites)


@lru_cache(maxsize=1024)  # a loop of small programs asks again and again
def _layout_of(shape: tuple[int, ...], boxes: tuple[Box, ...], sites: tuple[int, ...]) -> Layout | None:
    return layout_of(shape, list(boxes), list(sites))


def numbers_of(
    taskgraph: TaskGraph, kept: Mapping[str, DistributedTensor]
) -> list[dict[int, tuple[int, ...]]]:
    """Return for each site the numbers under which it is to keep the blocks that tasks make."""
    numbers: list[dict[int, tuple[int, ...]]] = [{} for _ in range(taskgraph.sites)]
    for out in taskgraph.outputs:
        if out.name not in kept:
            continue
        for (task, _), (site, _, number) in zip(out.blocks, kept[out.name].blocks, strict=True):
            numbers[site][task] = (*numbers[site].get(task, ()), number)
    return numbers
