"""Tokenizers: byte pair encoding against its definition, and there and back."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from einsummable.errors import EinsummableError
from einsummable.models.tokenizer import HuggingFace, Llama2c, load

#: As in sentencepiece: three tokens that are no text, bytes, single characters, then longer ones.
PIECES = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(f"<0x{b:02X}>".encode() for b in range(256))]
PIECES += [c.encode() for c in " abcdeé"] + [
    b"ab",
    b" a",
    b"bc",
    b"abc",
    b" ab",
    b"cd",
    "dé".encode(),
    b"aa",
    b"aaa",
]


def score(i):
    return float(-((i * 7919) % 101))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "tok.bin"
    rows = [struct.pack("<fi", score(i), len(p)) + p for i, p in enumerate(PIECES)]
    path.write_bytes(struct.pack("<i", max(map(len, PIECES))) + b"".join(rows))
    return path


@pytest.fixture(scope="module")
def words(path):
    return load(path)


def by_definition(text):
    """Unite the two neighbours whose union scores highest, the first of equals, until there are none."""
    ids = {piece: i for i, piece in enumerate(PIECES)}
    tokens = []
    for c in " " + text if text else "":
        tokens += [ids[c.encode()]] if c.encode() in ids else [b + 3 for b in c.encode()]
    while True:
        unions = [ids.get(PIECES[a] + PIECES[b]) for a, b in pairwise(tokens)]
        if not any(unions):
            return [1, *tokens]
        at = max((i for i, u in enumerate(unions) if u), key=lambda i: (score(unions[i]), -i))
        tokens[at : at + 2] = [unions[at]]


@settings(deadline=None)
@given(st.text("abcdeé ☃\n", max_size=30))
def test_encoding_is_the_definition_and_decoding_takes_it_back(words, text):
    tokens = words.encode(text)
    assert tokens == by_definition(text)
    assert words.decode(tokens) == text


def test_half_a_character_is_shown_as_such(words):
    tokens = words.encode("☃")
    assert [words.decode(tokens[:n]) for n in (2, 3, 5)] == ["", "\N{REPLACEMENT CHARACTER}", "☃"]


def test_a_space_is_dropped_after_the_beginning_only(words):
    a = PIECES.index(b" a")
    assert words.decode([1, a, a]) == "a a"
    assert words.decode([a]) == " a"


@pytest.mark.parametrize("cut", [1, 5, 9])
def test_a_file_that_is_cut_off_is_refused(path, tmp_path, cut):
    short = tmp_path / "short.bin"
    short.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(EinsummableError, match="is no tokenizer: it ends within a token"):
        Llama2c(short)


@pytest.mark.parametrize("content", [b"", b"\0\0\0\0"])
def test_an_empty_file_is_refused(tmp_path, content):
    empty = tmp_path / "empty.bin"
    empty.write_bytes(content)
    with pytest.raises(EinsummableError, match="it has 0 tokens"):
        load(empty)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(EinsummableError, match=r"tok\.bin cannot be read: No such file"):
        load(tmp_path / "tok.bin")


def test_a_file_of_hugging_face(tmp_path):
    tokenizers = pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2, "▁": 3, "a": 4, "b": 5, "ab": 6, "▁ab": 7}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, [("a", "b"), ("▁", "ab")], unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    made.decoder = tokenizers.decoders.Metaspace()
    made.add_special_tokens(["<s>", "</s>"])
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    words = load(path)
    assert isinstance(words, HuggingFace)
    assert words.encode("ab ab b") == [1, 7, 7, 3, 5]
    assert words.decode([1, 7, 7, 3, 5, 2]) == "ab ab b"
    assert (words.ends, words.size) == ({2}, 8)


def test_json_that_is_no_tokenizer_is_refused(tmp_path):
    pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(EinsummableError, match=r"tokenizer\.json is no tokenizer"):
        load(path)
