"""Terms to the graph's nodes: what is fused into one einsummable, and what is a node of its own.

Contract: every aggregate is a node whose join is the whole expression under it, down to tensors and other
nodes; what stands around the aggregates of a line is one map.  Four things stand apart: a concatenation, and
what it puts together; a dear term that two nodes need, which is computed once; a sum over a product of three
or more factors, contracted pairwise where that makes a smaller loop; an expression that is a factor of a
matrix product, computed before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from einsummable import dtypes
from einsummable.builder import GraphBuilder, Operand
from einsummable.contract import Path, contraction_path
from einsummable.dtypes import ScalarType
from einsummable.errors import EinsummableError
from einsummable.functions import FUNCTIONS
from einsummable.language.elements import element
from einsummable.language.products import Product, Scaled, apply_scale, build, flatten, size
from einsummable.language.terms import (
    Apply,
    Concat,
    Element,
    Extent,
    Held,
    LabelValue,
    Literal,
    Place,
    Reduce,
    Scalar,
    Terms,
    parts_of,
)
from einsummable.nodes import Origin
from einsummable.scalar import Const, ScalarBuilder


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor of a sum of products: a term or a node that holds it, to multiply by or to divide by."""

    labels: tuple[str, ...]
    part: int | Operand
    under: bool = False
    at: int = 0  # where it stands in the product: what is written first is the first operand


