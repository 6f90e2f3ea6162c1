"""Conditions over label values, decided for a whole range of labels at once.

Contract: `decide` answers whether a condition holds everywhere on a box, nowhere, or (None) neither is
certain, by arithmetic on intervals.  `mask` finds a join that is ``where(condition, a, b)`` with such a
condition, and `live` the range of a label outside which the condition is constant on a box: in causal
attention half of all keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from einsummable.scalar import Arg, Call, Const, Label, ScalarExpr

#: Half-open range of every label.
Ranges: TypeAlias = Mapping[str, tuple[int, int]]
#: Least and greatest value; of a condition, False and True as 0 and 1.
_Interval: TypeAlias = tuple[float, float]

#: A label is looked at in steps of this many indices.
STEP = 64


def decide(expr: ScalarExpr, i: int, ranges: Ranges) -> bool | None:
    """Return the value of operation `i`, a condition, where it is the same on all of `ranges`."""
    found = _interval(expr, i, ranges)
    if found is None or found[0] != found[1]:
        return None
    return bool(found[0])


def _interval(expr: ScalarExpr, i: int, ranges: Ranges) -> _Interval | None:
    match expr.ops[i]:
        case Label(name):
            start, stop = ranges[name]
            return start, stop - 1
        case Const() as op if not isinstance(op.value, complex):
            return (float(op.value),) * 2 if isinstance(op.value, float) else (op.value, op.value)
        case Call(fn, operands) if fn in _RULES:
            parts = [_interval(expr, a, ranges) for a in operands]
            return None if None in parts else _RULES[fn](*parts)
    return None


def _product(a: _Interval, b: _Interval) -> _Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _less(a: _Interval, b: _Interval) -> _Interval:
    return int(a[1] < b[0]), int(a[0] < b[1])


def _at_most(a: _Interval, b: _Interval) -> _Interval:
    return int(a[1] <= b[0]), int(a[0] <= b[1])


def _equal(a: _Interval, b: _Interval) -> _Interval:
    return int(a[0] == a[1] == b[0] == b[1]), int(a[0] <= b[1] and b[0] <= a[1])


#: Functions of intervals.  A product of conditions is "and", their sum (0 to 2) is not used as one.
_RULES = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "neg": lambda a: (-a[1], -a[0]),
    "mul": _product,
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "lt": _less,
    "gt": lambda a, b: _less(b, a),
    "le": _at_most,
    "ge": lambda a, b: _at_most(b, a),
    "eq": _equal,
    "ne": lambda a, b: (1 - _equal(a, b)[1], 1 - _equal(a, b)[0]),
}


@dataclass(frozen=True, slots=True)
class Mask:
    """A join ``where(condition, a, b)`` whose condition reads labels only.

    Attributes
    ----------
    condition
        The operation that is the condition.
    labels
        The labels that it reads.
    if_true, if_false
        Of each branch, the inputs and the labels as values that it reads.
    """

    condition: int
    labels: frozenset[str]
    if_true: tuple[frozenset[int], frozenset[str]]
    if_false: tuple[frozenset[int], frozenset[str]]

    def branch(self, *, value: bool) -> tuple[frozenset[int], frozenset[str]]:
        """Return what the branch reads that is taken where the condition is `value`."""
        return self.if_true if value else self.if_false


def mask(expr: ScalarExpr) -> Mask | None:
    """Return the mask that `expr` is, None if it is none."""
    match expr.ops[-1]:
        case Call("where", (condition, a, b)):
            inputs, labels = _reads(expr, condition)
            if labels and not inputs and not expr.params:
                return Mask(condition, labels, _reads(expr, a), _reads(expr, b))
    return None


def _reads(expr: ScalarExpr, i: int) -> tuple[frozenset[int], frozenset[str]]:
    inputs: set[int] = set()
    labels: set[str] = set()
    stack = [i]
    while stack:
        match expr.ops[stack.pop()]:
            case Arg(index):
                inputs.add(index)
            case Label(name):
                labels.add(name)
            case Call(_, operands):
                stack += operands
    return frozenset(inputs), frozenset(labels)


def live(expr: ScalarExpr, found: Mask, label: str, ranges: Ranges, *, dead: bool) -> tuple[int, int]:
    """Return the range of `label`, within that of `ranges`, outside which all of the condition is `dead`."""
    start, stop = ranges[label]

    def is_dead(first: int, last: int) -> bool:
        return decide(expr, found.condition, {**ranges, label: (first, last)}) is dead

    while start < stop and is_dead(start, min(start + STEP, stop)):
        start = min(start + STEP, stop)
    while start < stop and is_dead(max(stop - STEP, start), stop):
        stop = max(stop - STEP, start)
    return start, stop
