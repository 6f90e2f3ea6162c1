"""Lazy expressions: what a `Tensor` refers to, and how an EinGraph is made of them.

Contract: expressions are immutable and compared by identity; each knows its shape and dtype.  `build` walks
them without recursion, so chains may be of any length, and appends to one builder.  A map that one loop
alone reads, element for element, is written into that loop: the types of its operations do not change by
that, so neither do its values.  Contractions stay themselves.  A formula has at most `LONGEST` operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from einsummable import dtypes
from einsummable.builder import GraphBuilder
from einsummable.contract import Contraction, append
from einsummable.errors import ParseError
from einsummable.graph import EinGraph
from einsummable.lazy.regroup import regroup
from einsummable.nodes import Node, Position, Space
from einsummable.scalar import COPY, Arg, Call, ScalarBuilder, ScalarExpr, infer

#: Operations of a formula written out, shared ones as often as they stand in it.
LONGEST = 64

Labels: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Source:
    """A tensor that the caller provides, now (`array`) or when the program runs."""

    shape: tuple[int, ...]
    dtype: np.dtype
    name: str | None = None
    array: np.ndarray | None = None

    @property
    def reads(self) -> tuple[Expression, ...]:
        """The expressions it is made of: none."""
        return ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Loop:
    """An einsummable that is no contraction: a map, or a reduction.

    Attributes
    ----------
    operands, labels
        What it reads, and the label of each dimension.
    out, space
        Labels of the result; all labels with their extents.
    """

    operands: tuple[Expression, ...]
    labels: tuple[Labels, ...]
    out: Labels
    space: Space
    join: ScalarExpr
    aggregate: str | None
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the result."""
        extents = dict(self.space)
        return tuple(extents[label] for label in self.out)

    @property
    def reads(self) -> tuple[Expression, ...]:
        """The expressions it is made of."""
        return self.operands


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Product:
    """A contraction of any number of operands."""

    operands: tuple[Expression, ...]
    contraction: Contraction

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the result."""
        return self.contraction.shape

    @property
    def dtype(self) -> np.dtype:
        """Of the result."""
        return self.contraction.dtype

    @property
    def reads(self) -> tuple[Expression, ...]:
        """The expressions it is made of."""
        return self.operands


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Regroup:
    """The same elements in the same order under another shape."""

    source: Expression
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        """Of the result."""
        return self.source.dtype

    @property
    def reads(self) -> tuple[Expression, ...]:
        """The expression it is made of."""
        return (self.source,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pick:
    """Part of a tensor: a position for each of its dimensions (see `nodes.Select`)."""

    source: Expression
    positions: tuple[Position, ...]
    space: Space

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the result."""
        return tuple(n for _, n in self.space)

    @property
    def dtype(self) -> np.dtype:
        """Of the result."""
        return self.source.dtype

    @property
    def reads(self) -> tuple[Expression, ...]:
        """The expression it is made of."""
        return (self.source,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Appended:
    """A node that a pass over the graph has made; the ids of its inputs mean nothing."""

    operands: tuple[Expression, ...]
    node: Node

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the result."""
        return self.node.shape

    @property
    def dtype(self) -> np.dtype:
        """Of the result."""
        return self.node.dtype

    @property
    def reads(self) -> tuple[Expression, ...]:
        """The expressions it is made of."""
        return self.operands


Expression: TypeAlias = Source | Loop | Product | Regroup | Pick | Appended


def copy_of(source: Expression) -> Loop:
    """Return the map that copies `source`."""
    labels = tuple(f"d{d}" for d in range(len(source.shape)))
    space = tuple(zip(labels, source.shape, strict=True))
    return Loop((source,), (labels,), labels, space, COPY, None, source.dtype)


def build(outputs: Mapping[str, Expression]) -> tuple[EinGraph, dict[str, np.ndarray]]:
    """Return the program that computes `outputs`, and the arrays of its inputs as far as they are known.

    Raises
    ------
    ParseError
        Two inputs have one name.
    """
    # An input that is also a result is copied, so that no result is the caller's own array.
    outputs = {name: copy_of(x) if isinstance(x, Source) else x for name, x in outputs.items()}
    order = _topological(outputs.values())
    builder = _Builder(order, frozenset(outputs.values()))
    for expression in order:
        builder.add(expression)
    for name, expression in outputs.items():
        builder.graph.output(name, builder.id_of(expression))
    return builder.graph.build(), builder.arrays


def nodes_of(expressions: Sequence[Expression]) -> tuple[GraphBuilder, dict[Expression, int]]:
    """Return a program in which each of `expressions` is a node, and the nodes of all that are."""
    order = _topological(expressions)
    builder = _Builder(order, frozenset(expressions))
    for expression in order:
        builder.add(expression)
    return builder.graph, dict(builder.ids)


def _topological(roots: object) -> list[Expression]:
    """Return all that `roots` are made of, operands first, each once."""
    order: list[Expression] = []
    seen: set[Expression] = set()
    for root in roots:
        stack: list[tuple[Expression, bool]] = [(root, False)]
        while stack:
            expression, done = stack.pop()
            if done:
                order.append(expression)
            elif expression not in seen:
                seen.add(expression)
                stack.append((expression, True))
                stack += [(x, False) for x in reversed(expression.reads) if x not in seen]
    return order


class _Builder:
    """Appends expressions, given in topological order, to a graph."""

    def __init__(self, order: list[Expression], outputs: frozenset[Expression]) -> None:
        self.graph = GraphBuilder()
        self.arrays: dict[str, np.ndarray] = {}
        self.ids: dict[Expression, int] = {}
        self._waiting: set[Loop] = set()  # maps that are to be written into their reader
        self._inlined: dict[Loop, frozenset[Expression]] = {}  # which maps are written into each loop
        self._length: dict[Expression, int] = {}  # of its formula
        self._sources: dict[str, Source] = {}
        self._named = {x.name for x in order if isinstance(x, Source) and x.name is not None}
        self._readers: dict[Expression, int] = dict.fromkeys(order, 0)
        for expression in order:
            for x in set(expression.reads):
                self._readers[x] += 1
        for expression in outputs:
            self._readers[expression] += 2  # a result is a node of its own

    def add(self, expression: Expression) -> None:
        """Append `expression`, or keep it for its only reader."""
        match expression:
            case Source():
                self.ids[expression] = self._add_source(expression)
            case Loop():
                self._inline_into(expression)
                if expression.aggregate is None and self._readers[expression] == 1:
                    self._waiting.add(expression)
                else:
                    self.ids[expression] = self._add_loop(expression)
            case Product(operands, contraction):
                ids = [self.id_of(x) for x in operands]
                self.ids[expression] = append(self.graph, ids, contraction)
            case Regroup(source, shape):
                self.ids[expression] = regroup(self.graph, self.id_of(source), shape)
            case Pick(source, positions, space):
                self.ids[expression] = self.graph.select(self.id_of(source), positions, space)
            case Appended(operands, node):
                self.ids[expression] = self.graph.again(node, [self.id_of(x) for x in operands])

    def id_of(self, expression: Expression) -> int:
        """Return the node of `expression`, which becomes one if it waited."""
        if expression not in self.ids:
            self._waiting.discard(expression)
            self.ids[expression] = self._add_loop(expression)
        return self.ids[expression]

    def _add_loop(self, loop: Loop) -> int:
        b = ScalarBuilder()
        reads: dict[tuple[int, Labels], int] = {}
        join = b.build(self._write(loop, {label: label for label, _ in loop.space}, b, reads))
        return self.graph.einsummable(loop.out, tuple(reads), join, loop.aggregate, extents=dict(loop.space))

    def _write(
        self, loop: Loop, new: Mapping[str, str], b: ScalarBuilder, reads: dict[tuple[int, Labels], int]
    ) -> int:
        """Write the formula of `loop`, its labels called `new`, to `b`; note in `reads` what it reads.

        It calls itself for what is written into it: `LONGEST` bounds how deep.
        """
        args = []
        for x, old in zip(loop.operands, loop.labels, strict=True):
            labels = tuple(new[label] for label in old)
            if isinstance(x, Loop) and x in self._inlined[loop]:
                args.append(self._write(x, dict(zip(x.out, labels, strict=True)), b, reads))
            else:
                args.append(b.arg(reads.setdefault((self.id_of(x), labels), len(reads))))
        return b.inline(loop.join, args)

    def _inline_into(self, loop: Loop) -> None:
        """Decide which waiting maps are written into `loop`: those of which it reads every element once.

        None is, where the formula would be too long.  What is not written into it becomes a node now.
        """
        labels: dict[Expression, set[Labels]] = {}
        for x, ls in zip(loop.operands, loop.labels, strict=True):
            labels.setdefault(x, set()).add(ls)
        everything = {label for label, n in loop.space if n != 1}
        inlined = frozenset(
            x
            for x, found in labels.items()
            if x in self._waiting and len(found) == 1 and everything.issubset(*found)
        )
        length = self._length_of(loop, inlined)
        if length > LONGEST:
            inlined, length = frozenset(), self._length_of(loop, frozenset())
        self._inlined[loop], self._length[loop] = inlined, length
        for x in loop.operands:
            if x not in inlined:
                self.id_of(x)

    def _length_of(self, loop: Loop, inlined: frozenset[Expression]) -> int:
        """Return how many operations the formula of `loop` has when it is written out."""
        sizes: list[int] = []
        for op in loop.join.ops:
            match op:
                case Arg(i) if loop.operands[i] in inlined:
                    sizes.append(self._length[loop.operands[i]])
                case Call(_, args):
                    sizes.append(1 + sum(sizes[a] for a in args))
                case _:
                    sizes.append(1)
        return sizes[-1]

    def _add_source(self, source: Source) -> int:
        name = source.name or self._free_name(source)
        other = self._sources.setdefault(name, source)
        if other is not source and (source.array is None or other.array is not source.array):
            raise ParseError(f"two different inputs are called {name!r}")
        if source.array is not None:
            self.arrays[name] = source.array
        return self.graph.input(name, source.shape, source.dtype)

    def _free_name(self, source: Source) -> str:
        """Return a name for an array met in an expression: the one it has already, or the next free one."""
        for name, array in self.arrays.items():
            if array is source.array:
                return name
        k = len(self._sources)
        while f"array{k}" in self._named or f"array{k}" in self._sources:
            k += 1
        return f"array{k}"


def strong(expr: ScalarExpr, args: tuple[np.dtype, ...]) -> ScalarExpr:
    """Return `expr` such that its value has the dtype that it has as a tensor, wherever it is written."""
    result = infer(expr, args)[-1].type
    if not result.weak:
        return expr
    b = ScalarBuilder()
    inner = b.inline(expr, [b.arg(i) for i in range(len(args))])
    return b.build(b.call(dtypes.name(result.dtype), inner))
