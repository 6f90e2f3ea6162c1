"""Solving the extents of a line's labels.

Contract: every dimension that is indexed by one label says that label's extent, and so does an ``extent``
statement; a dimension indexed by a group says the product of its labels' extents.  `solve` returns the
extent of every label of the line, or one `ShapeError` that names all that disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from einsummable.errors import ShapeError, Span


@dataclass(frozen=True, slots=True)
class Use:
    """Dimension `dim` of `tensor` is indexed by `labels`, at `span`."""

    labels: tuple[str, ...]
    tensor: str
    shape: tuple[int, ...]
    dim: int
    span: Span

    @property
    def extent(self) -> int:
        """The extent of the dimension."""
        return self.shape[self.dim]


@dataclass(frozen=True, slots=True)
class Fixed:
    """An ``extent`` statement, its label at `span`."""

    extent: int
    span: Span


@dataclass(frozen=True, slots=True)
class _Source:
    """One place that says the extent of a label."""

    extent: int
    words: str
    span: Span
    use: Use | None = None


class _Line:
    def __init__(self, text: str, uses: Sequence[Use], fixed: Mapping[str, Fixed]) -> None:
        self.text, self.uses = text, uses
        self.sources: dict[str, list[_Source]] = {}
        named = {label for use in uses for label in use.labels}
        for label in named & set(fixed):
            words = "by its extent statement"
            self.sources[label] = [_Source(fixed[label].extent, words, fixed[label].span)]
        for use in uses:
            if len(use.labels) == 1:
                source = _Source(use.extent, f"in {use.tensor}", use.span, use)
                self.sources.setdefault(use.labels[0], []).append(source)

    def known(self) -> dict[str, int]:
        return {label: sources[0].extent for label, sources in self.sources.items()}

    def check(self) -> None:
        wrong = [label for label, found in self.sources.items() if len({s.extent for s in found}) > 1]
        if not wrong:
            return
        label = min(wrong, key=lambda w: min(s.span.start for s in self.sources[w]))
        sources = self.sources[label]
        notes = [_shapes(sources)] if any(s.use for s in sources) else []
        notes += [self._disagreement(other) for other in wrong if other != label]
        spans = tuple(s.span for s in sources)
        raise ShapeError(self._disagreement(label), text=self.text, spans=spans, notes=tuple(notes))

    def _disagreement(self, label: str) -> str:
        first: dict[int, _Source] = {}
        for source in self.sources[label]:
            first.setdefault(source.extent, source)
        words = [s.words for s in first.values()]
        if len(set(words)) < len(words):
            words = [
                f"in dimension {s.use.dim} of {s.use.tensor}" if s.use else s.words for s in first.values()
            ]
        *most, last = [f"{n} {where}" for n, where in zip(first, words, strict=True)]
        return f"label {label!r} is {', '.join(most)} but {last}"

    def solve_groups(self) -> None:
        """Derive the extent of a label from a group whose other labels are known, as long as that helps."""
        groups = [use for use in self.uses if len(use.labels) > 1]
        while groups:
            left = []
            for use in groups:
                known = self.known()
                unknown = [label for label in dict.fromkeys(use.labels) if label not in known]
                if len(unknown) > 1 or (unknown and use.labels.count(unknown[0]) > 1):
                    left.append(use)
                    continue
                self._solve_group(use, known, unknown)
            if len(left) == len(groups):
                return
            groups = left

    def _solve_group(self, use: Use, known: Mapping[str, int], unknown: Sequence[str]) -> None:
        have = prod(known[label] for label in use.labels if label in known)
        if unknown and have and use.extent % have == 0:
            words = f"by ({' '.join(use.labels)}) of {use.tensor}"
            self.sources[unknown[0]] = [_Source(use.extent // have, words, use.span)]
            return
        if not unknown and have == use.extent:
            return
        group = f"({' '.join(use.labels)})"
        factors = " × ".join(str(known.get(label, "?")) for label in use.labels)
        total = "" if unknown else f" = {have}"
        message = f"{group} is {factors}{total}, but dimension {use.dim} of {use.tensor} is {use.extent}"
        sources = [self.sources[label][0] for label in use.labels if label in known]
        where = (
            f"{label!r} is {self.sources[label][0].extent} {self.sources[label][0].words}"
            for label in dict.fromkeys(use.labels)
            if label in known
        )
        raise ShapeError(
            message,
            text=self.text,
            spans=(use.span, *(s.span for s in sources)),
            notes=(f"{use.tensor} has shape {use.shape}", ", ".join(where)),
        )


def _exactly(source: _Source) -> str:
    return f"in dimension {source.use.dim} of {source.use.tensor}" if source.use else source.words


def _shapes(sources: Sequence[_Source]) -> str:
    shapes = {s.use.tensor: s.use.shape for s in sources if s.use}
    return ", ".join(f"{tensor} has shape {shape}" for tensor, shape in shapes.items())


def solve(
    text: str, uses: Sequence[Use], fixed: Mapping[str, Fixed], wanted: Mapping[str, Sequence[Span]]
) -> dict[str, int]:
    """Return the extent of every label in `wanted`.

    Parameters
    ----------
    text
        The program, for messages.
    uses, fixed
        What is known: indexed dimensions, and ``extent`` statements by label.
    wanted
        The labels of the line, each with the places where it stands.

    Raises
    ------
    ShapeError
        A label has two extents, a group has not the extent of its dimension, or an extent is not known.
    """
    line = _Line(text, uses, fixed)
    line.check()
    line.solve_groups()
    line.check()
    known = {label: f.extent for label, f in fixed.items() if label in wanted} | line.known()
    missing = [label for label in wanted if label not in known]
    if missing:
        label = missing[0]
        grouped = next((use for use in uses if label in use.labels), None)
        notes = [f"fix it with a line of its own, as in: extent {label} = 8"]
        if grouped:
            group = f"({' '.join(grouped.labels)})"
            notes.insert(0, f"all that is known is {group} = {grouped.extent}, from {grouped.tensor}")
        raise ShapeError(
            f"the extent of label {label!r} is not known",
            text=text,
            spans=tuple(wanted[label]),
            notes=tuple(notes),
        )
    return {label: known[label] for label in wanted}
