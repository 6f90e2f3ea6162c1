"""What Tab offers in ``%%ein`` cells and after its line magics.

Contract: in a cell the language's words and the notebook's tensors; after a magic its options, and the names
of programs or actions that may stand there.  Where there are such words, nothing else is offered.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics

from einsummable import completion
from einsummable.compiled import Compiled
from einsummable.runtime.session import DistributedTensor

#: A line magic, perhaps with its value assigned, and what follows it.
_LINE_MAGIC = re.compile(r"\s*(?:\w+\s*=\s*)?%(ein_\w+)\s+(.*)$")


def make_matcher(shell: InteractiveShell, magics: Magics) -> Any:
    """Return the matcher that completes cells and lines of `magics` from the names of `shell`."""

    @context_matcher()
    def ein_matcher(context: CompletionContext) -> dict[str, Any]:
        header, _, body = context.full_text.partition("\n")
        before = context.line_with_cursor[: context.cursor_position]
        if header.split(maxsplit=1)[:1] != ["%%ein"]:
            found = _LINE_MAGIC.match(before)
            magic = getattr(magics, found[1], None) if found else None
            return {"completions": []} if magic is None else _after_magic(shell, magic, found[2])
        if context.cursor_line == 0:
            return _after_magic(shell, magics.ein, before.partition("%%ein")[2])
        lines = body.split("\n")[: context.cursor_line - 1]
        cursor = sum(len(line) + 1 for line in lines) + context.cursor_position
        tensors = {n: v for n, v in shell.user_ns.items() if not n.startswith("_") and _is_tensor(v)}
        words = completion.complete(body, cursor, tensors)
        kinds = {word: completion.kind(word, body, cursor, tensors) for word in words}
        return _answer(kinds, completion.word_before(body, cursor))

    return ein_matcher


def _after_magic(shell: InteractiveShell, magic: Any, rest: str) -> dict[str, Any]:
    """Return what may be typed next in the line of `magic`, after `rest`."""
    *earlier, typed = rest.split(" ")
    words: dict[str, str] = {}
    for action in magic.parser._actions:
        words |= dict.fromkeys(action.option_strings, "option")
        first = not action.option_strings and not any(earlier)
        if first and action.choices:
            words |= dict.fromkeys(action.choices, "action")
        elif first and magic.__name__ != "ein":
            words |= {n: "program" for n, v in shell.user_ns.items() if isinstance(v, Compiled)}
    return _answer({w: kind for w, kind in words.items() if w.startswith(typed)}, typed)


def _answer(kinds: dict[str, str], typed: str) -> dict[str, Any]:
    shown = [word for word in kinds if not word.startswith("_") or typed.startswith("_")]
    completions = [SimpleCompletion(word, type=kinds[word]) for word in shown]
    return {"completions": completions, "matched_fragment": typed, "suppress": bool(completions)}


def _is_tensor(value: object) -> bool:
    return isinstance(value, np.ndarray | np.generic | int | float | complex | DistributedTensor)
