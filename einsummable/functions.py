"""The closed tables of scalar functions and aggregates.

Contract: a row of `FUNCTIONS` is numpy's function and a dtype rule, which answers what the operands are
cast to and what the result is; a row of `AGGREGATES` is commutative and associative and has an identity.
Derivatives are rows of a table of their own, `autodiff.derivatives.RULES`.

>>> FUNCTIONS["exp"].rule("exp", [ScalarType(dtypes.I64)])[1]
ScalarType(dtype=dtype('float64'), weak=False)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from einsummable import dtypes
from einsummable.dtypes import ScalarType, kind, promote
from einsummable.errors import DtypeError, UnknownNameError, nearest

# ------------------------------------------------------------------------------------ functions

#: What a dtype rule answers: the types the operands are cast to, and the type of the result.
Rule = Callable[[str, Sequence[ScalarType]], tuple[tuple[ScalarType, ...], ScalarType]]


def _same(_fn: str, types: Sequence[ScalarType]) -> tuple[tuple[ScalarType, ...], ScalarType]:
    common = promote(types)
    return (common,) * len(types), common


def _number(fn: str, types: Sequence[ScalarType]) -> tuple[tuple[ScalarType, ...], ScalarType]:
    common = promote(types)
    if kind(common.dtype) == "b":
        raise DtypeError(f"{fn} of booleans has no meaning", notes=("write where(c, a, b), or i64(c)",))
    return (common,) * len(types), common


def _ordered(fn: str, types: Sequence[ScalarType]) -> tuple[tuple[ScalarType, ...], ScalarType]:
    common = promote(types)
    if kind(common.dtype) == "c":
        raise DtypeError(f"{fn} of complex numbers has no meaning: they have no order")
    return (common,) * len(types), common


def _compared(fn: str, types: Sequence[ScalarType]) -> tuple[tuple[ScalarType, ...], ScalarType]:
    operands, _ = (_same if fn in ("eq", "ne") else _ordered)(fn, types)
    return operands, ScalarType(dtypes.BOOL)


def _inexact(_fn: str, types: Sequence[ScalarType]) -> tuple[tuple[ScalarType, ...], ScalarType]:
    common = dtypes.inexact_of(promote(types))
    return (common,) * len(types), common


def _real_inexact(fn: str, types: Sequence[ScalarType]) -> tuple[tuple[ScalarType, ...], ScalarType]:
    _ordered(fn, types)
    return _inexact(fn, types)


def _test(fn: str, types: Sequence[ScalarType]) -> tuple[tuple[ScalarType, ...], ScalarType]:
    return _same(fn, types)[0], ScalarType(dtypes.BOOL)


def _magnitude(_fn: str, types: Sequence[ScalarType]) -> tuple[tuple[ScalarType, ...], ScalarType]:
    common = promote(types)
    return (common,) * len(types), ScalarType(dtypes.real_of(common.dtype), common.weak)


def _select(_fn: str, types: Sequence[ScalarType]) -> tuple[tuple[ScalarType, ...], ScalarType]:
    common = promote(types[1:])
    return (ScalarType(dtypes.BOOL), common, common), common


def _compose(fn: str, types: Sequence[ScalarType]) -> tuple[tuple[ScalarType, ...], ScalarType]:
    operands, real = _real_inexact(fn, types)
    return operands, ScalarType(dtypes.complex_of(real.dtype), real.weak)


def _cast_to(dtype: np.dtype) -> Rule:
    def rule(fn: str, types: Sequence[ScalarType]) -> tuple[tuple[ScalarType, ...], ScalarType]:
        if kind(types[0].dtype) == "c" and kind(dtype) not in "cb":
            raise DtypeError(
                f"{fn} of a complex number would drop its imaginary part", notes=("write real(x)",)
            )
        return tuple(types), ScalarType(dtype)

    return rule


def _erf(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf  # not numpy's, and slow to import

    # It has loops for float32 and float64 only.
    return erf(x.astype(np.float64, copy=False) if x.dtype.char == "g" else x).astype(x.dtype, copy=False)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # exp(-x) may be inf, and 1/inf is the right 0
        return (1 / (1 + np.exp(-x))).astype(x.dtype, copy=False)


def _gelu(x: np.ndarray) -> np.ndarray:
    return (0.5 * x * (1 + _erf(x * 0.7071067811865476))).astype(x.dtype, copy=False)


def _compose_parts(re: np.ndarray, im: np.ndarray) -> np.ndarray:
    out = np.empty(np.broadcast_shapes(np.shape(re), np.shape(im)), dtypes.complex_of(np.asarray(re).dtype))
    out.real, out.imag = re, im
    return out


@dataclass(frozen=True, slots=True)
class Function:
    """A row of the table of scalar functions: its arity, its meaning in numpy, its dtype rule.

    `cost` is how many additions take as long, about, in a loop whose data is in registers.
    """

    arity: int
    numpy: Callable[..., np.ndarray]
    rule: Rule
    transcendental: bool = False  # dear enough to be computed once where two einsummables need it
    cost: int = 1


FUNCTIONS: dict[str, Function] = {
    "add": Function(2, np.add, _same),
    "sub": Function(2, np.subtract, _number),
    "mul": Function(2, np.multiply, _same),
    "div": Function(2, np.true_divide, _inexact, cost=5),
    "pow": Function(2, np.power, _number, transcendental=True, cost=65),
    "neg": Function(1, np.negative, _number),
    "lt": Function(2, np.less, _compared),
    "le": Function(2, np.less_equal, _compared),
    "gt": Function(2, np.greater, _compared),
    "ge": Function(2, np.greater_equal, _compared),
    "eq": Function(2, np.equal, _compared),
    "ne": Function(2, np.not_equal, _compared),
    "exp": Function(1, np.exp, _inexact, transcendental=True, cost=25),
    "log": Function(1, np.log, _inexact, transcendental=True, cost=35),
    "sqrt": Function(1, np.sqrt, _inexact, cost=15),
    "rsqrt": Function(1, lambda x: np.reciprocal(np.sqrt(x)), _inexact, cost=25),
    "square": Function(1, np.square, _same),
    "abs": Function(1, np.absolute, _magnitude),
    "sign": Function(1, np.sign, _number),
    "relu": Function(1, lambda x: np.maximum(x, x.dtype.type(0)), _ordered),
    "tanh": Function(1, np.tanh, _inexact, transcendental=True, cost=35),
    "sigmoid": Function(1, _sigmoid, _real_inexact, transcendental=True, cost=35),
    "silu": Function(1, lambda x: x * _sigmoid(x), _real_inexact, transcendental=True, cost=35),
    "gelu": Function(1, _gelu, _real_inexact, transcendental=True, cost=350),
    "erf": Function(1, _erf, _real_inexact, transcendental=True, cost=350),
    "sin": Function(1, np.sin, _inexact, transcendental=True, cost=50),
    "cos": Function(1, np.cos, _inexact, transcendental=True, cost=50),
    "floor": Function(1, np.floor, _ordered),
    "where": Function(3, np.where, _select),
    "minimum": Function(2, np.minimum, _ordered),
    "maximum": Function(2, np.maximum, _ordered),
    "isnan": Function(1, np.isnan, _test),
    "conj": Function(1, np.conjugate, _same),
    "real": Function(1, np.real, _magnitude),
    "imag": Function(1, np.imag, _magnitude),
    "complex": Function(2, _compose_parts, _compose),
    "stop_gradient": Function(1, lambda x: x, _same),
} | {
    name: Function(1, lambda x, d=dtype: x.astype(d), _cast_to(dtype))
    for name, dtype in (dtypes.NAMED | dtypes.UNNAMED).items()
}


# ----------------------------------------------------------------------------------- aggregates


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A row of the table of aggregates: commutative, associative, with an identity."""

    ufunc: np.ufunc
    identity: Callable[[np.dtype], object]
    ordered: bool = False  # needs an order, so no complex numbers


