"""Lowering: right for every legal plan and placement, and nothing is sent twice."""

from collections import Counter, defaultdict
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_same, data_for, graphs, layouts, placements, plans

from einsummable.builder import GraphBuilder
from einsummable.codec import from_json, to_json
from einsummable.errors import PlanError
from einsummable.evaluate import evaluate
from einsummable.nodes import Position, whole
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Layout, Placement, Plan
from einsummable.scalar import COPY
from einsummable.taskgraph import tasks
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.regions import intersect
from einsummable.taskgraph.tasks import Apply, Move, Slice, TaskGraph


def plan_of(graph, *cuts):
    """Return a plan with the parts of each label of each node, by node."""
    partitions = tuple(
        Partition(
            tuple(label for label, _ in node.space), tuple(cut.get(label, 1) for label, _ in node.space)
        )
        for node, cut in zip(graph.nodes, cuts, strict=True)
    )
    return Plan(graph, partitions, max(p.blocks for p in partitions), "by hand")


def kinds(program):
    return Counter(type(task).__name__ for task in program.tasks)


def source_of(program, t):
    """Return the task that made what task `t` is a slice or a copy of, and which box of it."""
    task = program.tasks[t]
    if not isinstance(task, Slice | Move):
        return t, whole(task.shape)
    source, outer = source_of(program, task.inputs[0])
    box = task.box if isinstance(task, Slice) else whole(task.shape)
    return source, tuple((a + o, b + o) for (a, b), (o, _) in zip(box, outer, strict=True))


def check_nothing_is_sent_twice(program):
    sent = defaultdict(list)
    for task in program.tasks:
        if isinstance(task, Move):
            source, box = source_of(program, task.inputs[0])
            assert all(intersect(box, other) is None for other in sent[source, task.site])
            sent[source, task.site].append(box)


def check_partial_results_are_combined_before_they_travel(program):
    """Of one block, each site sends the results of one task at most."""
    made = defaultdict(set)
    for task in program.tasks:
        if isinstance(task, Move):
            source, _ = source_of(program, task.inputs[0])
            call = program.tasks[source]
            if isinstance(call, Apply):
                node = program.graph.nodes[call.origin]
                made[call.origin, call.site, node.out_box(call.ranges)].add(source)
    assert all(len(sources) == 1 for sources in made.values())


def run_and_compare(graph, plan, placement, where, **options):
    program = lower(plan, placement, where, **options)
    arrays, params = data_for(graph, 1)
    assert_same(tasks.evaluate(program, arrays, params), evaluate(graph, arrays, params))
    check_nothing_is_sent_twice(program)
    check_partial_results_are_combined_before_they_travel(program)
    return program


@settings(max_examples=200)
@given(graphs(max_nodes=5), st.integers(1, 9), st.integers(1, 5), st.data())
def test_any_plan_placed_anyhow_computes_the_same(graph, p, sites, data):
    plan = data.draw(plans(graph, p))
    placement, where = data.draw(placements(plan, sites)), data.draw(layouts(graph, sites))
    hosts = data.draw(st.none() | st.lists(st.integers(0, 2), min_size=sites, max_size=sites))
    run_and_compare(
        graph, plan, placement, where, hosts=hosts, tree_bytes=data.draw(st.sampled_from([0, inf]))
    )


@pytest.mark.slow
@settings(max_examples=1000)
@given(graphs(max_nodes=9), st.integers(1, 9), st.integers(1, 9), st.data())
def test_any_plan_placed_anyhow_computes_the_same_at_length(graph, p, sites, data):
    plan = data.draw(plans(graph, p))
    placement, where = data.draw(placements(plan, sites)), data.draw(layouts(graph, sites))
    hosts = data.draw(st.none() | st.lists(st.integers(0, 2), min_size=sites, max_size=sites))
    run_and_compare(
        graph, plan, placement, where, hosts=hosts, tree_bytes=data.draw(st.sampled_from([0, inf]))
    )


