"""Expressions of the syntax tree to terms: every name resolved, every macro expanded.

Contract: a name means what its scope says.  In a line that is the line's labels; in a macro's body its
parameters and the labels that its own aggregates bind, which get names that no line uses: so an argument
never captures, and is never captured by, what the macro says.  What a term reads of tensors and of the
caller's scalars is noted in `Resolver.uses` and `Resolver.params`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from einsummable import dtypes
from einsummable.dtypes import ScalarType
from einsummable.errors import (
    DtypeError,
    EinsummableError,
    ParseError,
    ShapeError,
    Span,
    UnknownNameError,
    nearest,
)
from einsummable.language import syntax
from einsummable.language.extents import Fixed, Use
from einsummable.language.products import Scaled, apply_scale, build, split_scale
from einsummable.language.syntax import CONSTANTS, Expr, MacroDef
from einsummable.language.terms import Apply, Index, Place, Scalar, Terms
from einsummable.scalar import FUNCTIONS, INFIX

_CONSTANTS = {"inf": math.inf, "nan": math.nan, "pi": math.pi}
_COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
#: What a program may call, and the row of `FUNCTIONS` it means.
CALLABLE = {name: name for name in FUNCTIONS if name not in INFIX} | {"max": "maximum", "min": "minimum"}
#: Index forms and functions that the grammar has room for.
_LATER = {syntax.Shift: "a shift", syntax.Stride: "a stride", syntax.GatherIndex: "a gather"}
#: How deeply expressions and macros may nest together, well within Python's recursion limit.
_MAX_DEPTH = 150


@dataclass(frozen=True, slots=True)
class InputSpec:
    """Shape and dtype of a tensor."""

    shape: tuple[int, ...]
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class World:
    """What the names of a program's lines may mean."""

    text: str
    tensors: Mapping[str, InputSpec]
    scalars: Mapping[str, object]
    macros: Mapping[str, MacroDef]
    fixed: Mapping[str, Fixed]


@dataclass(frozen=True, slots=True)
class Scope:
    """What the labels and parameters mean where an expression stands."""

    labels: Mapping[str, str]
    params: Mapping[str, int] = field(default_factory=dict)
    macros: tuple[str, ...] = ()
    site: Place | None = None

    def place(self, span: Span) -> Place:
        """Return the place of an expression at `span`: inside a macro, that of the call."""
        return self.site or Place(span)


