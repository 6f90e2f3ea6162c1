"""The simulator, on programs whose times are worked out by hand, and laws on random ones."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs, placements, plans

import einsummable as ein
from einsummable.builder import GraphBuilder
from einsummable.dtypes import F32
from einsummable.errors import PlanError
from einsummable.functions import FUNCTIONS
from einsummable.planner.hardware import Hardware, Link
from einsummable.runtime.events import MoveEnded, TaskEnded, simulated
from einsummable.scalar import ScalarBuilder
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.simulate import simulate
from einsummable.taskgraph.tasks import Aggregate, Apply, Move, Output, Read, Slice, TaskGraph, nbytes
from einsummable.work import operations

#: Two hosts of two sites.  Products: 1 flop a second; near 10 B/s, far 5 B/s, no latency, no overhead.
MACHINE = Hardware(
    "toy", (0, 0, 1, 1), {"f32": 1.0}, 1e9, 1e9, 1e9, Link(10.0, 0.0), Link(5.0, 0.0), 0.0, 0.0
)
X = ((0, 5), (0, 4))


def program(sites, *tasks):
    """Return tasks that call Y[i] = sum[j] X[i,j] · X[i,j] of a 5×4 tensor: 40 flops, 20 bytes out."""
    builder = GraphBuilder()
    x = builder.input("X", (5, 4))
    builder.output("Y", builder.contract("i", (x, "ij"), (x, "ij")))
    graph = builder.build()
    return TaskGraph(graph, sites, tasks, (Output("Y", (5,), F32, ((len(tasks) - 1, ((0, 5),)),)),))


def read(site):
    return Read(site, "X", X, (5, 4), F32, 0)


def call(site, x):
    return Apply(site, (x, x), X, (5,), F32, 1)


def move(site, source, shape=(5,)):
    return Move(site, (source,), shape, F32, 1)


def test_tasks_of_a_site_run_one_after_another_and_sites_at_once():
    run = simulate(program(4, read(0), read(1), call(0, 0), call(0, 0), call(1, 1)), MACHINE)
    assert run.ends == (0, 0, 40, 80, 40)
    assert (run.makespan, run.busy) == (80, (80, 40, 0, 0))


def test_a_move_takes_its_bytes_and_starts_when_its_block_is_there():
    run = simulate(program(4, read(0), call(0, 0), move(1, 1), move(2, 1)), MACHINE)
    # 20 bytes near: 2 s.  The next waits for the port of site 0 and takes 4 s at the hosts' slower ports.
    assert (run.starts[2], run.ends[2]) == (40, 42)
    assert (run.starts[3], run.ends[3]) == (42, 46)
    assert run.moved == {(0, 1): 20, (0, 2): 20}
    assert run.moved_between_hosts == 20


def test_sites_of_a_host_share_its_port_to_the_others():
    tasks = (read(0), read(1), call(0, 0), call(1, 1), move(2, 2), move(3, 3))
    assert simulate(program(4, *tasks), MACHINE).ends[4:] == (44, 48)
    near = replace(MACHINE, hosts=(0, 0, 0, 0))
    assert simulate(program(4, *tasks), near).ends[4:] == (42, 42)


def test_what_goes_to_one_site_queues_at_its_port():
    tasks = (read(0), read(2), call(0, 0), call(2, 1), move(1, 2), move(1, 3))
    flat = replace(MACHINE, hosts=(0, 0, 0, 0))
    assert simulate(program(4, *tasks), flat).ends[4:] == (42, 44)


def test_latency_and_overhead_are_added_once():
    slow = replace(MACHINE, near=Link(10.0, 3.0), overhead=0.5)
    run = simulate(program(4, read(0), call(0, 0), move(1, 1)), slow)
    assert run.ends == (0, 40.5, 45.5)


def test_a_message_keeps_ports_busy_besides_its_bytes():
    slow = replace(MACHINE, near=Link(10.0, 3.0, 0.5))
    run = simulate(program(4, read(0), call(0, 0), call(0, 0), move(1, 1), move(1, 2)), slow)
    # The first product is there at 80, its message takes 0.5 + 2 s at the port and 3 s to arrive.
    assert sorted(run.ends[3:]) == [45.5, 85.5]
    both = simulate(
        program(4, read(0), call(0, 0), move(1, 1), Slice(0, (1,), ((0, 5),), (5,), F32, 1), move(1, 3)), slow
    )
    assert (both.ends[2], both.ends[4]) == (45.5, 48.0)


def test_small_products_and_costly_functions_take_longer():
    run = simulate(program(4, read(0), call(0, 0)), replace(MACHINE, half=2.0))
    assert run.makespan == pytest.approx(60)  # 4 summed elements: 4/(4 + 2) of the speed
    builder = GraphBuilder()
    x, scalars = builder.input("X", (8,)), ScalarBuilder()
    builder.output(
        "Y", builder.einsummable("i", [(x, "i")], scalars.build(scalars.call("exp", scalars.arg(0))))
    )
    tasks = (Read(0, "X", ((0, 8),), (8,), F32, 0), Apply(0, (0,), ((0, 8),), (8,), F32, 1))
    graph = builder.build()
    run = simulate(TaskGraph(graph, 4, tasks), replace(MACHINE, map_flops=1.0))
    assert run.makespan == 8 * FUNCTIONS["exp"].cost


def test_a_square_is_a_product_and_other_powers_are_not():
    points = {"X": (4, 3), "Y": (5, 3)}
    for exponent, cost in (("2", 1), ("2.0", 1), ("3", FUNCTIONS["pow"].cost)):
        text = f"D[i,j] = sum[k] (X[i,k] - Y[j,k])**{exponent}"
        node = ein.compile(text, **points).graph.nodes[-1]
        assert operations(node) == 4 * 5 * 3 * (1 + cost + 1)


def test_moves_and_kernels_overlap():
    run = simulate(program(4, read(0), call(0, 0), move(1, 1), call(0, 0)), MACHINE)
    assert run.ends[2:] == (42, 80)


def test_the_most_urgent_task_comes_first_unless_it_runs_in_order():
    tasks = (
        read(0),
        call(0, 0),
        call(0, 0),
        move(1, 2),
        read(1),
        call(1, 4),
        Aggregate(1, (3, 5), "sum", (5,), F32, 1),
    )
    urgent, ordered = (
        simulate(program(4, *tasks), MACHINE),
        simulate(program(4, *tasks), MACHINE, in_order=True),
    )
    assert urgent.starts[1:3] == (40, 0)
    assert ordered.starts[1:3] == (0, 40)
    assert (urgent.ends[3], ordered.ends[3]) == (42, 82)


def test_memory_is_what_lives():
    view = Slice(0, (1,), ((0, 2),), (2,), F32, 1)
    run = simulate(program(4, read(0), call(0, 0), view, move(1, 2, (2,))), MACHINE)
    # X is there and stays; Y lives for as long as its slice is being sent; the result stays.
    assert run.memory[0] == ((0.0, 100), (pytest.approx(40.8), 80))
    assert run.memory[1] == ((40.0, 8),)
    assert run.peaks == (100, 8, 0, 0)


def test_it_is_told_by_the_events_of_a_run():
    taskgraph = program(4, read(0), call(0, 0), move(1, 1))
    record = simulated(simulate(taskgraph, MACHINE))
    assert record.wall == 42
    assert record.tasks == (TaskEnded(0, 0, 0, 0), TaskEnded(1, 0, 0, 40))
    assert record.moves == (MoveEnded(2, 0, 1, 40, 42, 20),)
    assert record.busy(0) == 40


def test_prints_what_matters(golden):
    golden(simulate(program(4, read(0), call(0, 0), move(1, 1), move(2, 1)), MACHINE))


def test_the_number_of_sites_must_agree():
    with pytest.raises(PlanError, match="the program is for 3 sites, toy has 4"):
        simulate(program(3, read(0), call(0, 0)), MACHINE)


@settings(max_examples=60)
@given(graphs(max_nodes=4), st.integers(1, 6), st.booleans(), st.data())
def test_nothing_starts_before_it_can_and_nothing_is_done_twice(graph, p, in_order, data):
    plan = data.draw(plans(graph, p))
    taskgraph = lower(plan, data.draw(placements(plan, 4)))
    run = simulate(taskgraph, MACHINE, in_order=in_order)
    for i, task in enumerate(taskgraph.tasks):
        assert run.starts[i] >= max((run.ends[j] for j in task.inputs), default=0.0)
        assert run.ends[i] >= run.starts[i]
    for site in range(4):
        mine = [i for i, t in enumerate(taskgraph.tasks) if t.site == site and not isinstance(t, Move)]
        spans = sorted((run.starts[i], run.ends[i]) for i in mine)
        assert all(b <= c for (_, b), (c, _) in pairwise(spans))
        if in_order:
            assert [run.starts[i] for i in mine] == sorted(run.starts[i] for i in mine)
    assert sum(run.moved.values()) == taskgraph.bytes_moved
    assert run.peaks == tuple(max((held for _, held in steps), default=0) for steps in run.memory)
    # In the end inputs and results are left, and blocks that they are slices of.
    left = sum(steps[-1][1] for steps in run.memory if steps)
    assert left >= sum(
        nbytes(taskgraph.tasks[t]) for t in {t for out in taskgraph.outputs for t, _ in out.blocks}
    )
