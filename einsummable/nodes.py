"""Nodes of an EinGraph: loops over iteration spaces.

Contract: every node is a loop over an *iteration space*, a list of labels with extents (those of the output
first), and reads from each input the *box* that `in_box` answers for a box of that space.  That is all that
planning and lowering need to know, so the same node on smaller ranges is the kernel that runs on a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from einsummable import dtypes
from einsummable.codec import register_union
from einsummable.dtypes import ScalarType
from einsummable.errors import ShapeError, Span
from einsummable.onehot import one_hot
from einsummable.scalar import ScalarExpr

#: Half-open ranges, one a dimension (or one a label of an iteration space).
Box = tuple[tuple[int, int], ...]
#: Labels of an iteration space with their extents.
Space = tuple[tuple[str, int], ...]


def whole(shape: Sequence[int]) -> Box:
    """Return the box that covers a tensor of `shape`."""
    return tuple((0, n) for n in shape)


def box_shape(box: Box) -> tuple[int, ...]:
    """Return the extents of `box`."""
    return tuple(stop - start for start, stop in box)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a node comes from: the formula, the name its line defines, the macro it was expanded from."""

    span: Span | None = None
    name: str = ""
    macro: str = ""


@dataclass(frozen=True, slots=True)
class Param:
    """A scalar that is read when the program runs."""

    name: str
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor that the caller provides; its iteration space has one label a dimension."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    origin: Origin = field(default=Origin(), compare=False)
    inputs: tuple[int, ...] = ()

    @property
    def space(self) -> Space:
        """Labels ``d0, d1 …`` with the extents of the tensor."""
        return tuple((f"d{i}", n) for i, n in enumerate(self.shape))

    @property
    def cuttable(self) -> tuple[str, ...]:
        """The labels that may be cut: all."""
        return tuple(label for label, _ in self.space)

    @property
    def out(self) -> tuple[str, ...]:
        """The labels of the output's dimensions."""
        return self.cuttable

    def out_box(self, ranges: Box) -> Box:
        """Return the part of the output that `ranges` of the space makes."""
        return ranges

    def __str__(self) -> str:
        return f"input {self.name} {list(self.shape)} {dtypes.name(self.dtype)}"


class _Aggregating:
    """A node whose inputs are indexed by labels; those that its output lacks are aggregated."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the output."""
        return tuple(n for _, n in self.space[: len(self.out)])

    @property
    def aggregated(self) -> tuple[str, ...]:
        """The labels that the output lacks."""
        return tuple(label for label, _ in self.space[len(self.out) :])

    @property
    def cuttable(self) -> tuple[str, ...]:
        """The labels that may be cut: all."""
        return tuple(label for label, _ in self.space)

    def in_box(self, i: int, ranges: Box) -> Box:
        """Return the part of input `i` that the kernel call on `ranges` of the space reads."""
        at = {label: r for (label, _), r in zip(self.space, ranges, strict=True)}
        return tuple(at[label] for label in self.labels[i])

    def out_box(self, ranges: Box) -> Box:
        """Return the part of the output that the kernel call on `ranges` contributes to."""
        return ranges[: len(self.out)]


class _Rearranged:
    """A node whose space is that of its output."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the output."""
        return tuple(n for _, n in self.space)

    @property
    def cuttable(self) -> tuple[str, ...]:
        """The labels that may be cut: all."""
        return tuple(label for label, _ in self.space)

    @property
    def out(self) -> tuple[str, ...]:
        """The labels of the output's dimensions."""
        return self.cuttable

    def out_box(self, ranges: Box) -> Box:
        """Return the part of the output that `ranges` makes."""
        return ranges


