"""MemoryPlans: what is where, what is evicted, and that the arenas are enough."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import sample_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_same, data_for, graphs, placements, plans

from einsummable.codec import from_json, to_json
from einsummable.errors import CapacityError, PlanError, TaskError
from einsummable.taskgraph import replay
from einsummable.taskgraph.allocate import allocate, least_budgets, parse_bytes
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.memory import Evict, Free, Load, MemoryPlan, Receive, Run, Send, check
from einsummable.taskgraph.order import depth_first
from einsummable.taskgraph.space import Space
from einsummable.taskgraph.tasks import Aggregate, Move, Read, evaluate


@st.composite
def programs(draw):
    graph = draw(graphs())
    plan = draw(plans(graph, draw(st.integers(1, 6))))
    taskgraph = lower(plan, draw(placements(plan, draw(st.integers(1, 3)))))
    views = draw(st.sampled_from([(), tuple(graph.inputs), tuple(graph.inputs)[:1]]))
    return taskgraph, views


def budgets_that_fit(taskgraph, views):
    """At most six budgets, from the least one to what nobody runs short of."""
    least = least_budgets(taskgraph, views=views)
    enough = allocate(taskgraph, views=views).peaks
    steps = max((b - a) // 64 for a, b in zip(least, enough, strict=True)) if least else 0
    for k in sorted({max(0, steps) * n // 5 for n in range(6)}):
        yield tuple(min(a + 64 * k, max(a, b)) for a, b in zip(least, enough, strict=True))


def assert_sound(plan, budgets=None):
    check(plan)
    for memory, peak in zip(plan.sites, plan.peaks, strict=True):
        assert peak <= memory.size
        assert memory.budget < 0 or memory.size <= memory.budget
    if budgets is not None:
        assert tuple(m.budget for m in plan.sites) == tuple(budgets)
    for stays in plan.lifetimes:
        solid = [stay for stay in stays if stay[2]]
        for (a, at, n, start, stop), (b, at2, n2, start2, stop2) in combinations(solid, 2):
            apart = at + n <= at2 or at2 + n2 <= at or stop <= start2 or stop2 <= start
            assert apart, (a, b)


@settings(deadline=None, max_examples=150)
@given(programs(), st.integers(0, 9))
def test_the_arenas_are_enough_at_every_budget_that_fits(program, seed):
    taskgraph, views = program
    arrays, params = data_for(taskgraph.graph, seed)
    expected = evaluate(taskgraph, arrays, params)
    for budgets in (None, *budgets_that_fit(taskgraph, views)):
        plan = allocate(taskgraph, budgets, views=views)
        assert_sound(plan, budgets)
        assert_same(replay.evaluate(plan, arrays, params), expected)


@settings(deadline=None, max_examples=50)
@given(programs())
def test_below_the_least_budget_a_plan_is_refused(program):
    taskgraph, views = program
    least = least_budgets(taskgraph, views=views)
    for site, needed in enumerate(least):
        if needed:
            short = [*least]
            short[site] -= 1
            with pytest.raises(CapacityError, match=f"needs {needed} bytes at once on site {site}"):
                allocate(taskgraph, short, views=views)


@settings(deadline=None, max_examples=50)
@given(programs())
def test_a_plan_survives_json(program):
    taskgraph, views = program
    plan = allocate(taskgraph, least_budgets(taskgraph, views=views), views=views)
    assert from_json(MemoryPlan, to_json(plan)) == plan


@settings(deadline=None, max_examples=50)
@given(programs())
def test_the_order_is_one(program):
    order = depth_first(program[0])
    assert sorted(order) == list(range(len(program[0].tasks)))
    at = {i: n for n, i in enumerate(order)}
    assert all(at[j] < at[i] for i in order for j in program[0].tasks[i].inputs)


def matmul():
    """Return Z = A·B of 8×8 on 2 sites, cut into blocks of 4×4 in f32: 64 bytes each."""
    plan = sample_graphs.matmul_plan()
    return lower(plan, sample_graphs.in_turn(plan, 2))


def test_a_plan_as_text(golden):
    golden(str(allocate(matmul(), least_budgets(matmul()))))


def test_what_does_not_fit_is_explained(golden):
    with pytest.raises(CapacityError, match="are allowed") as caught:
        allocate(matmul(), 100)
    golden(str(caught.value))


def test_what_an_input_has_is_not_written():
    plan = allocate(matmul(), least_budgets(matmul()))
    tasks = plan.taskgraph.tasks
    evicted = [s for memory in plan.sites for s in memory.steps if isinstance(s, Evict)]
    assert any(isinstance(tasks[s.task], Read) for s in evicted)
    assert not any(s.write for s in evicted if isinstance(tasks[s.task], Read))


def test_a_block_is_written_once():
    graph = sample_graphs.chain(16)
    plan = sample_graphs.everywhere(graph, 4)
    taskgraph = lower(plan, sample_graphs.in_turn(plan, 1))
    memory = allocate(taskgraph, least_budgets(taskgraph)).sites[0]
    written = [s.task for s in memory.steps if isinstance(s, Evict) and s.write]
    assert len(written) == len(set(written)) > 0


def test_an_aggregate_takes_the_place_of_a_block_that_ends_with_it():
    plan = allocate(matmul())
    runs = [s for memory in plan.sites for s in memory.steps if isinstance(s, Run)]
    added = [s for s in runs if isinstance(plan.taskgraph.tasks[s.task], Aggregate)]
    assert added
    assert all(s.reuses in plan.taskgraph.tasks[s.task].inputs for s in added)


def spoilt(plan, site, change):
    steps = list(plan.sites[site].steps)
    change(steps, plan.taskgraph.tasks)
    memory = replace(plan.sites[site], steps=tuple(steps))
    return replace(plan, sites=(*plan.sites[:site], memory, *plan.sites[site + 1 :]))


def first(steps, kind):
    return next(n for n, s in enumerate(steps) if isinstance(s, kind))


def drop(kind):
    return lambda steps, _: steps.pop(first(steps, kind))


def double(kind):
    return lambda steps, _: steps.insert(first(steps, kind), steps[first(steps, kind)])


def at(kind, offset):
    def change(steps, _):
        n = first(steps, kind)
        steps[n] = replace(steps[n], offset=offset)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop(Load), "which is not in memory"),
        (drop(Run), "is not in memory|never done"),
        (drop(Send), "waits for ever for the other end"),
        (double(Load), "in memory already"),
        (double(Run), "done before|not there"),
        (double(Free), "is not in memory"),
        (at(Load, 3), "offsets are multiples of 64"),
        (at(Load, 1 << 40), "beyond the"),
        (at(Run, -1), "has no such place|not there"),
        (lambda steps, _: steps.insert(0, Free(10**6)), "there is no such task"),
        (lambda steps, _: steps.append(Load(first_run(steps), 0)), "not written to disk|in memory already"),
    ],
)
def test_a_plan_that_is_wrong_is_refused(change, message):
    with pytest.raises((TaskError, CapacityError), match=message):
        check(spoilt(allocate(matmul()), 0, change))


def first_run(steps):
    return steps[first(steps, Run)].task


def test_two_blocks_in_one_place_are_refused():
    plan = allocate(matmul())
    loads = [n for n, s in enumerate(plan.sites[0].steps) if isinstance(s, Load)]

    def change(steps, _):
        steps[loads[1]] = replace(steps[loads[1]], offset=steps[loads[0]].offset)

    with pytest.raises(TaskError, match="overlaps #"):
        check(spoilt(plan, 0, change))


def test_a_result_that_is_lost_is_refused():
    plan = allocate(matmul())
    (task, _), *_ = plan.taskgraph.outputs[0].blocks
    site = plan.taskgraph.tasks[task].site
    with pytest.raises(TaskError, match="a block of the output 'Z' is gone"):
        check(spoilt(plan, site, lambda steps, _: steps.append(Free(task))))


def test_a_move_is_sent_before_what_waits_for_it():
    plan = allocate(matmul())
    moves = [i for i, t in enumerate(plan.taskgraph.tasks) if isinstance(t, Move)]
    steps = [s for memory in plan.sites for s in memory.steps]
    assert sorted(s.task for s in steps if isinstance(s, Send)) == moves
    assert sorted(s.task for s in steps if isinstance(s, Receive)) == moves


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GB", 2 * 10**9),
        ("1.5 MiB", 3 << 19),
        ("64", 64),
        ("10k", 10_000),
        ("1 tb", 10**12),
        (77, 77),
        (1e3, 1000),
    ],
)
def test_memories_are_read(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GB", "2 XB", "-1", "1ib", -1, True, None, float("inf"), "2GB2"])
def test_what_is_no_memory_is_refused(text):
    with pytest.raises(PlanError, match="a memory is a number of bytes"):
        parse_bytes(text)


def test_a_budget_a_site_is_needed():
    with pytest.raises(PlanError, match="1 budgets are given for 2 sites"):
        allocate(matmul(), ["1GB"])


@settings(deadline=None)
@given(st.lists(st.integers(0, 20), max_size=40), st.data())
def test_space_is_never_given_twice(sizes, data):
    space, taken = Space(64), {}
    for key, n in enumerate(sizes):
        if taken and data.draw(st.booleans()):
            space.give(*taken.pop(data.draw(st.sampled_from(sorted(taken)))))
        offset = space.take(n)
        if offset is None:
            # Then no gap between what is taken is long enough.
            edges = sorted((a, a + m) for a, m in taken.values() if m)
            gaps = zip([0] + [e for _, e in edges], [s for s, _ in edges] + [64], strict=True)
            assert all(stop - start < n for start, stop in gaps)
        elif n:
            used = np.zeros(64, bool)
            for a, m in taken.values():
                used[a : a + m] = True
            assert offset + n <= 64
            assert not used[offset : offset + n].any()
            taken[key] = offset, n
