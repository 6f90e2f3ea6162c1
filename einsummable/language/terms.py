"""The right side of a line with every name resolved: what the graph's nodes are cut out of.

Contract: `Terms` holds the terms of one line, each distinct one once, in an order in which a term's parts
come first.  So equal subexpressions are one term, macros are gone, and every later pass is a loop.  Each
term knows its free labels, its type, and the place in the text that it came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from einsummable import dtypes
from einsummable.dtypes import ScalarType
from einsummable.errors import DtypeError, Span
from einsummable.functions import FUNCTIONS, aggregate_dtype
from einsummable.scalar import INFIX


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar of the caller's scope, read when the program runs."""

    name: str


@dataclass(frozen=True, slots=True)
class Affine:
    """The position ``step*label + start``."""

    label: str
    step: int
    start: int


@dataclass(frozen=True, slots=True)
class Held:
    """The position that an element of a tensor of integers holds: the number of its term."""

    element: int


#: What may index a dimension: labels (several are a group), a position, or what holds or computes one.
Index = tuple[str, ...] | int | Scalar | Affine | Held


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a tensor."""

    tensor: str
    index: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class LabelValue:
    """The value of a label."""

    label: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, as Python's ``repr``."""

    text: str


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a label."""

    label: str


@dataclass(frozen=True, slots=True)
class Apply:
    """A row of `functions.FUNCTIONS` of other terms."""

    fn: str
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reduce:
    """An aggregate of another term over labels that are free in it."""

    kind: str
    labels: tuple[str, ...]
    body: int


@dataclass(frozen=True, slots=True)
class Concat:
    """Other terms one after another along `label`, which each of them calls by a name of its own."""

    label: str
    own: tuple[str, ...]
    parts: tuple[int, ...]


Term = Element | LabelValue | Literal | Scalar | Extent | Apply | Reduce | Concat


@dataclass(frozen=True, slots=True)
class Place:
    """Where a term comes from: a span of the program's text, and the macro it was expanded from there."""

    span: Span
    macro: str = ""


def parts_of(term: Term) -> tuple[int, ...]:
    """Return the terms that `term` is made of."""
    match term:
        case Apply(args=args):
            return args
        case Reduce(body=body):
            return (body,)
        case Concat(parts=parts):
            return parts
        case Element(index=index):
            return tuple(part.element for part in index if isinstance(part, Held))
        case _:
            return ()


