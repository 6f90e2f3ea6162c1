"""The explorer widget: it follows what is asked, takes the newest, goes back, refuses in words."""

import threading

import pytest

import einsummable as ein
from einsummable import progress
from einsummable.errors import CapacityError
from einsummable.planner import cost
from einsummable.widgets import history
from einsummable.widgets.latest import Latest

MLP = "H[b,h] = relu(sum[d] X[b,d] * W[d,h])\nY[b,o] = H[b,h] * V[h,o]"


@pytest.fixture
def net():
    return ein.compile(MLP, X=(64, 512), W=(512, 256), V=(256, 10), sites=4)


@pytest.fixture
def explorer(net):
    made = net.explore()
    assert made.wait(60)
    yield made
    made.close()


def ask(explorer, **figures):
    explorer.setting = {**explorer.setting, **figures}
    assert explorer.wait(60)


def test_blocks_and_bytes_follow_the_sites(net, explorer):
    for sites in (8, 3, 1):
        ask(explorer, sites=sites)
        again = net.replan(sites=sites)
        assert explorer.view["strategies"][0]["moved"] == again.tasks.bytes_moved
        assert explorer.answer.plan == again.plan
        assert explorer.strip["sites"] == sites
    assert explorer.error == ""
    assert explorer.busy == {}


def test_a_label_is_cut_by_hand_then_pinned_then_let_go(net, explorer):
    y = net.graph.id_of("Y")
    explorer.ask("edit", node=y, label="o", parts=5)
    explorer.wait(60)
    yours = explorer.view["strategies"][-1]
    assert yours["name"] == explorer.view["shown"] == "yours"
    assert yours["cost"] == cost.moved_bytes(net.graph, explorer.answer.row("yours").plan.partitions)
    explorer.ask("pin", node=y)
    explorer.wait(60)
    assert explorer.setting["edits"] == {}
    assert explorer.answer.plan.partitions[y]["o"] == 5
    assert (
        explorer.answer.plan.partitions == net.replan(sites=4, pins=explorer.setting["pins"]).plan.partitions
    )
    explorer.ask("free", node=y)
    explorer.wait(60)
    assert explorer.answer.plan == net.plan


def test_undo_and_reset(explorer):
    first = explorer.setting
    ask(explorer, sites=6)
    ask(explorer, objective="time")
    assert explorer.undoable == 2
    explorer.ask("undo")
    explorer.wait(60)
    assert (explorer.setting["sites"], explorer.setting["objective"]) == (6, "bytes")
    explorer.ask("reset")
    explorer.wait(60)
    assert explorer.setting == first
    explorer.ask("undo")
    assert explorer.setting["sites"] == 6


def test_what_is_refused_is_said_and_the_last_good_picture_stays(explorer):
    before = explorer.view
    ask(explorer, memory=100.0)
    assert explorer.error.startswith("no plan fits")
    assert explorer.view == before
    ask(explorer, sites=2, memory=None)
    assert explorer.error == ""
    assert explorer.view["setting"]["sites"] == 2


def test_a_program_without_a_plan_cannot_be_explored(net):
    with pytest.raises(CapacityError, match="no plan fits"):
        net.replan(sites=2, memory=100).explore()


def test_selecting_a_node_shows_its_calls_and_a_strategy_its_blocks(net, explorer):
    ask(explorer, sites=8)
    explorer.shown = "2-D"
    assert explorer.view["shown"] == "2-D"
    explorer.selection = "tensor:Y"
    assert explorer.detail["node"] == net.graph.id_of("Y")
    assert explorer.detail["svg"].startswith("<svg")
    explorer.selection = ""
    assert explorer.detail == {"node": None, "svg": ""}


def test_its_twin_and_its_python(explorer):
    data, _ = explorer._repr_mimebundle_()
    assert data["text/html"].count("<svg") == 4
    assert "EinDecomp" in data["text/plain"]
    ask(explorer, sites=3)
    assert explorer.python() == "net = net.replan(sites=3)\n"


def test_cancel_stops_planning_and_says_so(explorer, monkeypatch):
    began, stopped = threading.Event(), threading.Event()

    def forever(*_):
        began.set()
        try:
            while True:
                progress.step("thinking")
        finally:
            stopped.set()
        yield

    monkeypatch.setattr("einsummable.exploring.answers", forever)
    before = explorer.view
    explorer.setting = {**explorer.setting, "sites": 7}
    assert began.wait(10)
    explorer.ask("cancel")
    assert stopped.wait(10)
    assert explorer.wait(10)
    assert "stopped" in explorer.error
    assert explorer.busy == {}
    assert explorer.view == before


# ---------------------------------------------------------------------------------------- parts


def test_the_newest_job_counts_and_the_one_before_is_stopped():
    told, done = [], []
    latest = Latest(lambda *words: told.append(words))
    began = threading.Event()

    def endless():
        began.set()
        while True:
            progress.step("turning")

    latest.submit(endless)
    assert began.wait(10)
    while not told:
        began.wait(0.01)
    latest.submit(lambda: done.append("newer"))
    assert latest.wait(10)
    assert done == ["newer"]
    assert told[0][0] == "turning"
    assert not [t for t in threading.enumerate() if t.name == "einsummable-explorer" and t.is_alive()] or (
        latest.wait(1)
    )


def test_jobs_that_wait_are_forgotten_for_newer_ones():
    done, go = [], threading.Event()
    latest = Latest(lambda *_: None)
    latest.submit(go.wait)
    for k in range(5):
        latest.submit(lambda k=k: done.append(k))
    go.set()
    assert latest.wait(10)
    assert done == [4]


def test_a_drag_is_one_step_back(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(history.time, "monotonic", lambda: now[0])
    past = history.History({"sites": 1, "hosts": 1})
    for sites in (2, 3, 4):
        now[0] += 0.1
        assert past.note({"sites": sites, "hosts": 1}) == 1
    now[0] += 0.1
    assert past.note({"sites": 4, "hosts": 2}) == 2
    now[0] += 5
    assert past.note({"sites": 4, "hosts": 4}) == 3
    assert past.note({"sites": 4, "hosts": 4}) == 3
    assert past.back() == {"sites": 4, "hosts": 2}
    assert past.back() == {"sites": 4, "hosts": 1}
    assert past.back() == past.back() == {"sites": 1, "hosts": 1}
