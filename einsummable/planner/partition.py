"""Partitions: how the labels of an iteration space are cut, and the blocks that makes.

Contract: a `Partition` gives each label of a node's space a number of parts.  Blocks are near-equal ranges,
so that extents need not divide; where one number of parts divides another, the finer cut refines the coarser.

>>> Partition(("i", "j"), (2, 1)).boxes((("i", 5), ("j", 4)))
[((0, 2), (0, 4)), ((2, 5), (0, 4))]
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from einsummable.errors import PlanError
from einsummable.nodes import Box, Space


def cut(extent: int, parts: int) -> tuple[tuple[int, int], ...]:
    """Return `parts` consecutive ranges of nearly equal length that cover ``range(extent)``."""
    edges = [extent * i // parts for i in range(parts + 1)]
    return tuple(pairwise(edges))


@dataclass(frozen=True, slots=True)
class Partition:
    """The number of parts of each label of an iteration space, in the order of the space."""

    labels: tuple[str, ...]
    parts: tuple[int, ...]

    @classmethod
    def whole(cls, space: Space) -> Partition:
        """Return the partition that cuts nothing."""
        return cls(tuple(label for label, _ in space), (1,) * len(space))

    def __getitem__(self, label: str) -> int:
        return self.parts[self.labels.index(label)]

    @property
    def blocks(self) -> int:
        """The number of kernel calls."""
        return prod(self.parts)

    def keep(self, labels: tuple[str, ...]) -> Partition:
        """Return the partition of `labels` only."""
        return Partition(labels, tuple(self[label] for label in labels))

    def boxes(self, space: Space) -> list[Box]:
        """Return the box of every block, the last label fastest."""
        ranges = [cut(n, parts) for (_, n), parts in zip(space, self.parts, strict=True)]
        return list(product(*ranges))

    def check(self, space: Space, cuttable: tuple[str, ...]) -> None:
        """Raise `PlanError` unless it cuts `space`, no label beyond its extent, and only what may be cut."""
        if self.labels != tuple(label for label, _ in space):
            raise PlanError(f"a partition of {', '.join(self.labels)} is given for other labels")
        for (label, extent), parts in zip(space, self.parts, strict=True):
            if not 1 <= parts <= max(extent, 1):
                raise PlanError(f"label {label!r} of extent {extent} cannot be cut into {parts} parts")
            if parts > 1 and label not in cuttable:
                raise PlanError(f"label {label!r} cannot be cut: it lies inside a group")

    def __str__(self) -> str:
        cuts = [f"{label}:{n}" for label, n in zip(self.labels, self.parts, strict=True) if n > 1]
        return " ".join(cuts) or "whole"
