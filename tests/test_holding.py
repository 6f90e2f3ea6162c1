"""What sites hold, heard from events: what went to disk does not count until it comes back."""

from test_bounded import chain
from test_views import small_record, small_taskgraph

from einsummable.runtime.events import Evicted, Loaded, Progress, RunStarted, recorded
from einsummable.runtime.holding import Holding, held
from einsummable.runtime.local import LocalExecutor
from einsummable.taskgraph.allocate import least_budgets
from einsummable.views import tracks


def test_a_block_on_disk_does_not_count():
    record = small_record()
    whole = held(record)
    away = [Evicted(2, 0, 0.013, 0.015, 64), Loaded(2, 0, 0.018, 0.019, 64)]
    spilled = held(recorded(small_taskgraph(), [*record.events, *away]))
    before, after = dict(whole[0]), dict(spilled[0])
    assert after[0.014] == before[0.014]  # it is still being written
    assert after[0.015] == before[0.014] - 64
    assert after[0.018] == before[0.014]
    assert spilled[0][-1][1] == whole[0][-1][1]
    assert spilled[1] == whole[1]


def test_events_of_the_whole_run_change_nothing():
    holding = Holding(small_taskgraph())
    assert holding.hear(RunStarted.of(small_taskgraph())) == []
    assert holding.hear(Progress(0.1, (0, 1))) == []


def test_a_run_within_a_budget_holds_less_by_what_went_to_disk():
    taskgraph, arrays = chain()
    least = max(least_budgets(taskgraph, views=tuple(taskgraph.graph.inputs)))
    local = LocalExecutor(2, memory=least)
    local.run(taskgraph, arrays)
    kept = [e for e in local.last.events if not isinstance(e, Evicted | Loaded)]
    without = held(recorded(taskgraph, kept))
    away = sum(e.nbytes if isinstance(e, Loaded) else -e.nbytes for e in local.last.disk)
    assert sum(steps[-1][1] for steps in held(local.last)) == sum(s[-1][1] for s in without) + away
    assert all(size >= 0 for steps in held(local.last) for _, size in steps)
    track = tracks.track(local.last, "measured")
    assert sorted(row[0] for row in track["disk"]) == sorted(e.task for e in local.last.disk)
    assert {row[3] for row in track["disk"]} == {0, 1}
