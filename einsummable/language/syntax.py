"""The syntax tree of the language, and its way back to text.

Contract: a `Program` holds one statement a line, each with the span of text it came from.  Spans do
not take part in comparison, so two trees are equal exactly when they say the same, and
``parse(unparse(tree)) == tree`` for every tree whose names are legal.

Sums and products are flat, not nested pairs: a sum of 2,000 terms is one node.

>>> print(unparse(Add(("+", "-"), (Name("a"), Mul(("*", "*"), (Name("b"), Neg(Name("c"))))))))
a - b * -c
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from einsummable.errors import Span

#: The span of a node that comes from no text.
NOWHERE = Span(0, 0)

#: Words that open a statement or join its parts.
KEYWORDS = frozenset({"input", "extent", "output", "def", "grad", "wrt"})
#: Words that open an aggregate.
AGGREGATES = frozenset({"sum", "prod", "max", "min", "any", "all"})
#: Names of numbers.
CONSTANTS = frozenset({"inf", "nan", "pi"})
#: No tensor, label, macro or parameter may be called one of these.
RESERVED = KEYWORDS | AGGREGATES | CONSTANTS

#: The largest extent: what an index of numpy's holds.
MAX_EXTENT = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """What all nodes have: the place they come from, which is no part of what they say."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Label(_Node):
    """``i`` in ``X[i]``: the name of an index."""

    name: str


@dataclass(frozen=True, slots=True)
class IntIndex(_Node):
    """``0`` in ``X[i, 0]``: one position, from the end where it is negative."""

    value: int


@dataclass(frozen=True, slots=True)
class ScalarIndex(_Node):
    """``@n`` in ``X[i, @n]``: the position that the scalar `name` holds."""

    name: str


@dataclass(frozen=True, slots=True)
class Group(_Node):
    """``(h d)``: several labels share one dimension, the first slowest."""

    labels: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class Shift(_Node):
    """``j + 3``: the position `offset` places after the label's own."""

    label: Label
    offset: int


@dataclass(frozen=True, slots=True)
class Stride(_Node):
    """``2*p + 1``: every `step`-th position, from `offset` on."""

    label: Label
    step: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class GatherIndex(_Node):
    """``tok[t]`` in ``E[tok[t], d]``: the position that an integer tensor holds."""

    ref: Ref


Index = Label | IntIndex | ScalarIndex | Group | Shift | Stride | GatherIndex


# ---- expressions ----


@dataclass(frozen=True, slots=True)
class Number(_Node):
    """A literal, kept as written: ``1`` and ``1.0`` are different numbers, since their dtypes are."""

    text: str

    @property
    def value(self) -> int | float | complex:
        """The Python number that the text denotes."""
        if self.text[-1] in "jJ":
            return complex(self.text)
        return int(self.text) if self.text.replace("_", "").isdecimal() else float(self.text)


@dataclass(frozen=True, slots=True)
class Name(_Node):
    """A bare name: a label's value, a rank-0 tensor, a constant or a scalar of the caller."""

    name: str