class Emitter:
    """Appends the nodes of one line to a graph.

    Parameters
    ----------
    builder
        The graph.
    tensors
        The nodes that hold the tensors the line reads.
    terms, scaled
        What `Resolver` made.
    extents
        Of all labels of the line.
    left
        The labels of the left side: other nodes keep their order, so that they need no transposing.
    name
        The name that the line defines.
    """

    def __init__(
        self,
        builder: GraphBuilder,
        tensors: Mapping[str, int],
        terms: Terms,
        scaled: Mapping[int, Scaled],
        extents: Mapping[str, int],
        left: Sequence[str],
        name: str,
    ) -> None:
        self.builder, self.tensors, self.terms, self.scaled = builder, tensors, terms, scaled
        self.extents, self.left, self.name = extents, tuple(left), name
        self.nodes: dict[int, Operand] = {}
        self.order = {label: n for n, label in enumerate(dict.fromkeys([*left, *extents]))}
        for term in reversed(terms.terms):
            if isinstance(term, Concat):  # its parts keep their order in it
                self.order.update(dict.fromkeys(term.own, self.order[term.label]))

    def line(self, root: int, place: Place) -> int:
        """Append the nodes that term `root` needs; return the one that holds it, labelled as on the left."""
        shared: set[int] = set()
        if root in self.scaled:
            root, shared = self._scale_operand(root)
        needed = self.terms.reachable(root)
        shared |= _shared(self.terms, needed)
        for i in needed[:-1]:
            if isinstance(self.terms[i], Reduce | Concat) or i in shared:
                self._node(i, self._sorted(self.terms.labels[i]), self.terms.places[i])
        apart = isinstance(self.terms[root], Reduce | Concat)
        if apart and set(self.terms.labels[root]) != set(self.left):
            # Aggregate first and broadcast the result, not the other way round.
            self._node(root, self._sorted(self.terms.labels[root]), self.terms.places[root])
            return self._einsummable([self._factor(root)], self.left, (), None, place)[0]
        return self._node(root, self.left, place)[0]

    def _scale_operand(self, root: int) -> tuple[int, set[int]]:
        """Put the factor taken out of the sum `root` on an operand, where that is smaller than the result."""
        scaled = self.scaled[root]
        sizes = [size(self.terms.labels[i], self.extents) for i in scaled.rest.over]
        if not sizes or min(sizes) >= size(self.left, self.extents):
            return root, set()
        at = sizes.index(min(sizes))
        over = list(scaled.rest.over)
        over[at] = apply_scale(self.terms, scaled.scale, over[at], scaled.place)
        body = build(self.terms, Product(False, tuple(over), scaled.rest.under), scaled.place)
        return self.terms.reduce("sum", scaled.labels, body, scaled.place), {over[at]}

    def _sorted(self, labels: Sequence[str]) -> tuple[str, ...]:
        return tuple(sorted(labels, key=self.order.__getitem__))

    # ---- nodes ----

    def _node(self, i: int, out: Sequence[str], place: Place) -> Operand:
        """Append the node that holds term `i`, and note it."""
        term = self.terms[i]
        if isinstance(term, Reduce):
            node = self._contracted(term, out, place)
            if node is None:
                node = self._einsummable([self._factor(term.body)], out, term.labels, term.kind, place)
        elif isinstance(term, Concat):
            node = self._concat(term, out, place)
        elif self._is_gather(i) and (taken := self._element(i))[1] == tuple(out):
            node = taken
        else:
            node = self._einsummable([self._factor(i)], out, (), None, place)
        self.nodes[i] = node
        return node

    def _factor(self, i: int) -> _Factor:
        return _Factor(self.terms.labels[i], i)

    def _einsummable(
        self,
        factors: Sequence[_Factor],
        out: Sequence[str],
        aggregated: Sequence[str],
        kind: str | None,
        place: Place,
    ) -> Operand:
        """Append the aggregate of a product of factors."""
        b = ScalarBuilder()
        operands: dict[Operand, int] = {}
        total = None
        for f in sorted(factors, key=lambda f: (f.under, f.at)):
            if isinstance(f.part, int):
                i = self._inline(b, operands, f.part)
            else:
                i = b.arg(operands.setdefault(f.part, len(operands)))
            if total is None:
                total = b.call("div", b.const(1), i) if f.under else i
            else:
                total = b.call("div" if f.under else "mul", total, i)
        extents = {label: self.extents[label] for label in (*out, *aggregated)}
        origin = Origin(place.span, self.name, place.macro)
        join = b.build(total)
        i = self.builder.einsummable(out, tuple(operands), join, kind, extents=extents, origin=origin)
        return i, tuple(out)

    def _is_leaf(self, i: int) -> bool:
        return i in self.nodes or isinstance(self.terms[i], Element)

    def _is_gather(self, i: int) -> bool:
        """Tell whether term `i` is an element looked up: a tensor of its own already."""
        term = self.terms[i]
        return isinstance(term, Element) and any(isinstance(part, Held) for part in term.index)

    def _inline(self, b: ScalarBuilder, operands: dict[Operand, int], root: int) -> int:
        """Append term `root` to a scalar expression, down to tensors and nodes."""
        needed, todo = set(), [root]
        while todo:
            if (i := todo.pop()) not in needed:
                needed.add(i)
                todo += () if self._is_leaf(i) else parts_of(self.terms[i])
        ids: dict[int, int] = {}
        for i in sorted(needed):
            ids[i] = self._operation(b, operands, i, ids)
        return ids[root]

    def _operation(
        self, b: ScalarBuilder, operands: dict[Operand, int], i: int, ids: Mapping[int, int]
    ) -> int:
        if self._is_leaf(i):
            operand = self.nodes[i] if i in self.nodes else self._element(i)
            return b.arg(operands.setdefault(operand, len(operands)))
        match self.terms[i]:
            case LabelValue(label):
                return b.label(label)
            case Literal(text):
                return b.const(Const(text).value)
            case Scalar(name):
                return b.param(name)
            case Extent(label):
                return b.const(self.extents[label])
            case Apply(fn, args):
                return b.call(fn, *(ids[a] for a in args))
        raise EinsummableError(f"{self.terms[i]} has no node yet")

    def _element(self, i: int) -> Operand:
        """Return a node and the labels that index it."""
        return element(self.builder, self.tensors, self.terms, self.extents, self.name, i)

    def _concat(self, term: Concat, out: Sequence[str], place: Place) -> Operand:
        """Append the concatenation `term`; its parts are nodes whose dimensions are in the order of `out`."""
        sources = []
        for own, part in zip(term.own, term.parts, strict=True):
            wanted = tuple(own if label == term.label else label for label in out)
            operand = self.nodes.get(part)
            if operand is None and self._is_leaf(part):
                operand = self._element(part)
            if operand is None or tuple(operand[1]) != wanted:
                factor = _Factor(self.terms.labels[part], part)
                operand = self._einsummable([factor], wanted, (), None, self.terms.places[part])
            sources.append(operand[0])
        if len(sources) == 1:
            return self._einsummable([_Factor(tuple(out), (sources[0], tuple(out)))], out, (), None, place)
        origin = Origin(place.span, self.name, place.macro)
        return self.builder.concat(sources, out, out.index(term.label), origin), tuple(out)

    # ---- sums of products ----

    def _contracted(self, term: Reduce, out: Sequence[str], place: Place) -> Operand | None:
        """Append the sum `term` as several smaller loops, or return None where one loop is as good."""
        factors = self._factors(term.body) if term.kind == "sum" else []
        common = self.terms.types[term.body]
        alike = self._cast(factors, common, weak_only=False)
        if len(factors) < 2 or common.weak or alike is None:
            return None
        reduced = [self._reduced_alone(n, alike, term.labels, place) for n in range(len(alike))]
        steps = self._steps(reduced, out)
        if reduced == alike and len(steps) == 1:
            if not self._hides_matrix_product(factors):
                return None
            reduced = self._cast(factors, common, weak_only=True)
        left = list(reduced)
        for step in steps:
            taken = sorted((left[n] for n in step), key=lambda f: f.at)
            left = [f for n, f in enumerate(left) if n not in step]
            wanted = {*out, *(label for f in left for label in f.labels)}
            keep = [label for label in _union(taken) if label in wanted]
            if not left:
                keep = out
            elif wanted.issubset(self.left):
                keep = self._sorted(keep)
            left.append(self._step(taken, keep, place))
        (result,) = left
        return result.part

    def _factors(self, body: int) -> list[_Factor]:
        product = flatten(self.terms, body, self._is_leaf)
        ids, over = [*product.over, *product.under], len(product.over)
        if product.negative:
            ids[0] = self.terms.apply("neg", ids[:1], self.terms.places[body])
        return [_Factor(self.terms.labels[i], i, under=n >= over, at=n) for n, i in enumerate(ids)]

    def _cast(
        self, factors: Sequence[_Factor], common: ScalarType, *, weak_only: bool
    ) -> list[_Factor] | None:
        """Return `factors` cast to their common dtype, or None where the language has no name for that.

        A loop of its own for some of them must not round, overflow or count where the whole would not.
        """
        name, done = dtypes.name(common.dtype), []
        for f in factors:
            type_ = self.terms.types[f.part]
            if type_ != ScalarType(common.dtype) and (type_.weak or not weak_only):
                if name not in FUNCTIONS:
                    return None
                f = replace(f, part=self.terms.apply(name, (f.part,), self.terms.places[f.part]))
            done.append(f)
        return done

    def _hides_matrix_product(self, factors: Sequence[_Factor]) -> bool:
        """Tell whether two factors, one of them an expression, would be a matrix product if it were a node.

        Then it is worth one: ``relu(H[b,h]) * V[h,o]`` need not compute relu for every ``o``.
        """
        own = [set(f.labels) - set(_union([g for g in factors if g is not f])) for f in factors]
        return len(factors) == 2 and all(own) and not all(self._is_leaf(f.part) for f in factors)

    def _reduced_alone(
        self, n: int, factors: Sequence[_Factor], summed: Sequence[str], place: Place
    ) -> _Factor:
        """Return factor `n` summed over the labels that no other has, where that loop is smaller than all."""
        others = set(_union([f for m, f in enumerate(factors) if m != n]))
        alone = [label for label in factors[n].labels if label in summed and label not in others]
        whole = size(others | set(factors[n].labels), self.extents)
        if not alone or size(factors[n].labels, self.extents) >= whole:
            return factors[n]
        keep = [label for label in factors[n].labels if label not in alone]
        return self._step([factors[n]], self._sorted(keep), place)

    def _steps(self, factors: Sequence[_Factor], out: Sequence[str]) -> Path:
        """Return which factors to multiply in which order: all at once where no order has a smaller loop."""
        once = (tuple(range(len(factors))),)
        if len(factors) < 3:
            return once
        steps = contraction_path([f.labels for f in factors], out, self.extents)
        whole = size(_union(factors), self.extents)
        left = [set(f.labels) for f in factors]
        for step in steps:
            space = set().union(*(left[n] for n in step))
            if size(space, self.extents) < whole:
                return steps
            left = [labels for n, labels in enumerate(left) if n not in step]
            left.append(space & set().union(out, *left))
        return once

    def _step(self, factors: Sequence[_Factor], out: Sequence[str], place: Place) -> _Factor:
        """Append the product of `factors`, summed over the labels that `out` lacks."""
        space = _union(factors)
        for f in factors:
            # Computed once and not for every label it lacks; and what is left is a plain product.
            small = size(f.labels, self.extents) < size(space, self.extents)
            if isinstance(f.part, int) and not self._is_leaf(f.part) and small:
                self._node(f.part, self._sorted(f.labels), self.terms.places[f.part])
        summed = [label for label in space if label not in out]
        node = self._einsummable(factors, out, summed, "sum" if summed else None, place)
        return _Factor(tuple(out), node, at=min(f.at for f in factors))


def _union(factors: Sequence[_Factor]) -> tuple[str, ...]:
    """Return the labels of `factors`, each once, in order."""
    return tuple(dict.fromkeys(label for f in factors for label in f.labels))


def _shared(terms: Terms, needed: Sequence[int]) -> set[int]:
    """Return the dear terms that two of the nodes which `needed` becomes would compute."""
    dear: set[int] = set()
    for i in needed:
        match terms[i]:
            case Reduce() | Concat():
                dear.add(i)
            case Apply(fn, args) if FUNCTIONS[fn].transcendental or dear.intersection(args):
                dear.add(i)
    shared: set[int] = set()
    nodes: dict[int, set[int]] = {needed[-1]: {needed[-1]}}
    for i in reversed(needed):
        # A weak term would get a dtype, and change that of what it meets, if it became a tensor.
        if len(nodes[i]) > 1 and i in dear and not terms.types[i].weak:
            shared.add(i)
        own = {i} if i in shared or isinstance(terms[i], Reduce | Concat) else nodes[i]
        for part in parts_of(terms[i]):
            nodes.setdefault(part, set()).update(own)
    return shared
