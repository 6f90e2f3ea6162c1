"""Plans that fit: what a limit changes, and how a program that is too large is refused."""

from dataclasses import replace

import numpy as np
import pytest
from networks import chain, ffnn, matmul

import einsummable as ein
from einsummable.errors import CapacityError, PlanError
from einsummable.fit import fitting
from einsummable.planner.hardware import host
from einsummable.taskgraph.allocate import least_budgets
from einsummable.taskgraph.simulate import simulate

MLP = "H[b,h] = relu(sum[d] X[b,d] * W[d,h])\nY[b,o] = H[b,h] * V[h,o]"
SHAPES = {"X": (64, 32), "W": (32, 128), "V": (128, 16)}


def peak(choice):
    return max(simulate(choice.tasks, host(choice.tasks.sites)).peaks)


def test_without_a_limit_nothing_changes():
    free = fitting(ffnn(), 4)
    assert fitting(ffnn(), 4, memory=1e12).plan == free.plan


def test_another_plan_is_found_where_the_best_does_not_fit():
    """The plan that moves least adds up many partial results; others hold less at once and move more."""
    graph = matmul(256, 2048, 256)
    free = fitting(graph, 8)
    for memory in range(peak(free) - 1, 0, -peak(free) // 16):
        found = fitting(graph, 8, memory=memory)
        if peak(found) > memory:
            break  # from here on blocks go to disk
        assert peak(found) <= memory < peak(free)
        assert found.tasks.bytes_moved >= free.tasks.bytes_moved
    else:
        pytest.fail("no limit was too tight")
    assert memory < peak(free) - 1, "no other plan was ever found"
    assert max(least_budgets(found.tasks)) <= memory


def test_where_no_plan_fits_the_one_that_moves_least_to_disk_is_taken():
    graph = chain((64, 64), (64, 64), (64, 64), (64, 64), (64, 64))
    memory = 40_000
    found = fitting(graph, 2, memory=memory)
    assert max(least_budgets(found.tasks)) <= memory < peak(found)
    names = "ABCDE"
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(-3, 4, (64, 64)).astype(np.float32) for name in names}
    net = ein.compile("Z[i,m] = A[i,j]*B[j,m] + C[i,k]*(D[k,l]*E[l,m])", sites=2, memory="40kB", **arrays)
    assert net.memory == memory < peak(net.choice)
    a, b, c, d, e = (arrays[name] for name in names)
    np.testing.assert_array_equal(net.run()["Z"], a @ b + c @ (d @ e))


def test_a_refusal_has_figures_and_says_what_would_help():
    with pytest.raises(CapacityError) as caught:
        ein.compile(MLP, sites=2, memory=1e3, **SHAPES).plan
    text = str(caught.value)
    assert "no plan fits: the one that needs least" in text
    assert "a site has 1 kB" in text
    assert "its largest kernel call takes" in text
    assert "12.3 kB a site would do, with blocks on disk for a while" in text


def test_the_memory_of_a_hardware_counts():
    small = replace(host(2), memory=1e3)
    with pytest.raises(CapacityError, match="and a site has 1 kB"):
        ein.compile(MLP, hardware=small, **SHAPES).plan
    assert ein.compile(MLP, hardware=small, memory=2e4, **SHAPES).limit == 1e3


def test_a_plan_that_is_given_must_fit_too():
    made = ein.compile(MLP, sites=2, **SHAPES)
    assert ein.compile(MLP, sites=2, plan=made.plan, memory=1e6, **SHAPES).plan == made.plan
    with pytest.raises(CapacityError, match=r"plan does not fit: it \(eindecomp with p = 2\) holds up to"):
        ein.compile(MLP, sites=2, plan=made.plan, memory=1e3, **SHAPES).tasks


def test_no_memory_at_all_is_refused():
    with pytest.raises(PlanError, match="must be more than 0 bytes, not -1"):
        fitting(matmul(4, 4, 4), 2, memory=-1)


def test_a_limit_is_shown_and_results_stay_right():
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(shape, np.float32) for name, shape in SHAPES.items()}
    net = ein.compile(MLP, sites=2, memory=1e6, **arrays)
    assert "of 1 MB on the fullest site" in str(net.explain())
    expected = np.maximum(arrays["X"] @ arrays["W"], 0) @ arrays["V"]
    np.testing.assert_allclose(net.run()["Y"], expected, rtol=1e-4, atol=1e-3)
