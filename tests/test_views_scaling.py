"""The chart of how times fall with a size."""

import json

import pytest
from svg_checks import check, texts

from einsummable import views

SERIES = {
    "EinDecomp": [(1, 50.0), (4, 13.4), (32, 2.4)],
    "single site": [(1, 400.0), (4, 400.0), (32, 400.0)],
    "2-D": [(1, 51.0), (32, 2.8)],
}


def test_the_view_is_data_and_says_what_matters():
    view = views.scaling_view(SERIES, over="hosts")
    assert json.loads(json.dumps(view)) == view
    assert view["caption"] == (
        "EinDecomp: 50.0 s on 1 host, 2.40 s on 32; the best of the others there, 2-D: 2.80 s (1.17 times)"
    )


def test_the_text_is_a_table_with_gaps():
    lines = views.text(views.scaling_view(SERIES, over="hosts")).split("\n")
    assert lines[1].split() == ["hosts", "1", "4", "32"]
    assert lines[2].split() == ["EinDecomp", "50.0", "s", "13.4", "s", "2.40", "s"]
    assert lines[4].split() == ["2-D", "51.0", "s", "2.80", "s"]


@pytest.mark.parametrize("unit", ["seconds", "bytes"])
@pytest.mark.parametrize("series", [SERIES, {"one": [(2, 3e-5)]}, {}], ids=["three", "point", "none"])
def test_it_is_drawn(series, unit):
    root = check(views.scaling_view(series, over="hosts", unit=unit))
    shown = {content for content, _ in texts(root)}
    assert set(series) <= shown


def test_names_at_the_ends_do_not_overlap():
    close = {f"line {k}": [(1, 10.0), (2, 5.0 + k / 1000)] for k in range(5)}
    check(views.scaling_view(close, over="hosts"))
