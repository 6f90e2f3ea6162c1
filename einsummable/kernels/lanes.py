"""A join as vector instructions: what LLVM is told to compute for one register full of elements.

Contract: `Lanes` emits one operation at a time, on vectors or on scalars, of those that `nest.supported` lets
through, with the meaning that `scalar.evaluate` gives it: nan and infinities included.  No operation is
reassociated; only a product that is summed may be rounded once (`fmuladd`).  exp is Cody and Waite's
reduction by ln 2 and the series of exp, to a unit in the last place.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import factorial

import numpy as np
from llvmlite import ir

from einsummable.dtypes import BOOL, F32, F64, I64
from einsummable.kernels.nest import CASTS, COMPARISONS, FLOATS


def element(dtype: np.dtype) -> ir.Type:
    """Return LLVM's type of one element in a register: a boolean is one bit there."""
    if dtype == BOOL:
        return ir.IntType(1)
    if dtype in FLOATS:
        return ir.FloatType() if dtype == F32 else ir.DoubleType()
    return ir.IntType(8 * dtype.itemsize)


def memory(dtype: np.dtype) -> ir.Type:
    """Return LLVM's type of one element in memory."""
    return ir.IntType(8) if dtype == BOOL else element(dtype)


class Lanes:
    """Emits operations into `builder`; `width` lanes make a vector."""

    def __init__(self, builder: ir.IRBuilder, width: int) -> None:
        self.b, self.width = builder, width

    # ----------------------------------------------------------------------- values and shapes

    def constant(self, value: complex, dtype: np.dtype, like: ir.Value | None = None) -> ir.Constant:
        """Return a literal of `dtype`, a vector where `like` is one."""
        one = ir.Constant(element(dtype), _exactly(value, dtype))
        if like is None or not isinstance(like.type, ir.VectorType):
            return one
        return ir.Constant(ir.VectorType(one.type, like.type.count), [one] * like.type.count)

    def spread(self, x: ir.Value) -> ir.Value:
        """Return `x` in every lane."""
        if isinstance(x.type, ir.VectorType):
            return x
        vector = ir.VectorType(x.type, self.width)
        first = self.b.insert_element(ir.Constant(vector, ir.Undefined), x, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.width), [0] * self.width)
        return self.b.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)

    def alike(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        """Return `values`, all of them vectors if one is."""
        if any(isinstance(x.type, ir.VectorType) for x in values):
            return [self.spread(x) for x in values]
        return list(values)

    def intrinsic(self, name: str, *args: ir.Value) -> ir.Value:
        """Return a call of an LLVM intrinsic of the type of its first argument."""
        type_ = args[0].type
        made = self.b.module.declare_intrinsic(
            f"llvm.{name}.{_mangled(type_)}", (), ir.FunctionType(type_, [a.type for a in args])
        )
        return self.b.call(made, args)

    # ------------------------------------------------------------------------------ operations

    def cast(self, x: ir.Value, source: np.dtype, target: np.dtype) -> ir.Value:
        """Return `x` of dtype `source` as `target`."""
        if source == target:
            return x
        type_ = element(target)
        if isinstance(x.type, ir.VectorType):
            type_ = ir.VectorType(type_, x.type.count)
        if target == BOOL:
            return self.compare("!=", x, self.constant(0, source, x), source)
        if source == BOOL:
            return self.b.uitofp(x, type_) if target in FLOATS else self.b.zext(x, type_)
        if source in FLOATS:
            return self.b.fpext(x, type_) if target == F64 else self.b.fptrunc(x, type_)
        if target in FLOATS:
            return self.b.sitofp(x, type_)
        return self.b.sext(x, type_) if target == I64 else self.b.trunc(x, type_)

    def compare(self, symbol: str, x: ir.Value, y: ir.Value, dtype: np.dtype) -> ir.Value:
        """Return where a comparison holds; with nan only ``!=`` does."""
        if dtype in FLOATS:
            return (self.b.fcmp_unordered if symbol == "!=" else self.b.fcmp_ordered)(symbol, x, y)
        return (self.b.icmp_unsigned if dtype == BOOL else self.b.icmp_signed)(symbol, x, y)

    def extreme(
        self, symbol: str, x: ir.Value, best: ir.Value, dtype: np.dtype, *, ordered: bool = False
    ) -> ir.Value:
        """Return the one of `x` and `best` that is less (or greater), nan if either is and may be."""
        if dtype == BOOL:
            return self.b.and_(x, best) if symbol == "<" else self.b.or_(x, best)
        better = self.b.select(self.compare(symbol, x, best, dtype), x, best)
        if dtype not in FLOATS or ordered:
            return better
        return self.b.select(self.b.fcmp_unordered("uno", x, x), x, better)

    def call(self, fn: str, x: Sequence[ir.Value], dtype: np.dtype, result: np.dtype) -> ir.Value:
        """Return `fn` of operands of `dtype` (that of the last one)."""
        x = self.alike(x)
        real = dtype in FLOATS
        if fn in CASTS:
            return self.cast(x[0], dtype, result)
        if fn in COMPARISONS:
            return self.compare(COMPARISONS[fn], x[0], x[1], dtype)
        match fn:
            case "add" | "mul" | "sub":
                return self.arithmetic(fn, x[0], x[1], dtype)
            case "square" | "pow":
                return self.arithmetic("mul", x[0], x[0], dtype)
            case "div":
                return self.b.fdiv(x[0], x[1])
            case "neg":
                return self.b.fneg(x[0]) if real else self.b.neg(x[0])
            case "where":
                return self.b.select(x[0], x[1], x[2])
            case "minimum" | "maximum":
                return self.extreme("<" if fn == "minimum" else ">", x[0], x[1], dtype)
            case "relu":
                return self.extreme(">", x[0], self.constant(0, dtype, x[0]), dtype)
            case "abs":
                if real:
                    return self.intrinsic("fabs", x[0])
                negative = self.compare("<", x[0], self.constant(0, dtype, x[0]), dtype)
                return self.b.select(negative, self.b.neg(x[0]), x[0])
            case "conj" | "real" | "stop_gradient":
                return x[0]
            case "isnan":
                return self.b.fcmp_unordered("uno", x[0], x[0])
        return self._of_floats(fn, x[0], dtype)

    def arithmetic(self, fn: str, x: ir.Value, y: ir.Value, dtype: np.dtype) -> ir.Value:
        """Return a sum, difference or product; of booleans or, and."""
        if dtype == BOOL:
            return self.b.or_(x, y) if fn == "add" else self.b.and_(x, y)
        return getattr(self.b, f"f{fn}" if dtype in FLOATS else fn)(x, y)

    def _of_floats(self, fn: str, x: ir.Value, dtype: np.dtype) -> ir.Value:
        one, zero = self.constant(1, dtype, x), self.constant(0, dtype, x)
        match fn:
            case "exp":
                return self.exp(x, dtype)
            case "sqrt" | "floor":
                return self.intrinsic(fn, x)
            case "rsqrt":
                return self.b.fdiv(one, self.intrinsic("sqrt", x))
            case "sigmoid":
                return self.b.fdiv(one, self.b.fadd(one, self.exp(self.b.fneg(x), dtype)))
            case "silu":
                return self.b.fdiv(x, self.b.fadd(one, self.exp(self.b.fneg(x), dtype)))
            case "sign":
                minus = self.b.select(self.compare("<", x, zero, dtype), self.b.fneg(one), x)
                return self.b.select(self.compare(">", x, zero, dtype), one, minus)
        raise NotImplementedError(fn)

    def exp(self, x: ir.Value, dtype: np.dtype) -> ir.Value:
        """Return the exponential: ``2**n * exp(r)`` with ``x = n*ln 2 + r``, ``|r| <= ln(2)/2``."""
        bits, mantissa, low, high, terms, short = (
            (32, 23, -104.0, 89.0, 7, 12) if dtype == F32 else (64, 52, -746.0, 710.0, 13, 32)
        )

        def k(value: float) -> ir.Constant:
            return self.constant(value, dtype, x)

        # Beyond these the result is 0 or inf whatever x is; nan stays.
        x = self.b.select(self.compare("<", x, k(low), dtype), k(low), x)
        x = self.b.select(self.compare(">", x, k(high), dtype), k(high), x)
        # Added to this number, a float is rounded to a whole one, which stands in its lowest bits.
        shift = 1.5 * 2.0**mantissa
        shifted = self.intrinsic("fmuladd", x, k(1 / _LN2), k(shift))
        n = self.b.fsub(shifted, k(shift))
        coarse = _LN2 // Fraction(1, 1 << short) * Fraction(1, 1 << short)  # times n it is exact
        r = self.intrinsic("fmuladd", n, k(-coarse), x)
        r = self.intrinsic("fmuladd", n, k(coarse - _LN2), r)
        series = k(1 / factorial(terms))
        for i in range(terms - 1, -1, -1):
            series = self.intrinsic("fmuladd", series, r, k(1 / factorial(i)))
        whole = ir.IntType(bits)
        if isinstance(x.type, ir.VectorType):
            whole = ir.VectorType(whole, x.type.count)
        power = self.b.sub(self.b.bitcast(shifted, whole), self.b.bitcast(k(shift), whole))
        # In two factors, so that what is denormal or overflows does so in the last multiplication.
        half = self.b.ashr(power, _whole(1, whole))
        for part in (half, self.b.sub(power, half)):
            biased = self.b.add(part, _whole((1 << (bits - mantissa - 2)) - 1, whole))
            factor = self.b.bitcast(self.b.shl(biased, _whole(mantissa, whole)), x.type)
            series = self.b.fmul(series, factor)
        return series


_LN2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009493393621969694")


def _exactly(value: complex, dtype: np.dtype) -> float | int:
    if dtype in FLOATS:
        return float(dtype.type(float(value)))
    return int(bool(value)) if dtype == BOOL else int(np.asarray(value).astype(dtype))


def _whole(value: int, type_: ir.Type) -> ir.Constant:
    if isinstance(type_, ir.VectorType):
        return ir.Constant(type_, [value] * type_.count)
    return ir.Constant(type_, value)


def _mangled(type_: ir.Type) -> str:
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{_mangled(type_.element)}"
    if isinstance(type_, ir.IntType):
        return f"i{type_.width}"
    return "f32" if isinstance(type_, ir.FloatType) else "f64"
