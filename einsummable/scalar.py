"""Scalar expressions: what a join computes for one combination of label values.

Contract: a `ScalarExpr` is flat, a tuple of operations in which each reads only earlier ones; the last is
the result.  What functions mean is in the tables of `functions`.  `infer`
gives every operation its type, and the dtypes its operands are cast to, so that evaluating an expression
never depends on how numpy would promote arrays of labels or constants.

>>> b = ScalarBuilder()
>>> e = b.build(b.call("exp", b.call("sub", b.arg(0), b.arg(1))))
>>> e.format(["x", "y"])
'exp(x - y)'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from einsummable import dtypes
from einsummable.codec import register_union
from einsummable.dtypes import ScalarType
from einsummable.errors import DtypeError, ShapeError, UnknownNameError, nearest
from einsummable.functions import FUNCTIONS

# ---------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Arg:
    """The element of the `index`-th input."""

    index: int


@dataclass(frozen=True, slots=True)
class Label:
    """The value of a label: its index, an integer from 0."""

    name: str


@dataclass(frozen=True, slots=True)
class Const:
    """A literal, kept as Python's ``repr``: 1, 1.0, True, -0.0, nan all differ and all equal themselves."""

    literal: str

    @property
    def value(self) -> bool | int | float | complex:
        """The Python value."""
        return _literal(self.literal)


@dataclass(frozen=True, slots=True)
class Param:
    """A scalar of the caller's scope, read when the program runs."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """`fn` (a row of `FUNCTIONS`) of the results of earlier operations."""

    fn: str
    args: tuple[int, ...]


Op = register_union(Arg | Label | Const | Param | Call)


@cache
def _literal(text: str) -> bool | int | float | complex:
    if text in ("True", "False"):
        return text == "True"
    for python in (int, float, complex):
        try:
            return python(text)
        except ValueError:
            continue
    raise DtypeError(f"{text!r} is no number")


@dataclass(frozen=True, slots=True)
class ScalarExpr:
    """A flat scalar expression; `ops[-1]` is its result."""

    ops: tuple[Op, ...]

    @property
    def is_copy(self) -> bool:
        """Whether this is just its first input."""
        return self.ops in ((Arg(0),), (Arg(0), Call("stop_gradient", (0,))))

    @property
    def labels(self) -> frozenset[str]:
        """The labels used as values."""
        return frozenset(op.name for op in self.ops if isinstance(op, Label))

    @property
    def params(self) -> frozenset[str]:
        """The names of the caller's scalars it reads."""
        return frozenset(op.name for op in self.ops if isinstance(op, Param))

    def factors(self) -> tuple[int, ...] | None:
        """Return the inputs whose plain product this is (each once, in order of use), else None."""
        found: list[int] = []
        stack = [len(self.ops) - 1]
        while stack:
            match self.ops[stack.pop()]:
                case Arg(index):
                    found.append(index)
                case Call("mul", args):
                    stack += reversed(args)
                case _:
                    return None
        return tuple(found) if len(set(found)) == len(found) else None

    def format(self, args: Sequence[str]) -> str:
        """Return the expression as the language writes it, with `args` for the inputs."""
        done: list[tuple[str, int]] = []
        for op in self.ops:
            done.append(_format(op, args, done))
        return done[-1][0]


#: Infix functions: symbol and binding strength (comparison 1, + 2, * 4, unary 5, ** 6).
INFIX = {
    "lt": ("<", 1), "le": ("<=", 1), "gt": (">", 1), "ge": (">=", 1), "eq": ("==", 1), "ne": ("!=", 1),
    "add": ("+", 2), "sub": ("-", 2), "mul": ("*", 4), "div": ("/", 4), "pow": ("**", 6),
}  # fmt: skip