@settings(max_examples=15)
@given(graphs(max_nodes=3), st.data())
def test_json_round_trip_of_plan_placement_and_tasks(graph, data):
    plan = data.draw(plans(graph, 4))
    placement = data.draw(placements(plan, 3))
    program = lower(plan, placement)
    assert from_json(Plan, to_json(plan)) == plan
    assert from_json(Placement, to_json(placement)) == placement
    assert from_json(TaskGraph, to_json(program)) == program


@settings(max_examples=25)
@given(graphs(), st.integers(1, 9), st.data())
def test_one_site_moves_nothing(graph, p, data):
    plan = data.draw(plans(graph, p))
    assert not kinds(lower(plan, data.draw(placements(plan, 1))))["Move"]


# --------------------------------------------------------------------------------- by hand


def product(n=8):
    builder = GraphBuilder()
    a, b = builder.input("A", (n, n)), builder.input("B", (n, n))
    builder.output("C", builder.contract("ik", (a, "ij"), (b, "jk")))
    return builder.build()


def test_matmul_on_a_cube_of_sites_moves_three_squares():
    # Call (i, k, j) at site 4i + 2k + j; every block starts, or ends, at one of the two sites that use it.
    plan = plan_of(product(), {"d0": 2, "d1": 2}, {"d0": 2, "d1": 2}, {"i": 2, "k": 2, "j": 2})
    a, b, c = (0, 1, 4, 5), (0, 2, 1, 3), (0, 2, 4, 6)
    program = lower(plan, Placement(8, (a, b, tuple(range(8))), (a, b, c)))
    assert program.bytes_moved == 3 * 8 * 8 * 4
    assert kinds(program) == {"Read": 8, "Apply": 8, "Move": 12, "Aggregate": 4}


def test_a_partial_sum_may_be_finished_in_pieces():
    plan = plan_of(product(), {"d0": 1, "d1": 2}, {"d0": 2, "d1": 1}, {"j": 2})
    whole_at_0 = lower(plan, Placement(2, ((0, 1), (0, 1), (0, 1)), ((0, 1), (0, 1), (0,))))
    rows = Placement(2, ((0, 1), (0, 1), (0, 1)), ((0, 1), (0, 1), (0, 1)), ((), (), (2, 1)))
    in_rows = run_and_compare(plan.graph, plan, rows, {})
    assert whole_at_0.bytes_moved == in_rows.bytes_moved == 8 * 8 * 4
    assert [box for _, box in in_rows.outputs[0].blocks] == [((0, 4), (0, 8)), ((4, 8), (0, 8))]
    assert kinds(in_rows)["Aggregate"] == 2


def test_partial_sums_of_a_site_are_added_before_they_travel():
    plan = plan_of(product(), {"d1": 4}, {"d0": 4}, {"j": 4})
    on_two = (0, 0, 1, 1)
    program = lower(plan, Placement(2, (on_two, on_two, on_two), (on_two, on_two, (0,))))
    assert program.bytes_moved == 8 * 8 * 4
    assert kinds(program) == {"Read": 8, "Apply": 4, "Aggregate": 3, "Move": 1}


def test_partial_sums_that_all_lie_on_one_site_stay_there_unless_they_are_results():
    builder = GraphBuilder()
    x = builder.input("X", (4, 6))
    builder.output("Z", builder.einsummable("i", [(builder.contract("i", (x, "ij")), "i")], COPY))
    plan = plan_of(builder.build(), {}, {"j": 3}, {})
    program = lower(plan, Placement(2, ((1,), (1, 1, 1), (1,)), ((1,), (0,), (0,))))
    assert program.bytes_moved == 4 * 4  # Z to its home, nothing else


def map_of(shape, *labels):
    """Return copies of X read under each of `labels`."""
    builder = GraphBuilder()
    x = builder.input("X", shape)
    for k, ls in enumerate(labels):
        builder.output(f"Y{k}", builder.einsummable(ls, [(x, ls)], COPY))
    return builder.build()