class Resolver:
    """Turns the expressions of one line into terms.

    Attributes
    ----------
    terms
        The terms so far.
    uses
        Every dimension of a tensor that labels index.
    params
        The caller's scalars that are read, with their types.
    spans
        The labels that came from macros, with the place of the call.
    scaled
        For a term that is a sum with a factor taken out of it: how.
    """

    def __init__(self, world: World, labels: Sequence[str]) -> None:
        self.world = world
        self.terms = Terms(world.text)
        self.scope = Scope({label: label for label in labels})
        self.uses: list[Use] = []
        self.params: dict[str, ScalarType] = {}
        self.spans: dict[str, list[Span]] = {}
        self.scaled: dict[int, Scaled] = {}
        self._expanded: dict[tuple, int] = {}
        self._depth = 0

    def error(
        self, kind: type[EinsummableError], message: str, place: Place, notes: Sequence[str] = ()
    ) -> EinsummableError:
        """Return an error that points at `place`."""
        inside = (f"inside the macro {place.macro}",) if place.macro else ()
        return kind(message, text=self.world.text, spans=(place.span,), notes=(*notes, *inside))

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
                return self._ref(expr, scope)
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
        taken = {*self.scope.labels, *self.spans}
        name = next(n for n in (label.name, *(f"{label.name}{i}" for i in range(2, 10**6))) if n not in taken)
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
            return self.terms.scalar(name, self._param(name, place), place)
        notes = nearest(name, {*scope.labels, *self.world.tensors, *self.world.scalars, *scope.params})
        if name in self.world.fixed:
            notes = (f"a label is a value where the line has it as an index, or aggregates: sum[{name}] …",)
        raise self.error(UnknownNameError, f"nothing defines {name!r}", place, notes)

    def _param(self, name: str, place: Place) -> ScalarType:
        try:
            return self.params.setdefault(name, dtypes.of_value(self.world.scalars[name]))
        except DtypeError as error:
            raise self.terms.at(error, place) from None

    def _ref(self, expr: syntax.Ref, scope: Scope) -> int:
        place = scope.place(expr.span)
        spec = self.world.tensors.get(expr.name)
        if spec is None:
            raise self.error(*self._no_tensor(expr.name, scope), place)
        if len(expr.indices) != len(spec.shape):
            given = f"{len(expr.indices)} {'index' if len(expr.indices) == 1 else 'indices'}"
            have = f"{len(spec.shape)} dimension{'' if len(spec.shape) == 1 else 's'}"
            notes = (f"{expr.name} has shape {spec.shape}",)
            raise self.error(ShapeError, f"{expr.name} has {have} but is given {given}", place, notes)
        parts = (self._index(part, dim, expr.name, spec, scope) for dim, part in enumerate(expr.indices))
        return self.terms.element(expr.name, tuple(parts), spec.dtype, place)

    def _no_tensor(self, name: str, scope: Scope) -> tuple[type[EinsummableError], str]:
        if name in scope.params:
            return ShapeError, f"{name} is a parameter of {scope.macros[-1]} and takes no index"
        if name in self.world.scalars:
            return ShapeError, f"{name} is a scalar and takes no index"
        return UnknownNameError, f"nothing defines {name!r}"

    def _index(self, part: syntax.Index, dim: int, tensor: str, spec: InputSpec, scope: Scope) -> Index:
        place = scope.place(part.span)
        match part:
            case syntax.Label() | syntax.Group():
                labels = part.labels if isinstance(part, syntax.Group) else (part,)
                names = tuple(self._label(label, scope) for label in labels)
                self.uses.append(Use(names, tensor, spec.shape, dim, place.span))
                return names
            case syntax.IntIndex(value):
                extent = spec.shape[dim]
                if not -extent <= value < extent:
                    message = (
                        f"index {value} is out of range: dimension {dim} of {tensor} has extent {extent}"
                    )
                    raise self.error(ShapeError, message, place, (f"{tensor} has shape {spec.shape}",))
                return value % extent
            case syntax.ScalarIndex(name):
                return self._scalar_index(name, place)
            case _:
                shown = syntax.unparse_index(part)
                raise self.error(ParseError, f"{_LATER[type(part)]}, {shown}, is not supported yet", place)

    def _scalar_index(self, name: str, place: Place) -> Scalar:
        if name not in self.world.scalars:
            if name in self.world.tensors:
                raise self.error(ParseError, f"an index @{name} through a tensor is not supported yet", place)
            notes = nearest(name, self.world.scalars)
            raise self.error(UnknownNameError, f"no scalar of the caller is called {name!r}", place, notes)
        type_ = self._param(name, place)
        if dtypes.kind(type_.dtype) != "i":
            raise self.error(
                ShapeError, f"an index is a whole number, but {name} is {self.world.scalars[name]!r}", place
            )
        return Scalar(name)

    def _label(self, label: syntax.Label, scope: Scope) -> str:
        if label.name not in scope.labels:
            macro = scope.macros[-1]
            notes = (f"make it a parameter: def {macro}[{label.name}](…)",)
            message = f"nothing binds label {label.name!r} in the macro {macro}"
            raise self.error(ShapeError, message, scope.place(label.span), notes)
        return scope.labels[label.name]

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
            raise self.error(ParseError, "concat is not supported yet", place)
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

    def _expand(self, expr: syntax.Call, macro: MacroDef, scope: Scope, place: Place) -> int:
        self._check_call(expr, [label.name for label in macro.labels], len(macro.params), place)
        if macro.name in scope.macros:
            chain = " → ".join((*scope.macros[scope.macros.index(macro.name) :], macro.name))
            raise self.error(ParseError, f"the macro {macro.name} calls itself: {chain}", place)
        labels = {p.name: self._label(a, scope) for p, a in zip(macro.labels, expr.labels, strict=True)}
        args = {p.name: self.resolve(a, scope) for p, a in zip(macro.params, expr.args, strict=True)}
        key = (macro.name, *labels.values(), *args.values())
        if key not in self._expanded:
            site = scope.site or Place(expr.span, macro.name)
            inner = Scope(labels, args, (*scope.macros, macro.name), site)
            self._expanded[key] = self.resolve(macro.body, inner)
        return self._expanded[key]
