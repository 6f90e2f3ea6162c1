"""Running an EinGraph with plain numpy, one whole node at a time: slow, obvious, and held to by every pass.

Contract: `evaluate` answers what a graph means; `evaluate_node` what one node makes on a box of its space.
`check_inputs` and `read_params` say whether arrays and scalars fit a program: whoever runs one asks them.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence

import numpy as np

from einsummable import dtypes, scalar
from einsummable.errors import DtypeError, EinsummableError, ShapeError, UnknownNameError
from einsummable.functions import AGGREGATES
from einsummable.graph import EinGraph
from einsummable.nodes import (
    Box,
    Concat,
    Einsummable,
    Gather,
    Input,
    Node,
    Param,
    Position,
    Reshape,
    Select,
    box_shape,
    whole,
)


def read_params(graph: EinGraph, values: Mapping[str, object]) -> dict[str, np.generic]:
    """Return the parameters of `graph` taken from `values`, cast to the types it was built for.

    Raises
    ------
    UnknownNameError
        Where a scalar is missing.
    DtypeError
        Where one is no number, of a wider kind than the program was built for (0.5 for an integer), or
        does not fit a dtype that it is cast to.
    ShapeError
        Where one is an index and out of range.
    """
    missing = [p.name for p in graph.params if p.name not in values]
    if missing:
        raise UnknownNameError(f"no value is given for the scalar {', '.join(map(repr, missing))}")
    read = {p.name: _read_param(p, values[p.name]) for p in graph.params}
    for name, i, limit in graph.param_limits:
        value, node = int(read[name]), graph.nodes[i]
        place = {"text": graph.text, "spans": (node.origin.span,) if node.origin.span else ()}
        if isinstance(limit, int) and not -limit <= value < limit:
            message = f"the scalar {name!r} is {value}, but the dimension it indexes has extent {limit}"
            raise ShapeError(message, **place)
        if isinstance(limit, np.dtype) and not dtypes.fits(value, limit):
            message = f"the scalar {name!r} is {value}, which does not fit {dtypes.name(limit)}"
            raise DtypeError(message, notes=dtypes.no_fit(value, limit).notes, **place)
    return read


def _read_param(param: Param, value: object) -> np.generic:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, np.generic | bool | int | float | complex):
        raise DtypeError(f"the scalar {param.name!r} is {reprlib.repr(value)}, which is no single number")
    try:
        given = dtypes.of_value(value).dtype
    except DtypeError as error:
        raise DtypeError(f"the scalar {param.name!r} is no number: {error.message}") from error
    if dtypes.KINDS.index(dtypes.kind(given)) <= dtypes.KINDS.index(dtypes.kind(param.type.dtype)):
        return np.asarray(value).astype(param.type.dtype)[()]
    words = {"b": "a boolean", "i": "an integer", "f": "a real number", "c": "a complex number"}
    wanted = words[dtypes.kind(param.type.dtype)]
    raise DtypeError(
        f"the scalar {param.name!r} is {value!r}, the program was compiled for {wanted}",
        notes=("compile it again with a value of the new kind",),
    )


def check_inputs(graph: EinGraph, arrays: Mapping[str, object]) -> None:
    """Raise unless `arrays` (anything with shape and dtype) fits every input's declared shape and dtype.

    Raises
    ------
    UnknownNameError, ShapeError, DtypeError
        An array is missing, or has another shape or dtype; the others that do not fit are in the notes.
    """
    problems: list[tuple[type[EinsummableError], str, Input]] = []
    for name, node in graph.inputs.items():
        if name not in arrays:
            raise UnknownNameError(f"no array is given for the input {name!r}")
        array = arrays[name] if hasattr(arrays[name], "dtype") else np.asarray(arrays[name])
        if tuple(array.shape) != node.shape:
            had, wanted = f"has shape {tuple(array.shape)}", str(node.shape)
        elif array.dtype != node.dtype:
            had, wanted = f"is {dtypes.name(array.dtype)}", dtypes.name(node.dtype)
        else:
            continue
        kind = ShapeError if tuple(array.shape) != node.shape else DtypeError
        problems.append((kind, f"{name} {had}, the program was compiled for {wanted}", node))
    if problems:
        (kind, message, _), *others = problems
        spans = tuple(node.origin.span for *_, node in problems if node.origin.span)
        notes = (*(text for _, text, _ in others), "give such an array, or compile the program again")
        raise kind(message, text=graph.text, spans=spans, notes=notes)


def evaluate(
    graph: EinGraph, arrays: Mapping[str, np.ndarray], params: Mapping[str, object] | None = None
) -> dict[str, np.ndarray]:
    """Run `graph` with plain numpy, one whole node at a time: the oracle that every pass is held to."""
    check_inputs(graph, arrays)
    scalars = read_params(graph, params or {})
    values: list[np.ndarray] = []
    for node in graph.nodes:
        if isinstance(node, Input):
            values.append(np.asarray(arrays[node.name]))
        else:
            space = whole([n for _, n in node.space])
            args = [
                values[j][tuple(slice(*r) for r in node.in_box(k, space))] for k, j in enumerate(node.inputs)
            ]
            values.append(evaluate_node(graph, node, space, args, scalars))
    return {name: values[o] for name, o in graph.outputs}


def evaluate_node(
    graph: EinGraph, node: Node, ranges: Box, args: Sequence[np.ndarray], params: Mapping[str, np.generic]
) -> np.ndarray:
    """Return what `node` makes on `ranges` of its space from the boxes `in_box` answers: slow and obvious."""
    match node:
        case Einsummable():
            return _evaluate_einsummable(graph, node, ranges, args, params)
        case Reshape():
            return args[0].reshape(box_shape(node.out_box(ranges)))
        case Select():
            return args[0][tuple(select_index(p, params) for p in node.positions)]
        case Concat():
            return np.concatenate(args, axis=node.axis)
        case Gather():
            return _evaluate_gather(node, ranges, args)
    raise EinsummableError(f"an input named {node.name!r} is not computed")


def select_index(p: Position, params: Mapping[str, np.generic]) -> slice | int:
    """Return numpy's index for `p` into a box that `Select.in_box` answered."""
    if p.param is not None:
        return int(params[p.param])  # `read_params` has checked that it is in range
    if p.label is None:
        return 0
    return slice(None, None, p.step)