def _format(op: Op, args: Sequence[str], done: list[tuple[str, int]]) -> tuple[str, int]:
    match op:
        case Arg(index):
            return (args[index] if index < len(args) else f"x{index}"), 9  # a broken one prints too
        case Label(name) | Param(name):
            return name, 9
        case Const(literal):
            return (literal, 5) if literal.startswith("-") else (literal, 9)
        case Call("neg", (a,)):
            text, level = done[a]
            return (f"-{text}" if level >= 5 else f"-({text})"), 5
        case Call(fn, (a, b)) if fn in INFIX:
            symbol, level = INFIX[fn]
            left, right = done[a], done[b]
            # Comparisons do not chain, ** binds to the right, the others to the left.
            wrap_left = left[1] <= level if fn == "pow" or level == 1 else left[1] < level
            wrap_right = right[1] < level if fn == "pow" else right[1] <= level
            lhs = f"({left[0]})" if wrap_left else left[0]
            rhs = f"({right[0]})" if wrap_right else right[0]
            return (f"{lhs}{symbol}{rhs}" if level > 2 else f"{lhs} {symbol} {rhs}"), level
        case Call(fn, operands):
            return f"{fn}({', '.join(done[a][0] for a in operands)})", 9


class ScalarBuilder:
    """Appends operations, each distinct one once, and ends in a `ScalarExpr`."""

    def __init__(self) -> None:
        self._ops: list[Op] = []
        self._ids: dict[Op, int] = {}

    def __getitem__(self, i: int) -> Op:
        return self._ops[i]

    def _add(self, op: Op) -> int:
        if op not in self._ids:
            self._ids[op] = len(self._ops)
            self._ops.append(op)
        return self._ids[op]

    def arg(self, index: int) -> int:
        """Append the element of input `index`."""
        return self._add(Arg(index))

    def label(self, name: str) -> int:
        """Append the value of a label."""
        return self._add(Label(name))

    def param(self, name: str) -> int:
        """Append a scalar of the caller's scope."""
        return self._add(Param(name))

    def const(self, value: complex) -> int:
        """Append a Python literal."""
        return self._add(Const(repr(value)))

    def call(self, fn: str, *args: int) -> int:
        """Append a function of earlier operations; constants are folded where Python and numpy agree."""
        values = [op.value for op in (self._ops[a] for a in args) if isinstance(op, Const)]
        if fn in _FOLD and len(values) == len(args) and bool not in map(type, values):
            return self.const(_FOLD[fn](*values))
        return self._add(Call(fn, args))

    def inline(self, expr: ScalarExpr, args: Sequence[int]) -> int:
        """Append all of `expr`, with operation ``args[i]`` for its i-th input, and return its result."""
        ids: list[int] = []
        for op in expr.ops:
            match op:
                case Arg(index):
                    ids.append(args[index])
                case Call(fn, operands):
                    ids.append(self.call(fn, *(ids[a] for a in operands)))
                case _:
                    ids.append(self._add(op))
        return ids[-1]

    def build(self, result: int) -> ScalarExpr:
        """Return the expression whose result is operation `result`, without what it does not need."""
        needed = {result}
        for i in range(result, -1, -1):
            op = self._ops[i]
            if i in needed and isinstance(op, Call):
                needed.update(op.args)
        new = {old: i for i, old in enumerate(sorted(needed))}
        ops = [
            Call(op.fn, tuple(new[a] for a in op.args)) if isinstance(op, Call) else op
            for op in (self._ops[i] for i in sorted(needed))
        ]
        return ScalarExpr(tuple(ops))


#: Safe folds: no rounding that a tensor's dtype would do differently, no way to fail.
_FOLD: dict[str, Callable] = {"neg": lambda a: -a}

COPY = ScalarExpr((Arg(0),))
PRODUCT = ScalarExpr((Arg(0), Arg(1), Call("mul", (0, 1))))

# -------------------------------------------------------------------------- types and evaluation


@dataclass(frozen=True, slots=True)
class Typed:
    """What `infer` knows of one operation: its type, and the dtypes its operands are cast to first."""

    type: ScalarType
    operands: tuple[np.dtype, ...] = ()


