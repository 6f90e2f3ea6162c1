"""Einstein's convention: which labels of a term are summed although nobody wrote it.

Contract: in an additive term at the top level of a right side, a label that the left side lacks, that no
aggregate binds, and that occurs in a factor outside every call, comparison and power is summed over the
term.  Where it occurs only inside one of these, nobody can know whether to sum inside or outside: an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from einsummable.errors import ShapeError, Span
from einsummable.language.syntax import (
    Add,
    Aggregate,
    Call,
    Compare,
    Define,
    Expr,
    GatherIndex,
    Group,
    Index,
    Label,
    Mul,
    Name,
    Neg,
    Pow,
    Ref,
    Shift,
    Stride,
    children,
    unparse,
    walk,
)


def labels_in(indices: Iterable[Index]) -> Iterator[Label]:
    """Yield the labels that stand in `indices`, in the order of the text."""
    for index in indices:
        match index:
            case Label():
                yield index
            case Group(labels):
                yield from labels
            case Shift(label=label) | Stride(label=label):
                yield label
            case GatherIndex(ref):
                yield from labels_in(ref.indices)


def labels_of_line(define: Define) -> dict[str, list[Span]]:
    """Return the labels of a line, left side first, each with all places where it stands as an index."""
    found: dict[str, list[Span]] = {}
    places = [*labels_in(define.dims)]
    for expr in walk(define.expr):
        match expr:
            case Ref(indices=indices):
                places += labels_in(indices)
            case Aggregate(labels=labels) | Call(labels=labels):
                places += labels
    for label in places:
        found.setdefault(label.name, []).append(label.span)
    return found


def top_terms(expr: Expr) -> list[tuple[str, Expr]]:
    """Return the additive terms of `expr` with their signs."""
    return list(zip(expr.signs, expr.terms, strict=True)) if isinstance(expr, Add) else [("+", expr)]


def factor_labels(term: Expr, labels: AbstractSet[str]) -> list[str]:
    """Return those of `labels` that are free in `term` outside every call, comparison and power."""
    found: dict[str, None] = {}
    todo: list[tuple[Expr, frozenset[str]]] = [(term, frozenset())]
    while todo:
        expr, bound = todo.pop()
        match expr:
            case Ref(indices=indices):
                found.update((x.name, None) for x in labels_in(indices) if x.name not in bound)
            case Name(name) if name in labels and name not in bound:
                found[name] = None
            case Aggregate(labels=own, body=body):
                todo.append((body, bound | {label.name for label in own}))
            case Add() | Mul() | Neg():
                todo.extend((child, bound) for child in reversed(children(expr)))
    return list(found)


def unbound(text: str, define: Define, term: Expr, label: str) -> ShapeError:
    """Return the complaint that nothing binds `label`, which says which aggregate to write."""
    holder = _holder(term, label)
    notes = [f"to sum the results, write {unparse(Aggregate('sum', (Label(label),), holder))}"]
    if isinstance(holder, Call) and len(holder.args) == 1 and not holder.labels:
        inside = unparse(Aggregate("sum", (Label(label),), holder.args[0]))
        notes.append(f"to sum inside, write {holder.fn}({inside})")
    kind = {Compare: "a comparison", Pow: "a power"}.get(type(holder), "a call")
    return ShapeError(
        f"nothing binds label {label!r}: {define.name} lacks it, and it stands only inside {kind}",
        text=text,
        spans=tuple(_places(holder, label)),
        notes=tuple(notes),
    )


def _holder(term: Expr, label: str) -> Expr:
    """Return the outermost call, comparison or power of `term` in which `label` is free."""
    found, todo = [], [term]
    while todo:
        expr = todo.pop()
        if isinstance(expr, Call | Compare | Pow):
            if any(_places(expr, label)):
                found.append(expr)
        elif not (isinstance(expr, Aggregate) and label in {x.name for x in expr.labels}):
            todo.extend(reversed(children(expr)))
    # A macro that names the label probably binds it, as mean[k](…) does.
    plain = (e for e in found if not (isinstance(e, Call) and label in {x.name for x in e.labels}))
    return next(plain, next(iter(found), term))


def _places(expr: Expr, label: str) -> Iterator[Span]:
    todo = [expr]
    while todo:
        part = todo.pop()
        match part:
            case Aggregate(labels=own) if label in {x.name for x in own}:
                continue
            case Ref(indices=indices):
                yield from (x.span for x in labels_in(indices) if x.name == label)
            case Name(name) if name == label:
                yield part.span
            case Call(labels=own):
                yield from (x.span for x in own if x.name == label)
        todo.extend(reversed(children(part)))
