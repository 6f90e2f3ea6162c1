"""Every object shows itself, and showing computes nothing."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import einsummable as ein
from einsummable.display import picture


@pytest.fixture
def net():
    return ein.compile("C[i,k] = A[i,j] * B[j,k]", A=np.ones((6, 4)), B=np.ones((4, 8)), sites=2)


def test_every_rung_has_a_picture_and_a_text(net):
    net.run()
    for value in (net, net.graph, net.plan, net.tasks, net.last, net.explain()):
        bundle = value._repr_mimebundle_()
        assert "<svg" in bundle["text/html"]
        assert bundle["text/plain"] == str(value)


def test_explanations_draw_strategies_that_share_the_work_out_as_evenly(net):
    html = net.explain()._repr_mimebundle_()["text/html"]
    drawn, table = html.split("<pre>")
    assert "data parallel" in drawn
    assert "single site" not in drawn
    assert "single site" in table


def test_displaying_a_program_plans_nothing(net):
    net._repr_mimebundle_()
    assert str(net).startswith("%0 = input A")
    assert not {"plan", "placement", "tasks"} & set(vars(net))


def test_a_picture_is_saved_as_svg(net, tmp_path):
    paths = picture(net.graph).save(tmp_path / "graph.svg")
    assert paths == [tmp_path / "graph.svg"]
    assert ET.parse(paths[0]).getroot().tag.endswith("svg")
