"""Tensors that are no nodes yet: a scalar expression for each element.

Contract: a `Formula` reads elements of nodes at the labels of its own dimensions and aggregates nothing.
So sums of formulas, and maps of them, are formulas: what would be a chain of nodes becomes one, when
`to_node` appends it.

>>> builder = GraphBuilder()
>>> x, space = builder.input("x", (3,)), (("i", 3),)
>>> w = Writer(builder)
>>> two = w.formula(w.write(node_formula(x, space)) + 1, space)
>>> print(builder[to_node(builder, two, dtypes.F32)])
[i] x + 1  of %0[i]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from einsummable import dtypes
from einsummable.autodiff.derivatives import Value
from einsummable.builder import UNKNOWN, GraphBuilder, Operand
from einsummable.dtypes import ScalarType, kind
from einsummable.nodes import Node, Origin, Space
from einsummable.scalar import COPY, Arg, Label, ScalarBuilder, ScalarExpr, infer


@dataclass(frozen=True, slots=True)
class Formula:
    """A tensor with the labels and extents of `space`, each element of it `join` of elements of nodes."""

    space: Space
    operands: tuple[Operand, ...]
    join: ScalarExpr

    @property
    def out(self) -> tuple[str, ...]:
        """The labels of its dimensions."""
        return tuple(label for label, _ in self.space)

    @property
    def is_node(self) -> bool:
        """Whether it is just a node, transposed perhaps."""
        return self.join == COPY and sorted(self.operands[0][1]) == sorted(self.out)

    def renamed(self, out: Sequence[str]) -> Formula:
        """Return it with other labels for its dimensions."""
        new = dict(zip(self.out, out, strict=True))
        space = tuple((new[label], n) for label, n in self.space)
        operands = tuple((i, tuple(new[label] for label in labels)) for i, labels in self.operands)
        ops = (Label(new[op.name]) if isinstance(op, Label) else op for op in self.join.ops)
        return Formula(space, operands, ScalarExpr(tuple(ops)))


def constant(value: float, space: Space) -> Formula:
    """Return a tensor of one number."""
    b = ScalarBuilder()
    return Formula(space, (), b.build(b.const(value)))


def node_formula(i: int, space: Space) -> Formula:
    """Return node `i`, whose dimensions are labelled as in `space`."""
    return Formula(space, ((i, tuple(label for label, _ in space)),), COPY)


def space_of(node: Node) -> Space:
    """Return labels ``d0, d1 …`` for the dimensions of `node`, with their extents."""
    return tuple((f"d{d}", n) for d, n in enumerate(node.shape))


class Writer:
    """Writes one scalar expression of elements of nodes, which are noted, each distinct one once.

    Attributes
    ----------
    b
        The expression under construction.
    reads
        What it reads, in the order of its inputs.
    """

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder, self.b = builder, ScalarBuilder()
        self.reads: dict[Operand, int] = {}

    def read(self, i: int, labels: Sequence[str]) -> Value:
        """Return an element of node `i`."""
        at = self.reads.setdefault((i, tuple(labels)), len(self.reads))
        return Value(self.b, self.b.arg(at), kind(self.builder[i].dtype) == "c")

    def label(self, name: str) -> Value:
        """Return the value of a label."""
        return Value(self.b, self.b.label(name))

    def write(self, formula: Formula) -> Value:
        """Return the element of `formula` at the labels of its dimensions."""
        args = [self.read(i, labels).id for i, labels in formula.operands]
        is_complex = kind(type_of(self.builder, formula).dtype) == "c"
        return Value(self.b, self.b.inline(formula.join, args), is_complex)

    def formula(self, value: Value, space: Space) -> Formula:
        """Return the tensor whose elements are `value`; it reads no more than it needs."""
        expr = self.b.build(value.id)
        reads = list(self.reads)
        used = sorted({op.index for op in expr.ops if isinstance(op, Arg)})
        new = {old: at for at, old in enumerate(used)}
        ops = (Arg(new[op.index]) if isinstance(op, Arg) else op for op in expr.ops)
        return Formula(space, tuple(reads[at] for at in used), ScalarExpr(tuple(ops)))


def type_of(builder: GraphBuilder, formula: Formula) -> ScalarType:
    """Return the type of the elements of `formula`."""
    args = tuple(builder[i].dtype for i, _ in formula.operands)
    return infer(formula.join, args, builder.params)[-1].type


def cast(formula: Formula, dtype: np.dtype) -> ScalarExpr:
    """Return the join of `formula`, cast to `dtype`."""
    b = ScalarBuilder()
    inner = b.inline(formula.join, [b.arg(k) for k in range(len(formula.operands))])
    return b.build(b.call(dtypes.name(dtype), inner))


def to_node(builder: GraphBuilder, formula: Formula, dtype: np.dtype, origin: Origin = UNKNOWN) -> int:
    """Append `formula` as a node of `dtype`, its dimensions in order, and return it."""
    join = formula.join
    if type_of(builder, formula) != ScalarType(dtype):
        join = cast(formula, dtype)
    elif join == COPY and formula.operands[0][1] == formula.out:
        return formula.operands[0][0]
    extents = dict(formula.space)
    return builder.einsummable(formula.out, formula.operands, join, extents=extents, origin=origin)


def settled(builder: GraphBuilder, formula: Formula, dtype: np.dtype, origin: Origin = UNKNOWN) -> Formula:
    """Return `formula` as a node that is read, transposed perhaps; one that reads nothing stays as it is."""
    if not formula.operands or (formula.is_node and builder[formula.operands[0][0]].dtype == dtype):
        return formula
    return node_formula(to_node(builder, formula, dtype, origin), formula.space)