@lru_cache(maxsize=4096)
def infer(
    expr: ScalarExpr, args: tuple[np.dtype, ...], params: tuple[tuple[str, ScalarType], ...] = ()
) -> tuple[Typed, ...]:
    """Return the type of every operation of `expr` for inputs of dtypes `args`.

    Raises
    ------
    DtypeError
        Where a function has no meaning for its operands.
    UnknownNameError, ShapeError
        A function, a parameter or an input that it reads does not exist.
    """
    known = dict(params)
    done: list[Typed] = []
    for op in expr.ops:
        match op:
            case Arg(index) if index >= len(args):
                raise ShapeError(f"its join reads input {index}, it has {len(args)}")
            case Arg(index):
                done.append(Typed(ScalarType(args[index])))
            case Label():
                done.append(Typed(dtypes.WEAK_INT))
            case Const():
                done.append(Typed(dtypes.of_value(op.value)))
            case Param(name) if name not in known:
                raise UnknownNameError(f"the scalar {name!r} is not declared", notes=nearest(name, known))
            case Param(name):
                done.append(Typed(known[name]))
            case Call(fn) if fn not in FUNCTIONS:
                raise UnknownNameError(f"{fn!r} is no function", notes=nearest(fn, FUNCTIONS))
            case Call(fn, operands):
                types = [done[a].type for a in operands]
                wanted, result = FUNCTIONS[fn].rule(fn, types)
                _check_fit([expr.ops[a] for a in operands], wanted)
                done.append(Typed(result, tuple(t.dtype for t in wanted)))
    return tuple(done)


def _check_fit(operands: Sequence[Op], wanted: Sequence[ScalarType]) -> None:
    """Raise `DtypeError` where a literal is cast to a dtype of integers that does not hold it, as numpy."""
    for op, type_ in zip(operands, wanted, strict=True):
        if isinstance(op, Const) and isinstance(op.value, int) and not dtypes.fits(op.value, type_.dtype):
            raise dtypes.no_fit(op.value, type_.dtype)


def param_casts(
    expr: ScalarExpr, args: tuple[np.dtype, ...], params: tuple[tuple[str, ScalarType], ...]
) -> tuple[tuple[str, np.dtype], ...]:
    """Return the parameters that are weak integers, each with a narrower dtype of integers it is cast to."""
    weak = {name for name, type_ in params if type_ == dtypes.WEAK_INT}
    found: dict[tuple[str, np.dtype], None] = {}
    for op, typed in zip(expr.ops, infer(expr, args, params), strict=True):
        if isinstance(op, Call):
            for a, dtype in zip(op.args, typed.operands, strict=True):
                x = expr.ops[a]
                if isinstance(x, Param) and x.name in weak and dtype.kind in "iu" and dtype != dtypes.I64:
                    found[x.name, dtype] = None
    return tuple(found)


def result_dtype(
    expr: ScalarExpr, args: tuple[np.dtype, ...], params: tuple[tuple[str, ScalarType], ...] = ()
) -> np.dtype:
    """Return the dtype of the result of `expr` as a tensor of its own."""
    return infer(expr, args, params)[-1].type.dtype


def evaluate(
    expr: ScalarExpr,
    args: Sequence[np.ndarray],
    labels: Mapping[str, np.ndarray],
    params: Mapping[str, np.generic],
    types: Sequence[Typed],
) -> np.ndarray:
    """Return `expr` of whole arrays, one numpy call an operation.

    Parameters
    ----------
    args, labels
        Arrays that broadcast against each other; a label is an int64 array of its values.
    params
        Scalars by name, of the dtypes that `types` was inferred with.
    types
        What `infer` answered.
    """
    done: list[np.ndarray] = []
    for op, typed in zip(expr.ops, types, strict=True):
        match op:
            case Arg(index):
                done.append(args[index])
            case Label(name):
                done.append(labels[name])
            case Const():
                done.append(np.asarray(op.value, typed.type.dtype))
            case Param(name):
                done.append(np.asarray(params[name], typed.type.dtype))
            case Call(fn, operands):
                cast = (
                    np.asarray(done[a]).astype(d, copy=False)
                    for a, d in zip(operands, typed.operands, strict=True)
                )
                result = np.asarray(FUNCTIONS[fn].numpy(*cast))
                done.append(result.astype(typed.type.dtype, copy=False))  # numpy squares booleans to int8
    return done[-1]
