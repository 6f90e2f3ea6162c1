"""Exercises whose answers are checked: what the course's notebooks ask.

Contract: `check` compares an answer with the right one and returns a `Verdict`, which shows itself in a cell.
An answer that is still ``...`` is open, a wrong one gets a hint, and nothing is raised: a reader may go on.

>>> check(..., 8, hint="multiply the numbers of parts")
○ Your turn: put your answer in place of the three dots.
>>> check(6, 8, hint="multiply the numbers of parts")
✗ Not yet: 6 is too small.  Hint: multiply the numbers of parts
>>> check(8, 8)
✓ Right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from numbers import Real
from typing import Any, Literal

import numpy as np

#: How a verdict begins.
_MARKS = {"open": "○", "right": "✓", "wrong": "✗"}
#: Okabe and Ito's bluish green and vermilion, and a grey, as a border: text keeps the theme's own colour.
_BORDERS = {"open": "#999999", "right": "#009E73", "wrong": "#D55E00"}


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """What is to be said of an answer.

    Attributes
    ----------
    state
        ``"open"``, ``"right"`` or ``"wrong"``.
    words
        One or two sentences.
    """

    state: Literal["open", "right", "wrong"]
    words: str

    def __str__(self) -> str:
        return f"{_MARKS[self.state]} {self.words}"

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        style = f"border-left:4px solid {_BORDERS[self.state]};padding:4px 10px"
        shown = f'<div role="status" style="{style}">{escape(str(self))}</div>'
        return {"text/html": shown, "text/plain": str(self)}


def check(answer: Any, right: Any, *, hint: str = "", tolerance: float = 0.01) -> Verdict:
    """Return what is to be said of an answer.

    Parameters
    ----------
    answer
        What the reader found; ``...`` as long as there is nothing.
    right
        The right answer: a number, text, an array, or a collection or mapping of these.
    hint
        What to say to one who is wrong.
    tolerance
        By how much of the right one a number may differ.

    Returns
    -------
    Verdict
        Open, right or wrong.
    """
    if answer is ...:
        return Verdict("open", "Your turn: put your answer in place of the three dots.")
    if _agree(answer, right, tolerance):
        return Verdict("right", "Right.")
    words = f"Not yet: {_fault(answer, right)}."
    return Verdict("wrong", f"{words}  Hint: {hint}" if hint else words)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _agree(answer: Any, right: Any, tolerance: float) -> bool:
    if _number(answer) and _number(right):
        return abs(answer - right) <= tolerance * abs(right)
    if isinstance(right, Mapping):
        same = isinstance(answer, Mapping) and answer.keys() == right.keys()
        return same and all(_agree(answer[key], right[key], tolerance) for key in right)
    if isinstance(right, set | frozenset):
        return isinstance(answer, set | frozenset | list | tuple) and set(answer) == right
    if isinstance(right, list | tuple | np.ndarray):
        same = isinstance(answer, list | tuple | np.ndarray) and len(answer) == len(right)
        return same and all(_agree(a, r, tolerance) for a, r in zip(answer, right, strict=True))
    if isinstance(right, str):
        return isinstance(answer, str) and answer.strip().casefold() == right.casefold()
    return bool(type(answer) is type(right) and answer == right)


def _fault(answer: Any, right: Any) -> str:
    """Say what is wrong with an answer, without giving the right one away."""
    if _number(right):
        if not _number(answer):
            return "a number is asked for"
        return f"{answer:,} is too {'small' if answer < right else 'large'}"
    if isinstance(right, list | tuple | np.ndarray | set | frozenset):
        if not isinstance(answer, list | tuple | np.ndarray | set | frozenset):
            return f"{len(right)} values are asked for, in a list"
        if len(answer) != len(right):
            return f"{len(right)} values are asked for, not {len(answer)}"
    return f"{answer!r} is not it"
