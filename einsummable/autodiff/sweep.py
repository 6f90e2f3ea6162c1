"""Reverse-mode differentiation: an EinGraph to one that also computes gradients.

Contract: gradients are nodes like all others, appended to the graph of the value, so that both are planned
together.  The cotangent of an input X of ``Z[out] = sum f(X[i,j], …)`` is the sum, over the labels that X
lacks, of ``Z's cotangent * df/dX``: of a matrix product that is two matrix products.  A cotangent that is a
map stays a formula (`Formula`) until something needs it as a tensor, so chains of maps become one node.
The gradient of a complex tensor is ``dL/dRe + i*dL/dIm``; of what L does not depend on it is 0.

>>> b = GraphBuilder()
>>> x, w = b.input("x", (2, 3)), b.input("w", (3, 4))
>>> y = b.contract(("i", "k"), (x, ("i", "j")), (w, ("j", "k")))
>>> b.output("L", b.einsummable((), [(y, ("i", "k"))], COPY, "sum"))
>>> print(differentiate(b.build(), "L", ["w"]))
%0 = input x [2, 3] f32
%1 = input w [3, 4] f32
%2 = [i,k] sum[j] x*y  of %0[i,j], %1[j,k]  : [2, 4] f32
%3 = [] sum[i,k] x  of %2[i,k]  : [] f32
%4 = [j] sum[i] x  of %0[i,j]  : [3] f32
%5 = [j,k] x  of %4[j]  : [3, 4] f32
return L = %3, dw = %5
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add

from einsummable import dtypes
from einsummable.autodiff.formula import Formula, Writer, constant, settled, space_of, to_node
from einsummable.autodiff.rules import LONGEST, Here, back
from einsummable.builder import GraphBuilder
from einsummable.dtypes import kind
from einsummable.errors import DtypeError, ShapeError, UnknownNameError, nearest
from einsummable.graph import EinGraph
from einsummable.nodes import Input, Node, Origin
from einsummable.scalar import COPY


def differentiate(graph: EinGraph, of: str | int, wrt: Sequence[str | int]) -> EinGraph:
    """Return `graph` with the gradients of `of` with respect to each of `wrt` as further outputs.

    Parameters
    ----------
    of
        A real scalar: the name of an output or of a line, or the id of a node.
    wrt
        Tensors of floats or complex numbers, inputs or not, in the same way.

    Returns
    -------
    EinGraph
        The nodes of `graph` first.  The gradient of ``W`` is the output ``dW``, with ``W``'s shape and dtype.

    Raises
    ------
    UnknownNameError
        Nothing has one of these names.
    ShapeError, DtypeError
        `of` is no real scalar, or a tensor of `wrt` holds integers or booleans.
    """
    builder = GraphBuilder.resume(graph)
    known = _names(graph)
    ids = [_find(graph, known, x) for x in wrt]
    taken = {name for name, _ in graph.outputs}
    names = []
    for x, i in zip(wrt, ids, strict=True):
        name = f"d{x}" if isinstance(x, str) else f"d{graph.name_of(i)}"
        while name in taken:
            name += "'"
        taken.add(name)
        names.append(name)
    origins = [Origin(None, name) for name in names]
    for name, i in zip(names, gradients(builder, _find(graph, known, of), ids, origins), strict=True):
        builder.output(name, i)
    return builder.build()


def _names(graph: EinGraph) -> dict[str, int]:
    """Return the node of each name: an output, an input, or the last node of a line."""
    lines = {node.origin.name: i for i, node in enumerate(graph.nodes) if node.origin.name}
    inputs = {node.name: i for i, node in enumerate(graph.nodes) if isinstance(node, Input)}
    return lines | dict(graph.outputs) | inputs


def _find(graph: EinGraph, known: Mapping[str, int], x: str | int) -> int:
    if isinstance(x, str):
        if x not in known:
            raise UnknownNameError(f"nothing defines {x!r}", notes=nearest(x, known))
        return known[x]
    if not 0 <= x < len(graph.nodes):
        raise UnknownNameError(f"there is no node %{x}: the graph has {len(graph.nodes)}")
    return x


def gradients(
    builder: GraphBuilder, of: int, wrt: Sequence[int], origins: Sequence[Origin] | None = None
) -> list[int]:
    """Append the gradients of node `of` with respect to nodes `wrt`; return their nodes.

    Parameters
    ----------
    origins
        Where each of them comes from.

    Raises
    ------
    ShapeError, DtypeError
        As for `differentiate`.
    """
    check_differentiable(builder[of], [builder[i] for i in wrt])
    return _Sweep(builder, of, wrt).results(origins or [Origin()] * len(wrt))


def check_differentiable(of: Node, wrt: Sequence[Node]) -> None:
    """Raise an error unless `of` is a real scalar and `wrt` are tensors of floats or complex numbers."""
    if of.shape:
        dims = f"{len(of.shape)} dimension{'' if len(of.shape) == 1 else 's'}"
        raise ShapeError(f"grad needs a scalar, but this has {dims}")
    if kind(of.dtype) != "f":
        notes = ("write real(x), or abs(x)",) if kind(of.dtype) == "c" else ()
        raise DtypeError(f"grad needs a real scalar, but this is {dtypes.name(of.dtype)}", notes=notes)
    for node in wrt:
        if kind(node.dtype) not in "fc":
            raise DtypeError(f"there is no gradient with respect to a tensor of {dtypes.name(node.dtype)}")


class _Sweep:
    """One pass from a scalar back to the nodes it is differentiated by.

    Attributes
    ----------
    active
        The nodes between them: those whose cotangents matter.
    cotangents
        For each node the terms of its cotangent that are known so far.
    """

    def __init__(self, builder: GraphBuilder, of: int, wrt: Sequence[int]) -> None:
        self.builder, self.wrt = builder, tuple(wrt)
        self.active = self._between(of)
        self.cotangents: dict[int, list[Formula]] = {of: [constant(1.0, ())]}
        for i in sorted(self.active, reverse=True):
            node = builder[i]
            wanted = frozenset(k for k, j in enumerate(node.inputs) if j in self.active)
            if i in self.cotangents and wanted:
                here = Here(builder, i, node, wanted, Origin(node.origin.span))
                for k, term in back(here, self._total(i)):
                    self.cotangents.setdefault(node.inputs[k], []).append(term)

    def _between(self, of: int) -> set[int]:
        """Return the nodes that depend on one of `wrt` and that `of` depends on."""
        needed, depends = {of}, set(self.wrt)
        for i in range(of, -1, -1):
            if i in needed:
                needed.update(self.builder[i].inputs)
        for i in range(of + 1):
            if depends.intersection(self.builder[i].inputs) and kind(self.builder[i].dtype) in "fc":
                depends.add(i)
        return needed & depends

    def _total(self, i: int) -> Formula:
        """Return the cotangent of node `i`, the sum of the terms, as one of them."""
        terms, dtype = self.cotangents[i], self.builder[i].dtype
        if len(terms) > 1:
            if sum(len(t.join.ops) for t in terms) > LONGEST:
                terms = [settled(self.builder, t, dtype) for t in terms]
            wide = dtypes.name(dtypes.accumulator(dtype))
            rounds = len(terms) > 2 and dtypes.accumulator(dtype) != dtype
            w = Writer(self.builder)
            values = [w.write(t.renamed(terms[0].out)) for t in terms]
            total = reduce(add, (v.call(wide) if rounds else v for v in values))
            self.cotangents[i] = [w.formula(total, terms[0].space)]
        return self.cotangents[i][0]

    def results(self, origins: Sequence[Origin]) -> list[int]:
        """Return the nodes of the gradients."""
        return [self._result(i, origin) for i, origin in zip(self.wrt, origins, strict=True)]

    def _result(self, i: int, origin: Origin) -> int:
        node = self.builder[i]
        known = i in self.cotangents and i in self.active
        formula = self._total(i) if known else constant(0.0, space_of(node))
        made = to_node(self.builder, formula, node.dtype, origin)
        if not isinstance(self.builder[made], Input):
            return made
        # No result is the caller's own array.
        return self.builder.einsummable(formula.out, [(made, formula.out)], COPY, origin=origin)
