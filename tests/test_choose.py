"""Choosing among plans: the best really is best, and computes the same."""

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import SMALL, ffnn, llama, matmul
from strategies import assert_same, data_for, graphs

from einsummable import choose as module
from einsummable.choose import choose, near_cost, realised, routed
from einsummable.errors import PlanError
from einsummable.evaluate import evaluate
from einsummable.planner.eindecomp import plan as eindecomp
from einsummable.planner.hardware import cluster, host
from einsummable.planner.partition import Partition
from einsummable.planner.placement import place
from einsummable.planner.plan import Layout, Plan
from einsummable.planner.strategies import named_plans
from einsummable.taskgraph import tasks
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.simulate import simulate

LLAMA = pytest.param(llama(1, 1, 64, 4, 16, 352), marks=pytest.mark.slow, id="llama")
NETWORKS = [*(pytest.param(graph, id=name) for name, graph in SMALL.items()), LLAMA]


@pytest.mark.parametrize("p", [2, 3, 8])
@pytest.mark.parametrize("graph", NETWORKS)
def test_nothing_of_equal_balance_really_moves_less(graph, p):
    best = choose(graph, p)
    allowed = max(1.1, best.work_balance)
    for plan in (eindecomp(graph, p), *named_plans(graph, p)):
        placement = place(plan, p)
        rival = module.Choice(plan, placement, lower(plan, placement))
        assert rival.work_balance > allowed or best.tasks.bytes_moved <= rival.tasks.bytes_moved


@pytest.mark.parametrize("hardware", [cluster(4, 1), cluster(2, 4)], ids=["4x1", "2x4"])
@pytest.mark.parametrize("graph", NETWORKS)
def test_no_named_plan_is_faster(graph, hardware):
    best = choose(graph, hardware.sites, by="seconds", hardware=hardware)
    hosts = hardware.hosts if len(set(hardware.hosts)) < hardware.sites else None
    for plan in (eindecomp(graph, hardware.sites), *named_plans(graph, hardware.sites)):
        placement = place(plan, hardware.sites, hosts=hosts, near=near_cost(hardware))
        flat = simulate(lower(plan, placement, hosts=hosts), hardware)
        assert best.simulation.makespan <= flat.makespan * (1 + 1e-9), plan.strategy


def test_what_was_tried_is_told_in_figures():
    graph, hardware = ffnn(64, 1024, 1024, 256), cluster(2, 4)
    best = choose(graph, 8, by="seconds", hardware=hardware)
    assert best.plan.partitions in best.tried
    for plan in named_plans(graph, 8):
        if plan.partitions in best.tried:
            alone = realised(plan, 8, {}, hardware)
            row = best.tried[plan.partitions]
            assert (row.seconds, row.moved) == (alone.simulation.makespan, alone.tasks.bytes_moved)
            assert row.seconds >= best.simulation.makespan


@settings(max_examples=20)
@given(graphs(max_nodes=4), st.integers(1, 5), st.sampled_from(["bytes", "seconds"]), st.data())
def test_computes_the_same(graph, sites, by, data):
    hardware = data.draw(st.sampled_from([cluster(sites, 1), host(sites)]))
    choice = choose(graph, sites, by=by, p=data.draw(st.integers(1, 9)), hardware=hardware)
    arrays, params = data_for(graph, 2)
    assert_same(tasks.evaluate(choice.tasks, arrays, params), evaluate(graph, arrays, params))


def test_a_large_block_for_many_sites_takes_a_tree():
    graph = matmul(16384, 256, 256)
    plan = Plan(graph, (Partition(("d0", "d1"), (16, 1)), Partition(("d0", "d1"), (1, 1)),
                        Partition(("i", "k", "j"), (16, 1, 1))), 16)  # fmt: skip
    placement, hardware = place(plan, 16), cluster(16, 1)
    flat = simulate(lower(plan, placement, tree_bytes=inf), hardware)
    found = routed(plan, placement, hardware)
    assert found.tasks.bytes_moved == flat.taskgraph.bytes_moved
    assert found.simulation.makespan < 0.75 * flat.makespan


def test_where_an_input_lies_is_kept():
    graph = matmul(8, 8, 8)
    lying = {"A": Layout((1, 2), (1, 0))}
    choice = choose(graph, 2, layouts=lying)
    assert choice.tasks.bytes_moved == 8 * 8 * 4
    assert choice.plan.partitions[0].parts == (1, 2)


def test_pins_are_kept():
    choice = choose(matmul(8, 8, 8), 4, pins={"C": {"i": 4}}, by="seconds", hardware=host(4))
    assert choice.plan.partitions[2].parts == (4, 1, 1)


def test_a_byte_within_a_host_costs_less():
    assert near_cost(cluster(8, 1)) == 1.0
    assert near_cost(cluster(2, 64)) == pytest.approx(1.25e10 / 64 / 4e9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "luck"}, "cannot be chosen by 'luck'"),
        ({"by": "seconds"}, "a hardware is needed"),
        ({"hardware": host(3)}, "host has 3 sites, the program is for 2"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(PlanError, match=message):
        choose(matmul(4, 4, 4), 2, **options)
