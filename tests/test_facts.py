"""What is known of what a reader selects: figures of the graph and of the runs."""

import pytest
from hypothesis import given, settings
from test_held import programs
from test_views import small_record, small_taskgraph

from einsummable.planner.hardware import host
from einsummable.runtime.events import simulated
from einsummable.taskgraph.simulate import simulate
from einsummable.views.facts import facts

RECORDS = {"measured": small_record()}


def rows(key, records=RECORDS):
    return dict(facts(small_taskgraph(), key, records)["rows"])


def test_a_kernel_call():
    told = facts(small_taskgraph(), "task:5", RECORDS)
    assert told["title"] == "Z = sum[j] A*B on i 0:4, k 0:4, j 2:4"
    assert dict(told["rows"]) == {
        "task": "#5, Apply",
        "site": "1",
        "makes": "4 × 4 float32, 64 B",
        "reads": "2 blocks, 64 B",
        "read by": "1 task",
        "operations": "64 flop",
        "measured": "12.0 ms from 2.00 ms, 5.33 kflop/s",
    }


def test_a_move():
    told = rows("task:6")
    assert told["site"] == "1 to 0"
    assert told["measured"] == "6.00 ms from 14.0 ms, 10.7 kB/s"


def test_a_node_a_fold_and_a_site():
    node = rows("node:2")
    assert (node["tasks"], node["kernel calls"], node["aggregations"]) == ("4", "2", "1")
    assert node["arrives"] == "64 B in 1 move"
    assert node["measured, in kernels"] == "23.0 ms"  # 10 + 12 for the calls, 1 for the sum
    assert facts(small_taskgraph(), "fold:2:1", {})["rows"][0] == ["tasks", "1"]
    site = rows("site:1")
    assert (site["tasks"], site["sends"], site["measured"]) == ("3", "64 B", "busy 62%")


@pytest.mark.parametrize("key", ["", "task:8", "task:x", "node:3", "site:2", "label:0:j", "span:0-3"])
def test_other_keys_have_none(key):
    assert facts(small_taskgraph(), key, RECORDS) == {}


@settings(deadline=None, max_examples=20)
@given(programs())
def test_every_task_node_and_site_of_any_program_has_facts(taskgraph):
    records = {"simulated": simulated(simulate(taskgraph, host(taskgraph.sites)))}
    for key in (
        *(f"task:{i}" for i in range(len(taskgraph.tasks))),
        *(f"node:{i}" for i in range(len(taskgraph.graph.nodes))),
        *(f"site:{i}" for i in range(taskgraph.sites)),
    ):
        told = facts(taskgraph, key, records)
        assert told["title"]
        assert all(value for _, value in told["rows"])
        if key.startswith("task:"):
            assert told["rows"][-1][0] == "simulated"
