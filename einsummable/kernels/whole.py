"""A program run at once, in the thread that calls, by the kernels that run on blocks.

Contract: for one process and no plan, where starting a run would cost more than the work.  Kernels are
prepared when the program is made; a call runs them in order, and drops each value after its last reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from einsummable.graph import EinGraph
from einsummable.kernels.blocks import Call, Kernel, prepare
from einsummable.nodes import Input, Select, whole


@dataclass(frozen=True, slots=True)
class _Step:
    """One node: its kernel, where it starts, which values it reads, and which nobody reads after it."""

    node: int
    kernel: Kernel
    start: tuple[int, ...]
    inputs: tuple[int, ...]
    box: tuple[slice, ...] | None
    last_read: tuple[int, ...]


class Whole:
    """`graph` as a function of its arrays, without its parameters."""

    def __init__(self, graph: EinGraph) -> None:
        self._inputs = tuple((i, n.name) for i, n in enumerate(graph.nodes) if isinstance(n, Input))
        self._outputs = graph.outputs
        kept = {o for _, o in graph.outputs}
        last = {j: i for i, n in enumerate(graph.nodes) for j in n.inputs}
        steps = []
        for i, node in enumerate(graph.nodes):
            if isinstance(node, Input):
                continue
            extents = tuple(n for _, n in node.space)
            box = node.in_box(0, whole(extents)) if isinstance(node, Select) else None
            done = tuple(j for j in dict.fromkeys(node.inputs) if last[j] == i and j not in kept)
            kernel = prepare(Call.of(graph, node), extents)
            slices = None if box is None else tuple(slice(*ends) for ends in box)
            steps.append(_Step(i, kernel, (0,) * len(extents), node.inputs, slices, done))
        self._steps = tuple(steps)

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name; `arrays` have the shapes and dtypes of the graph's inputs."""
        values = {i: arrays[name] for i, name in self._inputs}
        for step in self._steps:
            blocks = [values[j] for j in step.inputs]
            if step.box is not None:
                blocks[0] = blocks[0][step.box]
            values[step.node] = step.kernel(blocks, step.start, {})
            for j in step.last_read:
                del values[j]
        return {name: values[o] for name, o in self._outputs}
