"""The statements of a program, sorted out: what each name is, and in which order lines can be elaborated.

Contract: `collect` checks all that needs no shapes: that every name is defined once, that every name read is
known, that no line needs itself.  Lines may stand in any order; `Statements.lines` has them so that a line
comes after those it reads, and as written otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np

from einsummable import dtypes
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
from einsummable.language.einstein import labels_in, labels_of_line
from einsummable.language.extents import Fixed
from einsummable.language.indices import InputSpec
from einsummable.language.prelude import prelude
from einsummable.language.resolve import CALLABLE
from einsummable.language.syntax import CONSTANTS, Define, Expr, GradDecl, MacroDef, Program


@dataclass(frozen=True, slots=True)
class Statements:
    """What the statements of a program say; `lines` are those that define tensors."""

    lines: tuple[Define | GradDecl, ...]
    inputs: Mapping[str, InputSpec]
    first_reads: Mapping[str, Span]
    macros: Mapping[str, MacroDef]
    fixed: Mapping[str, Fixed]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """A name that is neither a label nor a parameter where it stands."""

    name: str
    span: Span
    indexed: bool


def collect(
    program: Program,
    inputs: Mapping[str, InputSpec],
    scalars: Mapping[str, object],
    others: Mapping[str, str],
) -> Statements:
    """Return what the statements of `program` say, or raise the first error in them."""
    return _Collector(program, inputs, scalars, others).collect()


class _Collector:
    def __init__(
        self,
        program: Program,
        inputs: Mapping[str, InputSpec],
        scalars: Mapping[str, object],
        others: Mapping[str, str],
    ) -> None:
        self.program, self.given, self.scalars, self.others = program, inputs, scalars, others
        self.lines = {s.name: s for s in program.statements if isinstance(s, Define)}
        self.grads = {n.name: s for s in program.statements if isinstance(s, GradDecl) for n in s.names}
        self.own = {s.name: s for s in program.statements if isinstance(s, MacroDef)}
        self.macros = {**prelude(), **self.own}
        declared = {s.name for s in program.statements if isinstance(s, syntax.InputDecl)}
        self.tensors = {*self.lines, *declared, *inputs}

    def error(
        self, kind: type[EinsummableError], message: str, *spans: Span, notes: Sequence[str] = ()
    ) -> EinsummableError:
        return kind(message, text=self.program.text, spans=spans, notes=tuple(notes))

    def collect(self) -> Statements:
        self._check_names()
        fixed = self._extents()
        declared = {
            s.name: self._declared(s, fixed)
            for s in self.program.statements
            if isinstance(s, syntax.InputDecl)
        }
        reads = {name: list(self._reads_of_line(line)) for name, line in self.lines.items()}
        self._check_reads(reads, declared)
        self._check_grads(declared)
        used = {r.name for found in reads.values() for r in found}
        reads |= {n: [Read(x.name, x.span, False) for x in (s.of, *s.wrt)] for n, s in self.grads.items()}
        tensors = {**self.given, **declared}
        first = self._first_reads(reads)
        inputs = {n: tensors[n] for n in first if n in tensors and n not in reads}
        return Statements(self._ordered(reads), inputs, first, self.macros, fixed, self._outputs(used))

    # ---- names ----

    def _check_names(self) -> None:
        seen: dict[str, Span] = {}
        for s in self.program.statements:
            match s:
                case Define() | syntax.InputDecl() | MacroDef():
                    found = [(s.name, s.name_span)]
                case GradDecl(names):
                    found = [(n.name, n.span) for n in names]
                case syntax.ExtentDecl(label):
                    found = [(f"extent {label.name}", label.span)]
                case _:
                    found = []
            for name, span in found:
                if name in seen:
                    message = f"{name.removeprefix('extent ')!r} is defined twice"
                    raise self.error(ParseError, message, seen[name], span)
                seen[name] = span
        self._check_macros()
        for line in self.lines.values():
            self._check_left_side(line)

    def _check_macros(self) -> None:
        for macro in self.own.values():
            if macro.name in CALLABLE or macro.name in prelude() or macro.name == "concat":
                message = f"{macro.name!r} is a function of the language already"
                raise self.error(ParseError, message, macro.name_span, notes=("choose another name",))
            parts = [*macro.labels, *macro.params]
            for n, part in enumerate(parts):
                twice = [other.span for other in parts[:n] if other.name == part.name]
                if twice:
                    raise self.error(ParseError, f"{part.name!r} is a parameter twice", *twice, part.span)

    def _check_left_side(self, line: Define) -> None:
        labels = list(labels_in(line.dims))
        for n, label in enumerate(labels):
            twice = [other.span for other in labels[:n] if other.name == label.name]
            if twice:
                message = f"label {label.name!r} stands twice on the left side"
                notes = (f"a diagonal matrix is where({label.name} == j, …, 0) with two labels",)
                raise self.error(ShapeError, message, *twice, label.span, notes=notes)

    def _reads_of_line(self, line: Define) -> Iterator[Read]:
        """Yield the names that a line reads, and those that the macros it calls read."""
        todo: list[tuple[Expr, AbstractSet[str], bool]] = [(line.expr, set(labels_of_line(line)), False)]
        called: set[str] = set()
        while todo:
            expr, bound, in_macro = todo.pop()
            for part in syntax.walk(expr):
                match part:
                    case syntax.Ref() if not (in_macro and part.name in bound):
                        yield from self._ref_reads(part)
                    case syntax.Name(name, span=span) if name not in bound and name not in CONSTANTS:
                        yield Read(name, span, indexed=False)
                    case syntax.Call(fn) if fn in self.own and fn not in called:
                        called.add(fn)
                        todo.append((self.own[fn].body, _bound_in(self.own[fn]), True))

    def _ref_reads(self, ref: syntax.Ref) -> Iterator[Read]:
        yield Read(ref.name, Span(ref.span.start, ref.span.start + len(ref.name)), indexed=True)
        for index in ref.indices:
            match index:
                case syntax.GatherIndex(inner):
                    yield from self._ref_reads(inner)
                case syntax.ScalarIndex(name) if name not in self.scalars and name in self.tensors:
                    yield Read(name, index.span, indexed=False)

    def _first_reads(self, reads: Mapping[str, Sequence[Read]]) -> dict[str, Span]:
        """Return every name that is read with the first place where it is, in the order of the text."""
        first: dict[str, Span] = {}
        for r in sorted((r for found in reads.values() for r in found), key=lambda r: r.span.start):
            first.setdefault(r.name, r.span)
        return first

    def _check_reads(self, reads: Mapping[str, Sequence[Read]], declared: Mapping[str, InputSpec]) -> None:
        tensors = {*self.lines, *declared, *self.given, *self.grads}
        known = tensors | set(self.scalars)
        missing: dict[str, list[Span]] = {}
        for found in reads.values():
            for r in found:
                if r.name not in known and not (r.name in self.fixed_labels and not r.indexed):
                    missing.setdefault(r.name, []).append(r.span)
        if not missing:
            return
        names = [repr(name) for name in missing]
        shown = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        indexed = {r.name for found in reads.values() for r in found if r.indexed}
        notes: list[str] = []
        for name in missing:
            near = nearest(name, known)
            if name in self.others:
                near = (f"{name} is {self.others[name]}, and an input is an array of numbers",)
            elif name in self.macros or name in CALLABLE:
                near = (f"{name} is a function: write {name}(…)",)
                if name in self.macros and self.macros[name].labels:
                    near = (f"{name} is a macro: write {name}[…](…)",)
            notes += near
            if not near and name in indexed:
                notes.append(f"give an array called {name}, or declare its shape: input {name}[i=…]")
        spans = sorted({s for found in missing.values() for s in found}, key=lambda s: s.start)
        raise self.error(UnknownNameError, f"nothing defines {shown}", *spans, notes=notes)

    @property
    def fixed_labels(self) -> set[str]:
        """The labels of ``extent`` statements: ``extent(d)`` may name one that its line lacks."""
        return {s.label.name for s in self.program.statements if isinstance(s, syntax.ExtentDecl)}

    def _check_grads(self, declared: Mapping[str, InputSpec]) -> None:
        ranks = {n: len(spec.shape) for n, spec in {**self.given, **declared}.items()}
        ranks |= {n: len(line.dims) for n, line in self.lines.items()}
        for s in dict.fromkeys(self.grads.values()):
            for x in (s.of, *s.wrt):
                if x.name in self.scalars and x.name not in {*ranks, *self.grads}:
                    message = f"{x.name} is a scalar of the caller, and grad takes tensors"
                    notes = (f"give it as an array of no dimensions: {x.name}=np.array(…)",)
                    raise self.error(ParseError, message, x.span, notes=notes)
                if x.name not in {*ranks, *self.grads}:
                    notes = nearest(x.name, {*ranks, *self.grads})
                    raise self.error(UnknownNameError, f"nothing defines {x.name!r}", x.span, notes=notes)
            if len(s.names) != len(s.wrt):
                message = f"grad makes {_counted(s.wrt, 'gradient')} but is given {_counted(s.names, 'name')}"
                raise self.error(ParseError, message, s.names[0].span, s.wrt[-1].span)
            rank = ranks.get(s.of.name)
            if rank:
                message = f"grad needs a scalar, but {s.of.name} has {_counted(range(rank), 'dimension')}"
                notes = (f"define a scalar first: the sum of {s.of.name}, say",)
                raise self.error(ShapeError, message, s.of.span, notes=notes)

    # ---- extents and inputs ----

    def _extents(self) -> dict[str, Fixed]:
        return {
            s.label.name: Fixed(self._value(s.extent), s.label.span)
            for s in self.program.statements
            if isinstance(s, syntax.ExtentDecl)
        }

    def _value(self, extent: int | syntax.Name) -> int:
        if not isinstance(extent, syntax.Name):
            return extent
        if extent.name not in self.scalars:
            message = f"no scalar of the caller is called {extent.name!r}"
            notes = nearest(extent.name, self.scalars)
            raise self.error(UnknownNameError, message, extent.span, notes=notes)
        value = self.scalars[extent.name]
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or not 0 <= value <= syntax.MAX_EXTENT:
            message = f"an extent is a whole number from 0, but {extent.name} is {value!r}"
            notes = (f"at most {syntax.MAX_EXTENT}",) if whole and value > 0 else ()
            raise self.error(ShapeError, message, extent.span, notes=notes)
        return int(value)

    def _declared(self, s: syntax.InputDecl, fixed: Mapping[str, Fixed]) -> InputSpec:
        given = self.given.get(s.name)
        if given is not None and len(given.shape) != len(s.dims):
            given = None
        shape = tuple(
            self._dim(s.name, dim, fixed, given.shape[n] if given else None) for n, dim in enumerate(s.dims)
        )
        if s.dtype is None:
            return InputSpec(shape, given.dtype if given else dtypes.F32)
        try:
            return InputSpec(shape, dtypes.parse(s.dtype))
        except DtypeError as error:
            raise self.error(DtypeError, error.message, s.dtype_span, notes=error.notes) from None

    def _dim(self, name: str, dim: syntax.Dim, fixed: Mapping[str, Fixed], given: int | None) -> int:
        labels = list(labels_in((dim.index,)))
        shown = syntax.unparse_index(dim.index)
        known = None
        if all(label.name in fixed for label in labels):
            known = prod(fixed[label.name].extent for label in labels)
        if dim.extent is None:
            extent = known if known is not None else given
            if extent is None:
                message = f"the extent of {shown} in the input {name} is not known"
                notes = (f"write {shown}=… here, or: extent {labels[0].name} = …",)
                raise self.error(ShapeError, message, dim.span, notes=notes)
            return extent
        extent = self._value(dim.extent)
        if known is not None and known != extent:
            spans = (dim.span, *(fixed[label.name].span for label in labels))
            message = f"{shown} is {extent} in {name} but {known} by its extent statement"
            raise self.error(ShapeError, message, *spans)
        return extent

    # ---- order and outputs ----

    def _ordered(self, reads: Mapping[str, Sequence[Read]]) -> tuple[Define | GradDecl, ...]:
        left, ordered = self.lines | self.grads, {}
        while left:
            # The first that is ready, so that lines keep their order as far as possible.
            ready = next((n for n in left if all(r.name not in left for r in reads[n])), None)
            if ready is None:
                raise self._cycle(set(left), reads)
            ordered[ready] = left.pop(ready)
        return tuple(dict.fromkeys(ordered.values()))

    def _cycle(self, left: AbstractSet[str], reads: Mapping[str, Sequence[Read]]) -> EinsummableError:
        names, chain = [next(name for name in reads if name in left)], []
        while not chain or chain[-1].name not in names[: len(chain)]:
            chain.append(next(r for r in reads[names[-1]] if r.name in left))
            names.append(chain[-1].name)
        start = names.index(names[-1])
        names, chain = names[start:], chain[start:]
        if len(chain) == 1:
            message, notes = f"{names[0]} is defined by itself", ("give the result a name of its own",)
        else:
            *most, last = [f"{a} needs {b}" for a, b in pairwise(names)]
            message, notes = f"{', '.join(most)} and {last}", ()
        spans = [self._name_span(n) for n in names[:-1]] + [r.span for r in chain]
        return self.error(ParseError, message, *spans, notes=notes)

    def _name_span(self, name: str) -> Span:
        if name in self.lines:
            return self.lines[name].name_span
        return next(n.span for n in self.grads[name].names if n.name == name)

    def _outputs(self, used: AbstractSet[str]) -> tuple[str, ...]:
        asked = [n for s in self.program.statements if isinstance(s, syntax.OutputDecl) for n in s.names]
        for name in asked:
            if name.name not in self.lines and name.name not in self.grads:
                message = f"no line defines {name.name!r}, so it is no result"
                notes = nearest(name.name, self.lines | self.grads)
                raise self.error(UnknownNameError, message, name.span, notes=notes)
        if asked:
            return tuple(dict.fromkeys(name.name for name in asked))
        # A loss is a result although its gradients are taken.
        return tuple(name for name in self.lines | self.grads if name not in used)


def _counted(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def _bound_in(macro: MacroDef) -> set[str]:
    """Return the parameters of `macro` and the labels that its aggregates bind."""
    own = {p.name for p in (*macro.labels, *macro.params)}
    for part in syntax.walk(macro.body):
        if isinstance(part, syntax.Aggregate):
            own |= {label.name for label in part.labels}
    return own
