"""Engines within a memory budget: right results, bounded growth, nothing left behind."""

import time

import numpy as np
import psutil
import pytest
import sample_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from ipyparallel import interactive
from strategies import assert_same, data_for, graphs, placements, plans

import einsummable as ein
from einsummable.errors import CapacityError, EngineError, PlanError
from einsummable.runtime.cluster import Cluster
from einsummable.runtime.events import Evicted, Loaded, MoveEnded, TaskEnded
from einsummable.taskgraph.allocate import allocate, least_budgets
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.tasks import evaluate

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def shared():
    with Cluster(n=2, threads=1) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared):
    yield shared
    shared.memory = None


@st.composite
def programs(draw):
    graph = draw(graphs())
    plan = draw(plans(graph, draw(st.integers(1, 6))))
    return lower(plan, draw(placements(plan, draw(st.integers(1, 2)))))


def around(budget):
    """Return a memory that leaves `budget` bytes, in steps of a 256th of it."""
    return -(-budget * 256 // 255) + 256


@settings(deadline=None, max_examples=40)
@given(programs(), st.integers(0, 9))
def test_random_programs_within_the_least_budget(shared, taskgraph, seed):
    arrays, params = data_for(taskgraph.graph, seed)
    expected = evaluate(taskgraph, arrays, params)
    most = max(allocate(taskgraph).peaks)
    shared.memory = around(max(least_budgets(taskgraph)))
    try:
        assert_same(shared.run(taskgraph, arrays, params), expected)
        assert_same(shared.run(taskgraph, arrays, params), expected)
        shared.memory = around(2 * most) + sum(x.nbytes for x in expected.values())
        kept = shared.run(taskgraph, arrays, params, keep=True)
        assert_same({name: t.fetch() for name, t in kept.items()}, expected)
    finally:
        shared.memory = None


def chain(s=64, p=4, sites=2):
    plan = sample_graphs.everywhere(sample_graphs.chain(s), p)
    taskgraph = lower(plan, sample_graphs.in_turn(plan, sites))
    arrays, _ = data_for(taskgraph.graph)
    return taskgraph, arrays


def product_of(arrays):
    a, b, c, d, e = (arrays[name] for name in "ABCDE")
    return a @ b + c @ (d @ e)


def test_events_tell_every_task_once(cluster):
    taskgraph, arrays = chain()
    cluster.memory = around(max(least_budgets(taskgraph)))
    heard = []
    cluster.run(taskgraph, arrays, observers=[heard.append])
    told = [e.task for e in heard if isinstance(e, TaskEnded | MoveEnded)]
    assert sorted(told) == list(range(len(taskgraph.tasks)))
    disk = [e for e in heard if isinstance(e, Evicted | Loaded)]
    assert sorted(disk, key=repr) == sorted(cluster.last.disk, key=repr)
    assert {type(e) for e in disk} == {Evicted, Loaded}


def test_inputs_that_are_there_are_read_where_they_are(cluster):
    taskgraph, arrays = chain()
    expected = evaluate(taskgraph, arrays)
    net = ein.compile(
        "Z[i,m] = A[i,j]*B[j,m] + C[i,k]*(D[k,l]*E[l,m])",
        **{n: x.astype(np.float32) for n, x in arrays.items()},
        cluster=cluster,
        p=8,
    )
    net.put(**{n: x.astype(np.float32) for n, x in arrays.items()})
    kept = max(cluster._engines.kept_bytes())
    assert kept > 0
    cluster.memory = around(kept + max(least_budgets(net.tasks, views=tuple(arrays))))
    np.testing.assert_allclose(net.run()["Z"], expected["Z"], rtol=1e-4)
    cluster.memory = kept - 1
    with pytest.raises(CapacityError, match=rf"take {kept} bytes, {kept - 1} are allowed"):
        net.run()


def test_what_does_not_fit_is_refused_and_what_was_put_is_let_go(cluster):
    taskgraph, arrays = chain()
    cluster.memory = 1000
    with pytest.raises(CapacityError, match="bytes at once on site"):
        cluster.run(taskgraph, arrays)
    before = cluster._engines.kept_bytes()
    with pytest.raises(CapacityError, match="tensors on engine"):
        cluster.put(np.zeros(10_000))
    assert cluster._engines.kept_bytes() == before
    with pytest.raises(PlanError, match="a memory is a number of bytes"):
        Cluster(n=1, memory="lots")


@interactive
def break_kernels(after):
    from einsummable.runtime import bounded

    real, calls = bounded._Run.compute, []

    def compute(self, task, args, out, reused):
        calls.append(task)
        if len(calls) == after:
            raise ZeroDivisionError("on purpose")
        real(self, task, args, out, reused)

    bounded._Run.compute, bounded.real = compute, real


@interactive
def mend():
    from einsummable.runtime import bounded

    bounded._Run.compute = bounded.real


def test_a_kernel_that_fails_ends_the_run_and_the_next_one_is_well(cluster):
    taskgraph, arrays = chain()
    cluster.memory = around(max(least_budgets(taskgraph)))
    view = cluster.client[:]
    view.apply_sync(break_kernels, 4)
    try:
        with pytest.raises(EngineError, match=r"engine \d .* failed in .*: ZeroDivisionError: on purpose"):
            cluster.run(taskgraph, arrays)
    finally:
        view.apply_sync(mend)
    assert_same(cluster.run(taskgraph, arrays), evaluate(taskgraph, arrays))


def test_a_time_out_leaves_the_cluster_usable(cluster):
    taskgraph, arrays = chain(1024)
    cluster.memory = around(max(least_budgets(taskgraph)))
    with pytest.raises(EngineError, match=r"given up after 0\.01 s"):
        cluster.run(taskgraph, arrays, timeout=0.01)
    np.testing.assert_array_equal(cluster.run(taskgraph, arrays)["Z"], product_of(arrays))


@interactive
def high_water(reset):
    from pathlib import Path

    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return 1024 * int(status["VmHWM"].split()[0]), 1024 * int(status["VmRSS"].split()[0])


@pytest.mark.slow
def test_four_times_the_budget_grows_an_engine_by_the_budget(cluster):
    taskgraph, arrays = chain(2048)
    budget = max(allocate(taskgraph).peaks) // 4
    tiny, tiny_arrays = chain(8)
    cluster.memory = budget
    cluster.run(tiny, tiny_arrays)  # what is loaded once is not counted
    view = cluster.client[:]
    before = view.apply_sync(high_water, True)
    got = cluster.run(taskgraph, arrays)
    after = view.apply_sync(high_water, False)
    for (_, rss), (peak, _) in zip(before, after, strict=True):
        assert peak - rss <= 1.1 * budget
    np.testing.assert_array_equal(got["Z"], product_of(arrays))


def test_nothing_is_left_of_what_was_evicted(cluster, tmp_path):
    taskgraph, arrays = chain()
    cluster.memory = around(max(least_budgets(taskgraph)))
    processes = [psutil.Process(e.pid) for e in cluster.info()]
    cluster.run(taskgraph, arrays)
    files = [p.num_fds() for p in processes]
    for _ in range(5):
        cluster.run(taskgraph, arrays)
    end = time.monotonic() + 5
    while [p.num_fds() for p in processes] != files and time.monotonic() < end:
        time.sleep(0.01)
    assert [p.num_fds() for p in processes] == files
