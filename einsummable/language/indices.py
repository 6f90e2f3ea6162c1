"""What a line reads: elements of tensors, by all that may stand in their brackets, and the caller's scalars.

Contract: an element becomes a term whose indices are labels, positions, or what computes or holds one
(`terms.Index`).  What that says of extents is noted in `Reader.uses` and `Reader.reaches`, and the scalars
that are read in `Reader.params`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
from einsummable.language.extents import Fixed, Reach, Use
from einsummable.language.syntax import MacroDef
from einsummable.language.terms import Affine, Held, Index, Place, Scalar, Terms


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


class Reader:
    """Turns what one line reads of tensors and scalars into terms.

    Attributes
    ----------
    terms
        The terms so far.
    uses, reaches
        Every dimension of a tensor that labels index; with a shift or a stride, `reaches`.
    params
        The caller's scalars that are read, with their types.
    spans
        The labels that came from macros, with the place of the call.
    """

    def __init__(self, world: World, labels: Sequence[str]) -> None:
        self.world = world
        self.terms = Terms(world.text)
        self.scope = Scope({label: label for label in labels})
        self.uses: list[Use] = []
        self.reaches: list[Reach] = []
        self.params: dict[str, ScalarType] = {}
        self.spans: dict[str, list[Span]] = {}

    def error(
        self, kind: type[EinsummableError], message: str, place: Place, notes: Sequence[str] = ()
    ) -> EinsummableError:
        """Return an error that points at `place`."""
        inside = (f"inside the macro {place.macro}",) if place.macro else ()
        return kind(message, text=self.world.text, spans=(place.span,), notes=(*notes, *inside))

    def param(self, name: str, place: Place) -> ScalarType:
        """Note that a scalar of the caller is read, and return its type."""
        try:
            return self.params.setdefault(name, dtypes.of_value(self.world.scalars[name]))
        except DtypeError as error:
            raise self.terms.at(error, place) from None

    def ref(self, expr: syntax.Ref, scope: Scope) -> int:
        """Return the term of an element of a tensor."""
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
                names = tuple(self.label(label, scope) for label in labels)
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
            case syntax.GatherIndex(ref):
                return self._held(self.ref(ref, scope), ref.name, place)
            case syntax.Shift() | syntax.Stride():
                return self._affine(part, dim, tensor, spec, scope)

    def _affine(
        self, part: syntax.Shift | syntax.Stride, dim: int, tensor: str, spec: InputSpec, scope: Scope
    ) -> Affine:
        place, shown = scope.place(part.span), syntax.unparse_index(part)
        step = part.step if isinstance(part, syntax.Stride) else 1
        if step < 1:
            notes = (f"write {tensor}[…,{part.offset},…] for one index",) if part.offset >= 0 else ()
            message = f"the stride of {shown} is {step}, it must be at least 1"
            raise self.error(ParseError, message, place, notes)
        label = self.label(part.label, scope)
        reach = Reach(label, step, part.offset, tensor, spec.shape, dim, shown, place.span)
        self.reaches.append(reach)
        return Affine(label, step, part.offset)

    def _held(self, element: int, name: str, place: Place) -> Held:
        type_ = self.terms.types[element]
        if dtypes.kind(type_.dtype) != "i":
            message = f"an index is a whole number, but {name} is {type_}"
            notes = (f"cast it on a line of its own, to i64({name}[…])",)
            raise self.error(DtypeError, message, place, notes)
        return Held(element)

    def _scalar_index(self, name: str, place: Place) -> Scalar | Held:
        if name not in self.world.scalars:
            spec = self.world.tensors.get(name)
            if spec is not None and not spec.shape:
                return self._held(self.terms.element(name, (), spec.dtype, place), name, place)
            if spec is not None:
                labels = ",".join("tuvwxyz"[: len(spec.shape)])
                notes = (f"to gather through a tensor, write {name}[{labels}]",)
                message = f"@{name} is one index, but {name} has shape {spec.shape}"
                raise self.error(ShapeError, message, place, notes)
            notes = nearest(name, self.world.scalars)
            raise self.error(UnknownNameError, f"no scalar of the caller is called {name!r}", place, notes)
        type_ = self.param(name, place)
        if dtypes.kind(type_.dtype) != "i":
            raise self.error(
                ShapeError, f"an index is a whole number, but {name} is {self.world.scalars[name]!r}", place
            )
        return Scalar(name)

    def label(self, label: syntax.Label, scope: Scope) -> str:
        """Return what a label means where it stands."""
        if label.name not in scope.labels:
            macro = scope.macros[-1]
            notes = (f"make it a parameter: def {macro}[{label.name}](…)",)
            message = f"nothing binds label {label.name!r} in the macro {macro}"
            raise self.error(ShapeError, message, scope.place(label.span), notes)
        return scope.labels[label.name]
