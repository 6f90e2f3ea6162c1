"""The base of widgets: a twin that stands still, answers to the "Save" menu."""

import json

import pytest
from sample_graphs import matmul_plan
from svg_checks import ET

from einsummable import views
from einsummable.views.render import sheet
from einsummable.widgets.base import Widget


class Both(Widget):
    """A widget of a graph and its plan."""

    _esm = "export default { render() {} }"

    def pictures(self):
        return [views.graph_view(matmul_plan().graph), views.plan_view(matmul_plan())]

    def python(self):
        return "net.explore()"


@pytest.fixture
def widget():
    widget = Both(view={"kind": "both"})
    widget.sent = []
    widget.send = widget.sent.append
    yield widget
    widget.close()


def test_without_a_browser_a_widget_is_its_pictures(widget):
    data, _ = widget._repr_mimebundle_()
    assert data["text/html"].count("<svg") == 2
    assert "kernel call" in data["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in data


def test_answers_to_the_save_menu(widget):
    for what in ("svg", "json", "python", "nonsense"):
        widget._answer(widget, {"ask": what}, [])
    assert [m["answer"] for m in widget.sent] == ["svg", "json", "python"]
    root = ET.fromstring(widget.sent[0]["text"])
    assert len([e for e in root.iter() if "B" in (e.text or "")]) > 5
    assert json.loads(widget.sent[1]["text"]) == {"kind": "both"}
    assert widget.sent[2]["text"] == "net.explore()"


def test_a_sheet_of_one_view_is_that_picture():
    view = views.graph_view(matmul_plan().graph)
    assert sheet([view]) == views.svg(view)
