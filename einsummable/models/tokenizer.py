"""Text to tokens and back: llama2.c's tokenizer file, and Hugging Face's ``tokenizer.json``.

Contract: a tokenizer encodes a text, with the token that begins one in front, and decodes tokens to bytes one
after another: a character may be made of several tokens.  ``tokenizer.json`` is read by the package
`tokenizers`; llama2.c's file holds the length of the longest
token (int32), then for every token a score (float32), a length (int32) and so many bytes.
"""

from __future__ import annotations

import re
import struct
from functools import cached_property
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any, Protocol

from einsummable.errors import EinsummableError

_BYTE = re.compile(rb"<0x([0-9A-F]{2})>")
#: In the vocabularies of sentencepiece the bytes 0 to 255 are tokens 3 to 258.
_FIRST_BYTE = 3


class Tokenizer(Protocol):
    """What generating needs."""

    ends: frozenset[int]
    """The tokens after which a text is over."""
    size: int
    """How many tokens there are."""

    def encode(self, text: str) -> list[int]:
        """Return the tokens of `text`, the one that begins a text first."""

    def decode(self, tokens: list[int]) -> str:
        """Return the text of `tokens`; bytes that make no character become ``�``."""


class Llama2c:
    """The tokenizer of llama2.c: byte pair encoding, the pair with the highest score first.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    EinsummableError
        It cannot be read, or is cut off.
    """

    begin = 1
    ends = frozenset({1, 2})

    def __init__(self, path: str | Path) -> None:
        data = _read(Path(path))
        self.pieces: list[bytes] = []
        self.scores: list[float] = []
        at = 4
        while at < len(data):
            if at + 8 > len(data):
                raise EinsummableError(f"{path} is no tokenizer: it ends within a token")
            score, length = struct.unpack_from("<fi", data, at)
            at += 8
            if length < 0 or at + length > len(data):
                raise EinsummableError(f"{path} is no tokenizer: it ends within a token")
            self.pieces.append(data[at : at + length])
            self.scores.append(score)
            at += length
        if len(self.pieces) < _FIRST_BYTE:
            raise EinsummableError(f"{path} is no tokenizer: it has {len(self.pieces)} tokens")
        self.size = len(self.pieces)

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        # Of equal pieces the first: later ones are single bytes that characters have as well.
        return {piece: i for i, piece in reversed(list(enumerate(self.pieces)))}

    def encode(self, text: str) -> list[int]:
        """Return the tokens of `text`, the one that begins a text first."""
        tokens = []
        for character in " " + text if text else "":
            known = self._ids.get(character.encode())
            tokens += [known] if known is not None else [b + _FIRST_BYTE for b in character.encode()]
        return [self.begin, *self._merged(tokens)]

    def _merged(self, tokens: list[int]) -> list[int]:
        """Unite the neighbours whose union has the highest score, the leftmost first, while there are any."""
        after = [*range(1, len(tokens)), -1]
        before = list(range(-1, len(tokens) - 1))
        found = [pair for i in range(len(tokens)) if (pair := self._pair(tokens, i, after[i]))]
        heapify(found)
        while found:
            _, i, union, left, right = heappop(found)
            j = after[i]
            if j < 0 or tokens[i] != left or tokens[j] != right:
                continue  # one of them is part of another union by now
            tokens[i], tokens[j], after[i] = union, -1, after[j]
            if after[i] >= 0:
                before[after[i]] = i
            for k in (before[i], i):
                if k >= 0 and (pair := self._pair(tokens, k, after[k])):
                    heappush(found, pair)
        return [t for t in tokens if t >= 0]

    def _pair(self, tokens: list[int], i: int, j: int) -> tuple[float, int, int, int, int] | None:
        if j < 0:
            return None
        union = self._ids.get(self.pieces[tokens[i]] + self.pieces[tokens[j]])
        return None if union is None else (-self.scores[union], i, union, tokens[i], tokens[j])

    def decode(self, tokens: list[int]) -> str:
        """Return the text of `tokens`: without the space that is put in front of a text."""
        out = bytearray()
        previous = -1
        for token in tokens:
            # A model may have more tokens than there are pieces, to be of a round number.
            piece = self.pieces[token] if token < self.size else b""
            if byte := _BYTE.fullmatch(piece):
                piece = bytes([int(byte[1], 16)])
            if previous == self.begin:
                piece = piece.removeprefix(b" ")
            if token not in (self.begin, 2):
                out += piece
            previous = token
        return out.decode(errors="replace")


class HuggingFace:
    """A ``tokenizer.json``, through the package `tokenizers`.

    Raises
    ------
    EinsummableError
        The package is not installed, or does not understand the file.
    """

    def __init__(self, path: str | Path) -> None:
        try:
            import tokenizers
        except ImportError:
            notes = ("pip install 'einsummable[models]'",)
            raise EinsummableError("tokenizer.json needs the package tokenizers", notes=notes) from None
        text = _read(Path(path)).decode(errors="replace")
        try:
            self._tokenizer: Any = tokenizers.Tokenizer.from_str(text)
        except Exception as error:
            raise EinsummableError(f"{path} is no tokenizer: {error}") from error
        self.size = self._tokenizer.get_vocab_size()
        ends = ("</s>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>")
        found = (self._tokenizer.token_to_id(name) for name in ends)
        self.ends = frozenset(i for i in found if i is not None)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of `text`, the one that begins a text first."""
        tokens = self._tokenizer.encode(text).ids
        begins = [self._tokenizer.token_to_id(name) for name in ("<s>", "<|begin_of_text|>")]
        begin = next((i for i in begins if i is not None), None)
        return tokens if begin is None or tokens[:1] == [begin] else [begin, *tokens]

    def decode(self, tokens: list[int]) -> str:
        """Return the text of `tokens`."""
        return self._tokenizer.decode(tokens, skip_special_tokens=True)


def load(path: str | Path) -> Tokenizer:
    """Return the tokenizer of a file: ``….json`` is Hugging Face's format, any other llama2.c's."""
    return HuggingFace(path) if Path(path).suffix == ".json" else Llama2c(path)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EinsummableError(f"{path} cannot be read: {error.strerror}") from error
