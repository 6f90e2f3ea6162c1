"""How each kind of node hands its cotangent on to what it reads.

Contract: `back` yields, for each input that matters, a term of the cotangent of that input.  An einsummable
sums over the labels that the input lacks, and only over those that the term has: another is a factor.  Ties
of ``max`` and ``min`` share evenly; a factor of ``prod`` gets the product of the others, without a division.
Parts of tensors are put back among zeros; a table's row sums what was taken of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from einsummable import dtypes
from einsummable.autodiff.derivatives import Value, pull_back, where
from einsummable.autodiff.formula import (
    Formula,
    Writer,
    cast,
    constant,
    node_formula,
    settled,
    space_of,
    to_node,
    type_of,
)
from einsummable.autodiff.others import others
from einsummable.builder import GraphBuilder
from einsummable.contract import Contraction, append, contraction_path
from einsummable.functions import FUNCTIONS
from einsummable.nodes import Concat, Einsummable, Gather, Node, Origin, Position, Reshape, Select
from einsummable.scalar import Call, infer

#: Operations of a formula beyond which it becomes a node.
LONGEST = 64

Terms = Iterator[tuple[int, Formula]]


@dataclass(frozen=True, slots=True)
class Here:
    """A node whose cotangent is known.

    Attributes
    ----------
    i, node
        Its id, None where its values are not at hand, and itself.
    wanted
        The inputs, by position, whose cotangents matter.
    origin
        Of what is appended.
    """

    builder: GraphBuilder
    i: int | None
    node: Node
    wanted: frozenset[int]
    origin: Origin

    def node_of(self, g: Formula) -> int:
        """Append the cotangent as a node."""
        return to_node(self.builder, g, self.node.dtype, self.origin)


def back(here: Here, g: Formula) -> Terms:
    """Yield a term of the cotangent of each wanted input of a node with cotangent `g`."""
    match here.node:
        case Einsummable(aggregate=None | "sum", out=out):
            yield from _sum(here, g.renamed(out))
        case Einsummable(aggregate="max" | "min", out=out):
            yield from _extreme(here, g.renamed(out))
        case Einsummable(aggregate="prod", out=out):
            yield from _product(here, g.renamed(out))
        case Reshape():
            yield 0, _reshape(here, g)
        case Select():
            yield 0, _select(here, g)
        case Concat():
            yield from _concat(here, g)
        case Gather(out=out):
            yield 0, _gather(here, g.renamed(out))


# -------------------------------------------------------------------------------- einsummables


def _sum(here: Here, g: Formula, *, inside: bool = False) -> Terms:
    """Yield the terms of a map or a sum; `inside`: the cotangent is written out in each of them."""
    if inside or (len(here.wanted) == 1 and here.node.aggregate is None):
        pulled = _pulled(here, g)
        if inside or not any(_is_for_a_node(here.node, k, *term) for k, term in pulled.items()):
            yield from _terms(here, pulled)
            return
    yield from _terms(here, _pulled(here, settled(here.builder, g, here.node.dtype, here.origin)))


def _terms(here: Here, pulled: dict[int, tuple[Writer, Value]]) -> Terms:
    for k, (w, value) in _shared(here, pulled).items():
        yield k, _summed(here, here.node.labels[k], w, value, here.builder[here.node.inputs[k]].dtype)


def _shared(here: Here, pulled: dict[int, tuple[Writer, Value]]) -> dict[int, tuple[Writer, Value]]:
    """Return `pulled` with a node for a formula that is one input's cotangent and sums to another's.

    So in ``relu(X[b,h] + c[h])`` the cotangent of c is the sum of that of X.
    """
    found, node = dict(pulled), here.node
    for k, (w, value) in pulled.items():
        labels, term = node.labels[k], w.formula(value, ())
        dtype = here.builder[node.inputs[k]].dtype
        alike = [m for m, (_, other) in pulled.items() if m != k and other.id == value.id]
        alike = [m for m in alike if here.builder[node.inputs[m]].dtype == dtype]
        read = {label for _, ls in term.operands for label in ls} | term.join.labels
        if alike and len(term.join.ops) > 1 and sorted(read) == sorted(labels):
            space = tuple((label, dict(node.space)[label]) for label in labels)
            i = to_node(here.builder, replace(term, space=space), dtype, here.origin)
            for m in (k, *alike):
                again = Writer(here.builder)
                found[m] = again, again.read(i, labels)
            break
    return found


def _pulled(here: Here, g: Formula) -> dict[int, tuple[Writer, Value]]:
    """Return ``g * df/dx`` for each wanted input, for one combination of labels."""
    node, w = here.node, Writer(here.builder)
    cotangent = w.write(g)
    args = {k: w.read(j, ls) for k, (j, ls) in enumerate(zip(node.inputs, node.labels, strict=True))}
    result = w.read(here.i, node.out) if here.i is not None and node.aggregate is None else None
    types = infer(node.join, tuple(here.builder[j].dtype for j in node.inputs), here.builder.params)
    found = pull_back(w.b, node.join, types, args, cotangent, here.wanted, result)
    return {k: (w, value) for k, value in found.items()}


def _is_for_a_node(node: Einsummable, k: int, w: Writer, value: Value) -> bool:
    """Return whether the cotangent is a node before `value`: a matrix product, or one that is too long."""
    formula = w.formula(value, ())
    factors = formula.join.factors()
    sums = not {label for _, ls in formula.operands for label in ls} <= set(node.labels[k])
    return len(formula.join.ops) > LONGEST or (sums and factors is not None and len(factors) > 1)


def _summed(here: Here, labels: Sequence[str], w: Writer, value: Value, dtype: np.dtype) -> Formula:
    """Return `value` summed over the labels of the node's space that `labels`, an input's, lack."""
    extents = dict(here.node.space)
    target = tuple(dict.fromkeys(labels))
    term = w.formula(value, ())
    used = {label for _, ls in term.operands for label in ls} | term.join.labels
    kept = tuple((label, extents[label]) for label in target if label in used)
    over = {label: n for label, n in extents.items() if label in used and label not in target}
    times = prod(float(n) for label, n in extents.items() if label not in used and label not in target)
    term = replace(term, space=kept)
    if over:
        term = node_formula(_sum_node(here, term, over, dtype), kept)
    w = Writer(here.builder)
    space = tuple((label, extents[label]) for label in target)
    scaled = w.formula(w.write(term) * times, space)
    return scaled if len(target) == len(labels) else _on_diagonal(here.builder, scaled, labels)


def _sum_node(here: Here, term: Formula, over: dict[str, int], dtype: np.dtype) -> int:
    """Append the sum of `term` over the labels `over`, several factors two at a time where that is less."""
    type_, builder = type_of(here.builder, term), here.builder
    extents = dict(term.space) | over
    factors = term.join.factors()
    if factors is not None and len(factors) > 2 and {builder[i].dtype for i, _ in term.operands} == {dtype}:
        labels = tuple(ls for _, ls in term.operands)
        path = contraction_path(labels, term.out, extents)
        if _has_smaller_loop(labels, term.out, path, extents):
            made = Contraction(labels, term.out, tuple(extents.items()), dtype, path)
            return append(builder, [i for i, _ in term.operands], made)
    join = cast(term, dtype) if type_.weak else term.join
    return builder.einsummable(term.out, term.operands, join, "sum", extents=extents, origin=here.origin)


def _has_smaller_loop(
    operands: Sequence[Sequence[str]],
    out: Sequence[str],
    path: Sequence[Sequence[int]],
    extents: dict[str, int],
) -> bool:
    left = [set(ls) for ls in operands]
    whole = prod(extents[label] for label in set().union(*left))
    for step in path:
        space = set().union(*(left[n] for n in step))
        if prod(extents[label] for label in space) < whole:
            return True
        left = [ls for n, ls in enumerate(left) if n not in step]
        left.append(space & set().union(out, *left))
    return False


def _on_diagonal(builder: GraphBuilder, formula: Formula, labels: Sequence[str]) -> Formula:
    """Return a tensor that is `formula` where dimensions with one label have one index, and 0 elsewhere."""
    w = Writer(builder)
    value, extents, own = w.write(formula), dict(formula.space), []
    for label in labels:
        name = label
        while name in own:
            name += "'"
        own.append(name)
        if name != label:
            value = where(w.label(label).call("eq", w.label(name)), value, 0)
    space = tuple((name, extents[label]) for name, label in zip(own, labels, strict=True))
    return w.formula(value, space)


# ----------------------------------------------------------------------------- other aggregates


def _unaggregated(here: Here) -> tuple[Here, Formula, int]:
    """Return the node without its aggregate, what it aggregates as a formula, and the aggregate's node.

    What is dear to compute, or may round otherwise when it is computed again, becomes a node of its own.
    """
    node, builder = here.node, here.builder
    formula = Formula(node.space, tuple(zip(node.inputs, node.labels, strict=True)), node.join)
    if not any(isinstance(op, Call) and FUNCTIONS[op.fn].transcendental for op in node.join.ops):
        bare = replace(node, out=formula.out, aggregate=None)
        return replace(here, i=None, node=bare), formula, here.i
    i = to_node(builder, formula, type_of(builder, formula).dtype, here.origin)
    formula = node_formula(i, node.space)
    again = builder.einsummable(node.out, formula.operands, formula.join, node.aggregate, origin=here.origin)
    return replace(here, i=i, node=builder[i]), formula, again


def _aggregated(here: Here, w: Writer, value: Value, aggregate: str, dtype: np.dtype) -> int:
    """Append an aggregate of `value`, cast to `dtype`, over the labels that the node aggregates."""
    term = w.formula(value.call(dtypes.name(dtype)), here.node.space)
    extents = dict(here.node.space)
    return here.builder.einsummable(
        here.node.out, term.operands, term.join, aggregate, extents=extents, origin=here.origin
    )


def _extreme(here: Here, g: Formula) -> Terms:
    node, builder = here.node, here.builder
    bare, inner, best = _unaggregated(here)
    outer = node.space[: len(node.out)]
    w = Writer(builder)
    tied = w.write(inner).call("eq", w.read(best, node.out))
    count = _aggregated(here, w, where(tied, 1.0, 0.0), "sum", dtypes.accumulator(node.dtype))
    w = Writer(builder)
    share = w.formula(w.write(g) / w.read(count, node.out).call("maximum", 1), outer)
    share = settled(builder, share, node.dtype, here.origin)
    w = Writer(builder)
    tied = w.write(inner).call("eq", w.read(best, node.out))
    spread = w.formula(where(tied, w.write(share), 0), node.space)
    yield from _sum(bare, spread, inside=bare.i is None)


def _product(here: Here, g: Formula) -> Terms:
    """Yield the terms of a product: for each factor the cotangent times the others."""
    node, builder = here.node, here.builder
    bare, inner, _ = _unaggregated(here)
    g = settled(builder, g, node.dtype, here.origin)
    factors = to_node(builder, inner, dtypes.accumulator(node.dtype), here.origin)
    rest = others(builder, factors, len(node.aggregated), here.origin)
    w = Writer(builder)
    spread = w.write(g) * w.read(rest, inner.out).conj()
    yield from _sum(bare, w.formula(spread, node.space), inside=bare.i is None)


# -------------------------------------------------------------------------------- other nodes


def _reshape(here: Here, g: Formula) -> Formula:
    node, source = here.node, here.builder[here.node.inputs[0]]
    if not g.operands and not g.join.labels:
        return replace(g, space=space_of(source))
    made = here.builder.reshape(here.node_of(g), node.space, node.groups_out, node.groups_in, here.origin)
    return node_formula(made, space_of(source))


def _concat(here: Here, g: Formula) -> Terms:
    node, whole, first = here.node, here.node_of(g), 0
    for k, n in enumerate(node.lengths):
        if k in here.wanted:
            made = _slice(here, whole, node.axis, first, n)
            # One tensor may stand in several places.
            yield k, node_formula(made, space_of(here.builder[made]))
        first += n


def _slice(here: Here, i: int, axis: int, first: int, length: int, step: int = 1) -> int:
    """Append part of node `i` along one dimension."""
    shape = here.builder[i].shape
    starts = [first if d == axis else 0 for d in range(len(shape))]
    steps = [step if d == axis else 1 for d in range(len(shape))]
    positions = [
        Position(f"d{d}", start, by) for d, (start, by) in enumerate(zip(starts, steps, strict=True))
    ]
    space = tuple((f"d{d}", length if d == axis else n) for d, n in enumerate(shape))
    return here.builder.select(i, positions, space, here.origin)


def _gather(here: Here, g: Formula) -> Formula:
    """Return the cotangent of a table: each row sums what was taken of it."""
    node, w = here.node, Writer(here.builder)
    value = w.write(settled(here.builder, g, node.dtype, here.origin))
    for row, i, labels in zip(node.rows, node.inputs[1:], node.labels[1:], strict=True):
        value = where(w.read(i, labels).call("eq", w.label(row)), value, 0)
    return _summed(here, node.labels[0], w, value, node.dtype)


def _select(here: Here, g: Formula) -> Formula:
    """Return the cotangent of a tensor of which part was taken: zeros elsewhere."""
    node, builder = here.node, here.builder
    space = tuple((f"d{d}", n) for d, n in enumerate(node.source_shape))
    labelled = [d for d, p in enumerate(node.positions) if p.label is not None]
    g = g.renamed([f"d{d}" for d in labelled])
    if any(_is_part(node, d) for d in labelled):
        i = here.node_of(g)
        for axis, d in enumerate(labelled):
            if _is_part(node, d):
                i = _put_back(here, i, axis, node.positions[d], node.source_shape[d])
        g = node_formula(i, tuple(space[d] for d in labelled))
    w = Writer(builder)
    value = w.write(g)
    for d, p in enumerate(node.positions):
        if p.label is None:
            at = value.lift(p.start)
            if p.param is not None:
                given = Value(w.b, w.b.param(p.param))
                at = where(given.call("lt", 0), given + node.source_shape[d], given)
            value = where(w.label(f"d{d}").call("eq", at), value, 0)
    return w.formula(value, space)


def _is_part(node: Select, d: int) -> bool:
    p = node.positions[d]
    return (p.start, p.step, dict(node.space)[p.label]) != (0, 1, node.source_shape[d])


def _put_back(here: Here, i: int, axis: int, p: Position, extent: int) -> int:
    """Append node `i` with the elements of one dimension at `p` of `extent` places, zeros elsewhere."""
    builder, n = here.builder, here.builder[i].shape[axis]
    start, step = p.start, p.step
    if step < 0:
        i, start, step = _slice(here, i, axis, n - 1, n, -1) if n else i, start + step * (n - 1), -step
    if step > 1:
        i = _spread_out(here, i, axis, step, start % step)
        start -= start % step
    parts, shape = [i], builder[i].shape
    if start:
        parts.insert(0, _zeros(here, shape, axis, start))
    missing = extent - start - shape[axis]
    if missing > 0:
        parts.append(_zeros(here, shape, axis, missing))
    labels = [f"d{d}" for d in range(len(shape))]
    i = builder.concat(parts, labels, axis, here.origin)
    return i if missing >= 0 else _slice(here, i, axis, 0, extent)


def _spread_out(here: Here, i: int, axis: int, step: int, at: int) -> int:
    """Append node `i` with every element of one dimension at place `at` of `step`, zeros elsewhere."""
    builder = here.builder
    space = list(space_of(builder[i]))
    w = Writer(builder)
    value = where(w.label("s").call("eq", at), w.read(i, [label for label, _ in space]), 0)
    space.insert(axis + 1, ("s", step))
    i = to_node(builder, w.formula(value, tuple(space)), builder[i].dtype, here.origin)
    groups = [2 if d == axis else 1 for d in range(len(space) - 1)]
    return builder.reshape(i, tuple(space), [1] * len(space), groups, here.origin)


def _zeros(here: Here, shape: Sequence[int], axis: int, length: int) -> int:
    space = tuple((f"d{d}", length if d == axis else n) for d, n in enumerate(shape))
    return to_node(here.builder, constant(0.0, space), here.node.dtype, here.origin)
