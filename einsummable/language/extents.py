"""Solving the extents of a line's labels.

Contract: every dimension that is indexed by one label says that label's extent, and so does an ``extent``
statement; a dimension indexed by a group says the product of its labels' extents, a concatenation the sum of
its parts'.  A shift or a stride, ``X[2*p+1]``, says what a label may be at most; only where nothing else says
what it is, and all such uses leave it the same, it is that: as far as the dimension reaches.  `solve` returns
the extent of every label of the line, or one `ShapeError` that names all that disagree.
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
class Reach:
    """Dimension `dim` of `tensor` is indexed by ``step*label + start``, `shown` so, at `span`."""

    label: str
    step: int
    start: int
    tensor: str
    shape: tuple[int, ...]
    dim: int
    shown: str
    span: Span

    @property
    def most(self) -> int:
        """The largest extent of the label with which no index is out of range."""
        return max(-(-(self.shape[self.dim] - self.start) // self.step), 0) if self.start >= 0 else 0


@dataclass(frozen=True, slots=True)
class Total:
    """The extent of `label` is the sum of those of `parts`: a concatenation, its label at `span`."""

    label: str
    parts: tuple[str, ...]
    span: Span


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
    def __init__(
        self,
        text: str,
        uses: Sequence[Use],
        fixed: Mapping[str, Fixed],
        reaches: Sequence[Reach],
        totals: Sequence[Total],
    ) -> None:
        self.text, self.uses, self.reaches, self.totals = text, uses, reaches, list(totals)
        self.sources: dict[str, list[_Source]] = {}
        named = {label for use in uses for label in use.labels} | {r.label for r in reaches}
        named |= {label for total in totals for label in (total.label, *total.parts)}
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

    def solve(self) -> None:
        """Derive what groups and concatenations say, then what only shifts say, as long as that helps."""
        while True:
            known = len(self.known())
            self.solve_groups()
            self.solve_totals()
            if len(self.known()) > known:
                continue
            self.solve_reaches()
            if len(self.known()) == known:
                return

    def solve_totals(self) -> None:
        """Derive the extent of a concatenation from its parts, or that of one part from all others."""
        for total in list(self.totals):
            known = self.known()
            unknown = [label for label in total.parts if label not in known]
            have = sum(known[label] for label in total.parts if label in known)
            if not unknown:
                source = _Source(have, "by concat", total.span)
                self.sources.setdefault(total.label, []).append(source)
            elif len(unknown) == 1 and known.get(total.label, -1) >= have:
                rest = known[total.label] - have
                self.sources[unknown[0]] = [_Source(rest, "by what concat leaves it", total.span)]
            else:
                continue
            self.totals.remove(total)

    def solve_reaches(self) -> None:
        """Let labels reach as far as their shifts and strides allow, where these agree."""
        known, found = self.known(), {}
        for r in self.reaches:
            if r.label not in known:
                found.setdefault(r.label, []).append(r)
        for label, several in found.items():
            if len({r.most for r in several}) == 1 and several[0].most:
                self.sources[label] = [_Source(several[0].most, f"by {several[0].tensor}", several[0].span)]

    def check_reaches(self) -> None:
        """Raise where a shift or a stride leaves its dimension."""
        known = self.known()
        for r in self.reaches:
            extent, n = known.get(r.label, 1), r.shape[r.dim]
            last = r.start + r.step * (extent - 1)
            if not extent or (r.start >= 0 and last < n):
                continue
            position = f"begins at {r.start}" if r.start < 0 else f"reaches {last}"
            sources = self.sources.get(r.label, [])
            spans = (r.span, *(s.span for s in sources[:1]))
            notes = [f"{r.tensor} has shape {r.shape}"]
            notes += [f"label {r.label!r} is {extent} {s.words}" for s in sources[:1]]
            raise ShapeError(
                f"index {r.shown} {position}, but dimension {r.dim} of {r.tensor} has extent {n}",
                text=self.text,
                spans=tuple(dict.fromkeys(spans)),
                notes=tuple(notes),
            )

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
    text: str,
    uses: Sequence[Use],
    fixed: Mapping[str, Fixed],
    wanted: Mapping[str, Sequence[Span]],
    reaches: Sequence[Reach] = (),
    totals: Sequence[Total] = (),
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
    reaches, totals
        Dimensions that shifts and strides index, and concatenations.

    Raises
    ------
    ShapeError
        A label has two extents, a group has not the extent of its dimension, a shift or a stride leaves its
        dimension, or an extent is not known.
    """
    line = _Line(text, uses, fixed, reaches, totals)
    line.check()
    line.solve()
    line.check()
    line.check_reaches()
    known = {label: f.extent for label, f in fixed.items() if label in wanted} | line.known()
    missing = [label for label in wanted if label not in known]
    if missing:
        label = missing[0]
        grouped = next((use for use in uses if label in use.labels), None)
        notes = [f"fix it with a line of its own, as in: extent {label} = 8"]
        if grouped:
            group = f"({' '.join(grouped.labels)})"
            notes.insert(0, f"all that is known is {group} = {grouped.extent}, from {grouped.tensor}")
        allowed = {r.shown: r for r in reaches if r.label == label}
        if len(allowed) > 1:
            words = ", ".join(f"{shown} in {r.tensor} allows {r.most}" for shown, r in allowed.items())
            notes.insert(0, f"it may be as long as all of its indices allow: {words}")
        raise ShapeError(
            f"the extent of label {label!r} is not known",
            text=text,
            spans=tuple(wanted[label]),
            notes=tuple(notes),
        )
    return {label: known[label] for label in wanted}
