"""Stepping through a program in a notebook: what the browser is given, and what stands still."""

import numpy as np
import pytest
from svg_checks import ET

import einsummable as ein
from einsummable.errors import PlanError, UnknownNameError

A, B = np.arange(12, dtype="f4").reshape(2, 6), np.ones((6, 2), "f4")
MATMUL = "C[i,k] = A[i,j] * B[j,k]"


@pytest.fixture
def net():
    return ein.compile(MATMUL, A=A, B=B, sites=2)


@pytest.fixture
def widget(net):
    widget = net.steps()
    yield widget
    widget.close()


def test_the_browser_gets_numbers_pictures_and_links(widget):
    assert widget.view["kind"] == "steps"
    for drawn in (widget.graph, widget.blocks):
        assert ET.fromstring(drawn).tag.endswith("svg")
    shown = {key for g in ET.fromstring(widget.blocks).iter() for key in g.get("data-keys", "").split()}
    assert {"task:0", "node:2", "site:1"} <= shown
    assert "task:0" in widget.links["node:0"]


def test_the_numbers_are_those_of_the_arrays_that_are_given(net):
    widget = net.steps(A=np.zeros((2, 6), "f4"))
    assert set(widget.view["tasks"][-1]["frames"][-1]["cells"]) == {"0"}
    widget.close()


def test_without_a_browser_the_last_state_is_shown(widget):
    data, _ = widget._repr_mimebundle_()
    assert data["text/html"].count("<svg") == 1
    assert data["text/plain"].startswith(widget.view["caption"])


def test_the_program_that_is_copied_makes_the_widget(net, widget):
    again = eval(widget.python(), {"net": net})
    assert again.view == widget.view
    again.close()


def test_what_cannot_be_stepped_through_is_refused():
    with pytest.raises(UnknownNameError, match="no array is given for the input 'A'"):
        ein.compile(MATMUL, A=(2, 6), B=B, sites=2).steps()
    with pytest.raises(PlanError, match="too many to step through"):
        ein.compile(MATMUL, A=np.ones((64, 64)), B=np.ones((64, 64)), sites=64).steps()