def test_blocks_that_fit_pass_whole():
    plan = plan_of(map_of((6, 4), "ij"), {"d0": 3}, {"i": 3})
    program = lower(plan, Placement(3, ((0, 1, 2), (0, 1, 2)), ((0, 1, 2), (0, 1, 2))))
    assert kinds(program) == {"Read": 3, "Apply": 3}


def test_what_two_nodes_read_on_one_site_is_sent_there_once():
    plan = plan_of(map_of((6, 4), "ij", "kl"), {}, {}, {"k": 2})
    program = lower(plan, Placement(2, ((0,), (1,), (1, 1)), ((0,), (1,), (1, 1))))
    assert program.bytes_moved == 6 * 4 * 4
    assert kinds(program)["Move"] == 1
    assert kinds(program)["Slice"] == 2  # for the second node, out of what is there


def test_overlapping_parts_of_a_block_send_their_union():
    # Site 1 reads the upper half of X for one node and the left half for another.
    plan = plan_of(map_of((4, 4), "ij", "kl"), {}, {"i": 2}, {"l": 2})
    program = lower(plan, Placement(2, ((0,), (1, 0), (1, 0)), ((0,), (1, 0), (1, 0))))
    assert program.bytes_moved == 12 * 4


def test_parts_that_do_not_overlap_are_sent_by_themselves():
    plan = plan_of(map_of((6,), "i"), {}, {"i": 3})
    program = lower(plan, Placement(2, ((0,), (1, 1, 0)), ((0,), (1, 1, 0))))
    assert sorted(t.shape for t in program.tasks if isinstance(t, Move)) == [(2,), (2,)]


def test_blocks_that_nothing_needs_are_not_made():
    builder = GraphBuilder()
    x = builder.input("X", (6, 4))
    y = builder.einsummable("ij", [(x, "ij")], COPY)
    builder.output("Z", builder.select(y, [Position(start=5), Position("j")], (("j", 4),)))
    plan = plan_of(builder.build(), {"d0": 3}, {"i": 3}, {})
    program = lower(plan, Placement(1, ((0,) * 3, (0,) * 3, (0,)), ((0,) * 3, (0,) * 3, (0,))))
    assert kinds(program) == {"Read": 1, "Apply": 2, "Slice": 1}


def test_a_layout_is_where_an_input_starts_whatever_the_plan_says():
    plan = plan_of(map_of((6,), "i"), {}, {"i": 3})
    at_home = Layout((3,), (2, 1, 0))
    program = lower(plan, Placement(3, ((0,), (2, 1, 0)), ((0,), (2, 1, 0))), {"X": at_home})
    assert kinds(program) == {"Read": 3, "Apply": 3}
    assert program.bytes_moved == 0


def test_an_input_may_be_a_result():
    builder = GraphBuilder()
    builder.output("X", builder.input("X", (5, 2)))
    graph = builder.build()
    plan = plan_of(graph, {"d0": 2})
    program = run_and_compare(graph, plan, Placement(2, ((0, 1),), ((1, 0),)), {})
    assert program.bytes_moved == 0


# ------------------------------------------------------------------------------- hosts, trees


def routes_of(program):
    """Return the pairs of sites between which blocks move, with how often."""
    return Counter((program.tasks[t.inputs[0]].site, t.site) for t in program.tasks if isinstance(t, Move))


def everyone_reads(sites):
    """X, on site 0, is read whole by a call on every site."""
    builder = GraphBuilder()
    x = builder.input("X", (8,))
    builder.output("Y", builder.einsummable("ij", [(x, "j")], COPY, extents={"i": sites}))
    plan = plan_of(builder.build(), {}, {"i": sites})
    return plan, Placement(sites, ((0,), tuple(range(sites))), ((0,), tuple(range(sites))))


