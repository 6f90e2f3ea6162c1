"""Building and checking an EinGraph.

Contract: `GraphBuilder` appends nodes, equal ones once, derives shapes and dtypes, and ends in an `EinGraph`
without nodes that no output needs.  `check` recomputes what the builder derived and raises named errors.

>>> g = GraphBuilder()
>>> a, b = g.input("A", (2, 3)), g.input("B", (3, 4))
>>> g.output("C", g.contract(("i", "k"), (a, ("i", "j")), (b, ("j", "k"))))
>>> print(g.build())
%0 = input A [2, 3] f32
%1 = input B [3, 4] f32
%2 = [i,k] sum[j] x*y  of %0[i,j], %1[j,k]  : [2, 4] f32
return C = %2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from einsummable import dtypes, functions, scalar
from einsummable.dtypes import ScalarType
from einsummable.errors import DtypeError, EinsummableError, ShapeError, UnknownNameError
from einsummable.graph import EinGraph
from einsummable.nodes import (
    Concat,
    Einsummable,
    Gather,
    Input,
    Node,
    Origin,
    Param,
    Position,
    Reshape,
    Select,
    Space,
)
from einsummable.scalar import COPY, PRODUCT, ScalarExpr

#: The origin of a node that no formula made.
UNKNOWN = Origin()

#: An input of an einsummable: the id of a node and a label for each of its dimensions.
Operand = tuple[int, Sequence[str]]


class GraphBuilder:
    """Appends nodes to a graph under construction; every method returns the id of its node."""

    def __init__(self, text: str = "") -> None:
        self._text = text
        self._nodes: list[Node] = []
        self._ids: dict[Node, int] = {}
        self._outputs: dict[str, int] = {}
        self._params: dict[str, ScalarType] = {}

    @classmethod
    def resume(cls, graph: EinGraph) -> GraphBuilder:
        """Return a builder that goes on where `graph` ends; its nodes keep their ids."""
        builder = cls(graph.text)
        builder._nodes = list(graph.nodes)
        builder._ids = {node: i for i, node in enumerate(graph.nodes)}
        builder._outputs = dict(graph.outputs)
        builder._params = dict(graph.param_types)
        return builder

    def __getitem__(self, i: int) -> Node:
        return self._nodes[i]

    @property
    def params(self) -> tuple[tuple[str, ScalarType], ...]:
        """Names and types of the scalars declared so far, as `scalar.infer` takes them."""
        return tuple(self._params.items())

    def _add(self, node: Node) -> int:
        if node not in self._ids:
            self._ids[node] = len(self._nodes)
            self._nodes.append(node)
        return self._ids[node]

    def again(self, node: Node, inputs: Sequence[int]) -> int:
        """Append `node` of another graph with other inputs of the same shapes and dtypes."""
        return self._add(replace(node, inputs=tuple(inputs)))

    def input(
        self, name: str, shape: Sequence[int], dtype: np.dtype = dtypes.F32, origin: Origin = UNKNOWN
    ) -> int:
        """Append an input."""
        dtypes.kind(np.dtype(dtype))
        return self._add(Input(name, tuple(map(int, shape)), np.dtype(dtype), origin))

    def param(self, name: str, type_: ScalarType) -> None:
        """Declare a scalar that joins and selections may read when the program runs."""
        self._params[name] = type_

    def einsummable(
        self,
        out: Sequence[str],
        operands: Sequence[Operand],
        join: ScalarExpr,
        aggregate: str | None = None,
        *,
        extents: Mapping[str, int] | None = None,
        origin: Origin = UNKNOWN,
    ) -> int:
        """Append ``Z[out] = aggregate over the other labels of join(operands)``.

        Parameters
        ----------
        extents
            Of labels that no operand has: those that are broadcast, or aggregated without being read.

        Raises
        ------
        ShapeError
            Ranks or extents disagree; an extent is unknown; labels are left over and nothing aggregates them.
        DtypeError
            The join or the aggregate has no meaning for the operands' dtypes.
        """
        space = iteration_space(out, [(self._nodes[i].shape, ls) for i, ls in operands], join, extents or {})
        if aggregate is None and len(space) > len(out):
            left = ", ".join(repr(label) for label, _ in space[len(out) :])
            raise ShapeError(f"label {left} is neither in the result nor aggregated")
        args = tuple(self._nodes[i].dtype for i, _ in operands)
        dtype = scalar.result_dtype(join, args, tuple(self._params.items()))
        if aggregate is not None:
            dtype = functions.aggregate_dtype(aggregate, dtype)
        ids, labels = tuple(i for i, _ in operands), tuple(tuple(ls) for _, ls in operands)
        return self._add(Einsummable(ids, labels, tuple(out), space, join, aggregate, dtype, origin))

    def contract(self, out: Sequence[str], *operands: Operand, origin: Origin = UNKNOWN) -> int:
        """Append the sum over the labels that `out` lacks of the product of one or two operands."""
        join = COPY if len(operands) == 1 else PRODUCT
        labels = {label for _, ls in operands for label in ls}
        return self.einsummable(out, operands, join, "sum" if labels - set(out) else None, origin=origin)

    def reshape(
        self,
        source: int,
        space: Space,
        groups_in: Sequence[int],
        groups_out: Sequence[int],
        origin: Origin = UNKNOWN,
    ) -> int:
        """Append a regrouping of dimensions (see `nodes.Reshape`); the identity appends nothing."""
        if tuple(groups_in) == tuple(groups_out):
            return source
        node = Reshape(
            (source,), tuple(space), tuple(groups_in), tuple(groups_out), self._nodes[source].dtype, origin
        )
        _check_reshape(node, self._nodes[source].shape)
        return self._add(node)

    def select(
        self, source: int, positions: Sequence[Position], space: Space, origin: Origin = UNKNOWN
    ) -> int:
        """Append a selection (see `nodes.Select`)."""
        shape = self._nodes[source].shape
        node = Select((source,), tuple(positions), shape, tuple(space), self._nodes[source].dtype, origin)
        _check_select(node, shape)
        return self._add(node)

    def concat(
        self, sources: Sequence[int], labels: Sequence[str], axis: int, origin: Origin = UNKNOWN
    ) -> int:
        """Append `sources`, one after another along dimension `axis`; one source alone appends nothing.

        Raises
        ------
        ShapeError
            There is no source, or their other extents disagree.
        DtypeError
            They are not of one dtype.
        """
        if len(sources) == 1:
            return sources[0]
        shapes = [self._nodes[i].shape for i in sources]
        _check_parts(shapes, [self._nodes[i].dtype for i in sources], axis)
        lengths = tuple(shape[axis] for shape in shapes)
        shape = (*shapes[0][:axis], sum(lengths), *shapes[0][axis + 1 :])
        space = tuple(zip(labels, shape, strict=True))
        return self._add(Concat(tuple(sources), axis, lengths, space, self._nodes[sources[0]].dtype, origin))

    def gather(
        self,
        out: Sequence[str],
        table: Operand,
        indices: Mapping[str, Operand],
        names: Sequence[str] = (),
        origin: Origin = UNKNOWN,
    ) -> int:
        """Append elements of `table` where tensors of integers say.

        Parameters
        ----------
        out
            All labels of the table that are not gathered and all labels of the indices, in any order.
        indices
            For each label of the table that is gathered, the tensor of its values.
        names
            What a reader calls the table and the tensors of indices, for errors.

        Raises
        ------
        ShapeError
            Ranks, labels or extents disagree.
        DtypeError
            The values are no integers.
        """
        operands = (table, *indices.values())
        ids, labels = tuple(i for i, _ in operands), tuple(tuple(ls) for _, ls in operands)
        rows = tuple(indices)
        space = iteration_space(out, [(self._nodes[i].shape, ls) for i, ls in operands], COPY, {})
        order = {label: n for n, label in enumerate((*out, *rows))}
        space = tuple(sorted(space, key=lambda part: order.get(part[0], len(order))))
        called = tuple(names) or ("the table", *(f"index {n}" for n in range(len(rows))))
        dtype = self._nodes[ids[0]].dtype
        node = Gather(ids, labels, rows, tuple(out), space, called, dtype, origin)
        _check_gather(node, [self._nodes[i] for i in ids])
        return self._add(node)

    def output(self, name: str, i: int) -> None:
        """Name node `i` as a result."""
        self._outputs[name] = i

    def build(self) -> EinGraph:
        """Return the graph: inputs and the nodes that an output needs, in the order they were appended."""
        needed = set(self._outputs.values())
        for i in range(len(self._nodes) - 1, -1, -1):
            if i in needed:
                needed.update(self._nodes[i].inputs)
        kept = [i for i, node in enumerate(self._nodes) if i in needed or isinstance(node, Input)]
        new = {old: i for i, old in enumerate(kept)}
        nodes = []
        for i in kept:
            node = self._nodes[i]
            nodes.append(replace(node, inputs=tuple(new[j] for j in node.inputs)) if node.inputs else node)
        graph = EinGraph(
            tuple(nodes),
            tuple((name, new[i]) for name, i in self._outputs.items()),
            tuple(Param(name, type_) for name, type_ in self._params.items()),
            self._text,
        )
        check(graph)
        return graph


def iteration_space(
    out: Sequence[str],
    operands: Sequence[tuple[Sequence[int], Sequence[str]]],
    join: ScalarExpr,
    extents: Mapping[str, int],
) -> Space:
    """Return all labels with their extents: those of `out`, then the others in order of first use."""
    known = dict(extents)
    used = dict.fromkeys(out)
    for shape, labels in operands:
        if len(shape) != len(labels):
            raise ShapeError(
                f"a tensor of {len(shape)} dimensions is given {len(labels)} labels: {', '.join(labels)}"
            )
        for label, n in zip(labels, shape, strict=True):
            used.setdefault(label)
            if known.setdefault(label, n) != n:
                raise ShapeError(f"label {label!r} is {known[label]} in one place but {n} in another")
    used.update(dict.fromkeys(sorted(join.labels)))
    used.update(dict.fromkeys(extents))
    if len(set(out)) != len(out):
        raise ShapeError(f"a label stands twice in the result: {', '.join(out)}")
    missing = [label for label in used if label not in known]
    if missing:
        raise ShapeError(f"the extent of label {missing[0]!r} is not known")
    return tuple((label, known[label]) for label in used)


def check(graph: EinGraph) -> None:
    """Raise a named error unless `graph` is well formed; return nothing."""
    for i, node in enumerate(graph.nodes):
        for j in node.inputs:
            if not 0 <= j < i:
                raise ShapeError(f"%{i} reads %{j}, which is not defined before it")
        try:
            _check_node(graph, node)
        except EinsummableError as error:
            raise type(error)(f"%{i} = {node}: {error.message}", notes=error.notes) from error
    for name, o in graph.outputs:
        if not 0 <= o < len(graph.nodes):
            raise UnknownNameError(f"the output {name!r} is %{o}, which does not exist")


def _check_node(graph: EinGraph, node: Node) -> None:
    sources = [graph.nodes[j] for j in node.inputs]
    match node:
        case Einsummable():
            if len(node.labels) != len(sources):
                raise ShapeError(f"it has labels for {len(node.labels)} inputs, it has {len(sources)}")
            operands = [(s.shape, ls) for s, ls in zip(sources, node.labels, strict=True)]
            space = iteration_space(node.out, operands, node.join, dict(node.space))
            if dict(space) != dict(node.space):
                raise ShapeError("its iteration space does not fit its operands")
            if tuple(label for label, _ in node.space[: len(node.out)]) != node.out:
                raise ShapeError("its iteration space does not begin with the labels of its output")
            if (node.aggregate is None) != (not node.aggregated):
                raise ShapeError("it has labels to aggregate and no aggregate, or an aggregate and no label")
            dtype = scalar.result_dtype(node.join, tuple(s.dtype for s in sources), graph.param_types)
            if node.dtype != (
                dtype if node.aggregate is None else functions.aggregate_dtype(node.aggregate, dtype)
            ):
                raise ShapeError(f"its dtype is {node.dtype}, its join makes {dtype}")
        case Reshape() | Select():
            (_check_reshape if isinstance(node, Reshape) else _check_select)(node, sources[0].shape)
            if node.dtype != sources[0].dtype:
                raise ShapeError(f"its dtype is {node.dtype}, its input's is {sources[0].dtype}")
        case Concat():
            shapes = [s.shape for s in sources]
            _check_parts(shapes, [node.dtype, *(s.dtype for s in sources)], node.axis)
            if node.lengths != tuple(shape[node.axis] for shape in shapes):
                raise ShapeError(f"its parts have extents {node.lengths}, its inputs differ")
            if node.shape != (*shapes[0][: node.axis], sum(node.lengths), *shapes[0][node.axis + 1 :]):
                raise ShapeError(f"its shape is {node.shape}, which its inputs do not make")
        case Gather():
            _check_gather(node, sources)


def _check_parts(shapes: Sequence[tuple[int, ...]], kinds: Sequence[np.dtype], axis: int) -> None:
    if not shapes:
        raise ShapeError("there is nothing to concatenate")
    shown = ", ".join(map(str, shapes))
    if any(len(shape) != len(shapes[0]) for shape in shapes) or not 0 <= axis < len(shapes[0]):
        raise ShapeError(f"tensors of shapes {shown} have no dimension {axis} in common")
    rests = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(rests) > 1:
        raise ShapeError(f"tensors of shapes {shown} differ in more than dimension {axis}")
    if len(set(kinds)) > 1:
        names = " and ".join(dict.fromkeys(map(dtypes.name, kinds)))
        raise DtypeError(f"{names} cannot stand in one tensor", notes=("cast them to one dtype",))


def _check_gather(node: Gather, sources: Sequence[Node]) -> None:
    if len(sources) != len(node.rows) + 1 or not node.rows or len(node.names) != len(sources):
        raise ShapeError(f"it gathers {len(node.rows)} labels by {len(sources) - 1} tensors of indices")
    operands = [(s.shape, ls) for s, ls in zip(sources, node.labels, strict=True)]
    if dict(node.space) != dict(iteration_space(node.out, operands, COPY, {})):
        raise ShapeError("its iteration space does not fit its operands")
    if tuple(label for label, _ in node.space) != (*node.out, *node.rows):
        raise ShapeError("its output must have all labels but the gathered ones, and no others")
    read = {label for ls in node.labels for label in ls}
    inner = {label for ls in node.labels[1:] for label in ls}
    if read != {*node.out, *node.rows} or any(node.labels[0].count(r) != 1 or r in inner for r in node.rows):
        raise ShapeError("a gathered label indexes one dimension of the table and nothing else")
    for name, source in zip(node.names[1:], sources[1:], strict=True):
        if dtypes.kind(source.dtype) != "i":
            raise DtypeError(f"an index is a whole number, but {name} is {dtypes.name(source.dtype)}")
    if node.dtype != sources[0].dtype:
        raise ShapeError(f"its dtype is {node.dtype}, its table's is {sources[0].dtype}")


def _check_reshape(node: Reshape, shape: tuple[int, ...]) -> None:
    if not sum(node.groups_in) == sum(node.groups_out) == len(node.space):
        raise ShapeError("the groups of a reshape do not use every atom once")
    got = tuple(stop for _, stop in node.in_box(0, tuple((0, n) for _, n in node.space)))
    if got != shape:
        raise ShapeError(f"the groups of a reshape make the shape {got}, the tensor has {shape}")


def _check_select(node: Select, shape: tuple[int, ...]) -> None:
    if len(node.positions) != len(shape) or node.source_shape != shape:
        raise ShapeError(f"{len(node.positions)} indices are given for a tensor of shape {shape}")
    labels = [p.label for p in node.positions if p.label is not None]
    if labels != [label for label, _ in node.space]:
        raise ShapeError("a selection keeps its labels in the order of the tensor's dimensions")
    if not all(n for _, n in node.space):
        return  # nothing is read
    for (start, stop), n in zip(node.in_box(0, tuple((0, n) for _, n in node.space)), shape, strict=True):
        if start < 0 or stop > n:
            raise ShapeError(
                f"index {stop - 1 if stop > n else start} is out of range for a dimension of {n}"
            )
