"""The timeline in a notebook: what the browser is given before, while and after a program runs."""

import time

import numpy as np
import pytest
from svg_checks import ET
from test_local import breaking

import einsummable as ein
from einsummable.errors import EngineError
from einsummable.runtime.events import Progress, RunStarted

A, B = np.ones((6, 8), "f4"), np.ones((8, 4), "f4")
MATMUL = "C[i,k] = A[i,j] * B[j,k]"


@pytest.fixture
def net():
    return ein.compile(MATMUL, A=A, B=B, sites=2, memory="1MB")


@pytest.fixture
def made():
    """Note what a timeline sends, and close it at the end."""
    widgets = []

    def note(widget):
        widget.sent = []
        widget.send = widget.sent.append
        widgets.append(widget)
        return widget

    yield note
    for widget in widgets:
        widget.close()


def names(widget):
    return [track["name"] for track in widget.view["tracks"]]


def test_before_a_run_there_is_the_simulated_one(net, made):
    widget = made(net.timeline())
    assert names(widget) == ["simulated"]
    assert widget.view["stage"]["budget"] == 1e6
    assert "task:0" in widget.links["node:0"]
    assert net.observers == []
    net.run()
    assert names(widget) == ["simulated"]  # it is not live
    again = made(net.timeline())
    assert names(again) == ["measured", "simulated"]
    measured = again.view["tracks"][0]
    assert len(measured["bars"]) + len(measured["moves"]) == len(net.tasks.tasks)


def test_a_live_one_fills_while_the_program_runs(net, made, monkeypatch):
    widget = made(net.timeline(live=True))
    breaking(net.tasks, monkeypatch, lambda: time.sleep(0.25))
    seen = []
    widget.observe(lambda change: seen.append(change.new["tracks"][0]["over"]), "view")
    net.run()
    assert seen == [False, True]  # it begins empty and ends complete
    assert {message["run"] for message in widget.sent} == {"measured"}
    told = [message["more"] for message in widget.sent]
    assert any(max(more["working"]) >= 0 for more in told)
    whole = widget.view["tracks"][0]
    sent = [row for more in told for row in more["bars"]]
    assert sent
    assert [row for row in sent if row not in whole["bars"]] == []
    assert len(whole["bars"]) + len(whole["moves"]) == len(net.tasks.tasks)


def test_updates_are_no_more_than_ten_a_second(net, made, monkeypatch):
    widget = made(net.timeline(live=True))
    breaking(net.tasks, monkeypatch, lambda: time.sleep(0.3))
    net.run()
    assert 0 < len(widget.sent) <= 10 * net.last.wall + 1


def test_a_run_that_fails_is_shown_as_far_as_it_came(net, made, monkeypatch):
    def run():
        raise ZeroDivisionError("one over nothing")

    widget = made(net.timeline(live=True))
    breaking(net.tasks, monkeypatch, run)
    with pytest.raises(EngineError, match="one over nothing"):
        net.run()
    assert "one over nothing" in widget.view["tracks"][0]["error"]
    assert "given up" in widget.view["tracks"][0]["caption"]


def test_a_program_has_one_live_timeline(net, made):
    made(net.timeline(live=True))
    other = []
    net.observers.append(other.append)
    last = made(net.timeline(live=True))
    assert net.observers == [other.append, last]


def test_what_comes_in_the_middle_of_a_run_is_not_shown(net, made):
    widget = made(net.timeline())
    widget(Progress(0.1, (0, 1)))
    assert widget.sent == []
    widget(RunStarted.of(net.tasks))
    widget(Progress(0.1, (0, 1)))
    assert widget.sent[0]["more"]["working"] == [0, 1]


def test_without_a_browser_it_is_a_picture(net, made):
    net.run()
    widget = made(net.timeline())
    measured, simulated = widget.pictures()
    assert measured["until"] == simulated["until"] == max(r.wall for r in net.records.values())
    assert measured["budget"] == 1e6
    assert measured["caption"].startswith("measured: ")
    data, _ = widget._repr_mimebundle_()
    assert data["text/html"].count("<svg") == 2
    assert "site 1" in data["text/plain"]
    widget._answer(widget, {"ask": "svg"}, [])
    assert ET.fromstring(widget.sent[0]["text"]).tag.endswith("svg")
    assert widget.python() == "net.timeline()\n"
