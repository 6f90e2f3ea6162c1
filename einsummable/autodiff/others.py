"""For every factor of a product the product of all the others, without a division.

Contract: `others` appends nodes that go down and up a tree: neighbours are multiplied, the others of each
pair are found, and each of the two is told those times its partner.  So it takes a few steps for each factor,
is right where factors are 0, and can be differentiated again like everything else.
"""

from __future__ import annotations

from einsummable.autodiff.formula import Writer, constant, to_node
from einsummable.builder import GraphBuilder
from einsummable.dtypes import kind
from einsummable.nodes import Origin, Position, Space


def others(builder: GraphBuilder, factors: int, dims: int, origin: Origin) -> int:
    """Append, for each element of node `factors`, the product of the others in its last `dims` dimensions."""
    return _Others(builder, origin).of(factors, dims)


class _Others:
    """Appends nodes; the dimension of the factors is the last one."""

    def __init__(self, builder: GraphBuilder, origin: Origin) -> None:
        self.builder, self.origin = builder, origin

    def of(self, factors: int, dims: int) -> int:
        shape = self.builder[factors].shape
        kept = len(shape) - dims
        space = self._space(shape)
        ones, together = (1,) * len(shape), (1,) * kept + (dims,)
        line = self.builder.reshape(factors, space, ones, together, self.origin)
        return self.builder.reshape(self._along(line), space, together, ones, self.origin)

    def _along(self, line: int) -> int:
        """Return the others along the last dimension."""
        n = self.builder[line].shape[-1]
        if n < 2:
            return self._ones(line, n)
        if n % 2:
            line = self._joined(line, self._ones(line, 1))
        pairs = self._split(line)
        partners = self._part(pairs, Position("s", 1, -1), 2)
        if n > 2:
            product = self._times(self._part(pairs, Position(None, 0)), self._part(pairs, Position(None, 1)))
            partners = self._times(partners, self._along(product))
        return self._part(self._merged(partners), Position("s"), n)

    @staticmethod
    def _space(shape: tuple[int, ...]) -> Space:
        return tuple((f"d{d}", n) for d, n in enumerate(shape))

    def _ones(self, like: int, n: int) -> int:
        node = self.builder[like]
        value = 1 + 0j if kind(node.dtype) == "c" else 1.0
        return to_node(
            self.builder, constant(value, self._space((*node.shape[:-1], n))), node.dtype, self.origin
        )

    def _joined(self, a: int, b: int) -> int:
        labels = [label for label, _ in self._space(self.builder[a].shape)]
        return self.builder.concat([a, b], labels, len(labels) - 1, self.origin)

    def _split(self, line: int) -> int:
        """Return neighbours in a dimension of their own."""
        *outer, n = self.builder[line].shape
        space = self._space((*outer, n // 2, 2))
        ones = (1,) * len(outer)
        return self.builder.reshape(line, space, (*ones, 2), (*ones, 1, 1), self.origin)

    def _merged(self, pairs: int) -> int:
        """Return what `_split` made of a line as a line."""
        shape = self.builder[pairs].shape
        ones = (1,) * (len(shape) - 2)
        return self.builder.reshape(pairs, self._space(shape), (*ones, 1, 1), (*ones, 2), self.origin)

    def _part(self, i: int, position: Position, n: int = 1) -> int:
        """Return part of the last dimension: one index of it, or `n`."""
        shape = self.builder[i].shape
        if position == Position("s") and n == shape[-1]:
            return i
        space = self._space(shape[:-1])
        positions = [*(Position(label) for label, _ in space), position]
        space = space if position.label is None else (*space, (position.label, n))
        return self.builder.select(i, positions, space, self.origin)

    def _times(self, a: int, b: int) -> int:
        """Return the product of two nodes; the second may lack the last dimension."""
        space = self._space(self.builder[a].shape)
        labels = [label for label, _ in space]
        w = Writer(self.builder)
        value = w.read(a, labels) * w.read(b, labels[: len(self.builder[b].shape)])
        return to_node(self.builder, w.formula(value, space), self.builder[a].dtype, self.origin)
