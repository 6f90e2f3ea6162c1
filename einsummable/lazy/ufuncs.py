"""numpy's ufuncs and Python's operators on lazy tensors.

Contract: a ufunc becomes one map whose dtypes are those of the loop numpy would choose
(`ufunc.resolve_dtypes`); where our table of functions would choose others, the operands are cast to numpy's
first, and where that does not help the call is refused.  ``reduce`` is known where the ufunc is an aggregate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from einsummable import dtypes, functions
from einsummable.dtypes import BF16, ScalarType
from einsummable.errors import DtypeError, ShapeError
from einsummable.lazy.handle import UFUNCS, Tensor, labels_of, loop, unsupported
from einsummable.lazy.inputs import as_tensor
from einsummable.lazy.reductions import reduce
from einsummable.scalar import ScalarBuilder, ScalarExpr

#: numpy's name of a ufunc → a row of `functions.FUNCTIONS`.  The last two are scipy's.
ROWS = {
    row.numpy.__name__: name for name, row in functions.FUNCTIONS.items() if isinstance(row.numpy, np.ufunc)
} | {"erf": "erf", "expit": "sigmoid"}

#: Aggregates by the name of the ufunc that is reduced.
AGGREGATES = {row.ufunc.__name__: name for name, row in functions.AGGREGATES.items()}

#: Operations on booleans by other names.
_LOGIC = {"logical_and": "mul", "logical_or": "maximum", "logical_xor": "ne"}
_BITWISE = {"bitwise_and": "mul", "bitwise_or": "maximum", "bitwise_xor": "ne"}


def _is_weak(value: Any) -> bool:
    """Return whether `value` is a scalar of Python's own (numpy's float64 is a float, too)."""
    return isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic)


def elementwise(row: str, *operands: Any) -> Tensor:
    """Return a row of the table of scalar functions of tensors, arrays and scalars, broadcast as in numpy.

    Parameters
    ----------
    row
        A name of the language: ``"gelu"``, ``"rsqrt"``, ``"where"``, ``"f32"`` …
    *operands
        At least one is a tensor or an array of one or more dimensions.

    Raises
    ------
    ShapeError
        The shapes do not broadcast.
    DtypeError
        The function has no meaning for these dtypes.
    """
    if row not in functions.FUNCTIONS or len(operands) != functions.FUNCTIONS[row].arity:
        raise unsupported(f"{row} of {len(operands)}")
    return _map(row, operands, [None] * len(operands))


def _map(row: str, operands: Sequence[Any], casts: Sequence[np.dtype | None]) -> Tensor:
    """Return the map of `row`, with the operands for which `casts` has a dtype cast to it."""
    b = ScalarBuilder()
    tensors: list[Tensor] = []
    args = []
    for operand, cast in zip(operands, casts, strict=True):
        if is_constant(operand):
            arg = _constant(b, operand)
        else:
            arg = b.arg(len(tensors))
            tensors.append(as_tensor(operand))
        args.append(arg if cast is None else b.call(dtypes.name(cast), arg))
    return broadcast_loop(tensors, b.build(b.call(row, *args)))


def broadcast_loop(tensors: Sequence[Tensor], join: ScalarExpr) -> Tensor:
    """Return the map `join` of tensors of shapes that broadcast."""
    try:
        shape = np.broadcast_shapes(*(t.shape for t in tensors))
    except ValueError:
        shapes = " and ".join(str(t.shape) for t in tensors)
        raise ShapeError(f"shapes {shapes} do not broadcast") from None
    out = labels_of(len(shape))
    extents = dict(zip(out, shape, strict=True))
    return loop(tensors, [out[len(out) - t.ndim :] for t in tensors], out, extents, join)


def is_constant(value: Any) -> bool:
    """Return whether `value` is written into the formula: a scalar that Python's numbers can hold."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        dtypes.kind(value.dtype)
        return value.dtype.char not in "gG" and not (value.dtype.kind == "u" and int(value) >= 2**63)
    return _is_weak(value)


def _narrowed(value: Any) -> Any:
    """Return an integer that no dtype holds as a float: where it meets integers, `_check_fits` refuses it."""
    return float(value) if type(value) is int and not dtypes.fits(value, dtypes.I64) else value


def _constant(b: ScalarBuilder, value: Any) -> int:
    if _is_weak(value):
        return b.const(_narrowed(value))
    python = {"b": bool, "i": int, "f": float, "c": complex}[dtypes.kind(value.dtype)](value)
    return b.call(dtypes.name(value.dtype), b.const(python))


def _weak_type(value: Any) -> Any:
    """Return what `ufunc.resolve_dtypes` takes for `value`: a dtype, or a Python type for a weak scalar."""
    if _is_weak(value):
        return np.dtype(bool) if isinstance(value, bool) else type(value)
    return value.dtype