def _lowest(dtype: np.dtype) -> object:
    if kind(dtype) == "b":
        return False
    return -np.inf if kind(dtype) == "f" else np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> object:
    if kind(dtype) == "b":
        return True
    return np.inf if kind(dtype) == "f" else np.iinfo(dtype).max


AGGREGATES: dict[str, Aggregate] = {
    "sum": Aggregate(np.add, lambda _: 0),
    "prod": Aggregate(np.multiply, lambda _: 1),
    "max": Aggregate(np.maximum, _lowest, ordered=True),
    "min": Aggregate(np.minimum, _highest, ordered=True),
    "any": Aggregate(np.logical_or, lambda _: False),
    "all": Aggregate(np.logical_and, lambda _: True),
}


def aggregate_dtype(aggregate: str, dtype: np.dtype) -> np.dtype:
    """Return the dtype of an aggregate of `dtype`: its own; a sum or product of booleans counts (int64)."""
    if aggregate not in AGGREGATES:
        raise UnknownNameError(f"{aggregate!r} is no aggregate", notes=nearest(aggregate, AGGREGATES))
    if AGGREGATES[aggregate].ordered and kind(dtype) == "c":
        raise DtypeError(f"{aggregate} of complex numbers has no meaning: they have no order")
    if aggregate in ("any", "all"):
        return dtypes.BOOL
    return dtypes.I64 if aggregate in ("sum", "prod") and dtype == dtypes.BOOL else dtype
