"""The critical path: worked out by hand, and laws on random simulated runs."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from test_held import programs
from test_views import small_record

from einsummable.planner.hardware import host
from einsummable.runtime.critical import critical_path, shares, span
from einsummable.runtime.events import RunRecord, SiteLog, simulated
from einsummable.taskgraph.simulate import simulate


def test_the_end_waited_for_the_slower_site_and_its_move():
    path = critical_path(small_record())
    assert [e.task for e in path] == [3, 4, 5, 6, 7]
    tasks, moves, rest = shares(small_record(), path)
    assert (tasks, moves) == (pytest.approx(0.015), pytest.approx(0.006))
    assert rest == pytest.approx(0.0015)  # from the last task to the end of the run


def test_a_run_that_did_nothing_has_none():
    record = RunRecord(small_record().taskgraph, (SiteLog(0, offset=0.0),), 0.0, 0.5, "given up")
    assert critical_path(record) == ()
    assert shares(record, ()) == (0.0, 0.0, 0.5)


@settings(deadline=None, max_examples=60)
@given(programs())
def test_it_is_a_chain_from_the_start_to_the_end(taskgraph):
    run = simulate(taskgraph, host(taskgraph.sites))
    record = simulated(run)
    path = critical_path(record)
    assert span(path[-1])[1] == run.makespan
    for earlier, later in pairwise(path):
        assert span(earlier)[1] <= span(later)[1]
        task = taskgraph.tasks[later.task]
        same_site = taskgraph.tasks[earlier.task].site == task.site
        assert earlier.task in task.inputs or same_site
    # Nothing it waits for ends later than what is said to come before.
    for earlier, later in pairwise(path):
        inputs = [run.ends[j] for j in taskgraph.tasks[later.task].inputs]
        assert max(inputs, default=0.0) <= span(earlier)[1]
    assert not taskgraph.tasks[path[0].task].inputs
    assert sum(shares(record, path)) == pytest.approx(record.wall)
