"""Updates: a tensor of which few elements change, ``where(s == at[b], new[b,d], old[b,s,d])``.

Contract: `update_of` recognises such a map, and its kernel writes the elements that change and no others.
Given ``out``, it copies `old` there first, unless `out` is `old` itself: then the rest stays as it is, and an
update costs what it changes.  Who owns the memory of `old` decides on that (see `taskgraph.replaced`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from einsummable.dtypes import ScalarType
from einsummable.nodes import Einsummable
from einsummable.scalar import Arg, Call, Const, Label, Param


@dataclass(frozen=True, slots=True)
class Update:
    """Where `label` equals `index` the result is input number `new`, elsewhere input number `old`."""

    label: str
    index: Arg | Const | Param
    new: int
    old: int


def update_of(
    node: Einsummable, args: Sequence[np.dtype], params: Sequence[tuple[str, ScalarType]] = ()
) -> Update | None:
    """Return what `node` changes of which input, None where it is no update at whole numbers.

    Parameters
    ----------
    args, params
        The dtypes of its inputs, and the types of the scalars.
    """
    match node.join.ops:
        case (*ops, Call("where", (condition, new, old))) if node.aggregate is None:
            pass
        case _:
            return None
    match ops[condition], ops[new], ops[old]:
        case Call("eq", (a, b)), Arg(put), Arg(kept):
            pass
        case _:
            return None
    match (ops[a], ops[b]) if isinstance(ops[a], Label) else (ops[b], ops[a]):
        case Label(label), (Arg() | Const() | Param()) as index:
            update = Update(label, index, put, kept)
        case _:
            return None
    return update if _is_plain(node, update) and _counts(node, update, args, params) else None


def _is_plain(node: Einsummable, update: Update) -> bool:
    """Return whether `old` is read as the result is made, and the rest does not vary along the label."""
    rest = {update.new, *([update.index.index] if isinstance(update.index, Arg) else [])}
    if update.old in rest or node.labels[update.old] != node.out or len(set(node.out)) < len(node.out):
        return False
    return all(
        update.label not in node.labels[k] and len(set(node.labels[k])) == len(node.labels[k]) for k in rest
    )


def _counts(
    node: Einsummable, update: Update, args: Sequence[np.dtype], params: Sequence[tuple[str, ScalarType]]
) -> bool:
    """Return whether the index is a whole number of a dtype in which no value of the label wraps."""
    match update.index:
        case Arg(k):
            dtype = args[k]
        case Const() as constant:
            dtype = np.asarray(constant.value).dtype
        case Param(name):
            dtype = dict(params)[name].dtype
    return dtype.kind in "iu" and np.iinfo(dtype).max >= dict(node.space)[update.label]


class Updating:
    """The kernel of `node`, which is `update`, on a block with extents `shape` of its space."""

    def __init__(self, node: Einsummable, update: Update, shape: tuple[int, ...]) -> None:
        self.update, self.shape, self.dtype = update, shape, node.dtype
        index = node.labels[update.index.index] if isinstance(update.index, Arg) else ()
        fixed = {*index, update.label}
        rest = tuple(x for x in node.out if x not in fixed)
        self.along = node.out.index(update.label)
        self.extent = shape[self.along]
        #: How the result and what is put into it are turned: the labels of the index first.
        self.turn = tuple(node.out.index(x) for x in (*index, update.label, *rest))
        labels = node.labels[update.new]
        self.turn_new = tuple(labels.index(x) for x in (*index, *rest) if x in labels)
        self.spread = tuple(slice(None) if x in labels else None for x in (*index, *rest))
        extents = dict(zip(node.out, shape, strict=True))
        self.values = tuple(extents[x] for x in (*index, *rest))
        self.single = prod(extents[x] for x in index) == 1
        self.first = (0,) * len(index)

    def __call__(
        self,
        blocks: Sequence[np.ndarray],
        at: tuple[int, ...],
        params: Mapping[str, np.generic],
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the updated block, in `out` if that is given."""
        old = blocks[self.update.old]
        if out is None:
            out = old.astype(self.dtype)
        elif not _is_same(out, old):
            out[...] = old
        index = self.index(blocks, params)
        turned = out.transpose(self.turn)
        values = blocks[self.update.new].transpose(self.turn_new)[(*self.spread, ...)]
        if self.single:
            row = int(index.item()) - at[self.along]
            if 0 <= row < self.extent:
                turned[(*self.first, row)] = values[self.first]
            return out
        rows = index - at[self.along]
        where = np.nonzero((rows >= 0) & (rows < self.extent))
        turned[(*where, rows[where])] = np.broadcast_to(values, self.values)[where]
        return out

    def index(self, blocks: Sequence[np.ndarray], params: Mapping[str, np.generic]) -> np.ndarray:
        """Return what the label is compared with."""
        match self.update.index:
            case Arg(k):
                return blocks[k]
            case Const() as constant:
                return np.asarray(constant.value)
            case Param(name):
                return np.asarray(params[name])


def _is_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays are the same memory, seen in the same way."""
    mine, other = a.__array_interface__, b.__array_interface__
    return a.dtype == b.dtype and mine["data"][0] == other["data"][0] and a.strides == b.strides
