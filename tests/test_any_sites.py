"""Every number of sites: programs with uneven extents are planned, placed, lowered and evaluate right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import attention, chain, ffnn_step, llama, matmul, multi_head
from strategies import assert_same, data_for, graphs

from einsummable.evaluate import evaluate
from einsummable.planner.eindecomp import plan as eindecomp
from einsummable.planner.placement import place
from einsummable.taskgraph import tasks
from einsummable.taskgraph.check import check as check_tasks
from einsummable.taskgraph.lower import lower

#: Small, primes, beyond most extents, and what is no product of small primes.
NUMBERS = [*range(1, 18), 24, 52, 100]


def run_both(graph, p):
    """Return what the program on `p` sites and the oracle answer."""
    plan = eindecomp(graph, p)
    plan.check()
    placement = place(plan, p)
    placement.check(plan)
    program = lower(plan, placement)
    check_tasks(program)
    arrays, params = data_for(graph, p)
    return tasks.evaluate(program, arrays, params), evaluate(graph, arrays, params)


@settings(max_examples=150)
@given(graphs(max_nodes=5), st.sampled_from(NUMBERS))
def test_random_programs(graph, p):
    assert_same(*run_both(graph, p))


@pytest.mark.slow
@settings(max_examples=1500)
@given(graphs(max_nodes=8), st.sampled_from(NUMBERS))
def test_random_programs_at_length(graph, p):
    assert_same(*run_both(graph, p))


@pytest.mark.slow
@pytest.mark.parametrize("p", NUMBERS)
@pytest.mark.parametrize(
    "graph",
    [
        matmul(13, 7, 11),
        matmul(101, 3, 53),
        chain((9, 2), (2, 11), (9, 3), (3, 17), (17, 11)),
        ffnn_step(13, 7, 17, 5),
        attention(3, 11, 5, 2),
        multi_head(1, 13, 5, 3, 2),
        llama(1, 1, 11, 3, 4, 13),
    ],
    ids=["matmul", "long", "chain", "ffnn_step", "attention", "multi_head", "llama"],
)
def test_networks_of_uneven_extents(graph, p):
    got, expected = run_both(graph, p)
    for name, array in expected.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-4, atol=1e-4)
