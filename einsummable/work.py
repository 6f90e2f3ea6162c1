"""How much there is to do in a node: scalar operations of its join and its aggregate."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from einsummable import scalar
from einsummable.functions import FUNCTIONS
from einsummable.nodes import Einsummable, Input, Node


def flops(node: Node) -> int:
    """Return the scalar operations that `node` does: those of its join and its aggregate, at least one.

    All others copy; each element counts as one operation.
    """
    match node:
        case Einsummable():
            each = sum(isinstance(op, scalar.Call) for op in node.join.ops) + (node.aggregate is not None)
            compared = dict(node.one_hot)
            return prod(n for label, n in node.space if label not in compared) * max(each, 1)
        case Input():
            return 0
        case _:
            return prod(node.shape)


def operations(node: Node) -> int:
    """Return the operations of `node` as additions that take as long: functions count what they cost."""
    if not isinstance(node, Einsummable):
        return flops(node)
    ops = node.join.ops
    each = sum(_cost(op, ops) for op in ops if isinstance(op, scalar.Call))
    return prod(n for _, n in node.space) * max(each + (node.aggregate is not None), 1)


def _cost(call: scalar.Call, ops: Sequence[scalar.Op]) -> int:
    """Return the cost of `call`; the square that ``x**2`` writes is a product."""
    squared = call.fn == "pow" and ops[call.args[1]] in (scalar.Const("2"), scalar.Const("2.0"))
    return 1 if squared else FUNCTIONS[call.fn].cost
