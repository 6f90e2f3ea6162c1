"""How far a run is: counted from events, the same as its record in the end."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import data_for
from svg_checks import check
from test_engine import programs
from test_views import small_record, small_taskgraph

from einsummable import views
from einsummable.runtime.events import MoveEnded, Progress, RunEnded, RunStarted, TaskEnded
from einsummable.runtime.local import LocalExecutor
from einsummable.views.meter import Meter


def heard(events, **options):
    meter = Meter(small_taskgraph(), **options)
    for event in events:
        meter.hear(event)
    return meter


def test_a_meter_of_two_sites(golden):
    view = heard(small_record().events, predicted=0.5).view()
    golden(json.dumps(view, indent=1, ensure_ascii=False) + "\n\n" + views.text(view))


@settings(deadline=None, max_examples=30)
@given(programs(), st.integers(0, 9))
def test_in_the_end_all_is_done_and_moved(taskgraph, seed):
    arrays, params = data_for(taskgraph.graph, seed)
    meter = Meter(taskgraph)
    check(meter.view())
    LocalExecutor(taskgraph.sites).run(taskgraph, arrays, params, observers=[meter.hear])
    view = meter.view()
    check(view)
    assert view["state"] == "done"
    assert view["done"] == view["tasks"] == len(taskgraph.tasks)
    assert view["moved"] == sum(map(sum, view["links"])) == taskgraph.bytes_moved
    assert sum(size for *_, size, _ in view["flows"]) == taskgraph.bytes_moved


def test_half_way():
    events = [
        RunStarted(0.0, 2, 8),
        TaskEnded(0, 0, 0.0, 0.1),
        TaskEnded(3, 1, 0.0, 0.1),
        TaskEnded(4, 1, 0.1, 0.2),
        TaskEnded(5, 1, 0.2, 0.4),
        MoveEnded(6, 1, 0, 0.4, 0.5, 64),
        Progress(0.8, (2, -1)),
    ]
    meter = heard(events)
    view = meter.view()
    assert not meter.over
    assert [row["done"] for row in view["rows"]] == [2, 3]
    assert [row["working"] for row in view["rows"]] == ["Z", ""]
    assert view["links"] == [[0, 0], [64, 0]]
    assert [row["busy"] for row in view["rows"]] == ["12%", "50%"]
    assert view["caption"] == "running for 800 ms: 5 of 8 tasks done; 64 B moved"
    check(view)


@pytest.mark.parametrize(
    ("events", "state", "words"),
    [
        ([], "waiting", "not begun: 8 tasks on 2 sites"),
        ([RunStarted(0.0, 2, 8), RunEnded(2.0, "a site died")], "failed", "ended after 2.00 s, 0 of 8 tasks"),
    ],
)
def test_before_and_after(events, state, words):
    view = heard(events).view()
    assert view["state"] == state
    assert view["caption"].startswith(words)
    check(view)


def test_engines_have_their_names():
    view = heard([], names=("engine 0, here", "engine 1, there")).view()
    assert [row["name"] for row in view["rows"]] == ["engine 0, here", "engine 1, there"]
    assert "engine 1, there" in views.svg(view)


def test_bytes_held_come_and_go():
    arrays = {name: np.ones((4, 4), "f4") for name in "AB"}
    meter = Meter(small_taskgraph())
    LocalExecutor(2).run(small_taskgraph(), arrays, observers=[meter.hear])
    rows = meter.view()["rows"]
    assert rows[0]["held"] - rows[1]["held"] == 64  # the result is on site 0
    assert rows[0]["peak"] > rows[0]["held"]
