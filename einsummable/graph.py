"""The EinGraph: a straight-line program of einsummables.

Contract: nodes stand in topological order, ids are indices, a node's inputs have smaller ids.

    %2 = [i,k] sum[j] x*y  of %0[i,j], %1[j,k]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from einsummable import dtypes, scalar
from einsummable.dtypes import ScalarType
from einsummable.errors import UnknownNameError, nearest
from einsummable.nodes import Einsummable, Input, Node, Param, Select


@dataclass(frozen=True, repr=False)
class EinGraph:
    """A program: nodes in topological order, named outputs, and the scalars it reads when it runs."""

    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, int], ...]
    params: tuple[Param, ...] = ()
    text: str = field(default="", compare=False)

    @cached_property
    def inputs(self) -> dict[str, Input]:
        """The inputs by name."""
        return {node.name: node for node in self.nodes if isinstance(node, Input)}

    @cached_property
    def param_types(self) -> tuple[tuple[str, ScalarType], ...]:
        """Names and types of the parameters, as `scalar.infer` takes them."""
        return tuple((p.name, p.type) for p in self.params)

    @cached_property
    def param_limits(self) -> tuple[tuple[str, int, int | np.dtype], ...]:
        """What the values of the parameters must fit: name, node, and an extent they index or a dtype.

        The dtype is one of integers that an integer of the caller's is cast to where it meets a tensor.
        """
        found: list[tuple[str, int, int | np.dtype]] = []
        for i, node in enumerate(self.nodes):
            match node:
                case Select(positions=positions, source_shape=shape):
                    found += [(p.param, i, n) for p, n in zip(positions, shape, strict=True) if p.param]
                case Einsummable(inputs=inputs, join=join) if join.params:
                    args = tuple(self.nodes[j].dtype for j in inputs)
                    found += [(name, i, d) for name, d in scalar.param_casts(join, args, self.param_types)]
        return tuple(dict.fromkeys(found))

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """For each node the ids of the nodes that read it, each once."""
        readers: list[list[int]] = [[] for _ in self.nodes]
        for i, node in enumerate(self.nodes):
            for j in dict.fromkeys(node.inputs):
                readers[j].append(i)
        return tuple(map(tuple, readers))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What a reader calls each node: the name of its line, or its id where it is a part of one."""
        results = {o: name for name, o in reversed(self.outputs)}
        last = {node.origin.name: i for i, node in enumerate(self.nodes)}
        found = []
        for i, node in enumerate(self.nodes):
            name = node.name if isinstance(node, Input) else results.get(i, node.origin.name)
            known = isinstance(node, Input) or (name and last.get(name, i) == i)
            found.append(name if known else f"%{i}")
        return tuple(found)

    def name_of(self, i: int) -> str:
        """Return what a reader calls node `i` (see `names`)."""
        return self.names[i]

    def id_of(self, name: str) -> int:
        """Return the node that a reader calls `name`.

        Raises
        ------
        UnknownNameError
            There is none.
        """
        ids = {known: i for i, known in enumerate(self.names)}
        if name not in ids:
            raise UnknownNameError(f"the program has no tensor called {name!r}", notes=nearest(name, ids))
        return ids[name]

    def __str__(self) -> str:
        lines = []
        for i, node in enumerate(self.nodes):
            line = f"%{i} = {node}"
            if not isinstance(node, Input):
                line += f"  : {list(node.shape)} {dtypes.name(node.dtype)}"
            lines.append(line)
        lines += [f"param {p.name} {p.type}" for p in self.params]
        return "\n".join([*lines, "return " + ", ".join(f"{n} = %{o}" for n, o in self.outputs)])

    __repr__ = __str__
