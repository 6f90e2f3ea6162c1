"""numpy.einsum's ways of writing a product: read, checked against shapes, turned into an EinGraph.

Contract: `parse` and `from_sublists` make an `Equation`, `Equation.resolve` a `Contraction`; `bind` takes all
of numpy.einsum's arguments.  What numpy accepts means what it means there.  Three things are ours: any letter
is a label and sublists may name any number of them; an ellipsis that the result lacks is summed, whatever
``optimize`` says; results are fresh arrays, never views.

>>> parse("ij,jk", 2).output
('i', 'k')
>>> parse("t...i,ti->t...", 2).resolve([(10, 2), (1, 2)], np.dtype("f4")).shape
(10,)
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from einsummable import dtypes
from einsummable.builder import GraphBuilder
from einsummable.contract import Contraction, Path, append, contraction_path
from einsummable.dtypes import ScalarType
from einsummable.errors import DtypeError, ParseError, ShapeError, Span
from einsummable.graph import EinGraph

#: Stands among the labels of an operand for the dimensions that are not named.
ELLIPSIS = "..."
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CASTING = ("no", "equiv", "safe", "same_kind", "unsafe")


@dataclass(frozen=True, slots=True)
class Equation:
    """Labels of the operands and of the result; an ellipsis is one of them until shapes are known."""

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]
    text: str = ""

    def resolve(
        self, shapes: Sequence[Sequence[int]], dtype: np.dtype, optimize: str | Path = "auto"
    ) -> Contraction:
        """Return the contraction that this is for operands of `shapes`, computed in `dtype`.

        Raises
        ------
        ShapeError
            An operand has not the dimensions its labels name, or a label has two extents (1 agrees with all).
        """
        widest = 0
        for k, (labels, shape) in enumerate(zip(self.inputs, shapes, strict=True)):
            widest = max(widest, self._unnamed(k, labels, shape))
        # Ellipses are aligned on the right, as numpy broadcasts.
        broad = tuple(f"e{d}" for d in range(widest))
        named = []
        for labels, shape in zip(self.inputs, shapes, strict=True):
            unnamed = len(shape) - len(labels) + 1
            named.append(_replace_ellipsis(labels, broad[widest - unnamed :] if unnamed else ()))
        out = _replace_ellipsis(self.output, broad)
        extents = self._extents(named, shapes)
        path = contraction_path(named, out, extents, optimize)
        return Contraction(tuple(named), out, tuple(extents.items()), dtype, path)

    def _unnamed(self, k: int, labels: tuple[str, ...], shape: Sequence[int]) -> int:
        """Return how many dimensions the ellipsis of operand `k` stands for."""
        named = len(labels) - labels.count(ELLIPSIS)
        if named == len(shape) or (named < len(shape) and ELLIPSIS in labels):
            return len(shape) - named
        start, stop = self._term(k)
        raise ShapeError(
            f"operand {k} has {len(shape)} dimensions, but its subscripts name {named}",
            text=self.text,
            spans=(Span(start, stop),) if self.text else (),
            notes=(f"operand {k} has shape {tuple(shape)}",),
        )

    def _extents(self, named: list[tuple[str, ...]], shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        found: dict[str, tuple[int, int]] = {}  # label -> extent, operand
        for k, (labels, shape) in enumerate(zip(named, shapes, strict=True)):
            own: dict[str, int] = {}
            for label, n in zip(labels, shape, strict=True):
                if own.setdefault(label, n) != n:
                    raise self._mismatch(label, own[label], k, n, k, shapes)
            for label, n in own.items():
                before, j = found.get(label, (1, k))
                if before == 1:
                    found[label] = (n, k)
                elif n not in (1, before):
                    raise self._mismatch(label, before, j, n, k, shapes)
        return {label: n for label, (n, _) in found.items()}

    def _mismatch(
        self, label: str, m: int, j: int, n: int, k: int, shapes: Sequence[Sequence[int]]
    ) -> ShapeError:
        places = []
        for operand in dict.fromkeys((j, k)):
            start, stop = self._term(operand)
            places += [Span(i, i + 1) for i in range(start, stop) if self.text[i] == label]
        where = f"but {n} in operand {k}" if j != k else f"and {n} in the same operand"
        notes = tuple(f"operand {o} has shape {tuple(shapes[o])}" for o in dict.fromkeys((j, k)))
        what = f"label {label!r}" if len(label) == 1 or not self.text else "a dimension under the ellipsis"
        return ShapeError(
            f"{what} is {m} in operand {j} {where}", text=self.text, spans=tuple(places), notes=notes
        )

    def _term(self, k: int) -> tuple[int, int]:
        """Return the range of the text that operand `k` stands in."""
        terms = self.text.split("->")[0].split(",")
        start = sum(len(t) + 1 for t in terms[:k])
        return (start, start + len(terms[k])) if self.text else (0, 0)


def _replace_ellipsis(labels: tuple[str, ...], broad: tuple[str, ...]) -> tuple[str, ...]:
    if ELLIPSIS not in labels:
        return labels
    at = labels.index(ELLIPSIS)
    return labels[:at] + broad + labels[at + 1 :]


# --------------------------------------------------------------------------------------- reading


@lru_cache(maxsize=1024)
def parse(text: str, count: int) -> Equation:
    """Return the equation written as `text` for `count` operands.

    Raises
    ------
    ParseError
        The text is no equation, or not for so many operands.
    """
    chars = [(c, i) for i, c in enumerate(text) if c != " "]
    arrows = [k for k, (c, _) in enumerate(chars[:-1]) if c == "-" and chars[k + 1][0] == ">"]
    if len(arrows) > 1:
        raise ParseError(
            "an equation has one '->'", text=text, spans=tuple(_span(chars[k : k + 2]) for k in arrows)
        )
    left, right = (chars[: arrows[0]], chars[arrows[0] + 2 :]) if arrows else (chars, None)
    terms: list[list[tuple[str, int]]] = [[]]
    for char in left:
        if char[0] == ",":
            terms.append([])
        else:
            terms[-1].append(char)
    inputs = tuple(_labels(term, text) for term in terms)
    if len(inputs) != count:
        raise ParseError(f"the equation {text!r} is of {len(inputs)} operands, {count} are given")
    if right is None:
        return Equation(inputs, _implicit(inputs, sorted), text)
    output = _labels(right, text)
    known = set().union(*inputs)
    for c, i in right:
        if c not in known and c != ".":
            raise ParseError(
                f"label {c!r} of the result is in no operand", text=text, spans=(Span(i, i + 1),)
            )
    _refuse_twice(output, text, right)
    return Equation(inputs, output, text)


def _span(chars: list[tuple[str, int]]) -> Span:
    return Span(chars[0][1], chars[-1][1] + 1)


def _labels(term: list[tuple[str, int]], text: str) -> tuple[str, ...]:
    """Return the labels of one operand, or of the result."""
    labels: list[str] = []
    k = 0
    while k < len(term):
        c, i = term[k]
        if "".join(x for x, _ in term[k : k + 3]) == ELLIPSIS and ELLIPSIS not in labels:
            labels.append(ELLIPSIS)
            k += 3
        elif c == ".":
            raise ParseError(
                "dots stand only in one ellipsis '...' an operand", text=text, spans=(Span(i, i + 1),)
            )
        elif not c.isalpha():
            raise ParseError(f"{c!r} is no label: labels are letters", text=text, spans=(Span(i, i + 1),))
        else:
            labels.append(c)
            k += 1
    return tuple(labels)


def _implicit(inputs: tuple[tuple[str, ...], ...], order: Any) -> tuple[str, ...]:
    """Return the labels of a result that is not written: those that stand once, in alphabetical order."""
    times = Counter(label for labels in inputs for label in labels if label != ELLIPSIS)
    broad = (ELLIPSIS,) if any(ELLIPSIS in labels for labels in inputs) else ()
    return broad + tuple(order(label for label, n in times.items() if n == 1))


def _refuse_twice(
    output: tuple[str, ...], text: str = "", chars: list[tuple[str, int]] | None = None
) -> None:
    twice = next((label for label, n in Counter(output).items() if n > 1), None)
    if twice is not None:
        spans = tuple(Span(i, i + 1) for c, i in chars or () if c == twice)
        raise ParseError(f"label {twice!r} stands twice in the result", text=text, spans=spans)


@lru_cache(maxsize=1024)
def from_sublists(sublists: tuple[tuple[Any, ...], ...], output: tuple[Any, ...] | None) -> Equation:
    """Return the equation whose labels are whole numbers from 0: ``(a, [0, 1], b, [1, 2], [0, 2])``."""
    number: dict[str, int] = {}

    def name(item: Any) -> str:
        if item is Ellipsis:
            return ELLIPSIS
        label = _LETTERS[item] if item < len(_LETTERS) else f"l{item}"
        number[label] = item
        return label

    inputs = tuple(tuple(name(item) for item in ls) for ls in sublists)
    known = set(number)
    if output is None:
        return Equation(inputs, _implicit(inputs, lambda ls: sorted(ls, key=number.__getitem__)))
    out = tuple(name(item) for item in output)
    for label in out:
        if label != ELLIPSIS and label not in known:
            raise ParseError(f"label {number[label]} of the result is in no operand")
    _refuse_twice(out)
    return Equation(inputs, out)


def _sublist(items: Any) -> tuple[Any, ...]:
    """Return a list of labels as a tuple of ints and Ellipsis."""
    if isinstance(items, str | bytes) or not np.iterable(items):
        raise DtypeError(
            f"{type(items).__name__} is no list of labels",
            notes=("write an equation, or pairs of an array and a list of whole numbers",),
        )
    found: list[Any] = []
    for item in items:
        if item is Ellipsis:
            found.append(item)
            continue
        try:
            number = None if isinstance(item, bool | np.bool) else operator.index(item)
        except TypeError:
            number = None
        if number is None:
            raise DtypeError(f"a label of a list is a whole number or Ellipsis, not {item!r}")
        if number < 0:
            raise ParseError(f"a label of a list is a whole number from 0, not {number}")
        found.append(number)
    if found.count(Ellipsis) > 1:
        raise ParseError("a list of labels has one Ellipsis")
    return tuple(found)


def read_arguments(args: Sequence[Any]) -> tuple[Equation, list[Any]]:
    """Return the equation and the operands among the positional arguments of ``einsum``."""
    if not args:
        raise ParseError("einsum needs an equation and its operands")
    if isinstance(args[0], str):
        return parse(args[0], len(args) - 1), list(args[1:])
    pairs, rest = args[: len(args) // 2 * 2], args[len(args) // 2 * 2 :]
    if not pairs:
        raise ParseError("einsum needs an equation, or pairs of an array and a list of labels")
    sublists = tuple(_sublist(items) for items in pairs[1::2])
    return from_sublists(sublists, _sublist(rest[0]) if rest else None), list(pairs[::2])


# --------------------------------------------------------------------------------- numpy's einsum


@dataclass(frozen=True, slots=True)
class Signature:
    """All that the program of an ``einsum`` depends on: a key for caches."""

    equation: Equation
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]
    optimize: str | Path = "auto"

    @property
    def names(self) -> tuple[str, ...]:
        """What the graph calls the operands: A, B, C and so on."""
        return tuple(chr(65 + k) if k < 26 else f"A{k}" for k in range(len(self.shapes)))

    def graph(self) -> EinGraph:
        """Return the program; its result is called ``out``."""
        builder = GraphBuilder(self.equation.text)
        triples = zip(self.names, self.shapes, self.dtypes, strict=True)
        operands = [builder.input(*triple) for triple in triples]
        contraction = self.equation.resolve(self.shapes, common_dtype(self.dtypes), self.optimize)
        builder.output("out", append(builder, operands, contraction))
        return builder.build()


def common_dtype(operands: Sequence[np.dtype]) -> np.dtype:
    """Return the dtype that operands of these dtypes are cast to before they are multiplied."""
    return dtypes.promote(ScalarType(d) for d in operands).dtype


@dataclass(frozen=True, slots=True)
class Bound:
    """The arguments of one call of ``einsum``, read and checked."""

    signature: Signature
    operands: tuple[Any, ...]
    out: np.ndarray | None = None
    casting: str = "safe"
    order: str = "K"

    @property
    def arrays(self) -> dict[str, Any]:
        """The operands by their names in the graph."""
        return dict(zip(self.signature.names, self.operands, strict=True))

    def finish(self, result: np.ndarray) -> np.ndarray | np.generic:
        """Return `result` as numpy.einsum would: in ``out``, a scalar where it has no dimension, in order."""
        if self.out is None:
            if self.order == "F" or (self.order == "A" and all(np.isfortran(x) for x in self.operands)):
                result = np.asfortranarray(result) if result.ndim else result
            return result if result.ndim else result[()]
        if self.out.shape != result.shape:
            raise ShapeError(f"out has shape {self.out.shape}, the result {result.shape}")
        if not np.can_cast(result.dtype, self.out.dtype, self.casting):
            raise _no_cast("the result", result.dtype, self.out.dtype, self.casting)
        self.out[...] = result
        return self.out


def bind(
    args: Sequence[Any],
    *,
    out: np.ndarray | None = None,
    dtype: Any = None,
    order: str | None = "K",
    casting: str = "safe",
    optimize: Any = False,
) -> Bound:
    """Return the arguments of ``numpy.einsum`` in our terms; the operands become arrays.

    Raises
    ------
    ParseError
        The equation, `order`, `casting` or `optimize` is none; also a `ValueError`.
    DtypeError
        An operand is no number, or `dtype` or `out` cannot take it; also a `TypeError`.
    """
    equation, operands = read_arguments(args)
    order = "K" if order is None else str(order).upper()
    if order not in ("K", "A", "C", "F"):
        raise ParseError(f"order is one of K, A, C, F, not {order!r}")
    if casting not in _CASTING:
        raise ParseError(f"casting is one of {', '.join(_CASTING)}, not {casting!r}")
    if out is not None and not isinstance(out, np.ndarray):
        raise DtypeError(f"out must be an array, not {type(out).__name__}")
    wanted = None if dtype is None else dtypes.parse(dtype) if isinstance(dtype, str) else np.dtype(dtype)
    arrays = tuple(_operand(k, x, wanted, casting) for k, x in enumerate(operands))
    shapes, kinds = tuple(a.shape for a in arrays), tuple(a.dtype for a in arrays)
    return Bound(Signature(equation, shapes, kinds, read_optimize(optimize)), arrays, out, casting, order)


def _operand(k: int, value: Any, wanted: np.dtype | None, casting: str) -> np.ndarray:
    array = np.asarray(value)
    if wanted is not None and array.dtype != wanted:
        if not np.can_cast(array.dtype, wanted, casting):
            raise _no_cast(f"operand {k}", array.dtype, wanted, casting)
        array = array.astype(wanted)
    dtypes.kind(array.dtype)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _no_cast(what: str, have: np.dtype, wanted: np.dtype, casting: str) -> DtypeError:
    return DtypeError(
        f"{what} is {dtypes.name(have)}, which casting={casting!r} does not turn into {dtypes.name(wanted)}"
    )


def read_optimize(optimize: Any) -> str | Path:
    """Return numpy's ``optimize`` in our terms: a name, or a path."""
    if optimize is None or isinstance(optimize, bool):
        return "auto"
    if isinstance(optimize, str):
        return optimize
    if not isinstance(optimize, list | tuple):
        raise ParseError(f"optimize is a name or a path, not {optimize!r}")
    if len(optimize) and isinstance(optimize[0], str):
        if optimize[0] != "einsum_path":
            return optimize[0]  # ("greedy", memory limit)
        optimize = optimize[1:]
    return tuple(tuple(map(operator.index, step)) for step in optimize)
