"""Runs as rows for a browser: golden JSON, and what is sent bit by bit adds up to the whole."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from test_held import programs
from test_views import small_record, small_taskgraph

from einsummable.planner.hardware import host
from einsummable.runtime.events import Progress, RunEnded, RunStarted, simulated
from einsummable.taskgraph.held import series
from einsummable.taskgraph.simulate import simulate
from einsummable.taskgraph.tasks import Move, nbytes
from einsummable.views import svg, timeline_view, tracks


def shown(view):
    return json.dumps(view, indent=1, ensure_ascii=False)


def test_stage_of_two_sites(golden):
    golden(shown(tracks.stage(small_taskgraph(), hosts=[0, 1], budget=1e6)))


def test_track_of_two_sites(golden):
    golden(shown(tracks.track(small_record(), "measured")))


def test_pictures_show_the_critical_path_what_is_held_and_the_budget():
    view = timeline_view(small_record(), budget=150.0, until=0.1)
    assert view["critical"] == [3, 4, 5, 6, 7]
    assert max(size for _, size in view["held"][0]) == 4 * 64
    drawn = svg(view)
    assert "site 0 holds at most 256 B" in drawn
    assert "budget of 150 B" in drawn
    assert "budget of" not in svg(timeline_view(small_record(), budget=1e6))  # far away
    assert drawn.count('stroke-width="2"') > svg(view | {"critical": []}).count('stroke-width="2"')
    assert ">80<" in drawn  # the scale goes to 100 ms


def test_track_of_a_run_that_was_given_up():
    track = tracks.track(small_record("engine 1 died"), "measured")
    assert (track["over"], track["error"]) == (True, "engine 1 died")
    assert "given up: engine 1 died" in track["caption"]


def test_a_tracker_tells_how_things_stand():
    tracker = tracks.Tracker(small_taskgraph())
    tracker.hear(RunStarted.of(small_taskgraph()))
    tracker.hear(small_record().tasks[0])
    tracker.hear(Progress(0.1, (2, -1)))
    told = tracker.take()
    assert (told["at"], told["working"], told["over"]) == (0.1, [2, -1], False)
    assert told["bars"] == [[0, 0.0, 0.001]]
    tracker.hear(RunEnded(0.2, "it was given up"))
    told = tracker.take()
    assert (told["at"], told["working"], told["over"], told["error"]) == (0.2, [], True, "it was given up")
    assert told["bars"] == []


@settings(deadline=None, max_examples=40)
@given(programs(), st.integers(1, 9))
def test_what_is_taken_bit_by_bit_is_the_whole(taskgraph, each):
    run = simulate(taskgraph, host(taskgraph.sites))
    record = simulated(run)
    whole = tracks.track(record, "simulated")
    tracker, bits = tracks.Tracker(taskgraph), []
    for i, event in enumerate(record.events):
        tracker.hear(event)
        if i % each == 0 or isinstance(event, RunEnded):
            bits.append(tracker.take())
    for rows in ("bars", "moves", "held"):
        assert [row for bit in bits for row in bit[rows]] == whole[rows]
    assert len(whole["bars"]) + len(whole["moves"]) == len(taskgraph.tasks)
    ends = [steps[-1][1] if steps else 0 for steps in series(whole["held"], taskgraph.sites)]
    assert ends == [steps[-1][1] if steps else 0 for steps in run.memory]
    stage = tracks.stage(taskgraph)
    for i, task in enumerate(taskgraph.tasks):
        assert (stage["kind"][i] == "m") == isinstance(task, Move)
        if isinstance(task, Move):
            assert stage["bytes"][str(i)] == nbytes(task)
