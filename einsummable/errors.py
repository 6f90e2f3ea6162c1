"""Every exception the package raises on purpose, and how it points at source text.

Contract: a message is one sentence in the reader's words, then the lines of the source with carets
under *all* guilty places, then ``note:`` lines.  Imports nothing from the package: the bottom layer.

>>> where = (Span(6, 7), Span(11, 12))
>>> print(ShapeError("label 'd' is 2 in X but 3 in W", text="Y = X[d]*W[d]", spans=where))
label 'd' is 2 in X but 3 in W
1 | Y = X[d]*W[d]
  |       ^    ^
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range ``[start, stop)`` of characters in one source text."""

    start: int
    stop: int


def underline(text: str, *spans: Span) -> str:
    """Return the lines of `text` that `spans` touch, each followed by a line of carets."""
    out, offset = [], 0
    lines = text.split("\n")
    width = len(str(len(lines)))
    for number, line in enumerate(lines, 1):
        marks = [" "] * (len(line) + 1)
        for span in spans:
            stop = max(span.stop, span.start + 1)
            for i in range(max(span.start, offset), min(stop, offset + len(line) + 1)):
                marks[i - offset] = "^"
        if "^" in marks:
            out += [f"{number:{width}} | {line}", f"{'':{width}} | {''.join(marks).rstrip()}"]
        offset += len(line) + 1
    return "\n".join(out)


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return a one-line note that offers the known name most like `name`, or nothing."""
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return (f"did you mean {close[0]!r}?",) if close else ()


class EinsummableError(Exception):
    """Base class: ``except EinsummableError`` catches all that we raise on purpose.

    Parameters
    ----------
    message
        One sentence, with both figures and where each came from.
    text, spans
        The source and the guilty places in it.  Carets are drawn where both are given.
    notes
        Lines that follow: what was expected, the nearest known name, what would help.
    """

    def __init__(
        self, message: str, *, text: str = "", spans: tuple[Span, ...] = (), notes: tuple[str, ...] = ()
    ) -> None:
        self.message, self.text, self.spans, self.notes = message, text, tuple(spans), tuple(notes)
        super().__init__(message)

    def __str__(self) -> str:
        body = [self.message]
        if self.spans and self.text:
            body.append(underline(self.text, *self.spans))
        return "\n".join([*body, *(f"note: {n}" for n in self.notes)])

    def __reduce__(self) -> tuple:
        # Errors travel from engines to the driver; keyword-only arguments need help to be pickled.
        return _rebuild, (type(self), self.message, self.text, self.spans, self.notes)

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints instead of a traceback: the reader wrote a formula, not our Python."""
        return f"{type(self).__name__}: {self}".split("\n")


def _rebuild(kind: type, message: str, text: str, spans: tuple, notes: tuple) -> EinsummableError:
    return kind(message, text=text, spans=spans, notes=notes)


class ParseError(EinsummableError, ValueError):
    """The text is not in the language (or not the equation of an einsum).

    Not a `SyntaxError`: IPython and `traceback` read that class's own attributes and print the text twice.
    """


class UnknownNameError(EinsummableError):
    """A name, label or function that nothing defines."""


class ShapeError(EinsummableError, ValueError):
    """Labels, ranks or extents disagree."""


class DtypeError(EinsummableError, TypeError):
    """A mix of dtypes, or an operation on one, that has no meaning."""


class PlanError(EinsummableError):
    """A plan, a number of sites or a partition that cannot be."""


class CapacityError(PlanError):
    """What was asked for does not fit: needed and allowed are both named."""


class TaskError(EinsummableError):
    """A TaskGraph that is not well formed."""


class EngineError(EinsummableError):
    """A site failed while running: an exception in a kernel, a dead or hung engine, a time-out."""
