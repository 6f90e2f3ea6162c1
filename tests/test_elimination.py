"""Minimising sums of tables: the minimum where tables stay small, and a good choice where they cannot."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from einsummable.planner import elimination
from einsummable.planner.elimination import evaluate, improve, minimise


@st.composite
def problems(draw, most=7):
    """Draw the numbers of values of some variables, and tables over one, two or three of them."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factors = []
    for _ in range(draw(st.integers(0, 12))):
        scope = tuple(draw(st.permutations(range(len(sizes))))[: draw(st.integers(1, 3))])
        factors.append((scope, rng.integers(0, 20, [sizes[v] for v in scope]).astype(float)))
    return sizes, factors


def brute_force(sizes, factors):
    return min(evaluate(factors, values) for values in itertools.product(*map(range, sizes)))


@given(problems())
def test_the_minimum_is_found(problem):
    sizes, factors = problem
    values, cost = minimise(sizes, factors)
    assert cost == evaluate(factors, values) == brute_force(sizes, factors)


@given(problems(), st.integers(0, 3))
def test_what_is_set_aside_leaves_a_choice_that_no_single_change_betters(problem, hub):
    sizes, factors = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "HUB", hub)
        patch.setattr(elimination._Elimination.__init__, "__defaults__", (1,))
        values, cost = minimise(sizes, factors, limit=20)
    assert cost == evaluate(factors, values) >= brute_force(sizes, factors)
    assert evaluate(factors, improve(sizes, factors, values)) == cost


@given(problems(), st.randoms())
def test_improving_never_makes_worse_and_ends_where_no_variable_gains(problem, random):
    sizes, factors = problem
    start = [random.randrange(n) for n in sizes]
    end = improve(sizes, factors, start)
    cost = evaluate(factors, end)
    assert cost <= evaluate(factors, start)
    for v, n in enumerate(sizes):
        assert all(evaluate(factors, [*end[:v], other, *end[v + 1 :]]) >= cost for other in range(n))


def test_the_first_of_equals_is_chosen():
    values, _ = minimise([3, 3], [((0, 1), np.zeros((3, 3)))])
    assert values == [0, 0]


def test_equal_layers_are_solved_once(monkeypatch):
    calls = []
    solve = elimination._min_first
    monkeypatch.setattr(elimination, "_min_first", lambda *args: calls.append(args) or solve(*args))
    rng = np.random.default_rng(0)
    table, leaf = rng.random((5, 5)), rng.random((5, 3))
    layers = 40
    chain = [((i, i + 1), table) for i in range(layers)]
    leaves = [((i, layers + 1 + i), leaf) for i in range(layers + 1)]
    minimise([5] * (layers + 1) + [3] * (layers + 1), chain + leaves)
    assert len(calls) <= layers + 2  # one for all leaves, one a step of the chain
