"""Which loops compute an einsummable on a block: the choice of a `Nest` by labels and extents.

Contract: `best` weighs every label as the one that runs along the lanes of a vector, and counts loads,
operations, and copies of what the lanes could not load side by side.  Steps of another label of the result
share what is loaded: as many rows and vectors are made at a time as the registers hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

import numpy as np

from einsummable import scalar
from einsummable.dtypes import BOOL, ScalarType
from einsummable.kernels import machine, tiling
from einsummable.kernels.nest import Nest
from einsummable.kernels.tiling import Labels
from einsummable.nodes import Einsummable
from einsummable.scalar import Call

#: Operations of a function on a vector, where it is more than one.
_WORK = {"exp": 14, "sigmoid": 20, "silu": 20, "div": 4, "sqrt": 6, "rsqrt": 10}
_COPY_COST = 3.0  # of an element copied with strides, in vector operations
_ACROSS_COST = 10.0  # of combining the lanes of a vector


@dataclass(frozen=True, slots=True)
class Space:
    """An einsummable on extents, of which loops are to be chosen.

    Attributes
    ----------
    node, typed
        The node, and what `scalar.infer` answered for its join.
    labels, args
        Of each array, its labels, each once, and its dtype.
    params
        The scalars that the join may read.
    extent
        Of all labels.
    """

    node: Einsummable
    typed: tuple[scalar.Typed, ...]
    labels: tuple[Labels, ...]
    args: tuple[np.dtype, ...]
    params: tuple[tuple[str, ScalarType], ...]
    extent: dict[str, int]


def best(space: Space) -> Nest:
    """Return the loops that cost least."""
    candidates = [x for x, n in space.extent.items() if n > 1]
    return min((_nest(space, x) for x in candidates), key=lambda pair: pair[1])[0]


def _nest(space: Space, vector: str) -> tuple[Nest, float]:
    """Return the loops with `vector` along the lanes, and their cost in vector operations."""
    node, extent = space.node, space.extent
    computed = [
        t.type.dtype for op, t in zip(node.join.ops, space.typed, strict=True) if isinstance(op, Call)
    ]
    used = [d.itemsize for d in (*space.args, node.dtype, *computed) if d != BOOL]
    width = machine.processor().vector_bytes // max(used, default=4)
    steps = ceil(extent[vector] / width)
    rows = _shared(space, vector) if node.aggregate and vector in node.out else None
    height, count = _at_a_time(space, vector, steps, extent[rows] if rows else 1)
    order = tiling.layout(space.labels, node.out, extent)[0]
    last = {vector: 1, rows: 2}
    out = sorted((x for x in order if x in node.out), key=lambda x: last.get(x, 0))
    inner = sorted((x for x in order if x not in node.out), key=lambda x: last.get(x, 0))
    nest = Nest(
        node.join,
        space.typed,
        tuple(zip(space.labels, space.args, strict=True)),
        tuple((name, type_.dtype) for name, type_ in space.params if name in node.join.params),
        tuple(out),
        node.dtype,
        tuple(inner),
        node.aggregate,
        vector,
        rows,
        width,
        count,
        height,
    )
    return nest, _cost(space, nest, steps)


def _at_a_time(space: Space, vector: str, steps: int, rows: int) -> tuple[int, int]:
    """Return how many rows and vectors are made at a time.

    Each needs a register for what is aggregated, and one for what is about to be, unless one instruction
    multiplies and adds; the vectors and the rows that they are made of need one each.
    """
    node, registers = space.node, 32 if machine.processor().vector_bytes == 64 else 16
    if node.aggregate and vector not in node.out:
        return 1, min(registers // 4, steps)
    most = registers // 8 if rows > 1 else 4
    # What a step has beyond the extent is computed in vain.
    count = min(range(1, most + 1), key=lambda c: (ceil(steps / c) * c if steps < 2 * most else 0, -c))
    if rows == 1:
        return 1, count
    each = 1 if node.is_contraction else 2
    for height in (8, 4, 3, 2):
        used = height * count * each + height + count
        if height <= rows and height * count <= registers // 2 and used <= registers + 1:
            return height, count
    return 1, count


def _shared(space: Space, vector: str) -> str | None:
    """Return a label of the result whose steps share vectors that are loaded."""
    found = [
        x
        for x in space.node.out
        if x != vector and space.extent[x] > 1 and any(vector in ls and x not in ls for ls in space.labels)
    ]
    return max(found, key=lambda x: min(space.extent[x], 64), default=None)


def _cost(space: Space, nest: Nest, steps: int) -> float:
    extent, vector = space.extent, nest.vector
    work = sum(_WORK.get(op.fn, 1) for op in nest.join.ops if isinstance(op, Call)) + 1
    loads = sum(1.0 if vector in ls else 0.25 for ls in space.labels) / nest.height
    others = prod(n for x, n in extent.items() if x != vector)
    total = others * steps * (work + loads)
    if vector not in space.node.out:
        total += prod(extent[x] for x in nest.out) * _ACROSS_COST
    copied = [ls for ls in (*space.labels, space.node.out) if vector in ls and ls[-1] != vector]
    return total + sum(_COPY_COST * prod(extent[x] for x in ls) for ls in copied)
