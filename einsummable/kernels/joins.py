"""A join as straight-line numpy code: registers and steps.

Contract: `compile_join` turns a scalar expression into registers (sources, then one for each numpy call) and
the steps that fill them, with the casts that `scalar.infer` asks for written out, each value computed once.
Every register knows the labels its value depends on, so no step works on more than it must.  Which step may
write over an operand, into a buffer, or straight into the result is decided by who runs the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from einsummable import dtypes, scalar
from einsummable.dtypes import ScalarType, kind
from einsummable.functions import FUNCTIONS
from einsummable.scalar import Arg, Call, Const, Label, Param, ScalarExpr, Typed


@dataclass(frozen=True, slots=True)
class Step:
    """One numpy call.

    Attributes
    ----------
    function, operands
        What is called, and the registers it reads.
    takes_out
        Whether it takes ``out=`` of its own dtype, and without it makes an array of its own.
    in_place
        Whether ``out=`` may be one of its operands.
    """

    function: Callable[..., np.ndarray]
    operands: tuple[int, ...]
    takes_out: bool
    in_place: bool


#: What fills a register: an input, a label's values, a literal, a scalar of the caller, or a step.
Source: TypeAlias = Arg | Label | Const | Param | Step


@dataclass(frozen=True, slots=True)
class Register:
    """A value: where it comes from, the labels it depends on, its dtype."""

    source: Source
    labels: frozenset[str]
    dtype: np.dtype


def _relu(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.maximum(x, x.dtype.type(0), out=out)


def _rsqrt(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.reciprocal(np.sqrt(x, out=out), out=out)


def _sigmoid(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    one = x.dtype.type(1)
    out = np.exp(np.negative(x, out=out), out=out)
    room = out if isinstance(out, np.ndarray) else None  # of a 0-d array numpy makes a scalar
    return np.divide(one, np.add(one, out, out=room), out=room)


def _silu(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.multiply(x, _sigmoid(x, out), out=out)


def _where(c: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    if out is None:
        return np.where(c, a, b)
    np.copyto(out, b)
    np.copyto(out, a, where=c)
    return out


#: Functions of the table that are no ufuncs, rewritten to work in the memory they are given.
_INTO: dict[str, tuple[Callable[..., np.ndarray], bool]] = {
    "relu": (_relu, True),
    "rsqrt": (_rsqrt, True),
    "sigmoid": (_sigmoid, True),
    # These read an operand again after they have written.
    "silu": (_silu, False),
    "where": (_where, False),
}


_CASTS = dtypes.NAMED | dtypes.UNNAMED


class _Compiler:
    def __init__(self) -> None:
        self.registers: list[Register] = []
        self._casts: dict[tuple[int, np.dtype], int] = {}

    def add(self, source: Source, labels: frozenset[str], dtype: np.dtype) -> int:
        self.registers.append(Register(source, labels, dtype))
        return len(self.registers) - 1

    def cast(self, r: int, dtype: np.dtype) -> int:
        register = self.registers[r]
        if register.dtype == dtype:
            return r
        if (r, dtype) not in self._casts:
            step = Step(_caster(dtype), (r,), takes_out=True, in_place=False)
            self._casts[r, dtype] = self.add(step, register.labels, dtype)
        return self._casts[r, dtype]

    def call(self, op: Call, typed: Typed, done: list[int]) -> int:
        if op.fn == "stop_gradient":
            return done[op.args[0]]  # no array of its own
        row = FUNCTIONS[op.fn]
        operands = tuple(self.cast(done[a], d) for a, d in zip(op.args, typed.operands, strict=True))
        function, takes_out, in_place = row.numpy, isinstance(row.numpy, np.ufunc), True
        if op.fn in _INTO:
            (function, in_place), takes_out = _INTO[op.fn], True
        elif op.fn in _CASTS:
            function, takes_out, in_place = _caster(typed.type.dtype), True, False
        if op.fn == "pow" and self._is_two(operands[1]) and kind(typed.type.dtype) != "c":
            function, operands = np.square, operands[:1]
        labels = frozenset[str]().union(*(self.registers[r].labels for r in operands))
        # What numpy makes of it: int8 for the square of a bool.
        with np.errstate(all="ignore"):
            made = np.asarray(function(*(np.ones(1, self.registers[r].dtype) for r in operands))).dtype
        result = self.add(Step(function, operands, takes_out, in_place), labels, made)
        return self.cast(result, typed.type.dtype)

    def _is_two(self, r: int) -> bool:
        uncast = next((before for (before, _), after in self._casts.items() if after == r), r)
        source = self.registers[uncast].source
        return isinstance(source, Const) and source.value == 2


def _caster(dtype: np.dtype) -> Callable[..., np.ndarray]:
    def cast(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        if out is None:
            return x.astype(dtype)
        np.copyto(out, x, casting="unsafe")
        return out

    return cast


def compile_join(
    join: ScalarExpr,
    labels: tuple[tuple[str, ...], ...],
    args: tuple[np.dtype, ...],
    params: tuple[tuple[str, ScalarType], ...],
    result: np.dtype | None = None,
) -> tuple[Register, ...]:
    """Return the registers of `join`, in an order in which they can be filled; the last is its value.

    Parameters
    ----------
    labels, args
        Labels and dtype of each input.
    result
        The dtype the value is cast to at the end; that of the join itself if None.
    """
    compiler = _Compiler()
    done: list[int] = []
    for op, typed in zip(join.ops, scalar.infer(join, args, params), strict=True):
        match op:
            case Arg(index):
                done.append(compiler.add(op, frozenset(labels[index]), args[index]))
            case Label(name):
                done.append(compiler.add(op, frozenset((name,)), typed.type.dtype))
            case Const() | Param():
                done.append(compiler.add(op, frozenset(), typed.type.dtype))
            case Call():
                done.append(compiler.call(op, typed, done))
    last = done[-1] if result is None else compiler.cast(done[-1], result)
    return tuple(compiler.registers[: last + 1])
