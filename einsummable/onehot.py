"""Joins that are one-hot: they compare labels with inputs, and are 0 where these differ.

Contract: of ``where(x == r, where(y == s, value, 0), 0)`` `one_hot` tells that the labels r and s are
compared with the inputs x and y, and what `value` is.  A sum over what x and y have need not go through r and
s then: every element of `value` is added in the one place that x and y say.  So the gradient of rows that
were looked up in a table is one pass over the rows.

>>> b = ScalarBuilder()
>>> hit = b.call("eq", b.arg(0), b.label("r"))
>>> found = one_hot(b.build(b.call("where", hit, b.arg(1), b.const(0))))
>>> found.compared, found.value.format(["tok", "g"])
((('r', 0),), 'g')
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from einsummable.scalar import Arg, Call, Const, Label, Op, ScalarBuilder, ScalarExpr


@dataclass(frozen=True, slots=True)
class OneHot:
    """Labels, each with the input it is compared with, and the value where all are equal."""

    compared: tuple[tuple[str, int], ...]
    value: ScalarExpr


@lru_cache(maxsize=4096)
def one_hot(join: ScalarExpr) -> OneHot | None:
    """Return what `join` compares, or None where it is 0 for no other reason."""
    ops, at, found = join.ops, len(join.ops) - 1, {}
    while (step := _step(ops, at)) is not None and step[0] not in found:
        label, arg, at = step
        found[label] = arg
    b = ScalarBuilder()
    inputs = 1 + max((op.index for op in ops if isinstance(op, Arg)), default=-1)
    value = b.build(b.inline(ScalarExpr(ops[: at + 1]), [b.arg(k) for k in range(inputs)]))
    read = {op.index for op in value.ops if isinstance(op, Arg)}
    if not found or found.keys() & value.labels or read & set(found.values()):
        return None
    return OneHot(tuple(found.items()), value)


def _step(ops: tuple[Op, ...], at: int) -> tuple[str, int, int] | None:
    """Return label, input and inner operation of ``where(input == label, inner, 0)``."""
    match ops[at]:
        case Call("where", (hit, inner, other)):
            match ops[other], ops[hit]:
                case Const() as zero, Call("eq", (a, b)) if zero.value == 0:
                    for x, y in ((ops[a], ops[b]), (ops[b], ops[a])):
                        if isinstance(x, Arg) and isinstance(y, Label):
                            return y.name, x.index, inner
    return None
