"""Answers of all kinds are told right from wrong, and wrong ones do not give the right one away."""

import numpy as np
import pytest

from einsummable.course import check


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        (8, 8),
        (3.01e8, 3e8),
        (np.float32(2.0), 2),
        (" Data Parallel", "data parallel"),
        ([4, 3, 3], (4, 3, 3)),
        (np.array([4, 3, 3]), [4, 3, 3]),
        (["i", "k"], {"k", "i"}),
        ({"i": 2, "k": 4}, {"k": 4, "i": 2}),
        (True, True),
    ],
)
def test_right(answer, right):
    assert check(answer, right).state == "right"


@pytest.mark.parametrize(
    ("answer", "right", "says"),
    [
        (7, 8, "7 is too small"),
        (3e8, 2e8, "300,000,000.0 is too large"),
        ("eight", 8, "a number is asked for"),
        (True, 1, "a number is asked for"),
        (None, 8, "a number is asked for"),
        ("tensor parallel", "data parallel", "'tensor parallel' is not it"),
        ([4, 3], [4, 3, 3], "3 values are asked for, not 2"),
        ([3, 3, 4], [4, 3, 3], "[3, 3, 4] is not it"),
        (10, [4, 3, 3], "3 values are asked for, in a list"),
        ({"i": 2}, {"i": 2, "k": 4}, "{'i': 2} is not it"),
        (1, True, "1 is not it"),
        (float("nan"), 2.0, "nan is too large"),
    ],
)
def test_wrong(answer, right, says):
    verdict = check(answer, right, hint="look again")
    assert verdict.state == "wrong"
    assert str(verdict) == f"✗ Not yet: {says}.  Hint: look again"


def test_open_and_shown():
    assert check(..., 8).state == "open"
    shown = check("<b>", "x")._repr_mimebundle_()
    assert "&lt;b&gt;" in shown["text/html"]
    assert shown["text/plain"].startswith("✗")