class Terms:
    """The terms of one line; the methods append one and return its number."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.terms: list[Term] = []
        self.types: list[ScalarType] = []
        self.labels: list[tuple[str, ...]] = []
        self.places: list[Place] = []
        self._ids: dict[Term, int] = {}

    def __getitem__(self, i: int) -> Term:
        return self.terms[i]

    def _add(self, term: Term, type_: ScalarType, labels: tuple[str, ...], place: Place) -> int:
        if term not in self._ids:
            self._ids[term] = len(self.terms)
            self.terms.append(term)
            self.types.append(type_)
            self.labels.append(labels)
            self.places.append(place)
        return self._ids[term]

    def element(self, tensor: str, index: tuple[Index, ...], dtype: np.dtype, place: Place) -> int:
        """Append an element of a tensor of `dtype`."""
        labels = tuple(dict.fromkeys(label for part in index for label in self.labels_of(part)))
        return self._add(Element(tensor, index), ScalarType(dtype), labels, place)

    def labels_of(self, part: Index) -> tuple[str, ...]:
        """Return the labels that stand in one index."""
        match part:
            case tuple():
                return part
            case Affine(label):
                return (label,)
            case Held(element):
                return self.labels[element]
            case _:
                return ()

    def concat(
        self, label: str, own: Sequence[str], parts: Sequence[int], dtype: np.dtype, place: Place
    ) -> int:
        """Append a concatenation of terms of `dtype` along `label`, which each calls by its `own` name."""
        free = dict.fromkeys(
            label if x == mine else x
            for part, mine in zip(parts, own, strict=True)
            for x in self.labels[part]
        )
        return self._add(Concat(label, tuple(own), tuple(parts)), ScalarType(dtype), tuple(free), place)

    def label_value(self, label: str, place: Place) -> int:
        """Append the value of a label."""
        return self._add(LabelValue(label), dtypes.WEAK_INT, (label,), place)

    def literal(self, value: complex, place: Place) -> int:
        """Append a number; raise `DtypeError` where it is a whole number that no dtype holds."""
        try:
            type_ = dtypes.of_value(value)
        except DtypeError as error:
            raise self.at(error, place) from None
        return self._add(Literal(repr(value)), type_, (), place)

    def scalar(self, name: str, type_: ScalarType, place: Place) -> int:
        """Append a scalar of the caller's scope."""
        return self._add(Scalar(name), type_, (), place)

    def extent(self, label: str, place: Place) -> int:
        """Append the extent of a label."""
        return self._add(Extent(label), dtypes.WEAK_INT, (), place)

    def apply(self, fn: str, args: Sequence[int], place: Place, shown: str = "") -> int:
        """Append a function of other terms, which the reader calls `shown`.

        Raises
        ------
        DtypeError
            The function has no meaning for them.
        """
        try:
            operands, type_ = FUNCTIONS[fn].rule(fn, [self.types[a] for a in args])
        except DtypeError as error:
            shown = shown or ("-" if fn == "neg" else INFIX[fn][0] if fn in INFIX else fn)
            raise self._dtype_error(error, fn, shown, args, place) from None
        for a, operand in zip(args, operands, strict=True):
            value = self._whole_number(a)
            if value is not None and not dtypes.fits(value, operand.dtype):
                raise self.at(dtypes.no_fit(value, operand.dtype), place)
        labels = tuple(dict.fromkeys(label for a in args for label in self.labels[a]))
        return self._add(Apply(fn, tuple(args)), type_, labels, place)

    def _whole_number(self, i: int) -> int | None:
        """Return the value of term `i` where it is a literal whole number, with or without a minus."""
        match self.terms[i]:
            case Literal(text) if text.isdecimal():
                return int(text)
            case Apply("neg", (a,)):
                value = self._whole_number(a)
                return None if value is None else -value
            case _:
                return None

    def reduce(self, kind: str, labels: Sequence[str], body: int, place: Place) -> int:
        """Append an aggregate over labels of `body`; raise `DtypeError` where it has no meaning for it."""
        try:
            dtype = aggregate_dtype(kind, self.types[body].dtype)
        except DtypeError as error:
            raise self._dtype_error(error, kind, kind, (body,), place) from None
        inner = self.terms[body]
        if isinstance(inner, Reduce) and inner.kind == kind:
            labels, body = (*labels, *inner.labels), inner.body
        free = tuple(label for label in self.labels[body] if label not in labels)
        return self._add(Reduce(kind, tuple(dict.fromkeys(labels)), body), ScalarType(dtype), free, place)

    def _dtype_error(
        self, error: DtypeError, fn: str, shown: str, args: Sequence[int], place: Place
    ) -> DtypeError:
        """Return `error` with the reader's name of `fn` and carets under the operands at fault."""
        guilty = [a for a in args if dtypes.kind(self.types[a].dtype) == "c"] or list(args)
        spans = [self.places[a].span for a in guilty]
        # An operand that stands in the line before, too, has its place there.
        if place.macro or not all(place.span.start <= s.start and s.stop <= place.span.stop for s in spans):
            spans = [place.span]
        message = shown + error.message.removeprefix(fn)
        known = [(self.text[self.places[a].span.start : self.places[a].span.stop], a) for a in guilty]
        is_dtype = ", ".join(f"{words} is {self.types[a]}" for words, a in known if not place.macro)
        inside = (f"inside the macro {place.macro}",) if place.macro else ()
        notes = (*error.notes, *((is_dtype,) if is_dtype else ()), *inside)
        return DtypeError(message, text=self.text, spans=tuple(dict.fromkeys(spans)), notes=notes)

    def at(self, error: DtypeError, place: Place) -> DtypeError:
        """Return `error` with carets under `place`."""
        notes = (*error.notes, *((f"inside the macro {place.macro}",) if place.macro else ()))
        return DtypeError(error.message, text=self.text, spans=(place.span,), notes=notes)

    def reachable(self, root: int) -> list[int]:
        """Return the terms that `root` is made of, itself last, parts before what they are parts of."""
        needed = {root}
        for i in range(root, -1, -1):
            if i in needed:
                needed.update(parts_of(self.terms[i]))
        return sorted(needed)
