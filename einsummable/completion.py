"""What may be written next in a formula.

Contract: pure text in, words out; the magics ask it for the completions of a ``%%ein`` cell.

>>> [w for w in complete("Y[i] = re", 9, tensors={"X": ("rows", "cols")}) if w.startswith("rel")]
['relu']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from einsummable.dtypes import UNNAMED
from einsummable.functions import FUNCTIONS
from einsummable.language.prelude import macro_names
from einsummable.language.syntax import AGGREGATES, CONSTANTS, KEYWORDS
from einsummable.scalar import INFIX

_WORD = re.compile(r"[^\W\d]\w*")
_DEFINED = re.compile(
    r"(?:^|[;\n])\s*(?:input\s+|output\s+)?([^\W\d]\w*)\s*(?:\[([^\]]*)\])?\s*=?", re.MULTILINE
)
_STATEMENTS = ("def", "extent", "grad", "input", "output")


def word_before(text: str, cursor: int) -> str:
    """Return the part of a word that ends at `cursor`."""
    match = re.search(r"\w*$", text[:cursor])
    return match.group() if match else ""


def inside_index(text: str, cursor: int) -> bool:
    """Return whether `cursor` stands between ``[`` and ``]``, where labels go."""
    before = text[:cursor]
    return before.rfind("[") > before.rfind("]")


def labels_in(text: str) -> list[str]:
    """Return every label that stands in brackets anywhere in `text`, in order."""
    found: dict[str, None] = {}
    for index in re.findall(r"\[([^\[\]]*)", text):
        found.update(dict.fromkeys(_WORD.findall(index)))
    return list(found)


def _integers(tensors: Iterable[str] | Mapping[str, object]) -> list[str]:
    """Return the tensors that may look something up: those known to hold whole numbers."""
    known = tensors.items() if isinstance(tensors, Mapping) else ()
    return [name for name, x in known if getattr(getattr(x, "dtype", None), "kind", "") in ("i", "u")]


def complete(text: str, cursor: int, tensors: Iterable[str] | Mapping[str, object]) -> list[str]:
    """Return the words that may stand where `cursor` is and begin with what is typed already.

    Parameters
    ----------
    text, cursor
        A program, and a position in it.
    tensors
        Names of the caller's arrays and scalars.
    """
    typed = word_before(text, cursor)
    rest = text[: cursor - len(typed)] + text[cursor:]
    if inside_index(text, cursor):
        words = [*labels_in(rest), *_integers(tensors)]
    else:
        defined = [name for name, _ in _DEFINED.findall(rest)]
        functions = [name for name in FUNCTIONS if name not in INFIX and name not in UNNAMED]
        words = [*tensors, *defined, *functions, "concat", *sorted(AGGREGATES), *macro_names()]
        words += sorted(CONSTANTS)
        if not text[: cursor - len(typed)].rpartition("\n")[2].strip():
            words += _STATEMENTS
    return sorted({w for w in words if w.startswith(typed) and w not in KEYWORDS - set(_STATEMENTS)})


def kind(word: str, text: str, cursor: int, tensors: Iterable[str] | Mapping[str, object]) -> str:
    """Return what `word`, one that `complete` offers for the same arguments, is: as a menu says it."""
    if word in tensors:
        return "tensor"
    if inside_index(text, cursor):
        return "label"
    if word in AGGREGATES:
        return "aggregate"
    for words, name in ((FUNCTIONS, "function"), (macro_names(), "macro"), (CONSTANTS, "constant")):
        if word in words:
            return name
    return "keyword" if word in _STATEMENTS else "function" if word == "concat" else "tensor"
