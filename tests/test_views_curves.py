"""The curve of a loss: every step counts, and what is no number is told."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest
from svg_checks import SVG, check

from einsummable import views
from einsummable.training import Trainer
from einsummable.views import curves


def heights(losses):
    """Return how far down each point of the drawn curve is."""
    (group,) = check(views.curve_view(losses)).findall(f"{SVG}g")
    path = group.find(f"{SVG}path").get("d")
    return [float(point.split(",")[1]) for point in path.removeprefix("M").split("L")]


@pytest.mark.parametrize("losses", [[5.0, 3.0, 2.0, 1.5], [500.0, 30.0, 2.0, 0.015], [2.0, 0.0, -1.0]])
def test_a_loss_that_falls_is_drawn_falling(losses):
    down = heights(losses)
    assert len(down) == len(losses)
    assert all(a < b for a, b in pairwise(down))


def test_a_tenth_is_as_far_everywhere_on_a_wide_scale():
    steps = np.diff(heights([100.0, 10.0, 1.0, 0.1]))
    assert np.ptp(steps) <= 0.2
    assert np.ptp(np.diff(heights([10.0, 9.0, 8.0, 7.0]))) <= 0.2


def test_many_steps_are_drawn_as_their_means():
    view = views.curve_view([float(n % 2) for n in range(1000)])
    assert len(view["points"]) == curves.POINTS
    assert view["points"][0] == [5, 0.4]
    assert "each point is the mean of 5 steps" in view["caption"]
    check(view)


def test_what_is_not_finite_is_told():
    view = views.curve_view([1.0, float("nan"), float("inf"), 0.5])
    assert view["points"] == [[1, 1.0], [4, 0.5]]
    assert "2 steps without a finite loss" in view["caption"]
    check(view)


@pytest.mark.parametrize("losses", [[], [0.0], [3.0], [-2.0, -2.0]])
def test_little_is_drawn_too(losses):
    check(views.curve_view(losses))


def test_in_a_terminal_it_is_a_line_of_bars():
    assert views.text(views.curve_view([7.0, 3.0, 0.0])).endswith("\n█▄▁")
    assert len(views.text(views.curve_view(range(200))).splitlines()[-1]) == 60


def test_a_trainer_shows_its_curve():
    trainer = Trainer("L = sum[i] a[i]**2", {"a": np.ones(2)}, lr=0.1, sites=1)
    trainer.fit([{}] * 3)
    assert "3 steps; loss 2 at first" in str(trainer.curve())
    shown = trainer._repr_mimebundle_()
    assert "<svg" in shown["text/html"]
    assert shown["text/plain"] == repr(trainer)


def test_the_picture_is_well_formed():
    assert ET.fromstring(views.svg(views.curve_view([2.0, 1.0]))).tag == f"{SVG}svg"
