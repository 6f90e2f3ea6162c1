"""Text to syntax tree.

Contract: `parse` returns a `Program` whose nodes carry the spans of `text`, or raises `ParseError`.  It
knows the form of the language only: which names exist, and whether shapes fit, is `elaborate`'s business.
The grammar is loaded at the first call and kept.

>>> print(parse("Z[i,k] = A[i,j]*B[j,k]   # a product"))
Z[i,k] = A[i,j] * B[j,k]
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files

from lark import Lark, Token, UnexpectedInput
from lark.exceptions import VisitError
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive, v_args

from einsummable.errors import ParseError, Span
from einsummable.language import syntax
from einsummable.language.complaints import complain, reserved
from einsummable.language.syntax import (
    AGGREGATES,
    CONSTANTS,
    MAX_EXTENT,
    RESERVED,
    Expr,
    Group,
    Index,
    Label,
    Name,
    Number,
    Program,
    Ref,
    Statement,
)

#: How deeply expressions may nest: far beyond what one can read, well within Python's recursion limit.
MAX_DEPTH = 100


def parse(text: str) -> Program:
    """Return the syntax tree of `text`.

    Raises
    ------
    ParseError
        The text is not in the language; carets show where.
    """
    grammar = _grammar()
    try:
        program: Program = _Build(text).transform(grammar.parse(text))
    except UnexpectedInput as error:
        raise complain(text, error, grammar) from None
    except VisitError as error:
        raise error.orig_exc from None
    for statement in program.statements:
        if isinstance(statement, syntax.Define):
            _check_depth(text, statement.expr)
        elif isinstance(statement, syntax.MacroDef):
            _check_depth(text, statement.body)
    return program


@cache
def _grammar() -> Lark:
    grammar = files("einsummable.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar, parser="lalr", propagate_positions=True, maybe_placeholders=True, postlex=_OpenLines()
    )


class _OpenLines:
    """Drops the line ends inside brackets, so that a line goes on until they are closed."""

    always_accept = ("_NEWLINE",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        depth = 0
        for token in stream:
            depth += (token.type in ("LPAR", "LSQB")) - (token.type in ("RPAR", "RSQB"))
            if token.type != "_NEWLINE" or depth <= 0:
                yield token


def _check_depth(text: str, expr: Expr) -> None:
    todo = [(expr, 1)]
    while todo:
        node, depth = todo.pop()
        if depth > MAX_DEPTH:
            raise ParseError(
                f"this expression is nested more than {MAX_DEPTH} deep",
                text=text,
                spans=(node.span,),
                notes=("define its parts on lines of their own",),
            )
        todo.extend((child, depth + 1) for child in syntax.children(node))


def _span(meta: Meta | Token) -> Span:
    return Span(meta.start_pos, meta.end_pos)


@v_args(meta=True)
class _Build(Transformer_NonRecursive):
    """Makes the syntax tree of lark's parse tree, one method a rule of the grammar."""

    def __init__(self, text: str) -> None:
        super().__init__(visit_tokens=False)
        self.text = text

    def _error(self, message: str, *spans: Span, notes: tuple[str, ...] = ()) -> ParseError:
        return ParseError(message, text=self.text, spans=spans, notes=notes)

    def _name(self, token: Token, allowed: frozenset[str] = frozenset()) -> str:
        # As Python does, so that a formula finds the variable that the same keys made in the notebook.
        name = unicodedata.normalize("NFKC", str(token))
        if name in RESERVED - allowed:
            raise reserved(self.text, name, _span(token))
        if not name.isidentifier():
            raise self._error(f"{str(token)!r} is no name: names are letters, digits and _", _span(token))
        return name

    def _integer(self, token: Token) -> int:
        if not token.replace("_", "").isdecimal():
            raise self._error(f"expected a whole number but found {str(token)!r}", _span(token))
        return int(token)

    # ---- statements ----

    def start(self, _meta: Meta, statements: list[Statement]) -> Program:
        return Program(tuple(statements), self.text)

    def define(self, meta: Meta, parts: list) -> syntax.Define:
        name, dims, expr = parts
        for dim in dims or ():
            if not isinstance(dim, Label | Group):
                raise self._error(
                    f"the left side has labels and groups of labels, not {syntax.unparse_index(dim)}",
                    dim.span,
                )
        return syntax.Define(self._name(name), dims or (), expr, name_span=_span(name), span=_span(meta))

    def input(self, meta: Meta, parts: list) -> syntax.InputDecl:
        name, dims, dtype = parts
        return syntax.InputDecl(
            self._name(name),
            dims or (),
            dtype and str(dtype),
            name_span=_span(name),
            dtype_span=_span(dtype) if dtype else syntax.NOWHERE,
            span=_span(meta),
        )

    def dims(self, _meta: Meta, dims: list[syntax.Dim]) -> tuple[syntax.Dim, ...]:
        return tuple(dims)

    def dim(self, meta: Meta, parts: list) -> syntax.Dim:
        return syntax.Dim(*parts, span=_span(meta))

    def size(self, _meta: Meta, parts: list[Token]) -> int | Name:
        (token,) = parts
        if token.type == "NAME":
            return Name(self._name(token), span=_span(token))
        if (extent := self._integer(token)) > MAX_EXTENT:
            raise self._error(f"an extent is at most {MAX_EXTENT}", _span(token))
        return extent

    def extent(self, meta: Meta, parts: list) -> syntax.ExtentDecl:
        return syntax.ExtentDecl(*parts, span=_span(meta))

    def output(self, meta: Meta, parts: list) -> syntax.OutputDecl:
        return syntax.OutputDecl(*parts, span=_span(meta))

    def macro(self, meta: Meta, parts: list) -> syntax.MacroDef:
        token, labels, params, body = parts
        name, where = self._name(token), _span(token)
        return syntax.MacroDef(name, labels or (), params, body, name_span=where, span=_span(meta))

    def grad(self, meta: Meta, parts: list) -> syntax.GradDecl:
        *targets, of, wrt = parts
        names = tuple(Name(self._name(t), span=_span(t)) for t in targets)
        return syntax.GradDecl(names, of, wrt, span=_span(meta))

    def names(self, _meta: Meta, names: list[Name]) -> tuple[Name, ...]:
        return tuple(names)

    def name(self, meta: Meta, parts: list[Token]) -> Name:
        return Name(self._name(parts[0]), span=_span(meta))

    def labels(self, _meta: Meta, labels: list[Label]) -> tuple[Label, ...]:
        return tuple(labels)

    # ---- index forms ----

    def indices(self, _meta: Meta, indices: list[Index]) -> tuple[Index, ...]:
        return tuple(indices)

    def label(self, meta: Meta, parts: list[Token]) -> Label:
        return Label(self._name(parts[0]), span=_span(meta))

    def group(self, meta: Meta, labels: list[Label]) -> Group:
        return Group(tuple(labels), span=_span(meta))

    def int_index(self, meta: Meta, parts: list[Token]) -> syntax.IntIndex:
        return syntax.IntIndex(self._integer(parts[0]), span=_span(meta))

    def negative_index(self, meta: Meta, parts: list[Token]) -> syntax.IntIndex:
        return syntax.IntIndex(-self._integer(parts[0]), span=_span(meta))

    def scalar_index(self, meta: Meta, parts: list[Token]) -> syntax.ScalarIndex:
        return syntax.ScalarIndex(self._name(parts[0]), span=_span(meta))

    def shift(self, meta: Meta, parts: list) -> syntax.Shift:
        label, sign, offset = parts
        return syntax.Shift(label, int(f"{sign}{self._integer(offset)}"), span=_span(meta))

    def stride(self, meta: Meta, parts: list) -> syntax.Stride:
        step, _, label, *rest = parts
        offset = int(f"{rest[0]}{self._integer(rest[1])}") if rest else 0
        return syntax.Stride(label, self._integer(step), offset, span=_span(meta))

    def gather(self, meta: Meta, parts: list) -> syntax.GatherIndex:
        return syntax.GatherIndex(self.ref(meta, parts), span=_span(meta))

    # ---- expressions ----

    def compare(self, meta: Meta, parts: list) -> syntax.Compare:
        if len(parts) > 3:
            raise self._error(
                "comparisons do not chain",
                *map(_span, parts[1::2]),
                notes=("write (a < b) * (b < c) where both must hold",),
            )
        left, op, right = parts
        return syntax.Compare(str(op), left, right, span=_span(meta))

    def sum(self, meta: Meta, parts: list) -> syntax.Add:
        return syntax.Add(("+", *map(str, parts[1::2])), tuple(parts[::2]), span=_span(meta))

    def term(self, meta: Meta, parts: list) -> syntax.Mul:
        return syntax.Mul(("*", *map(str, parts[1::2])), tuple(parts[::2]), span=_span(meta))

    def aggregate(self, meta: Meta, parts: list) -> syntax.Aggregate:
        kind, labels, body = parts
        return syntax.Aggregate(str(kind), labels, body, span=_span(meta))

    def neg(self, meta: Meta, parts: list[Expr]) -> syntax.Neg:
        return syntax.Neg(parts[0], span=_span(meta))

    def pow(self, meta: Meta, parts: list) -> syntax.Pow:
        base, _, exponent = parts
        return syntax.Pow(base, exponent, span=_span(meta))

    def number(self, meta: Meta, parts: list[Token]) -> Number:
        return Number(str(parts[0]), span=_span(meta))

    def bare(self, meta: Meta, parts: list[Token]) -> Name:
        return Name(self._name(parts[0], allowed=CONSTANTS), span=_span(meta))

    def ref(self, meta: Meta, parts: list) -> Ref:
        name, indices = parts
        return Ref(self._name(name), indices, span=_span(meta))

    def call(self, meta: Meta, parts: list) -> syntax.Call:
        fn, args = parts
        if fn in AGGREGATES - {"max", "min"}:
            raise self._error(f"{fn} needs the labels it runs over", _span(fn), notes=(f"write {fn}[k] …",))
        return syntax.Call(str(fn), (), args, span=_span(meta))

    def labelled_call(self, meta: Meta, parts: list) -> syntax.Call:
        fn, labels, args = parts
        for label in labels:
            if not isinstance(label, Label):
                message = f"{fn} takes labels in its brackets, not {syntax.unparse_index(label)}"
                raise self._error(message, label.span)
        return syntax.Call(self._name(fn), labels, args, span=_span(meta))

    def args(self, _meta: Meta, args: list[Expr]) -> tuple[Expr, ...]:
        return tuple(args)

    def brackets(self, meta: Meta, parts: list[Expr]) -> Expr:
        return replace(parts[0], span=_span(meta))