@dataclass(frozen=True, slots=True)
class Einsummable(_Aggregating):
    """``Z[out] = ⊕ over the other labels of join(X1[labels[0]], …, labels as values)``.

    Attributes
    ----------
    inputs, labels
        Ids of the inputs, and the label of each of their dimensions; a label twice takes the diagonal.
    out, space
        Labels of the output; all labels with their extents, the output's first.
    join, aggregate
        The scalar expression, and a row of `functions.AGGREGATES` (None where no label is aggregated).
    dtype
        Of the output.
    """

    inputs: tuple[int, ...]
    labels: tuple[tuple[str, ...], ...]
    out: tuple[str, ...]
    space: Space
    join: ScalarExpr
    aggregate: str | None
    dtype: np.dtype
    origin: Origin = field(default=Origin(), compare=False)

    @property
    def is_contraction(self) -> bool:
        """Whether it sums a plain product of two inputs."""
        factors = self.join.factors()
        return self.aggregate == "sum" and factors is not None and len(factors) == 2

    @property
    def one_hot(self) -> tuple[tuple[str, int], ...]:
        """The labels of a sum that are only compared, each with an input: others than that add nothing."""
        found = one_hot(self.join) if self.aggregate == "sum" else None
        if found is None:
            return ()
        read = {label for labels in self.labels for label in labels}
        free = all(label in self.out and label not in read for label, _ in found.compared)
        return found.compared if free else ()

    def __str__(self) -> str:
        names = (
            [f"x{i}" for i in self.inputs] if len(self.inputs) > 3 else ["x", "y", "z"][: len(self.inputs)]
        )
        over = f" {self.aggregate}[{','.join(self.aggregated)}]" if self.aggregate else ""
        reads = ", ".join(f"%{i}[{','.join(ls)}]" for i, ls in zip(self.inputs, self.labels, strict=False))
        return f"[{','.join(self.out)}]{over} {self.join.format(names)}" + (f"  of {reads}" if reads else "")


