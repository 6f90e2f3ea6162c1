"""Running within a budget: the same results, in no more memory, and nothing left behind."""

import threading
import time

import numpy as np
import pytest
import sample_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_same, data_for, graphs, placements, plans

from einsummable.errors import CapacityError, EngineError, PlanError
from einsummable.runtime import bounded as bounded_runtime
from einsummable.runtime.disk import Disk
from einsummable.runtime.events import Evicted, Loaded, recorded
from einsummable.runtime.local import LocalExecutor
from einsummable.taskgraph.allocate import allocate, least_budgets
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.memory import Evict, Load
from einsummable.taskgraph.tasks import evaluate, nbytes
from einsummable.views.render import svg
from einsummable.views.timelines import timeline_view
from einsummable.views.trace import trace


@st.composite
def programs(draw):
    graph = draw(graphs())
    plan = draw(plans(graph, draw(st.integers(1, 6))))
    return lower(plan, draw(placements(plan, draw(st.integers(1, 3)))))


@settings(deadline=None, max_examples=150)
@given(programs(), st.integers(0, 9))
def test_a_program_within_a_budget_computes_the_same(taskgraph, seed):
    arrays, params = data_for(taskgraph.graph, seed)
    before = {name: x.copy() for name, x in arrays.items()}
    expected = evaluate(taskgraph, arrays, params)
    views = tuple(taskgraph.graph.inputs)
    least = max(least_budgets(taskgraph, views=views))
    most = max(allocate(taskgraph, views=views).peaks)
    for budget in sorted({least, (least + most) // 2, max(least, most)}):
        local = LocalExecutor(3, memory=budget)
        for _ in range(2):  # the second run finds in its arena what the first one left
            got = local.run(taskgraph, arrays, params)
            assert_same(got, expected)
        ran = sorted(task for log in local.last.logs for task, *_ in log.ran)
        moves = sorted(move for log in local.last.logs for move, _ in log.received)
        assert sorted(ran + moves) == list(range(len(taskgraph.tasks)))
        check_disk_events(local.last, allocate(taskgraph, budget, views=views))
    for name, x in arrays.items():
        np.testing.assert_array_equal(x, before[name])
        for y in got.values():
            assert not np.shares_memory(x, y)


def check_disk_events(record, plan):
    """Whatever the plan evicts is told, and whatever it loads after that, and results that were away."""
    assert sorted(record.disk, key=lambda e: e.ended) == list(record.disk)
    for memory in plan.sites:
        mine = [e for e in record.disk if e.site == memory.site]
        planned = [s.task for s in memory.steps if isinstance(s, Evict)]
        assert sorted(e.task for e in mine if isinstance(e, Evicted)) == sorted(planned)
        again, seen = [], set()
        for step in memory.steps:
            if isinstance(step, Evict):
                seen.add(step.task)
            elif isinstance(step, Load) and step.task in seen:
                again.append(step.task)
        loaded = [e.task for e in mine if isinstance(e, Loaded)]
        assert sorted(loaded[: len(again)]) == sorted(again)
        assert set(loaded) <= set(planned)
    for event in record.disk:
        assert 0 <= event.started <= event.ended <= record.wall
        assert event.nbytes == nbytes(record.taskgraph.tasks[event.task])


def chain(s=32, p=4, sites=2):
    plan = sample_graphs.everywhere(sample_graphs.chain(s), p)
    taskgraph = lower(plan, sample_graphs.in_turn(plan, sites))
    arrays, _ = data_for(taskgraph.graph)
    return taskgraph, arrays


def test_blocks_really_go_to_disk_and_come_back(monkeypatch):
    taskgraph, arrays = chain()
    views = tuple(taskgraph.graph.inputs)
    least = max(least_budgets(taskgraph, views=views))
    plan = allocate(taskgraph, least, views=views)
    written = sum(isinstance(s, Evict) and s.write for memory in plan.sites for s in memory.steps)
    stored = []
    monkeypatch.setattr(
        bounded_runtime.Disk, "store", lambda *args, real=Disk.store: (stored.append(1), real(*args))
    )
    local = LocalExecutor(2, memory=least)
    assert_same(local.run(taskgraph, arrays), evaluate(taskgraph, arrays))
    assert len(stored) == written > 0
    check_disk_events(local.last, plan)
    assert "blocks evicted" in str(local.last)
    assert recorded(taskgraph, local.last.events).disk == local.last.disk
    view = timeline_view(local.last)
    assert [s["bytes"] for s in view["spills"]] == [e.nbytes for e in local.last.disk]
    assert "evicted in" in view["caption"]
    drawn = svg(view)
    assert drawn.count("evicted, the block of task") == sum(isinstance(e, Evicted) for e in local.last.disk)
    slices = [e for e in trace({"it": local.last})["traceEvents"] if e.get("cat") == "disk"]
    assert len(slices) == 2 * len(local.last.disk)


def test_what_cannot_fit_is_refused_before_it_runs():
    taskgraph, arrays = chain()
    with pytest.raises(CapacityError, match="bytes at once on site 0, 64 are allowed"):
        LocalExecutor(2, memory=64).run(taskgraph, arrays)
    with pytest.raises(PlanError, match="a memory is a number of bytes"):
        LocalExecutor(2, memory="much")


def test_runs_of_several_threads_share_the_arenas_in_turn():
    taskgraph, arrays = chain()
    expected = evaluate(taskgraph, arrays)
    local = LocalExecutor(2, memory="1MB")
    found = []

    def work():
        found.extend(local.run(taskgraph, arrays) for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 15
    for got in found:
        assert_same(got, expected)


def break_kernels(monkeypatch, do, after=3):
    real, calls = bounded_runtime._Run.compute, []

    def compute(self, task, args, out, reused):
        calls.append(task)
        if len(calls) == after:
            do()
        real(self, task, args, out, reused)

    monkeypatch.setattr(bounded_runtime._Run, "compute", compute)


def test_a_kernel_that_fails_ends_the_run_and_the_next_one_is_well(monkeypatch):
    taskgraph, arrays = chain()
    local = LocalExecutor(2, memory=max(least_budgets(taskgraph)))
    with monkeypatch.context() as patch:
        break_kernels(patch, lambda: 1 / 0)
        with pytest.raises(EngineError, match=r"site \d failed in .*: ZeroDivisionError"):
            local.run(taskgraph, arrays)
    assert_same(local.run(taskgraph, arrays), evaluate(taskgraph, arrays))


def test_a_site_that_is_late_does_not_spoil_the_next_run(monkeypatch):
    taskgraph, arrays = chain()
    local = LocalExecutor(2, memory=max(least_budgets(taskgraph)))
    monkeypatch.setattr("einsummable.runtime.local._LINGER_SECONDS", 0.01)
    with monkeypatch.context() as patch:
        break_kernels(patch, lambda: time.sleep(0.3), after=5)
        with pytest.raises(EngineError, match=r"took longer than 0\.1 s"):
            local.run(taskgraph, arrays, timeout=0.1)
    expected = evaluate(taskgraph, arrays)
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        assert_same(local.run(taskgraph, arrays), expected)


def test_a_full_disk_is_an_error_that_says_so(monkeypatch):
    taskgraph, arrays = chain()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("einsummable.runtime.disk.os.pwrite", full)
    local = LocalExecutor(2, memory=max(least_budgets(taskgraph, views=tuple(taskgraph.graph.inputs))))
    with pytest.raises(EngineError, match=r"cannot keep evicted blocks on disk: .*No space left"):
        local.run(taskgraph, arrays)


def test_the_disk_keeps_what_it_is_given_and_has_no_name(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    told = []
    with Disk() as disk:
        assert list(tmp_path.iterdir()) == []
        blocks = [np.full(n, n, np.uint8) for n in (1, 70, 200)]
        for n, block in enumerate(blocks):
            disk.store(n * 256, block, told.append)
        back = [np.zeros(block.size, np.uint8) for block in blocks]
        for n, block in enumerate(back):
            disk.load(n * 256, block, told.append)
        while len(told) < 6:
            time.sleep(0.001)
    assert told == [None] * 6
    for got, want in zip(back, blocks, strict=True):
        np.testing.assert_array_equal(got, want)
