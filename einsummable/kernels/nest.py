"""The loop nest of one einsummable: what `emit` makes code of, and for which joins it can.

Contract: a `Nest` says in which order the labels of a space are walked, and how the table of 64-bit numbers
is laid out that its code reads: addresses, extents, first indices and strides.  So one piece of code serves
blocks of all shapes and strides.  `supported` says whether every operation of a join is compiled.

    for the labels of the result        (slowest first)
      for a vector of the vector label  (elements side by side in memory, wherever an array has the label)
        for a few rows                  (a label whose steps share what is loaded)
          for the aggregated labels
            accumulate in registers
          store

An aggregated vector label comes last, and its lanes are combined at the end.  Each operation of the join
stands at the outermost loop that knows its labels.  What a vector has beyond the extent is masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from einsummable import dtypes
from einsummable.dtypes import BOOL, F32, F64, I32, I64
from einsummable.kernels.tiling import Labels
from einsummable.scalar import Arg, Call, Const, Label, Param, ScalarExpr, Typed

#: dtypes that compiled loops know.
KNOWN = frozenset((F32, F64, I32, I64, BOOL))
FLOATS = frozenset((F32, F64))
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
#: Functions and the dtypes of operands for which they are here.
_ROWS: dict[str, frozenset[np.dtype]] = {
    **dict.fromkeys(("add", "mul", "square", "where", "conj", "real", "minimum", "maximum", "relu"), KNOWN),
    **dict.fromkeys((*COMPARISONS, "stop_gradient"), KNOWN),
    **dict.fromkeys(("sub", "neg", "abs"), KNOWN - {BOOL}),
    **dict.fromkeys(("div", "exp", "sqrt", "rsqrt", "sigmoid", "silu", "isnan", "sign", "floor"), FLOATS),
}
CASTS = dtypes.NAMED | dtypes.UNNAMED


def supported(join: ScalarExpr, typed: Sequence[Typed]) -> bool:
    """Return whether all of `join`, of which `typed` is what `scalar.infer` answered, can be emitted."""
    for op, type_ in zip(join.ops, typed, strict=True):
        if type_.type.dtype not in KNOWN:
            return False
        match op:
            case Arg() | Label() | Const() | Param():
                continue
            case Call(fn, operands):
                sources = [typed[a].type.dtype for a in operands]
                if any(not castable(*pair) for pair in zip(sources, type_.operands, strict=True)):
                    return False
                if not _has_row(fn, join, operands, type_):
                    return False
    return True


def _has_row(fn: str, join: ScalarExpr, operands: tuple[int, ...], typed: Typed) -> bool:
    if fn in CASTS:
        return castable(typed.operands[0], typed.type.dtype)
    if fn == "pow":
        return _is_two(join, operands[1]) and typed.operands[0] != BOOL
    return fn in _ROWS and typed.operands[-1] in _ROWS[fn]


def _is_two(join: ScalarExpr, i: int) -> bool:
    op = join.ops[i]
    return isinstance(op, Const) and op.value == 2


def castable(source: np.dtype, target: np.dtype) -> bool:
    """Return whether a cast is compiled."""
    # A float that no integer holds has no meaning in LLVM, and numpy's is the processor's.
    return {source, target} <= KNOWN and not (source in FLOATS and target in (I32, I64))


@dataclass(frozen=True, slots=True)
class Nest:
    """What the code of a loop nest depends on.

    Attributes
    ----------
    join, typed
        The join and what `scalar.infer` answered for it.
    arrays, params
        Labels and dtype of each array; name and dtype of each scalar of the caller.
    out, dtype
        Labels of the result, in the order of the loops, and its dtype.
    inner, aggregate
        The aggregated labels, in the order of the loops, and what combines them.
    vector, rows
        The label that lanes run along, and one of `out` of which `height` steps are made at a time.
    width, count, height
        Lanes of a vector, vectors a step, rows a step.
    ordered
        Whether no value that is aggregated is nan, so that one instruction finds a minimum.
    """

    join: ScalarExpr
    typed: tuple[Typed, ...]
    arrays: tuple[tuple[Labels, np.dtype], ...]
    params: tuple[tuple[str, np.dtype], ...]
    out: Labels
    dtype: np.dtype
    inner: Labels
    aggregate: str | None
    vector: str
    rows: str | None
    width: int
    count: int
    height: int
    ordered: bool = False

    @property
    def lanes(self) -> int:
        """The lanes of a step along the vector label."""
        return self.width * self.count

    @property
    def labels(self) -> Labels:
        """All labels, in the order of the loops."""
        return (*self.out, *self.inner)

    @property
    def table(self) -> tuple[tuple, ...]:
        """What stands in each place of the table."""
        places: list[tuple] = [("array", k) for k in range(len(self.arrays))]
        places += [("param", name) for name, _ in self.params]
        places += [("result",), ("resume",)]
        places += [("extent", x) for x in self.labels] + [("first", x) for x in sorted(self.join.labels)]
        for k, (labels, _) in enumerate(self.arrays):
            places += [("stride", k, x) for x in labels]
        return (*places, *(("stride", "result", x) for x in self.out if x != self.vector))
