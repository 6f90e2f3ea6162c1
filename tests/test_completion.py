"""What is offered while a formula is written."""

import numpy as np
import pytest

from einsummable.completion import complete, kind

TEXT = """H[batch,hidden] = relu(sum[depth] X[batch,depth] * W[depth,hidden])
Y[batch,out] = """


def at_end(text, tensors=("X", "W", "weights")):
    return complete(text, len(text), tensors)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("H", ["H"]),
        ("we", ["weights"]),
        ("sig", ["sigmoid", "sign"]),
        ("soft", ["softmax"]),
        ("su", ["sum"]),
        ("conc", ["concat"]),
        ("X[ba", ["batch"]),
        ("X[batch, h", ["hidden"]),
        ("su[", None),
    ],
)
def test_words_begin_with_what_is_typed(typed, offered):
    words = at_end(TEXT + typed)
    if offered is None:
        assert words == ["batch", "depth", "hidden", "out"]
    else:
        assert words == offered


def test_statements_are_offered_only_where_a_line_begins():
    assert at_end("out") == ["output"]
    assert "output" not in at_end("Z = out")


def test_half_a_name_is_no_name():
    assert at_end("Z = X[i]\nY = Z_") == []


def test_labels_only_inside_brackets():
    assert "relu" not in at_end("Y[i] = X[")
    assert "relu" in at_end("Y[i] = X[i] + ")


def test_infix_functions_are_not_offered_by_name():
    assert not {"add", "mul", "le"} & set(at_end("Y = "))


def test_tensors_of_whole_numbers_may_look_up():
    tensors = {"tokens": np.arange(3), "tomatoes": np.ones(3)}
    assert complete("H[t,d] = E[to", 13, tensors) == ["tokens"]


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("Y[i] = ", "relu", "function"),
        ("Y[i] = ", "concat", "function"),
        ("Y[i] = ", "sum", "aggregate"),
        ("Y[i] = ", "softmax", "macro"),
        ("Y[i] = ", "inf", "constant"),
        ("", "output", "keyword"),
        ("Y[i] = X[i]\nZ[i] = ", "Y", "tensor"),
        ("Y[i] = ", "X", "tensor"),
        ("Y[i] = X[", "i", "label"),
        ("Y[i] = X[", "tok", "tensor"),
    ],
)
def test_a_menu_says_what_a_word_is(text, word, expected):
    tensors = {"X": np.ones(3), "tok": np.ones(3, int)}
    assert word in complete(text, len(text), tensors)
    assert kind(word, text, len(text), tensors) == expected
