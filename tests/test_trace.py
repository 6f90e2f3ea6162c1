"""Traces: of the format's shape, and with the durations and bytes of the events."""

import json
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from test_held import programs
from test_views import small_record, small_taskgraph

import einsummable as ein
from einsummable.planner.hardware import host
from einsummable.runtime.events import simulated
from einsummable.taskgraph.simulate import simulate
from einsummable.taskgraph.tasks import nbytes
from einsummable.views.trace import trace

#: What each kind of event of the format has to have.
NEEDED = {
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "b": {"name", "cat", "id", "pid", "tid", "ts", "args"},
    "e": {"name", "cat", "id", "pid", "tid", "ts"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
    "C": {"name", "pid", "tid", "ts", "args"},
    "M": {"name", "pid", "tid", "args"},
}


def by_phase(made):
    found = defaultdict(list)
    for event in made["traceEvents"]:
        found[event["ph"]].append(event)
    return found


def test_a_trace_has_what_the_format_wants():
    made = json.loads(json.dumps(trace({"measured": small_record()}), allow_nan=False))
    assert set(made) == {"traceEvents", "displayTimeUnit", "otherData"}
    for event in made["traceEvents"]:
        assert set(event) == NEEDED[event["ph"]] | {"ph"}
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
    names = [e["args"]["name"] for e in made["traceEvents"] if e["name"] == "process_name"]
    assert names == ["measured: site 0", "measured: site 1"]


def test_durations_and_bytes_are_those_of_the_events():
    record = small_record()
    found = by_phase(trace({"measured": record}))
    told = {e["args"]["task"]: (e["pid"], e["ts"], e["dur"]) for e in found["X"]}
    assert told == {
        e.task: (e.site, pytest.approx(e.started * 1e6), pytest.approx((e.ended - e.started) * 1e6))
        for e in record.tasks
    }
    ((begin,), (end,)) = found["b"], found["e"]
    assert (begin["args"]["bytes"], begin["args"]["source"], begin["pid"]) == (64, 1, 0)
    assert end["ts"] - begin["ts"] == pytest.approx(6000)
    ((out,), (into,)) = found["s"], found["f"]
    assert (out["pid"], into["pid"]) == (1, 0)
    assert [e["name"] for e in found["X"] if e["args"]["task"] == 2] == ["Z"]
    most = max(e["args"]["bytes"] for e in found["C"] if e["pid"] == 0)
    assert most == 4 * 64  # its inputs, both partial results and their sum


def test_two_runs_stand_below_each_other():
    run = simulated(simulate(small_taskgraph(), host(2)))
    made = trace({"measured": small_record("engine 1 died"), "simulated": run})
    assert {e["pid"] for e in made["traceEvents"]} == {0, 1, 2, 3}
    assert made["otherData"]["measured"] == "0.0225 s engine 1 died"


def test_a_program_writes_its_last_run_beside_the_simulated_one(tmp_path):
    net = ein.compile("Z[i,k] = A[i,j] * B[j,k]", A=np.ones((8, 6)), B=np.ones((6, 4)), sites=2)
    net.save_trace(tmp_path / "before.json")
    net.run()
    net.save_trace(tmp_path / "after.json")
    before, after = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("before", "after"))
    assert list(before["otherData"]) == ["simulated"]
    assert list(after["otherData"]) == ["measured", "simulated"]
    measured = [e for e in after["traceEvents"] if e["ph"] == "X" and e["pid"] < 2]
    assert sorted(e["args"]["task"] for e in measured) == sorted(e.task for e in net.last.tasks)


@settings(deadline=None, max_examples=40)
@given(programs())
def test_every_task_and_move_is_told_once(taskgraph):
    run = simulate(taskgraph, host(taskgraph.sites))
    found = by_phase(trace({"simulated": simulated(run)}))
    told = [e["args"]["task"] for e in (*found["X"], *found["b"])]
    assert sorted(told) == list(range(len(taskgraph.tasks)))
    assert sum(e["args"]["bytes"] for e in found["b"]) == taskgraph.bytes_moved
    for site in range(taskgraph.sites):
        levels = [(e["ts"], e["args"]["bytes"]) for e in found["C"] if e["pid"] == site]
        assert levels == [(at * 1e6, size) for at, size in run.memory[site]]
    slices = {e["args"]["task"]: e for e in found["X"]}
    for flow in (*found["s"], *found["f"]):  # a flow begins and ends inside slices of its own thread
        assert any(
            s["pid"] == flow["pid"] and s["ts"] <= flow["ts"] <= s["ts"] + s["dur"] for s in slices.values()
        )
    assert all(e["args"]["bytes"] == nbytes(taskgraph.tasks[e["args"]["task"]]) for e in found["b"])
