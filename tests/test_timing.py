"""Predicted seconds: a roofline by hand, and what the plan that it chooses must be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import ffnn, llama, matmul, multi_head
from strategies import graphs, layouts

from einsummable.dtypes import F32
from einsummable.planner import timing
from einsummable.planner.eindecomp import plan, seconds
from einsummable.planner.hardware import cluster, host
from einsummable.planner.plan import Plan
from einsummable.planner.strategies import named_plans

NETWORKS = {
    "ffnn": ffnn(8, 512, 4096, 512),
    "multi-head": multi_head(4, 64, 64, 8, 8),
    "llama": llama(1, 1, 64, 4, 16, 352),
}


def rows(*parts):
    return np.array(parts, np.int64)


def test_a_large_matrix_product_is_bound_by_computing():
    machine, graph = host(8), matmul(8192, 8192, 8192)
    (whole, cut) = timing.kernels(graph, 2, rows((1, 1, 1), (2, 2, 2)), machine)
    assert whole == pytest.approx(2 * 8192**3 / machine.product_flops(F32), rel=0.02)
    assert cut == pytest.approx(whole / 8, rel=0.02)


def test_a_thin_matrix_product_is_bound_by_memory():
    machine, graph = host(8), matmul(1, 8192, 8192)
    (whole,) = timing.kernels(graph, 2, rows((1, 1, 1)), machine)
    assert whole == pytest.approx(4 * 8192 * 8192 / machine.memory_bandwidth, rel=0.2)


def test_small_blocks_are_slow():
    machine = host(1)
    (small,) = timing.kernels(matmul(32, 32, 32), 2, rows((1, 1, 1)), machine)
    assert small > 2 * 32**3 / machine.product_flops(F32) + machine.overhead


def test_more_calls_than_sites_take_turns():
    (four, eight) = timing.kernels(matmul(64, 64, 64), 2, rows((4, 1, 1), (8, 1, 1)), host(4))
    (four_, eight_) = timing.kernels(matmul(64, 64, 64), 2, rows((4, 1, 1), (8, 1, 1)), host(8))
    assert four == four_
    assert eight == 2 * eight_


def test_what_travels_shares_the_links():
    machine = host(8)
    (none, one, all_) = timing.travel(np.array([0.0, 1e9, 1e9]), np.array([8, 1, 8]), machine)
    assert none == 0
    assert one == pytest.approx(machine.near.seconds(1e9))
    assert all_ == pytest.approx(machine.near.seconds(1e9 / 8))


def test_hosts_share_their_links():
    apart, together = cluster(8, 8), host(64)
    slow = timing.travel(np.array([1e9]), np.array([64]), apart)[0]
    assert slow > timing.travel(np.array([1e9]), np.array([64]), together)[0]
    assert slow == pytest.approx(apart.far.seconds(1e9 / 8 * 56 / 63), rel=0.01)


def test_a_tiny_program_stays_on_one_site_and_a_large_one_does_not():
    assert str(plan(matmul(32, 32, 32), 8, hardware=host(8)).partitions[2]) == "whole"
    assert str(plan(matmul(4096, 4096, 4096), 8, hardware=host(8)).partitions[2]) == "i:2 k:2 j:2"


@settings(max_examples=60)
@given(st.data(), st.sampled_from([*range(1, 18), 24, 52]))
def test_plans_of_any_program_are_legal_and_no_named_plan_is_predicted_to_be_faster(data, p):
    graph = data.draw(graphs())
    lying = data.draw(layouts(graph, p))
    machine = data.draw(st.sampled_from([host(p), cluster(2, (p + 1) // 2)]))
    found = plan(graph, p, hardware=machine, layouts=lying)
    rivals = named_plans(graph, p, layouts=lying)
    assert found.cost <= min(seconds(rival, machine, lying) for rival in rivals) * (1 + 1e-9)
    assert found.cost == pytest.approx(seconds(found, machine, lying))


@pytest.mark.parametrize("machine", [host(4), host(13), cluster(2, 8)], ids=["host4", "host13", "cluster"])
@pytest.mark.parametrize(
    "graph",
    [ffnn(8, 512, 4096, 512), multi_head(4, 64, 64, 8, 8), llama(1, 1, 64, 4, 16, 352)],
    ids=["ffnn", "mha", "llama"],
)
def test_no_named_plan_is_predicted_to_be_faster(graph, machine):
    found = plan(graph, machine.sites, hardware=machine)
    assert found.cost == pytest.approx(seconds(found, machine), rel=1e-6)
    for rival in (*named_plans(graph, machine.sites), plan(graph, machine.sites)):
        assert isinstance(rival, Plan)
        assert found.cost <= seconds(rival, machine) * (1 + 1e-9)
