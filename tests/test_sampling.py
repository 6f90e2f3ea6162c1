"""Sampling: the likeliest, and frequencies against probabilities."""

import numpy as np
import pytest

from einsummable.errors import PlanError
from einsummable.models.sampling import Sampler

SCORES = np.log(np.array([[0.1, 0.5, 0.15, 0.25]]))


def frequencies(sampler, n=4000):
    return np.bincount(sampler(np.repeat(SCORES, n, axis=0)), minlength=4) / n


def test_temperature_0_takes_the_likeliest():
    assert Sampler()(np.array([[1.0, 3.0, 2.0], [9.0, 3.0, 9.0]])).tolist() == [1, 0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_frequencies_are_those_of_the_softmax(temperature):
    expected = np.exp(SCORES[0] / temperature)
    found = frequencies(Sampler(temperature, seed=1))
    np.testing.assert_allclose(found, expected / expected.sum(), atol=0.03)


@pytest.mark.parametrize(
    ("top_p", "kept"), [(0.4, [1]), (0.5, [1]), (0.6, [1, 3]), (0.76, [1, 2, 3]), (1.0, [0, 1, 2, 3])]
)
def test_top_p_keeps_the_least_set_of_likeliest_that_reaches_it(top_p, kept):
    found = frequencies(Sampler(1.0, top_p, seed=2))
    assert np.flatnonzero(found).tolist() == kept
    expected = np.where(np.isin(range(4), kept), np.exp(SCORES[0]), 0)
    np.testing.assert_allclose(found, expected / expected.sum(), atol=0.03)


def test_equal_seeds_draw_equal_tokens():
    a, b = (Sampler(1.0, seed=5)(np.zeros((50, 9))) for _ in range(2))
    assert a.tolist() == b.tolist()


@pytest.mark.parametrize("temperature", [-1.0, np.inf, np.nan])
def test_temperatures_that_cannot_be(temperature):
    with pytest.raises(PlanError, match="a temperature is a number from 0"):
        Sampler(temperature)


@pytest.mark.parametrize("top_p", [0.0, 1.1, np.nan])
def test_top_p_that_cannot_be(top_p):
    with pytest.raises(PlanError, match="top_p is above 0 and at most 1"):
        Sampler(1.0, top_p)
