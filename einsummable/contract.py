"""Products of many tensors, summed: split into einsummables of at most two operands.

Contract: a `Contraction` says which labels each operand has, which the result has, and in what order to
contract; `append` adds it to a graph under construction.  A label may have extent 1 in one operand and n in
another, as in numpy: the unit dimension is dropped by a reshape, which moves nothing.  Operands are cast to
one dtype first, so the order of contraction cannot change the dtype in which a product is computed.  Over
booleans a sum is `any`, as in numpy.einsum.

>>> contraction_path((("i", "j"), ("j", "k"), ("k",)), ("i",), {"i": 9, "j": 9, "k": 9})
((1, 2), (0, 1))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from einsummable import dtypes
from einsummable.builder import GraphBuilder
from einsummable.errors import ParseError, PlanError
from einsummable.nodes import Space
from einsummable.scalar import COPY, PRODUCT, ScalarBuilder

#: Positions of the operands contracted by each step; a step's result goes to the end of the list.
Path = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, order=True)
class _Live:
    """A tensor still to be contracted; `rank`, the first operand in it, decides which stands on the left."""

    rank: int
    node: int
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contraction:
    """``Z[out] = sum over the other labels of the product of the operands``.

    Attributes
    ----------
    labels
        For each operand the label of each dimension; a label twice takes the diagonal.
    out
        Labels of the result, each once.
    extents
        Of every label, those that no operand has included.
    dtype
        Of every product and of the result.
    path
        In which order to contract; operands that it leaves over are contracted from left to right.
    """

    labels: tuple[tuple[str, ...], ...]
    out: tuple[str, ...]
    extents: Space
    dtype: np.dtype
    path: Path = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the result."""
        extents = dict(self.extents)
        return tuple(extents[label] for label in self.out)


def append(builder: GraphBuilder, operands: Sequence[int], contraction: Contraction) -> int:
    """Append `contraction` of the nodes `operands` to `builder`; return the id of the result."""
    extents = dict(contraction.extents)
    live: list[_Live] = []
    for rank, (i, labels) in enumerate(zip(operands, contraction.labels, strict=True)):
        i, labels = _drop_units(builder, i, labels, extents)
        live.append(_Live(rank, cast(builder, i, contraction.dtype), labels))
    read = {label for x in live for label in x.labels}
    unread = {label: n for label, n in extents.items() if label not in read}
    for step in contraction.path:
        chosen = [live[p] for p in step]
        live = [x for p, x in enumerate(live) if p not in step]
        live.append(_contract(builder, chosen, live, contraction, unread))
    if len(live) > 1 or not contraction.path:
        live = [_contract(builder, live, [], contraction, unread)]
    return live[0].node


def _contract(
    builder: GraphBuilder,
    chosen: list[_Live],
    others: list[_Live],
    contraction: Contraction,
    unread: Mapping[str, int],
) -> _Live:
    """Append the product of `chosen`, two at a time, summed over the labels that nothing else has."""
    chosen = sorted(chosen)
    while len(chosen) > 2:
        first = _contract(builder, chosen[:2], chosen[2:] + others, contraction, unread)
        chosen = [first, *chosen[2:]]
    last = not others
    read = [label for x in chosen for label in x.labels]
    if last:
        out = contraction.out
    else:
        wanted = set(contraction.out).union(*(x.labels for x in others))
        # Labels of both first, then the left's, then the right's: the order a batched matmul makes.
        shared = [label for label in read if all(label in x.labels for x in chosen)]
        out = tuple(label for label in dict.fromkeys(shared + read) if label in wanted)
        if len(chosen) == 1 and out == chosen[0].labels:
            return chosen[0]
    extra = unread if last else {}
    summed = bool({*read, *extra} - set(out))
    aggregate = "any" if contraction.dtype == dtypes.BOOL else "sum"
    operands = [(x.node, x.labels) for x in chosen]
    join = COPY if len(chosen) == 1 else PRODUCT
    i = builder.einsummable(out, operands, join, aggregate if summed else None, extents=extra)
    return _Live(chosen[0].rank, i, out)


def _drop_units(
    builder: GraphBuilder, i: int, labels: tuple[str, ...], extents: Mapping[str, int]
) -> tuple[int, tuple[str, ...]]:
    """Reshape away the dimensions of extent 1 whose label is longer elsewhere."""
    shape = builder[i].shape
    keep = tuple(n == extents[label] for n, label in zip(shape, labels, strict=True))
    return drop_dimensions(builder, i, keep), tuple(
        label for label, kept in zip(labels, keep, strict=True) if kept
    )


def drop_dimensions(builder: GraphBuilder, i: int, keep: Sequence[bool]) -> int:
    """Append a reshape of node `i` without the dimensions, all of extent 1, that `keep` is false for."""
    shape = builder[i].shape
    atoms = tuple((f"d{d}", n) for d, n in enumerate(shape) if keep[d])
    return builder.reshape(i, atoms, tuple(map(int, keep)), (1,) * len(atoms))


def cast(builder: GraphBuilder, i: int, dtype: np.dtype) -> int:
    """Append a map that casts node `i` to `dtype`, unless it has that dtype."""
    if builder[i].dtype == dtype:
        return i
    labels = tuple(f"d{d}" for d in range(len(builder[i].shape)))
    b = ScalarBuilder()
    join = b.build(b.call(dtypes.name(dtype), b.arg(0)))
    return builder.einsummable(labels, [(i, labels)], join)


def contraction_path(
    labels: Sequence[Sequence[str]],
    out: Sequence[str],
    extents: Mapping[str, int],
    optimize: str | Path = "auto",
) -> Path:
    """Return in which order to contract operands with `labels`, by opt_einsum's search.

    Parameters
    ----------
    optimize
        A name that opt_einsum knows ("auto", "greedy", "optimal" …), or a path, which is checked.

    Raises
    ------
    ParseError
        Nothing is called `optimize`.
    PlanError
        A given path names an operand that is not there, or leaves some over.
    """
    if not isinstance(optimize, str):
        return _checked(optimize, len(labels))
    if len(labels) <= 2 and optimize in ("auto", "greedy", "optimal"):
        return ()
    import opt_einsum

    try:
        opt_einsum.paths.get_path_fn(optimize)
    except KeyError as error:
        raise ParseError(
            f"optimize={optimize!r} is no way to order contractions", notes=(str(error),)
        ) from None
    symbol = {label: opt_einsum.get_symbol(i) for i, label in enumerate(extents)}
    terms = ["".join(symbol[label] for label in ls) for ls in labels]
    equation = f"{','.join(terms)}->{''.join(symbol[label] for label in out)}"
    shapes = [tuple(max(extents[label], 1) for label in ls) for ls in labels]  # of nothing, any order is best
    path, _ = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=optimize)
    return tuple(tuple(sorted(step)) for step in path)


def _checked(path: Path, count: int) -> Path:
    live = count
    for step in path:
        if not step or len(set(step)) != len(step) or not all(0 <= p < live for p in step):
            raise PlanError(f"step {step} of the path does not name some of {live} operands")
        live += 1 - len(step)
    if live != 1:
        raise PlanError(f"the path leaves {live} operands of {count}")
    return tuple(tuple(sorted(step)) for step in path)
