"""Expressions of the syntax tree to terms: every name resolved, every macro expanded.

Contract: a name means what its scope says.  In a line that is the line's labels; in a macro's body its
parameters and the labels that its own aggregates bind, which get names that no line uses: so an argument
never captures, and is never captured by, what the macro says.  What stands in the brackets of a tensor is
left to `indices`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, count

import numpy as np

from einsummable import dtypes
from einsummable.dtypes import ScalarType
from einsummable.errors import (
    DtypeError,
    ParseError,
    ShapeError,
    UnknownNameError,
    nearest,
)
from einsummable.functions import FUNCTIONS
from einsummable.language import syntax
from einsummable.language.extents import Total
from einsummable.language.indices import Reader, Scope, World
from einsummable.language.products import Scaled, apply_scale, build, split_scale
from einsummable.language.syntax import CONSTANTS, Expr, MacroDef
from einsummable.language.terms import Apply, Place
from einsummable.scalar import INFIX

_CONSTANTS = {"inf": math.inf, "nan": math.nan, "pi": math.pi}
_COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
#: What a program may call, and the row of `FUNCTIONS` it means.
CALLABLE = {name: name for name in FUNCTIONS if name not in INFIX} | {"max": "maximum", "min": "minimum"}
#: How deeply expressions and macros may nest together, well within Python's recursion limit.
_MAX_DEPTH = 150


class Resolver(Reader):
    """Turns the expressions of one line into terms.

    Attributes
    ----------
    totals
        The labels that concatenations run along.
    scaled
        For a term that is a sum with a factor taken out of it: how.
    """

    def __init__(self, world: World, labels: Sequence[str]) -> None:
        super().__init__(world, labels)
        self.totals: list[Total] = []
        self.scaled: dict[int, Scaled] = {}
        self._expanded: dict[tuple, int] = {}
        self._depth = 0

    # ---- expressions ----

    def resolve(self, expr: Expr, scope: Scope) -> int:
        """Return the term that `expr` means in `scope`."""
        place = scope.place(expr.span)
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            notes = ("define its parts on lines of their own",)
            raise self.error(ParseError, "this expression is nested too deeply", place, notes)
        term = self._resolve(expr, scope, place)
        self._depth -= 1
        return term

    def _resolve(self, expr: Expr, scope: Scope, place: Place) -> int:
        match expr:
            case syntax.Number():
                return self.terms.literal(expr.value, place)
            case syntax.Name():
                return self._name(expr, scope)
            case syntax.Ref():
                return self.ref(expr, scope)
            case syntax.Call():
                return self._call(expr, scope)
            case syntax.Aggregate():
                return self._aggregate(expr, scope, place)
            case syntax.Neg(operand):
                return self.terms.apply("neg", (self.resolve(operand, scope),), place)
            case syntax.Add(signs, parts):
                return self._fold({"+": "add", "-": "sub"}, signs, parts, scope, place)
            case syntax.Mul(ops, parts):
                return self._fold({"*": "mul", "/": "div"}, ops, parts, scope, place)
            case syntax.Pow(base, exponent):
                return self._pow(self.resolve(base, scope), self.resolve(exponent, scope), place)
            case syntax.Compare(op, left, right):
                args = self.resolve(left, scope), self.resolve(right, scope)
                return self.terms.apply(_COMPARISONS[op], args, place)

    def _fold(
        self, fns: Mapping[str, str], ops: Sequence[str], parts: Sequence[Expr], scope: Scope, place: Place
    ) -> int:
        total = self.resolve(parts[0], scope)
        for op, part in zip(ops[1:], parts[1:], strict=True):
            total = self.terms.apply(fns[op], (total, self.resolve(part, scope)), place)
        return total

    def _pow(self, base: int, exponent: int, place: Place) -> int:
        term, kinds = self.terms[exponent], [dtypes.kind(self.terms.types[i].dtype) for i in (base, exponent)]
        if isinstance(term, Apply) and term.fn == "neg" and set(kinds) <= set("bi"):
            notes = ("write f64(x)**-1, or 1/x",)
            raise self.error(
                DtypeError, "a whole number to a negative power is no whole number", place, notes
            )
        return self.terms.apply("pow", (base, exponent), place)

    def _aggregate(self, expr: syntax.Aggregate, scope: Scope, place: Place) -> int:
        own = {label.name: self._bind(label, scope) for label in expr.labels}
        body = self.resolve(expr.body, replace(scope, labels={**scope.labels, **own}))
        for label in expr.labels:
            if own[label.name] not in self.terms.labels[body]:
                if place.macro:
                    message = (
                        f"{place.macro} aggregates over label {own[label.name]!r}, which its argument lacks"
                    )
                else:
                    shown = syntax.unparse(expr.body)
                    message = f"{expr.kind} runs over label {label.name!r}, which {shown} lacks"
                raise self.error(ShapeError, message, scope.place(label.span))
        return self.reduce(expr.kind, tuple(own.values()), body, place)

    def reduce(self, kind: str, labels: Sequence[str], body: int, place: Place) -> int:
        """Append an aggregate; factors without labels are taken out of a sum of products."""
        scaled = split_scale(self.terms, labels, body, place) if kind == "sum" else None
        if scaled is None:
            return self.terms.reduce(kind, labels, body, place)
        rest = build(self.terms, scaled.rest, place)
        term = apply_scale(self.terms, scaled.scale, self.terms.reduce(kind, labels, rest, place), place)
        self.scaled.setdefault(term, scaled)
        return term

    def _bind(self, label: syntax.Label, scope: Scope) -> str:
        """Return what a label of an aggregate is called: in a macro, unless it is a parameter, a new name."""
        if not scope.macros or label.name in scope.labels:
            return label.name if not scope.macros else scope.labels[label.name]
        return self._fresh(label, scope)

    def _fresh(self, label: syntax.Label, scope: Scope) -> str:
        """Return a name for `label` that nothing else in the line has."""
        taken = {*self.scope.labels, *self.spans}
        others = (f"{label.name}{i}" for i in count(2))
        name = next(n for n in chain([label.name], others) if n not in taken)
        self.spans[name] = [scope.place(label.span).span]
        return name

    # ---- names ----

    def _name(self, expr: syntax.Name, scope: Scope) -> int:
        name, place = expr.name, scope.place(expr.span)
        if name in scope.params:
            return scope.params[name]
        if name in scope.labels:
            return self.terms.label_value(scope.labels[name], place)
        if name in CONSTANTS:
            return self.terms.literal(_CONSTANTS[name], place)
        if name in self.world.tensors:
            spec = self.world.tensors[name]
            if spec.shape:
                index = ",".join("ijklmnpqrst"[: len(spec.shape)])
                notes = (f"it has shape {spec.shape}: write {name}[{index}]",)
                raise self.error(ShapeError, f"{name} is a tensor and stands without labels", place, notes)
            return self.terms.element(name, (), spec.dtype, place)
        if name in self.world.scalars:
            return self.terms.scalar(name, self.param(name, place), place)
        notes = nearest(name, {*scope.labels, *self.world.tensors, *self.world.scalars, *scope.params})
        if name in self.world.fixed:
            notes = (f"a label is a value where the line has it as an index, or aggregates: sum[{name}] …",)
        raise self.error(UnknownNameError, f"nothing defines {name!r}", place, notes)

    # ---- calls ----

    def _call(self, expr: syntax.Call, scope: Scope) -> int:
        place = scope.place(expr.span)
        if expr.fn == "extent":
            return self._extent(expr, scope, place)
        if expr.fn in CALLABLE:
            self._check_call(expr, (), FUNCTIONS[CALLABLE[expr.fn]].arity, place)
            args = [self.resolve(arg, scope) for arg in expr.args]
            return self.terms.apply(CALLABLE[expr.fn], args, place, expr.fn)
        if expr.fn in self.world.macros:
            return self._expand(expr, self.world.macros[expr.fn], scope, place)
        if expr.fn == "concat":
            return self._concat(expr, scope, place)
        notes = nearest(expr.fn, {*CALLABLE, *self.world.macros, "extent"})
        if expr.fn in self.world.tensors:
            notes = (f"{expr.fn} is a tensor: write {expr.fn}[…]",)
        raise self.error(UnknownNameError, f"no function is called {expr.fn!r}", place, notes)

    def _check_call(self, expr: syntax.Call, labels: Sequence[object], arity: int, place: Place) -> None:
        notes: tuple[str, ...] = ()
        if expr.fn in ("max", "min"):
            notes = (f"to aggregate over a label, write {expr.fn}[k] …",)
        for noun, given, want in (
            ("label", len(expr.labels), len(labels)),
            ("argument", len(expr.args), arity),
        ):
            if given != want:
                takes = f"{want or 'no'} {noun}{'' if want == 1 else 's'}"
                message = f"{expr.fn} takes {takes} but is given {given or 'none'}"
                if noun == "label" and want:
                    notes = (f"write {expr.fn}[{','.join(map(str, labels))}](…)",)
                raise self.error(ParseError, message, place, notes)

    def _extent(self, expr: syntax.Call, scope: Scope, place: Place) -> int:
        self._check_call(expr, (), 1, place)
        (arg,) = expr.args
        name = arg.name if isinstance(arg, syntax.Name) else ""
        if name in scope.labels:
            return self.terms.extent(scope.labels[name], place)
        if not scope.macros and name in self.world.fixed:
            return self.terms.literal(self.world.fixed[name].extent, place)
        message = "extent takes a label of its line"
        raise self.error(ShapeError, message, place, nearest(name, scope.labels))

    def _concat(self, expr: syntax.Call, scope: Scope, place: Place) -> int:
        """Return the arguments one after another; each has an extent of its own along the label."""
        self._check_call(expr, ("t",), len(expr.args), place)
        key = (syntax.unparse(expr), *sorted(scope.labels.items()), *sorted(scope.params.items()))
        if key not in self._expanded:
            (label,) = expr.labels
            outer, own, parts = self.label(label, scope), [], []
            for arg in expr.args:
                own.append(self._fresh(label, scope))
                inner = replace(scope, labels={**scope.labels, label.name: own[-1]})
                parts.append(self.resolve(arg, inner))
                if own[-1] not in self.terms.labels[parts[-1]]:
                    message = f"concat runs along label {label.name!r}, which {syntax.unparse(arg)} lacks"
                    raise self.error(ShapeError, message, scope.place(arg.span))
            self.totals.append(Total(outer, tuple(own), scope.place(label.span).span))
            dtype = dtypes.promote(self.terms.types[part] for part in parts).dtype
            parts = [self._cast(part, dtype) for part in parts]
            self._expanded[key] = self.terms.concat(outer, own, parts, dtype, place)
        return self._expanded[key]

    def _cast(self, i: int, dtype: np.dtype) -> int:
        """Return term `i` as a tensor of `dtype`."""
        if self.terms.types[i] == ScalarType(dtype):
            return i
        return self.terms.apply(dtypes.name(dtype), (i,), self.terms.places[i])

    def _expand(self, expr: syntax.Call, macro: MacroDef, scope: Scope, place: Place) -> int:
        self._check_call(expr, [label.name for label in macro.labels], len(macro.params), place)
        if macro.name in scope.macros:
            chain = " → ".join((*scope.macros[scope.macros.index(macro.name) :], macro.name))
            raise self.error(ParseError, f"the macro {macro.name} calls itself: {chain}", place)
        labels = {p.name: self.label(a, scope) for p, a in zip(macro.labels, expr.labels, strict=True)}
        args = {p.name: self.resolve(a, scope) for p, a in zip(macro.params, expr.args, strict=True)}
        key = (macro.name, *labels.values(), *args.values())
        if key not in self._expanded:
            site = scope.site or Place(expr.span, macro.name)
            inner = Scope(labels, args, (*scope.macros, macro.name), site)
            self._expanded[key] = self.resolve(macro.body, inner)
        return self._expanded[key]
