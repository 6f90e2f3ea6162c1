"""Numbers, colours and text widths of the pictures."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from einsummable.views import amounts, colours
from einsummable.views.drawing import clean, shorten, text_width, wrap


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (999_499, "999 kB"), (999_500, "1.00 MB"),
     (1.21e9, "1.21 GB"), (33_554_432, "33.6 MB"), (5e20, "500 EB")],
)  # fmt: skip
def test_bytes_have_three_digits_and_a_unit(count, expected):
    assert amounts.nbytes(count) == expected


@pytest.mark.parametrize(
    ("time", "expected"),
    [(0, "0 s"), (3e-10, "0.30 ns"), (46.2e-3, "46.2 ms"), (0.9996, "1.00 s"), (999.4e-6, "999 µs"),
     (61, "61.0 s"), (600, "10.0 min"), (86400, "24.0 h")],
)  # fmt: skip
def test_times_have_three_digits_and_a_unit(time, expected):
    assert amounts.seconds(time) == expected


@given(st.floats(1, 1e18))
def test_bytes_are_right_to_three_digits(count):
    number, unit = amounts.nbytes(count).split()
    factor = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15, "EB": 1e18}[unit]
    assert float(number) * factor == pytest.approx(count, rel=0.006, abs=0.6)
    assert 0.99 < float(number) < 1000 or unit == "B"


def test_runs_are_contracted():
    assert amounts.ranges([0, 1, 2, 5, 7, 8]) == "0–2, 5, 7–8"
    assert amounts.ranges([]) == ""


@pytest.mark.parametrize("sites", [1, 2, 3, 8, 9, 16, 60, 64, 65, 100, 1000])
def test_every_site_has_a_colour_on_which_text_is_read(sites):
    palette = colours.palette(sites)
    assert len(palette) == sites
    for colour in set(palette) - {colours.INK}:
        assert colours.contrast(colour, colours.ink_on(colour)) >= 4.5
    if sites <= 64:
        assert len(set(palette)) == sites


def test_a_host_is_a_hue_and_its_sites_are_lightnesses():
    palette = colours.palette(12, (0,) * 4 + (1,) * 4 + (2,) * 4)
    lights = [colours.luminance(c) for c in palette]
    for first in (0, 4, 8):
        assert lights[first : first + 4] == sorted(lights[first : first + 4], reverse=True)
    assert len(set(palette)) == 12
    assert colours.palette(66, (0, 1) * 33)[:2] == (colours.OKABE_ITO[0], colours.OKABE_ITO[1])


def test_categories_can_be_told_apart_and_written_on():
    for colour in colours.CATEGORIES:
        assert colours.contrast(colour, colours.ink_on(colour)) >= 4.5
    for one, other in combinations(colours.CATEGORIES, 2):
        assert one != other


@given(st.text(), st.floats(20, 200), st.booleans())
def test_shortened_text_fits(text, width, mono):
    short = shorten(text, width, mono=mono)
    assert text_width(short, mono=mono) <= width
    assert short == text or short.endswith("…")


@given(st.text("ab c", max_size=60), st.floats(40, 100))
def test_wrapping_keeps_the_words(text, width):
    lines = wrap(text, width)
    assert " ".join(lines).split() == text.split()
    assert all(text_width(line) <= width for line in lines if " " in line)


def test_what_xml_forbids_is_replaced():
    assert clean("a\x00<b>&\"'\ud800") == "a\ufffd&lt;b&gt;&amp;&quot;&#x27;\ufffd"
