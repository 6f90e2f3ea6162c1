"""Scalar expressions: what a join computes for one combination of label values.

Contract: a `ScalarExpr` is flat, a tuple of operations in which each reads only earlier ones; the last is
the result.  Functions and aggregates are rows of closed tables: numpy's function and a dtype rule.  `infer`
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
from einsummable.dtypes import ScalarType, kind, promote
from einsummable.errors import DtypeError, ShapeError, UnknownNameError, nearest

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
    """A row of the table of scalar functions: its arity, its meaning in numpy, its dtype rule."""

    arity: int
    numpy: Callable[..., np.ndarray]
    rule: Rule
    transcendental: bool = False  # dear enough to be computed once where two einsummables need it


FUNCTIONS: dict[str, Function] = {
    "add": Function(2, np.add, _same),
    "sub": Function(2, np.subtract, _number),
    "mul": Function(2, np.multiply, _same),
    "div": Function(2, np.true_divide, _inexact),
    "pow": Function(2, np.power, _number, transcendental=True),
    "neg": Function(1, np.negative, _number),
    "lt": Function(2, np.less, _compared),
    "le": Function(2, np.less_equal, _compared),
    "gt": Function(2, np.greater, _compared),
    "ge": Function(2, np.greater_equal, _compared),
    "eq": Function(2, np.equal, _compared),
    "ne": Function(2, np.not_equal, _compared),
    "exp": Function(1, np.exp, _inexact, transcendental=True),
    "log": Function(1, np.log, _inexact, transcendental=True),
    "sqrt": Function(1, np.sqrt, _inexact),
    "rsqrt": Function(1, lambda x: np.reciprocal(np.sqrt(x)), _inexact),
    "square": Function(1, np.square, _same),
    "abs": Function(1, np.absolute, _magnitude),
    "sign": Function(1, np.sign, _number),
    "relu": Function(1, lambda x: np.maximum(x, x.dtype.type(0)), _ordered),
    "tanh": Function(1, np.tanh, _inexact, transcendental=True),
    "sigmoid": Function(1, _sigmoid, _real_inexact, transcendental=True),
    "silu": Function(1, lambda x: x * _sigmoid(x), _real_inexact, transcendental=True),
    "gelu": Function(1, _gelu, _real_inexact, transcendental=True),
    "erf": Function(1, _erf, _real_inexact, transcendental=True),
    "sin": Function(1, np.sin, _inexact, transcendental=True),
    "cos": Function(1, np.cos, _inexact, transcendental=True),
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
