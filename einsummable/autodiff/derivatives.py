"""Derivatives of scalar functions: a rule for each argument of each row of `functions.FUNCTIONS`.

Contract: a rule takes the cotangent of a call, its arguments and its result, and answers the cotangent of
one argument.  Cotangents of complex numbers are ``dL/dRe + i*dL/dIm`` of a real L, as in PyTorch (and the
conjugate of JAX's): stepping against them makes L smaller, and for a holomorphic f the rule is
``g * conj(f'(x))``.  Where a function has a corner, ties are shared evenly (`maximum`) and the slope is 0
(`abs`, `relu`, `sign`, `floor`).  `pull_back` goes through a whole expression, last operation first.

>>> from einsummable.scalar import infer
>>> b = ScalarBuilder()
>>> x = b.arg(1)
>>> tanh = b.build(b.call("tanh", x))
>>> types = infer(tanh, (dtypes.F32,) * 2)
>>> found = pull_back(b, tanh, types, {1: Value(b, x)}, Value(b, b.arg(0)))
>>> b.build(found[1].id).format(["g", "x"])
'g*(1 - square(tanh(x)))'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from einsummable import dtypes
from einsummable.dtypes import kind
from einsummable.scalar import Arg, Call, Const, ScalarBuilder, ScalarExpr, Typed


@dataclass(frozen=True, slots=True)
class Value:
    """An operation of a `ScalarBuilder` to calculate with; what multiplies by 1 or adds 0 appends nothing.

    A product with ``where(c, x, 0)`` becomes ``where(c, product, 0)``, so that what is masked stays 0 even
    where the other factor is infinite.
    """

    builder: ScalarBuilder
    id: int
    is_complex: bool = False

    @property
    def const(self) -> complex | None:
        """The number that it is, if it is a literal."""
        op = self.builder[self.id]
        return op.value if isinstance(op, Const) else None

    def lift(self, value: Value | complex) -> Value:
        """Return `value`, a number perhaps, as an operation of the same builder."""
        if isinstance(value, Value):
            return value
        return Value(self.builder, self.builder.const(value), isinstance(value, complex))

    def call(self, fn: str, *others: Value | complex) -> Value:
        """Return a function of this and others, complex where one of them is."""
        values = [self, *map(self.lift, others)]
        i = self.builder.call(fn, *(v.id for v in values))
        return Value(self.builder, i, any(v.is_complex for v in values))

    def _operands(self, fn: str) -> tuple[Value, ...] | None:
        op = self.builder[self.id]
        if not isinstance(op, Call) or op.fn != fn:
            return None
        return tuple(replace(self, id=a) for a in op.args)

    def _masked(self, within: Callable[[Value], Value]) -> Value | None:
        """Return ``where(c, within(x), 0)`` if this is ``where(c, x, 0)``."""
        parts = self._operands("where")
        if parts is None or parts[2].const != 0:
            return None
        return where(parts[0], within(parts[1]), 0)

    def _multiple(self) -> tuple[float, Value]:
        """Return n and x such that this is ``n*x``."""
        factors = self._operands("mul")
        if factors is None or not isinstance(factors[0].const, int | float):
            return 1, self
        return factors[0].const, factors[1]

    def __mul__(self, other: Value | complex) -> Value:
        other = self.lift(other)
        for a, b in ((self, other), (other, self)):
            if a.const == 1 or b.const == 0:
                return b
            if a.const == -1:
                return -b
        if (masked := self._masked(lambda x: x * other) or other._masked(lambda x: self * x)) is not None:
            return masked
        for a, b in ((self, other), (other, self)):
            if a.const is not None and b.const is not None:
                return self.lift(a.const * b.const)
            if a.const is not None and (factors := b._operands("mul")) and factors[0].const is not None:
                return (a.const * factors[0].const) * factors[1]
            if (negated := a._operands("neg")) is not None:
                return -(negated[0] * b)
        return self.call("mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Value | complex) -> Value:
        other = self.lift(other)
        if other.const == 1 or self.const == 0:
            return self
        if self.const is not None and other.const:
            return self.lift(self.const / other.const)
        if (masked := self._masked(lambda x: x / other)) is not None:
            return masked
        if (negated := self._operands("neg")) is not None:
            return -(negated[0] / other)
        return self.call("div", other)

    def __neg__(self) -> Value:
        if (negated := self._operands("neg")) is not None:
            return negated[0]
        if self.const is not None:
            return self.lift(-self.const)
        if (factors := self._operands("mul")) is not None and factors[0].const is not None:
            return -factors[0].const * factors[1]
        masked = self._masked(lambda x: -x)
        return masked if masked is not None else self.call("neg")

    def __add__(self, other: Value | complex) -> Value:
        other = self.lift(other)
        if self.const == 0:
            return other
        if other.const == 0:
            return self
        if (negated := other._operands("neg")) is not None:
            return self.call("sub", negated[0])
        if (negated := self._operands("neg")) is not None:
            return other.call("sub", negated[0])
        (n, mine), (m, others) = self._multiple(), other._multiple()
        return (n + m) * mine if mine == others else self.call("add", other)

    __radd__ = __add__

    def __sub__(self, other: Value | complex) -> Value:
        return self + -self.lift(other)

    def __rsub__(self, other: Value | complex) -> Value:
        return self.lift(other) + -self

    def conj(self) -> Value:
        """Return the complex conjugate; of a real number that is itself."""
        return self.call("conj") if self.is_complex else self

    def real(self) -> Value:
        """Return the real part."""
        return replace(self.call("real"), is_complex=False) if self.is_complex else self

    def imag(self) -> Value:
        """Return the imaginary part."""
        return replace(self.call("imag"), is_complex=False) if self.is_complex else self.lift(0)


def where(condition: Value, x: Value | complex, y: Value | complex) -> Value:
    """Return ``where(condition, x, y)``."""
    x, y = condition.lift(x), condition.lift(y)
    if x.const == y.const == 0:
        return x
    i = condition.builder.call("where", condition.id, x.id, y.id)
    return Value(condition.builder, i, x.is_complex or y.is_complex)


# ---------------------------------------------------------------------------------------- rules

#: From the cotangent of a call, its arguments and its result to the cotangent of one argument.
Rule = Callable[[Value, Sequence[Value], Value], Value]


def _holomorphic(derivative: Callable[[Value, Value], Value]) -> tuple[Rule, ...]:
    """Return the rule of a function of one argument from its derivative, in terms of argument and result."""
    return (lambda g, x, y: g * derivative(x[0], y).conj(),)


def _base(g: Value, x: Sequence[Value], _y: Value) -> Value:
    base, exponent = x
    n = exponent.const
    if n is None:  # 0 * 0**-1 would be nan
        lowered = base.call("pow", where(exponent.call("eq", 0), 1, exponent - 1))
    elif n in (0, 1):
        return g * n
    else:
        lowered = base if n == 2 else base.call("pow", n - 1)
    return g * (exponent * lowered).conj()


def _exponent(g: Value, x: Sequence[Value], y: Value) -> Value:
    log = where(x[0].call("ne", 0), x[0].call("log"), 0)
    return g * (log * y).conj()


def _sign(g: Value, x: Sequence[Value], y: Value) -> Value:
    if not x[0].is_complex:
        return g * 0
    # Of z/|z| only the turning counts: what is at right angles to y, over the distance from 0.
    return where(x[0].call("ne", 0), (g - y * (y.conj() * g).real()) / x[0].call("abs"), 0)


def _extreme(better: str) -> tuple[Rule, ...]:
    def rule(k: int) -> Rule:
        def share(g: Value, x: Sequence[Value], _y: Value) -> Value:
            mine, other = x[k], x[1 - k]
            return where(mine.call(better, other), g, where(mine.call("eq", other), g * 0.5, 0))

        return share

    return rule(0), rule(1)


def _bell(x: Value, width: float) -> Value:
    """Return ``exp(-x**2 / width)``."""
    return (-(x.call("square") / width)).call("exp")


def _silu(x: Value, _y: Value) -> Value:
    s = x.call("sigmoid")
    return s * (1 + x * (1 - s))


def _gelu(x: Value, _y: Value) -> Value:
    below = 0.5 * (1 + (x * math.sqrt(0.5)).call("erf"))
    return below + x * _bell(x, 2) * (1 / math.sqrt(2 * math.pi))


def _keep(g: Value, _x: Sequence[Value], _y: Value) -> Value:
    return g


#: For every function a rule for each argument; None where the derivative is 0 or there is none.
RULES: dict[str, tuple[Rule | None, ...]] = {
    "add": (_keep, _keep),
    "sub": (_keep, lambda g, _x, _y: -g),
    "mul": (lambda g, x, _: g * x[1].conj(), lambda g, x, _: g * x[0].conj()),
    "div": (lambda g, x, _: g / x[1].conj(), lambda g, x, y: -(g * y.conj() / x[1].conj())),
    "pow": (_base, _exponent),
    "neg": (lambda g, _x, _y: -g,),
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), (None, None)),
    "exp": _holomorphic(lambda _, y: y),
    "log": (lambda g, x, _: g / x[0].conj(),),
    "sqrt": (lambda g, _, y: g * 0.5 / y.conj(),),
    "rsqrt": (lambda g, x, y: g * -0.5 * y.conj() / x[0].conj(),),
    "square": _holomorphic(lambda x, _: 2 * x),
    "abs": (lambda g, x, _: g * x[0].call("sign"),),
    "sign": (_sign,),
    "relu": (lambda g, x, _: where(x[0].call("gt", 0), g, 0),),
    "tanh": _holomorphic(lambda _, y: 1 - y.call("square")),
    "sigmoid": _holomorphic(lambda _, y: y * (1 - y)),
    "silu": _holomorphic(_silu),
    "gelu": _holomorphic(_gelu),
    "erf": _holomorphic(lambda x, _: _bell(x, 1) * (2 / math.sqrt(math.pi))),
    "sin": _holomorphic(lambda x, _: x.call("cos")),
    "cos": _holomorphic(lambda x, _: -x.call("sin")),
    "floor": (None,),
    "where": (None, lambda g, x, _: where(x[0], g, 0), lambda g, x, _: where(x[0], 0, g)),
    "minimum": _extreme("lt"),
    "maximum": _extreme("gt"),
    "isnan": (None,),
    "conj": (lambda g, _x, _y: g.conj(),),
    "real": (_keep,),
    "imag": (lambda g, x, _: g * 1j if x[0].is_complex else g * 0,),
    "complex": (lambda g, _x, _y: g.real(), lambda g, _x, _y: g.imag()),
    "stop_gradient": (None,),
} | dict.fromkeys(dtypes.NAMED | dtypes.UNNAMED, (_keep,))


def depends(expr: ScalarExpr, types: Sequence[Typed], wanted: frozenset[int]) -> list[bool]:
    """Return for each operation whether its derivative by one of the inputs `wanted` may be other than 0."""
    found: list[bool] = []
    for op, typed in zip(expr.ops, types, strict=True):
        match op:
            case Arg(index):
                found.append(index in wanted)
            case Call(fn, args):
                rules = RULES[fn]
                found.append(any(found[a] and rule is not None for a, rule in zip(args, rules, strict=True)))
            case _:
                found.append(False)
        found[-1] = found[-1] and kind(typed.type.dtype) in "fc"
    return found


def inline(b: ScalarBuilder, expr: ScalarExpr, types: Sequence[Typed], args: Sequence[int]) -> list[Value]:
    """Append all of `expr` to `b`, with operation ``args[i]`` for its i-th input; return its operations."""
    values: list[Value] = []
    for op, typed in zip(expr.ops, types, strict=True):
        match op:
            case Arg(index):
                i = args[index]
            case Call(fn, operands):
                i = b.call(fn, *(values[a].id for a in operands))
            case _:
                i = b.inline(ScalarExpr((op,)), ())
        values.append(Value(b, i, kind(typed.type.dtype) == "c"))
    return values


def _as_float(value: Value, typed: Typed, operand: np.dtype) -> Value:
    """Return an argument that is cast to a float where the call casts it: 1 times a boolean is none."""
    casts = not typed.type.weak and kind(typed.type.dtype) in "bi" and kind(operand) in "fc"
    return replace(value.call(dtypes.name(operand)), is_complex=kind(operand) == "c") if casts else value


def pull_back(
    b: ScalarBuilder,
    expr: ScalarExpr,
    types: Sequence[Typed],
    args: Mapping[int, Value],
    cotangent: Value,
    wanted: frozenset[int] | None = None,
    result: Value | None = None,
) -> dict[int, Value]:
    """Return the cotangents of inputs of `expr`, as operations of `b`; those that are 0 are left out.

    Parameters
    ----------
    types
        What `infer` answered for `expr`.
    args
        The inputs, as operations of `b`.
    cotangent
        That of the result.
    wanted
        The inputs whose cotangents are wanted: all if None.
    result
        The value of `expr`, where it need not be computed again.
    """
    wanted = frozenset(args) if wanted is None else wanted
    matters = depends(expr, types, wanted)
    size = max(args, default=-1) + 1
    values = inline(b, expr, types, [args[i].id if i in args else -1 for i in range(size)])
    if result is not None:
        values[-1] = result
    found = {len(values) - 1: cotangent}
    by_input: dict[int, Value] = {}
    for i in range(len(values) - 1, -1, -1):
        g, op = found.pop(i, None), expr.ops[i]
        if g is None or not matters[i]:
            continue
        if isinstance(op, Arg):
            by_input[op.index] = g + by_input[op.index] if op.index in by_input else g
        elif isinstance(op, Call):
            x = [_as_float(values[a], types[a], d) for a, d in zip(op.args, types[i].operands, strict=True)]
            for a, rule in zip(op.args, RULES[op.fn], strict=True):
                if matters[a] and rule is not None:
                    given = rule(g, x, values[i])
                    given = given if values[a].is_complex else given.real()
                    if given.const != 0:
                        found[a] = found[a] + given if a in found else given
    return by_input
