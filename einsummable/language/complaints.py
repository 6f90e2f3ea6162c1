"""What the parser says about text that is not in the language.

Contract: `complain` turns lark's error into a `ParseError` in the reader's words.  Brackets are looked at
first, since one that is not closed makes the parser stumble far from the fault; then the mistakes that
readers of einsum, numpy and Python make; only then the plain "expected … but found …".
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from lark import Lark, Token, UnexpectedCharacters, UnexpectedInput

from einsummable.errors import ParseError, Span
from einsummable.language.syntax import RESERVED

_CLOSES = {")": "(", "]": "["}

#: What to write for a character that the language does not have.
_CHARACTER_HINTS = {
    "×": "write * for a product", "·": "write * for a product", "⋅": "write * for a product",
    "−": "write - (the hyphen of the keyboard) for minus", "≤": "write <=", "≥": "write >=", "≠": "write !=",
    "^": "write ** for a power", "²": "write **2", "³": "write **3",
    "∑": "write sum[k] …", "∞": "write inf", "π": "write pi", "%": "write a - b*floor(a/b) for the remainder",
    "&": "write a * b where both conditions must hold", "|": "write max(a, b) where one condition suffices",
    "~": "write x == 0 for the opposite of a condition", "{": "the language has only ( ) and [ ]",
    "}": "the language has only ( ) and [ ]", "\\": "a line goes on until its brackets are closed",
    "\N{NO-BREAK SPACE}": "this is a no-break space: write a plain one",
    ":": "a dimension is named by a label, as in X[i,j]",
    ".": "tensors have no attributes; a number is written 0.5 or .5",
}  # fmt: skip

#: What to write for a word of Python.
_WORD_HINTS = {
    "and": "write a * b where both conditions must hold",
    "or": "write max(a, b) where one condition suffices",
    "not": "write x == 0 for the opposite of a condition",
    "if": "write where(condition, a, b)",
    "else": "write where(condition, a, b)",
    "for": "a line holds for all values of its labels; there are no loops",
    "in": "there are no loops; an aggregate names its labels, as in sum[k] …",
    "lambda": "write def f(x) = … on a line of its own",
    "def": "a macro stands on a line of its own",
    "return": "a line defines a tensor, as in Z[i] = 2*X[i]",
    "import": "the functions of the language are always there",
}

_OPERATORS = {"PLUS", "MINUS", "STAR", "SLASH", "COMPARE"}
_OPERANDS = {"NAME", "NUMBER", "LPAR", "MINUS", "AGGREGATE", "GRAD"}
_LINE_ENDS = {"_NEWLINE", "SEMICOLON", "$END"}


def complain(text: str, error: UnexpectedInput, grammar: Lark) -> ParseError:
    """Return the `ParseError` that says what is wrong with `text`, where lark raised `error`."""
    if isinstance(error, UnexpectedCharacters):
        at = error.pos_in_stream
        hints = _CHARACTER_HINTS.get(text[at])
        if text.startswith("...", at):
            hints = "name every dimension by a label of its own"
        message = f"the language has no character {text[at]!r}"
        return _error(message, text, Span(at, at + 1), notes=(hints,) if hints else ())
    token: Token = error.token
    ends = token.type in _LINE_ENDS
    at = _line_end(text, token) if ends else Span(token.start_pos, token.end_pos)
    return (
        _brackets(text, len(text) if token.type == "$END" else token.end_pos)
        or _common(text, token, at, error)
        or _plain(text, token, at, error.accepts or error.expected, grammar)
    )


def _error(message: str, text: str, *spans: Span, notes: tuple[str, ...] = ()) -> ParseError:
    return ParseError(message, text=text, spans=spans, notes=notes)


def _line_end(text: str, token: Token) -> Span:
    """Return the place just after the last word of the line that `token` ends."""
    stop = len(text) if token.type == "$END" else token.start_pos
    start = text.rfind("\n", 0, stop) + 1
    return Span(at := start + len(text[start:stop].split("#", maxsplit=1)[0].rstrip()), at)


def _brackets(text: str, stop: int) -> ParseError | None:
    """Return the complaint about a bracket before `stop` that has no partner, if there is one."""
    opened: list[int] = []
    comment = False
    for at, c in enumerate(text):
        comment = c != "\n" and (comment or c == "#")
        if comment or c not in "()[]":
            continue
        if c in "([":
            opened.append(at)
        elif not opened:
            if at < stop:
                return _error(f"this {c!r} closes nothing", text, Span(at, at + 1))
            break
        elif text[begun := opened.pop()] != _CLOSES[c]:
            if begun < stop:
                message = f"this {text[begun]!r} is closed by {c!r}"
                return _error(message, text, Span(begun, begun + 1), Span(at, at + 1))
            break
    guilty = tuple(Span(at, at + 1) for at in opened if at < stop)
    if not guilty:
        return None
    message = "this bracket is not closed" if len(guilty) == 1 else f"{len(guilty)} brackets are not closed"
    return _error(message, text, *guilty, notes=("a line goes on until its brackets are closed",))


def _common(text: str, token: Token, at: Span, error: UnexpectedInput) -> ParseError | None:
    """Return the complaint about a mistake that many make, if this is one."""
    accepts = set(error.accepts or error.expected)
    shifted = [t for t in error.interactive_parser.parser_state.value_stack if isinstance(t, Token)]
    before = shifted[-1] if shifted and not text[shifted[-1].end_pos : at.start].strip() else None
    if before is not None and before.type == "AGGREGATE":
        if token.type == "LSQB":
            message, note = f"{before} cannot stand here", f"put it in brackets: ({before}[k] …)"
        else:
            message, note = f"{before} needs the labels it runs over", f"write {before}[k] …"
        return _error(message, text, _span(before), notes=(note,))
    if before is not None and str(before) in RESERVED and token.type in ("EQUAL", "LSQB"):
        return reserved(text, str(before), _span(before))
    if str(token) in RESERVED and "NAME" in accepts:
        return reserved(text, str(token), at)
    if "EQUAL" in accepts and not accepts & _OPERATORS:
        found = "" if token.type in _LINE_ENDS else f" before {str(token)!r}"
        declares = {"EXTENT", "DEF"} & {t.type for t in shifted}
        notes = () if declares else ("a line defines a tensor, as in Z[i] = 2*X[i]",)
        return _error(f"'=' is missing{found}", text, at, notes=notes)
    if token.type == "EQUAL" and accepts >= _OPERATORS:
        notes = ("= defines a tensor and stands once in a line; == compares",)
        return _error("unexpected '='", text, at, notes=notes)
    if token.type in ("NAME", "NUMBER", "AGGREGATE", "LPAR") and accepts >= _OPERATORS:
        return _no_operator(text, token, at)
    if token.type == "RSQB" and text[: at.start].rstrip().endswith("["):
        notes = ("a scalar is written without brackets",)
        return _error("there is no index in these brackets", text, at, notes=notes)
    return None


def _no_operator(text: str, token: Token, at: Span) -> ParseError:
    word = re.search(r"([^\W\d]\w*)(\[[\w ,]*\])?\s*$", text[: at.start])
    if str(token) in _WORD_HINTS:
        notes = (_WORD_HINTS[str(token)],)
    elif word and word[1] in _WORD_HINTS and not word[2]:
        span = Span(word.start(1), word.end(1))
        return _error(f"the language has no word {word[1]!r}", text, span, notes=(_WORD_HINTS[word[1]],))
    elif word and token.type != "LPAR":
        notes = (f"write * for a product; if {word[1]} is a function, {word[1]}{word[2] or ''}(…)",)
    else:
        notes = ("write * for a product",)
    return _error(f"an operator is missing before {str(token)!r}", text, at, notes=notes)


def reserved(text: str, word: str, span: Span) -> ParseError:
    """Return the complaint that `word` names something, although it is a word of the language."""
    notes = (f"reserved: {' '.join(sorted(RESERVED))}",)
    return _error(f"{word!r} is a word of the language and names nothing else", text, span, notes=notes)


def _plain(text: str, token: Token, at: Span, accepts: AbstractSet[str], grammar: Lark) -> ParseError:
    words = _expected(set(accepts), grammar)
    found = "the line ends" if token.type in _LINE_ENDS else f"found {str(token)!r}"
    wanted = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    notes = ("a line goes on only inside brackets",) if token.type == "_NEWLINE" else ()
    if str(token) == "@":
        notes = ("write the product with labels, as in A[i,j] * B[j,k]",)
    if token.type == "SLASH" and text[: at.start].endswith("/"):
        notes = ("write floor(a/b) for the whole part of a quotient",)
    return _error(f"expected {wanted} but {found}", text, at, notes=notes)


def _expected(accepts: set[str], grammar: Lark) -> list[str]:
    """Return what may follow, in words: a name of lark's for a group of tokens never reaches the reader."""
    words = []
    if {"NAME", "INPUT"} <= accepts:
        return ["a statement"]
    for phrase, needs, covers in (
        ("an index", {"NAME", "AT"}, {"NAME", "AT", "NUMBER", "LPAR", "MINUS"}),
        (
            "an expression",
            {"NAME", "NUMBER", "LPAR"},
            {"NAME", "NUMBER", "LPAR", "MINUS", "AGGREGATE", "GRAD"},
        ),
        ("a number or a name", {"NAME", "NUMBER"}, {"NAME", "NUMBER"}),
        ("a label", {"NAME", "LPAR"}, {"NAME", "LPAR"}),
        ("a name", {"NAME"}, {"NAME"}),
        ("an operator", _OPERATORS, {*_OPERATORS, "STARSTAR", "LPAR"}),
        ("a number", {"NUMBER"}, {"NUMBER"}),
    ):
        if needs <= accepts:
            words.append(phrase)
            accepts -= covers
    if accepts & _LINE_ENDS:
        words.append("the end of the line")
    literal = sorted(accepts - _LINE_ENDS)
    return [repr(grammar.get_terminal(name).pattern.value) for name in literal] + words


def _span(token: Token) -> Span:
    return Span(token.start_pos, token.end_pos)