def _evaluate_einsummable(
    graph: EinGraph,
    node: Einsummable,
    ranges: Box,
    args: Sequence[np.ndarray],
    params: Mapping[str, np.generic],
) -> np.ndarray:
    names = [label for label, _ in node.space]
    shape = box_shape(ranges)
    grid = {
        label: np.arange(*ranges[d]).reshape([-1 if e == d else 1 for e in range(len(names))])
        for d, label in enumerate(names)
    }
    offset = {label: ranges[d][0] for d, label in enumerate(names)}
    full = []
    for x, labels in zip(args, node.labels, strict=True):
        index = tuple(grid[label] - offset[label] for label in labels)
        full.append(np.broadcast_to(x[index] if labels else x, shape))
    types = scalar.infer(node.join, tuple(x.dtype for x in args), graph.param_types)
    with np.errstate(all="ignore"):
        joined = np.broadcast_to(scalar.evaluate(node.join, full, grid, params, types), shape)
        if node.aggregate is None:
            return joined.astype(node.dtype)
        row = AGGREGATES[node.aggregate]
        wide = dtypes.accumulator(node.dtype)
        axes = tuple(range(len(node.out), len(names)))
        return row.ufunc.reduce(joined.astype(wide), axis=axes, initial=wide.type(row.identity(wide))).astype(
            node.dtype
        )


def _evaluate_gather(node: Gather, ranges: Box, args: Sequence[np.ndarray]) -> np.ndarray:
    at = {label: start for (label, _), (start, _) in zip(node.space, ranges, strict=True)}
    extents = dict(node.space)
    result = np.zeros(box_shape(node.out_box(ranges)), node.dtype)
    for point in np.ndindex(result.shape):
        here = dict(zip(node.out, point, strict=True))
        for k, row in enumerate(node.rows, 1):
            value = int(args[k][tuple(here[label] for label in node.labels[k])])
            if not 0 <= value < extents[row]:
                raise node.out_of_range(k, value)
            here[row] = value - at[row]
        where = tuple(here[label] for label in node.labels[0])
        if all(0 <= i < n for i, n in zip(where, args[0].shape, strict=True)):
            result[point] = args[0][where]
    return result