def call(ufunc: np.ufunc, method: str, inputs: tuple, keywords: dict) -> Tensor:
    """Return the map or the reduction that a call of `ufunc` is."""
    inputs = tuple(
        x if _is_weak(x) or isinstance(x, Tensor | np.generic | np.ndarray) else np.asarray(x) for x in inputs
    )
    if method == "reduce" and ufunc.__name__ in AGGREGATES:
        return reduce(AGGREGATES[ufunc.__name__], *inputs, **{"axis": 0} | keywords)
    dtype = keywords.pop("dtype", None)
    if method != "__call__" or keywords:
        raise unsupported(f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else ""))
    if dtype is not None:
        inputs = tuple(x if _is_weak(x) else as_tensor(x).astype(dtype) for x in inputs)
    return _resolved(ROWS[ufunc.__name__], ufunc, inputs)


def _resolved(row: str, ufunc: np.ufunc, inputs: Sequence[Any]) -> Tensor:
    """Return the map `row` in the dtypes of the loop that `ufunc` chooses."""
    have = [None if _is_weak(x) else x.dtype for x in inputs]
    if BF16 in have or ufunc.__name__ in ("erf", "expit"):
        return _map(row, inputs, [None] * len(inputs))
    try:
        *wanted, result = ufunc.resolve_dtypes((*map(_weak_type, inputs), None))
    except TypeError:
        names = ", ".join("a Python scalar" if d is None else dtypes.name(d) for d in have)
        raise DtypeError(f"{ufunc.__name__} of {names} has no meaning") from None
    _check_fits(row, inputs, wanted)
    types = [
        dtypes.of_value(_narrowed(x)) if d is None else ScalarType(d)
        for x, d in zip(inputs, have, strict=True)
    ]
    for cast in (False, True):
        casts = [w if cast and w != h else None for w, h in zip(wanted, have, strict=True)]
        used = [t if c is None else ScalarType(c) for t, c in zip(types, casts, strict=True)]
        if _computes(row, used) == (*wanted, result):
            return _map(row, inputs, casts)
    names = " and ".join(map(dtypes.name, wanted))
    raise DtypeError(f"{ufunc.__name__} of {names}, as numpy computes it here, has no equal in the language")


def _computes(row: str, types: Sequence[ScalarType]) -> tuple[np.dtype, ...] | None:
    """Return the dtypes in which `row` computes, that of its result last; None where it has no meaning."""
    try:
        operands, result = functions.FUNCTIONS[row].rule(row, types)
    except DtypeError:
        return None  # of booleans, say, which numpy takes as small integers
    return (*(t.dtype for t in operands), result.dtype)


def _check_fits(row: str, inputs: Sequence[Any], wanted: Sequence[np.dtype]) -> None:
    for value, dtype in zip(inputs, wanted, strict=True):
        if type(value) is int and not dtypes.fits(value, dtype):
            raise dtypes.no_fit(value, dtype)
    if row == "pow" and dtypes.kind(wanted[0]) == "i" and isinstance(inputs[1], int) and inputs[1] < 0:
        raise DtypeError("an integer to a negative power is no integer: write x.astype('f8') ** p")


def _logical(ufunc: np.ufunc, method: str, inputs: tuple, keywords: dict) -> Tensor:
    """Return a logical function, or a bitwise one of booleans."""
    if method == "reduce" and ufunc.__name__ in AGGREGATES:
        return call(ufunc, method, inputs, keywords)
    if method != "__call__" or keywords:
        raise unsupported(f"np.{ufunc.__name__}")
    name = ufunc.__name__
    truths = [truth(x) for x in inputs]
    if (name in _BITWISE or name == "invert") and any(
        t is not x for t, x in zip(truths, inputs, strict=True)
    ):
        raise DtypeError(f"{name} is known of booleans only")
    if name in ("logical_not", "invert"):
        return _map("eq", (truths[0], False), (None, None))
    return _map((_LOGIC | _BITWISE)[name], truths, [None] * len(truths))


def truth(value: Any) -> Any:
    """Return `value` as a boolean: not zero."""
    if _is_weak(value):
        return bool(value)  # True and False are themselves
    return value if value.dtype == dtypes.BOOL else as_tensor(value).astype(bool)


def _positive(_ufunc: np.ufunc, method: str, inputs: tuple, keywords: dict) -> Tensor:
    if method != "__call__" or keywords or dtypes.kind(inputs[0].dtype) == "b":
        raise unsupported("np.positive")
    return as_tensor(inputs[0])


UFUNCS |= dict.fromkeys(ROWS, call)
UFUNCS |= dict.fromkeys((*_LOGIC, *_BITWISE, "logical_not", "invert"), _logical)
UFUNCS["positive"] = _positive
