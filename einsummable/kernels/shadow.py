"""What a mask spares a chain: the part of a label where all that is masked is one constant.

Contract: where a link is ``where(condition, x, c)`` and the condition fails on a whole range of a label, its
values there do not depend on that label, and neither does what maps make of them: one *representative*
stands for all.  An aggregate over the label needs only the rest, if the representative is its identity (-inf
for max, 0 for sum); so does the sum of a product with finite numbers, if it is 0.  `shadow` finds a label for
which this may hold from the chain alone; whether the values are such is seen when it runs, and where they
are not, the whole tile is computed.  So infinities and nan come out as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from einsummable.kernels import masks
from einsummable.kernels.masks import Mask
from einsummable.kernels.sharing import Member, Thread
from einsummable.nodes import Einsummable


@dataclass(frozen=True, slots=True)
class Shadow:
    """A mask in a chain, and what each link makes of what it hides.

    Attributes
    ----------
    link, mask, dead
        The link that is a mask, its join as one, and the value of the condition where it hides.
    thread
        The thread along which it hides, by position.
    constant
        Whether what stands for the hidden part is the same in every run.
    represented
        The links whose result has a representative.
    checked
        The links that aggregate over the thread, each with the inputs that are represented.
    """

    link: int
    mask: Mask
    dead: bool
    thread: int
    constant: bool
    represented: frozenset[int]
    checked: dict[int, tuple[int, ...]]


def shadow(members: Sequence[Member], inputs: int, found: Sequence[Thread]) -> Shadow | None:
    """Return what the masks of a chain may spare, None where there is none or it cannot be told."""
    for s, (node, _) in enumerate(members):
        known = masks.mask(node.join) if node.aggregate is None else None
        if known is None:
            continue
        for t, thread in enumerate(found):
            label = thread.labels.get(s)
            if thread.cuttable or not thread.single or label not in known.labels:
                continue
            for dead in (False, True):
                reads, labels = known.branch(value=dead)
                if label not in labels and not any(label in node.labels[k] for k in reads):
                    made = _follow(members, inputs, thread, s, reads)
                    if made is not None:
                        return Shadow(s, known, dead, t, not reads and not labels, *made)
    return None


def _follow(
    members: Sequence[Member], inputs: int, thread: Thread, start: int, reached: frozenset[int]
) -> tuple[frozenset[int], dict[int, tuple[int, ...]]] | None:
    """Return which links are represented and which are checked, None if some link needs what is hidden."""
    represented: set[int] = set()
    checked: dict[int, tuple[int, ...]] = {}
    for s, (node, reads) in enumerate(members):
        label = thread.labels.get(s)
        if label is None:
            continue
        carrying = [k for k, labels in enumerate(node.labels) if label in labels]
        standing = tuple(k for k in carrying if reads[k] - inputs in represented)
        if s == start:
            represented.add(s)
            continue
        if any(reads[k] - inputs == start and k not in standing for k in carrying):
            return None
        if not standing:
            continue  # it is made where it is asked for; who asks for more is found below
        whole = len(standing) == len(carrying) and label not in node.join.labels
        if label in node.out and whole:
            represented.add(s)
        elif node.aggregated == (label,) and (whole or _is_product(node, inputs, reads, standing)):
            checked[s] = standing
        else:
            return None
    for s, (_, reads) in enumerate(members):
        # Results that carry the label and have no representative may be read by the mask alone, unseen.
        for k, j in enumerate(reads):
            p = j - inputs
            if p < 0 or p in represented or thread.labels.get(p) not in members[p][0].out:
                continue
            if s != start or k in reached:
                return None
    last = len(members) - 1
    lost = thread.labels.get(last) in members[last][0].out and last not in represented
    return None if lost or not checked else (frozenset(represented), checked)


def _is_product(node: Einsummable, inputs: int, reads: tuple[int, ...], standing: tuple[int, ...]) -> bool:
    """Return whether `node` sums products of one represented factor and one input of the chain."""
    others = [j for k, j in enumerate(reads) if k not in standing]
    return node.is_contraction and len(standing) == 1 and all(j < inputs for j in others)
