"""Elements of tensors to nodes: part of a tensor, groups taken apart, rows looked up.

Contract: `element` returns a node that holds the element for all values of its labels, and the label of each
of its dimensions (the same twice for a diagonal).  Positions, shifts and strides are one selection, groups
one reshape, indices through tensors of integers one gather, in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from einsummable.builder import GraphBuilder, Operand
from einsummable.language.terms import Affine, Element, Held, Index, Scalar, Terms
from einsummable.nodes import Origin, Position

#: What labels the dimension of a table that is gathered.
_ROW = "row"


def element(
    builder: GraphBuilder,
    tensors: Mapping[str, int],
    terms: Terms,
    extents: Mapping[str, int],
    name: str,
    i: int,
) -> Operand:
    """Append what holds the `Element` that term `i` is, for a line that defines `name`."""
    term, place = terms[i], terms.places[i]
    origin = Origin(place.span, name, place.macro)
    node = _selected(builder, tensors[term.tensor], term, extents, origin)
    labels, groups, atoms, indices = [], [], [], {}
    for part, n in zip(term.index, builder[tensors[term.tensor]].shape, strict=True):
        match part:
            case tuple():
                own, sizes = part, [extents[label] for label in part]
            case Affine(label):
                own, sizes = (label,), [extents[label]]
            case Held(inner):
                own, sizes = (_unused(_ROW, {*extents, *indices}),), [n]
                indices[own[0]] = inner
            case _:
                continue
        labels += own
        atoms += sizes
        groups.append(len(own))
    space = tuple(zip(_distinct(labels), atoms, strict=True))
    node = builder.reshape(node, space, groups, [1] * len(labels), origin)
    if not indices:
        return node, tuple(labels)
    held = {row: element(builder, tensors, terms, extents, name, inner) for row, inner in indices.items()}
    names = (term.tensor, *(terms[inner].tensor for inner in indices.values()))
    out = terms.labels[i]
    return builder.gather(out, (node, labels), held, names, origin), out


def _selected(
    builder: GraphBuilder, node: int, term: Element, extents: Mapping[str, int], origin: Origin
) -> int:
    """Return what positions, shifts and strides take of `node`."""
    if all(isinstance(part, tuple | Held) for part in term.index):
        return node
    kept = [part for part in term.index if isinstance(part, tuple | Affine | Held)]
    names = iter(_distinct([_dimension(part) for part in kept]))
    positions = tuple(_position(part, names) for part in term.index)
    space = tuple(
        (p.label, extents[part.label] if isinstance(part, Affine) else n)
        for p, part, n in zip(positions, term.index, builder[node].shape, strict=True)
        if p.label is not None
    )
    return builder.select(node, positions, space, origin)


def _position(part: Index, names: Iterator[str]) -> Position:
    match part:
        case int():
            return Position(start=part)
        case Scalar(name):
            return Position(param=name)
        case Affine(_, step, start):
            return Position(next(names), start, step)
        case _:
            return Position(label=next(names))


def _dimension(part: tuple[str, ...] | Affine | Held) -> str:
    match part:
        case Affine(label):
            return label
        case Held():
            return _ROW
        case _:
            return part[0] if len(part) == 1 else f"({' '.join(part)})"


def _unused(name: str, taken: set[str]) -> str:
    return next(x for x in (name, *(f"{name}{n}" for n in range(2, len(taken) + 3))) if x not in taken)


def _distinct(labels: Sequence[str]) -> list[str]:
    """Return `labels` with primes where one stands again: each dimension of a diagonal has its own name."""
    seen: list[str] = []
    for label in labels:
        while label in seen:
            label += "'"
        seen.append(label)
    return seen
