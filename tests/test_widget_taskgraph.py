"""The TaskGraph in a notebook: what is drawn, folded and known of what is selected."""

import numpy as np
import pytest
from svg_checks import ET
from test_views import small_record, small_taskgraph

import einsummable as ein
from einsummable.views import maps
from einsummable.widgets.taskgraph import Tasks


@pytest.fixture
def widget():
    widget = Tasks(small_taskgraph(), {"measured": small_record()})
    yield widget
    widget.close()


def keys(svg):
    return {key for g in ET.fromstring(svg).iter() for key in g.get("data-keys", "").split()}


def test_every_task_is_drawn_and_linked(widget):
    assert widget.detail == "tasks"
    assert widget.view["choices"] == ["tasks", "nodes", "sites", "summary"]
    shown = keys(widget.picture)
    assert {f"task:{i}" for i in range(8)} | {"site:0", "site:1"} == shown
    assert "task:6" in widget.links["task:5"]
    assert all(key in widget.links for key in shown)


def test_nodes_and_sites_fold(widget):
    before = widget.picture
    widget.folded = ["node:2"]
    assert {"fold:2:0", "fold:2:1", "task:0", "task:5"} <= keys(widget.picture)
    assert "node:2" in widget.links["fold:2:0"]
    widget.folded = ["site:1"]
    assert {"fold:0:1", "fold:2:1"} <= keys(widget.picture)
    assert "fold:0:0" not in keys(widget.picture)
    widget.folded = []
    assert widget.picture == before


def test_details_change_what_is_drawn(widget):
    drawn = {}
    for detail in maps.DETAILS:
        widget.detail = detail
        drawn[detail] = keys(widget.picture)
    assert {"fold:0:0", "fold:1:1", "fold:2:0"} <= drawn["nodes"]
    assert {"fold:0:0", "fold:1:0", "fold:2:0"} <= drawn["sites"]
    assert {"site:0", "site:1"} <= drawn["sites"]
    assert "node:2" in drawn["summary"]


def test_a_selected_thing_has_figures_and_can_be_folded(widget):
    assert widget.details == {}
    widget.selection = "task:5"
    assert ["operations", "64 flop"] in widget.details["rows"]
    assert widget.details["folds"] == ["node:2", "site:1"]
    for key, folds in (
        ("node:2", ["node:2"]),
        ("site:0", ["site:0"]),
        ("fold:2:1", ["node:2"]),
    ):
        widget.selection = key
        assert widget.details["folds"] == folds
    for key in ("label:2:j", ""):
        widget.selection = key
        assert widget.details == {}


def test_large_graphs_begin_folded(monkeypatch):
    monkeypatch.setattr(maps, "DRAWN", 6)
    folded = Tasks(small_taskgraph(), {})
    assert (folded.detail, folded.view["choices"]) == ("nodes", ["nodes", "sites", "summary"])
    monkeypatch.setattr(maps, "DRAWN", 2)
    summary = Tasks(small_taskgraph(), {})
    assert (summary.detail, summary.view["choices"]) == ("summary", ["summary"])
    assert "node:2" in keys(summary.picture)
    for widget in (folded, summary):
        widget.close()


def test_without_a_browser_it_is_a_picture(widget, monkeypatch):
    data, _ = widget._repr_mimebundle_()
    assert data["text/html"].count("<svg") == 1
    assert "kernel calls by site" in data["text/plain"]
    assert widget.pictures()[0]["tasks"]
    monkeypatch.setattr(maps, "STILL", 3)
    assert widget.pictures()[0]["tasks"] == []  # too much for a page: counts
    assert widget.python() == "net.show_tasks()\n"


def test_a_program_shows_its_tasks():
    net = ein.compile("C[i,k] = A[i,j] * B[j,k]", A=np.ones((6, 8)), B=np.ones((8, 4)), sites=2)
    net.run()
    widget = net.show_tasks()
    widget.selection = f"task:{net.last.tasks[-1].task}"
    assert {"measured", "simulated"} <= {name for name, _ in widget.details["rows"]}
    widget.close()