@dataclass(frozen=True, slots=True)
class Reshape:
    """Regroup dimensions without moving an element: ``[m,(h d)]`` to ``[m,h,d]`` or back.

    Attributes
    ----------
    space
        The *atoms*, slowest first, with their extents: the common refinement of both shapes.
    groups_in, groups_out
        For each dimension of the input and of the output, how many consecutive atoms it is made of.
    """

    inputs: tuple[int, ...]
    space: Space
    groups_in: tuple[int, ...]
    groups_out: tuple[int, ...]
    dtype: np.dtype
    origin: Origin = field(default=Origin(), compare=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the output."""
        return box_shape(self.out_box(whole([n for _, n in self.space])))

    @property
    def cuttable(self) -> tuple[str, ...]:
        """The atoms that may be cut: those that are slowest in their group on both sides.

        Cutting another would make a block of the grouped dimension that is no range.
        """
        slowest = []
        for groups in (self.groups_in, self.groups_out):
            starts = np.cumsum((0, *groups))[:-1]
            slowest.append({int(s) for s, n in zip(starts, groups, strict=True) if n})
        return tuple(self.space[i][0] for i in sorted(slowest[0] & slowest[1]))

    @property
    def out(self) -> tuple[str, ...]:
        """The slowest atom of each dimension of the output; an empty group has none."""
        starts = np.cumsum((0, *self.groups_out))[:-1]
        return tuple(self.space[s][0] if n else "" for s, n in zip(starts, self.groups_out, strict=True))

    def in_box(self, i: int, ranges: Box) -> Box:  # noqa: ARG002 - every node answers for input i
        """Return the part of the input that `ranges` of the atoms reads."""
        return self._merge(self.groups_in, ranges)

    def out_box(self, ranges: Box) -> Box:
        """Return the part of the output that `ranges` of the atoms makes."""
        return self._merge(self.groups_out, ranges)

    def _merge(self, groups: tuple[int, ...], ranges: Box) -> Box:
        box, at = [], 0
        for n in groups:
            inner = prod(extent for _, extent in self.space[at + 1 : at + n])
            start, stop = ranges[at] if n else (0, 1)
            box.append((start * inner, stop * inner))
            at += n
        return tuple(box)

    def __str__(self) -> str:
        def side(groups: tuple[int, ...]) -> str:
            at, words = 0, []
            for n in groups:
                atoms = " ".join(label for label, _ in self.space[at : at + n])
                words.append(atoms if n == 1 else f"({atoms})")
                at += n
            return ",".join(words)

        return f"[{side(self.groups_out)}] reshape  of %{self.inputs[0]}[{side(self.groups_in)}]"


@dataclass(frozen=True, slots=True)
class Position:
    """The index that `Select` takes in one dimension of its input: ``start + step·label + param``.

    Without a `label` it is one index and the dimension goes away; `param` names a scalar of the caller's
    scope, known only when the program runs, which counts from the end where it is negative.
    """

    label: str | None = None
    start: int = 0
    step: int = 1
    param: str | None = None

    def __str__(self) -> str:
        if self.label is None:
            return f"@{self.param}" if self.param else str(self.start)
        scaled = self.label if self.step == 1 else f"{self.step}*{self.label}"
        return scaled + (f"+{self.start}" if self.start else "") + (f"+@{self.param}" if self.param else "")


@dataclass(frozen=True, slots=True)
class Select(_Rearranged):
    """Take part of a tensor: ``X[i, 0]``, ``X[2*i+1, @n]``; a position for each dimension of the input."""

    inputs: tuple[int, ...]
    positions: tuple[Position, ...]
    source_shape: tuple[int, ...]
    space: Space
    dtype: np.dtype
    origin: Origin = field(default=Origin(), compare=False)

    def in_box(self, i: int, ranges: Box) -> Box:  # noqa: ARG002 - every node answers for input i
        """Return the part of the input that `ranges` reads: all of a dimension that a scalar indexes."""
        at = {label: r for (label, _), r in zip(self.space, ranges, strict=True)}
        box = []
        for p, extent in zip(self.positions, self.source_shape, strict=True):
            if p.param is not None:
                box.append((0, extent))
            elif p.label is None:
                box.append((p.start, p.start + 1))
            else:
                first, stop = at[p.label]
                begin, end = p.start + p.step * first, p.start + p.step * (stop - 1)
                nothing = (max(begin, 0), max(begin, 0))
                box.append((min(begin, end), max(begin, end) + 1) if first < stop else nothing)
        return tuple(box)

    def __str__(self) -> str:
        return f"[{','.join(self.out)}] select  of %{self.inputs[0]}[{','.join(map(str, self.positions))}]"


@dataclass(frozen=True, slots=True)
class Concat(_Rearranged):
    """Tensors one after another along one dimension: ``concat[t](A[t,d], B[t,d])``.

    Attributes
    ----------
    axis
        The dimension.
    lengths
        The extent of each input there.
    space
        The labels of the output with their extents.
    """

    inputs: tuple[int, ...]
    axis: int
    lengths: tuple[int, ...]
    space: Space
    dtype: np.dtype
    origin: Origin = field(default=Origin(), compare=False)

    def in_box(self, i: int, ranges: Box) -> Box:
        """Return the part of input `i` that `ranges` reads: along the axis that may be nothing."""
        before, (start, stop) = sum(self.lengths[:i]), ranges[self.axis]
        start, stop = max(start - before, 0), min(stop - before, self.lengths[i])
        along = (start, stop) if start < stop else (0, 0)
        return (*ranges[: self.axis], along, *ranges[self.axis + 1 :])

    def __str__(self) -> str:
        def labels(n: int) -> str:
            names = (f"{label}={n}" if d == self.axis else label for d, (label, _) in enumerate(self.space))
            return ",".join(names)

        reads = ", ".join(f"%{i}[{labels(n)}]" for i, n in zip(self.inputs, self.lengths, strict=True))
        return f"[{','.join(self.out)}] concat[{self.out[self.axis]}]  of {reads}"


@dataclass(frozen=True, slots=True)
class Gather(_Aggregating):
    """Take elements of a table where tensors of integers say: ``E[tok[t], d]``.

    It is the sum over the *row* label r of ``E[r,d]`` where ``r == tok[t]``, and never computed so: a kernel
    call on some of the rows looks up what it holds, and what it does not hold counts as zero.  So a table
    may be cut by rows (partial results are summed) or by whatever else indexes it.

    Attributes
    ----------
    inputs, labels
        The table and the tensors of indices, and the label of each of their dimensions.
    rows
        The labels of the table that are gathered: `rows[k]` takes the values of input ``k + 1``.
    out, space
        Labels of the output; all labels with their extents, the output's first, then the rows.
    names
        What a reader calls the inputs, for errors.
    """

    inputs: tuple[int, ...]
    labels: tuple[tuple[str, ...], ...]
    rows: tuple[str, ...]
    out: tuple[str, ...]
    space: Space
    names: tuple[str, ...]
    dtype: np.dtype
    origin: Origin = field(default=Origin(), compare=False)

    @property
    def aggregate(self) -> str:
        """How partial results are combined."""
        return "sum"

    def out_of_range(self, k: int, value: int) -> ShapeError:
        """Return the error for `value`, an index in input `k` that the table does not have."""
        row = self.rows[k - 1]
        dim, extent = self.labels[0].index(row), dict(self.space)[row]
        where = f"dimension {dim} of {self.names[0]} has extent {extent}"
        return ShapeError(f"the index {value} in {self.names[k]} is out of range: {where}")

    def __str__(self) -> str:
        reads = [f"%{i}[{','.join(ls)}]" for i, ls in zip(self.inputs, self.labels, strict=True)]
        at = ", ".join(f"{row}={tok}" for row, tok in zip(self.rows, reads[1:], strict=True))
        return f"[{','.join(self.out)}] gather[{at}]  of {reads[0]}"


Node = register_union(Input | Einsummable | Reshape | Select | Concat | Gather)