def everyone_adds(sites):
    """Every site has a partial sum of Y, whose home is site 0."""
    builder = GraphBuilder()
    builder.output("Y", builder.contract("i", (builder.input("X", (8, sites)), "ij")))
    plan = plan_of(builder.build(), {"d1": sites}, {"j": sites})
    return plan, Placement(sites, (tuple(range(sites)),) * 2, (tuple(range(sites)), (0,)))


def rounds(routes):
    """Return how many rounds the moves take when each site sends, or receives, one block a round."""
    steps = {0: 0}
    busy = Counter()
    for source, site in routes:
        busy[source] = max(busy[source], steps[source]) + 1
        steps[site] = busy[source]
    return max(steps.values())


def test_a_large_block_takes_a_tree_to_many_sites():
    plan, placement = everyone_reads(16)
    star = run_and_compare(plan.graph, plan, placement, {}, tree_bytes=inf)
    tree = run_and_compare(plan.graph, plan, placement, {}, tree_bytes=0)
    small = lower(plan, placement, tree_bytes=8 * 4 + 1)
    assert rounds(routes_of(star)) == rounds(routes_of(small)) == 15
    assert rounds(routes_of(tree)) == 4
    assert star.bytes_moved == tree.bytes_moved == 15 * 8 * 4


def test_partial_sums_take_a_tree_from_many_sites():
    plan, placement = everyone_adds(16)
    star = run_and_compare(plan.graph, plan, placement, {}, tree_bytes=inf)
    tree = run_and_compare(plan.graph, plan, placement, {}, tree_bytes=0)
    assert max(len(t.inputs) for t in star.tasks) == 16
    assert max(Counter(site for _, site in routes_of(tree)).values()) == 4
    assert star.bytes_moved == tree.bytes_moved == 15 * 8 * 4


@pytest.mark.parametrize("case", [everyone_reads, everyone_adds])
def test_between_hosts_a_block_moves_once(case):
    plan, placement = case(12)
    hosts = [s // 4 for s in range(12)]
    program = run_and_compare(plan.graph, plan, placement, {}, hosts=hosts)
    across = sum(n for (a, b), n in routes_of(program).items() if hosts[a] != hosts[b])
    assert (across, program.bytes_moved) == (2, 11 * 8 * 4)


def test_hosts_must_be_given_for_all_sites():
    plan, placement = everyone_reads(4)
    with pytest.raises(PlanError, match="hosts are given for 3 sites, there are 4"):
        lower(plan, placement, hosts=[0, 0, 1])


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (Layout((3, 1), (0, 0, 0)), "X of shape .6,. cannot lie in parts .3, 1."),
        (Layout((7,), (0,) * 7), "cannot lie in parts .7,."),
        (Layout((2,), (0,)), "on sites .0,."),
        (Layout((2,), (0, 3)), "a site that does not exist: there are 3"),
    ],
)
def test_layouts_that_cannot_be_are_refused(layout, message):
    plan = plan_of(map_of((6,), "i"), {}, {"i": 3})
    with pytest.raises(PlanError, match=message):
        lower(plan, Placement(3, ((0,), (2, 1, 0)), ((0,), (2, 1, 0))), {"X": layout})


def test_a_long_program_lowers_in_one_pass():
    builder = GraphBuilder()
    x = builder.input("X", (64, 64))
    for k in range(20):
        x = builder.contract("ik", (x, "ij"), (builder.input(f"W{k}", (64, 64)), "jk"))
    builder.output("Y", x)
    graph = builder.build()
    cuts = [{"i": 4, "j": 4, "k": 4} if node.inputs else {"d0": 8, "d1": 4} for node in graph.nodes]
    plan = plan_of(graph, *cuts)
    rng = np.random.default_rng(0)
    calls = tuple(tuple(rng.permutation(64)[: p.blocks].tolist()) for p in plan.partitions)
    homes = tuple(c[:16] if len(c) == 64 else c for c in calls)
    program = lower(plan, Placement(64, calls, homes))
    check_nothing_is_sent_twice(program)
    assert kinds(program)["Apply"] == 20 * 64
    assert kinds(program)["Read"] == 21 * 32
