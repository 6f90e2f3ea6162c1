"""Syntax tree and shapes to EinGraph.

Contract: `elaborate` returns the graph of a program for inputs of given shapes and dtypes, or raises an
error that shows the formula.  Every node's origin is the span of the text that it computes.

>>> from einsummable import dtypes
>>> from einsummable.language.parser import parse
>>> shapes = {"A": InputSpec((2, 3), dtypes.F32), "x": InputSpec((3,), dtypes.F32)}
>>> print(elaborate(parse("y[i] = A[i,j] * x[j]"), shapes))
%0 = input A [2, 3] f32
%1 = input x [3] f32
%2 = [i] sum[j] x*y  of %0[i,j], %1[j]  : [2] f32
return y = %2
"""

from __future__ import annotations

from collections.abc import Mapping

from einsummable import dtypes
from einsummable.autodiff import check_differentiable, gradients
from einsummable.builder import GraphBuilder
from einsummable.errors import DtypeError, ShapeError, Span
from einsummable.graph import EinGraph
from einsummable.language.einstein import factor_labels, labels_in, labels_of_line, top_terms, unbound
from einsummable.language.emit import Emitter
from einsummable.language.extents import solve
from einsummable.language.indices import InputSpec, World
from einsummable.language.resolve import Resolver
from einsummable.language.statements import collect
from einsummable.language.syntax import Define, GradDecl, Group, Program
from einsummable.language.terms import Concat, Extent, LabelValue, Place, Reduce
from einsummable.nodes import Origin

__all__ = ["InputSpec", "elaborate"]


def elaborate(
    program: Program,
    inputs: Mapping[str, InputSpec],
    scalars: Mapping[str, object] | None = None,
    others: Mapping[str, str] | None = None,
) -> EinGraph:
    """Return the graph of `program`.

    Parameters
    ----------
    inputs
        Shape and dtype of the arrays there are, by name; those that the program does not read are ignored.
    scalars
        The caller's scalars by name.  Their types count here, and their values only where an extent is
        named after one: any other is read when the program runs.
    others
        What the other names of the caller's scope are, in words ("a list"), for messages.

    Raises
    ------
    ParseError
        A name is defined twice, lines need each other, a call has the wrong number of arguments, or the
        program uses what is not supported yet.
    UnknownNameError
        Nothing defines a name.
    ShapeError
        Labels, indices, groups or extents disagree; a label is bound by nothing.
    DtypeError
        A function or an aggregate has no meaning for what it is given.
    """
    scalars = scalars or {}
    found = collect(program, inputs, scalars, others or {})
    builder = GraphBuilder(program.text)
    lines = {name for line in found.lines for name in _names(line)}
    tensors = {name: spec for name, spec in inputs.items() if name not in lines} | dict(found.inputs)
    world = World(program.text, tensors, scalars, found.macros, found.fixed)
    nodes = {
        name: builder.input(name, spec.shape, spec.dtype, Origin(found.first_reads[name], name))
        for name, spec in found.inputs.items()
    }
    for line in found.lines:
        if isinstance(line, GradDecl):
            nodes |= _grad(line, world, builder, nodes)
        else:
            nodes[line.name] = _line(line, world, builder, nodes)
        for name in _names(line):
            node = builder[nodes[name]]
            tensors[name] = InputSpec(node.shape, node.dtype)
    for name in found.outputs:
        builder.output(name, nodes[name])
    return builder.build()


def _names(line: Define | GradDecl) -> tuple[str, ...]:
    return tuple(n.name for n in line.names) if isinstance(line, GradDecl) else (line.name,)


def _grad(line: GradDecl, world: World, builder: GraphBuilder, nodes: Mapping[str, int]) -> dict[str, int]:
    """Append the nodes of gradients and return those that hold them, by name."""
    of, wrt = nodes[line.of.name], [nodes[x.name] for x in line.wrt]
    for name, given in ((line.of, []), *((x, [nodes[x.name]]) for x in line.wrt)):
        try:
            check_differentiable(builder[of], [builder[i] for i in given])
        except (DtypeError, ShapeError) as error:
            notes = (f"{name.name} is {dtypes.name(builder[nodes[name.name]].dtype)}", *error.notes)
            raise type(error)(error.message, text=world.text, spans=(name.span,), notes=notes) from None
    origins = [Origin(line.span, n.name) for n in line.names]
    return dict(zip(_names(line), gradients(builder, of, wrt, origins), strict=True))


def _line(line: Define, world: World, builder: GraphBuilder, nodes: Mapping[str, int]) -> int:
    """Append the nodes of one line and return the one that holds its tensor."""
    labels = labels_of_line(line)
    left = [label.name for label in labels_in(line.dims)]
    resolver = Resolver(world, labels)
    root = _right_side(line, resolver, labels, left)
    wanted = _wanted(resolver, labels, left)
    extents = solve(world.text, resolver.uses, world.fixed, wanted, resolver.reaches, resolver.totals)
    for name, type_ in resolver.params.items():
        builder.param(name, type_)
    emitter = Emitter(builder, nodes, resolver.terms, resolver.scaled, extents, left, line.name)
    i = emitter.line(root, Place(line.span))
    groups = [len(dim.labels) if isinstance(dim, Group) else 1 for dim in line.dims]
    space = tuple((label, extents[label]) for label in left)
    return builder.reshape(i, space, [1] * len(left), groups, Origin(line.span, line.name))


def _right_side(line: Define, resolver: Resolver, labels: Mapping[str, list[Span]], left: list[str]) -> int:
    """Return the term that the line's right side means, by Einstein's convention."""
    terms, total = resolver.terms, None
    for sign, part in top_terms(line.expr):
        i = resolver.resolve(part, resolver.scope)
        free = terms.labels[i]
        implied = [x for x in factor_labels(part, set(labels)) if x in free and x not in left]
        if implied:
            i = resolver.reduce("sum", implied, i, Place(part.span))
        for label in terms.labels[i]:
            if label not in left:
                raise unbound(terms.text, line, part, label)
        place = Place(line.expr.span)
        total = i if total is None else terms.apply("add" if sign == "+" else "sub", (total, i), place)
    return total


def _wanted(resolver: Resolver, labels: Mapping[str, list[Span]], left: list[str]) -> dict[str, list[Span]]:
    """Return the labels whose extents the line needs, with the places where they stand."""
    needed = dict.fromkeys(left)
    for use in resolver.uses:
        needed.update(dict.fromkeys(use.labels))
    needed.update((reach.label, None) for reach in resolver.reaches)
    for term in resolver.terms.terms:
        match term:
            case LabelValue(label) | Extent(label):
                needed[label] = None
            case Reduce(labels=own):
                needed.update(dict.fromkeys(own))
            case Concat(label, own):
                needed.update(dict.fromkeys((label, *own)))
    return {label: labels.get(label) or resolver.spans[label] for label in needed}