@dataclass(frozen=True, slots=True)
class Ref(_Node):
    """``X[i, j]``: an element of a tensor."""

    name: str
    indices: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Call(_Node):
    """``f(x, y)``, or ``f[k](x)`` for a macro that takes labels."""

    fn: str
    labels: tuple[Label, ...]
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Aggregate(_Node):
    """``sum[k] body``."""

    kind: str
    labels: tuple[Label, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Neg(_Node):
    """``-x``."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Add(_Node):
    """``a + b - c``: at least two terms, a sign for each; the first sign is ``+``."""

    signs: tuple[str, ...]
    terms: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Mul(_Node):
    """``a * b / c``: at least two factors, an operator for each; the first operator is ``*``."""

    ops: tuple[str, ...]
    factors: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Pow(_Node):
    """``base ** exponent``."""

    base: Expr
    exponent: Expr


@dataclass(frozen=True, slots=True)
class Compare(_Node):
    """``left <= right``; comparisons do not chain."""

    op: str
    left: Expr
    right: Expr


Expr = Number | Name | Ref | Call | Aggregate | Neg | Add | Mul | Pow | Compare


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the expressions that `expr` is made of, in the order of the text."""
    match expr:
        case Number() | Name() | Ref():
            return ()
        case Call(args=parts) | Add(terms=parts) | Mul(factors=parts):
            return parts
        case Aggregate(body=part) | Neg(operand=part):
            return (part,)
        case Pow(base=a, exponent=b) | Compare(left=a, right=b):
            return (a, b)


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield `expr` and all expressions inside it, outer before inner, in the order of the text."""
    todo = [expr]
    while todo:
        yield (node := todo.pop())
        todo.extend(reversed(children(node)))


@dataclass(frozen=True, slots=True)
class Define(_Node):
    """``Z[i, (h d)] = expr``; `dims` is empty for a scalar."""

    name: str
    dims: tuple[Label | Group, ...]
    expr: Expr
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Dim(_Node):
    """``b=64`` or ``(h d)`` in an `InputDecl`; the extent is a number, a caller's name, or left open."""

    index: Label | Group
    extent: int | Name | None = None


@dataclass(frozen=True, slots=True)
class InputDecl(_Node):
    """``input X[b=64, d=32] f32``: a tensor that no array is given for."""

    name: str
    dims: tuple[Dim, ...]
    dtype: str | None = None
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
    dtype_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ExtentDecl(_Node):
    """``extent h = 8``: the extent of a label in the whole program."""

    label: Label
    extent: int | Name


@dataclass(frozen=True, slots=True)
class OutputDecl(_Node):
    """``output Y, L``: the results."""

    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class MacroDef(_Node):
    """``def softmax[k](x) = ...``."""

    name: str
    labels: tuple[Label, ...]
    params: tuple[Name, ...]
    body: Expr
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class GradDecl(_Node):
    """``dW, dV = grad L wrt W, V``."""

    names: tuple[Name, ...]
    of: Name
    wrt: tuple[Name, ...]


Statement = Define | InputDecl | ExtentDecl | OutputDecl | MacroDef | GradDecl


@dataclass(frozen=True, slots=True)
class Program:
    """What `parse` makes of a text: its statements, in order."""

    statements: tuple[Statement, ...]
    text: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        return unparse(self)


# ---- back to text ----

# How tightly an expression holds together.  Where its place asks for more, it is put in brackets.
_COMPARE, _ADD, _TERM, _UNARY, _ATOM = range(5)


def unparse(tree: Program | Statement | Expr) -> str:
    """Return text that parses to `tree`."""
    match tree:
        case Program(statements):
            return "\n".join(unparse(s) for s in statements)
        case Define(name, dims, expr):
            return f"{name}{_bracketed(dims)} = {unparse(expr)}"
        case InputDecl(name, dims, dtype):
            listed = ",".join(unparse_index(d.index) + _extent(d.extent, "=") for d in dims)
            return f"input {name}{f'[{listed}]' if dims else ''}{f' {dtype}' if dtype else ''}"
        case ExtentDecl(label, extent):
            return f"extent {label.name}{_extent(extent, ' = ')}"
        case OutputDecl(names):
            return f"output {_names(names)}"
        case MacroDef(name, labels, params, body):
            return f"def {name}{_bracketed(labels)}({_names(params)}) = {unparse(body)}"
        case GradDecl(names, of, wrt):
            return f"{_names(names)} = grad {of.name} wrt {_names(wrt)}"
        case _:
            return _text(tree)


def _text(expr: Expr) -> str:
    match expr:
        case Number(text):
            return text
        case Name(name):
            return name
        case Ref(name, indices):
            return name + _bracketed(indices)
        case Call(fn, labels, args):
            return f"{fn}{_bracketed(labels)}({', '.join(map(_text, args))})"
        case Aggregate(kind, labels, body):
            return f"{kind}{_bracketed(labels)} {_hold(body, _TERM)}"
        case Neg(operand):
            return "-" + (_text(operand) if _is_tail(operand) else _hold(operand, _UNARY))
        case Add(signs, terms):
            return _interleave(signs, [_hold(t, _TERM) for t in terms])
        case Mul(ops, factors):
            *first, last = factors
            end = _text(last) if _is_tail(last) else _hold(last, _UNARY)
            return _interleave(ops, [*(_hold(f, _UNARY) for f in first), end])
        case Pow(base, exponent):
            return f"{_hold(base, _ATOM)}**{_hold(exponent, _UNARY)}"
        case Compare(op, left, right):
            return f"{_hold(left, _ADD)} {op} {_hold(right, _ADD)}"


def _holds(expr: Expr) -> int:
    match expr:
        case Compare():
            return _COMPARE
        case Add():
            return _ADD
        case Mul() | Aggregate():
            return _TERM
        case Neg():
            return _TERM if _is_tail(expr) else _UNARY
        case Pow():
            return _UNARY
        case _:
            return _ATOM


def _is_tail(expr: Expr) -> bool:
    """Tell whether `expr` is an aggregate, perhaps negated: it takes all that follows, so it comes last."""
    while isinstance(expr, Neg):
        expr = expr.operand
    return isinstance(expr, Aggregate)


def _hold(expr: Expr, at_least: int) -> str:
    return _text(expr) if _holds(expr) >= at_least else f"({_text(expr)})"


def _interleave(ops: tuple[str, ...], parts: list[str]) -> str:
    return parts[0] + "".join(f" {op} {part}" for op, part in zip(ops[1:], parts[1:], strict=True))


def _names(names: tuple[Name, ...]) -> str:
    return ", ".join(n.name for n in names)


def _bracketed(indices: tuple[Index, ...]) -> str:
    return f"[{','.join(map(unparse_index, indices))}]" if indices else ""


def _extent(extent: int | Name | None, before: str) -> str:
    return "" if extent is None else before + (extent.name if isinstance(extent, Name) else str(extent))


def unparse_index(index: Index) -> str:
    """Return the text of one index form."""
    match index:
        case Label(name):
            return name
        case IntIndex(value):
            return str(value)
        case ScalarIndex(name):
            return f"@{name}"
        case Group(labels):
            return f"({' '.join(label.name for label in labels)})"
        case Shift(label, offset):
            return f"{label.name}{offset:+d}"
        case Stride(label, step, offset):
            return f"{step}*{label.name}{f'{offset:+d}' if offset else ''}"
        case GatherIndex(ref):
            return _text(ref)
