"""Pictures: well-formed, nothing cut off, nothing that a second picture in the page could upset."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_graphs import GRAPHS, attention, chain, everywhere, in_turn, matmul_plan
from strategies import graphs, placements, plans
from svg_checks import SVG, check, elements, parse, texts
from test_views import COSTS, small_record, small_taskgraph

from einsummable import views
from einsummable.builder import GraphBuilder
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Plan
from einsummable.taskgraph.lower import lower
from einsummable.views import drawing


@pytest.fixture(params=["dot", "ours"])
def layout(request, monkeypatch):
    """Draw graphs with dot, and where there is none."""
    if request.param == "ours":
        monkeypatch.setenv("PATH", "")
    return request.param


def named(root, kind):
    return {e.get(f"data-{kind}") for e in root.iter() if e.get(f"data-{kind}") is not None}


@pytest.mark.parametrize("name", GRAPHS)
def test_every_node_of_a_graph_is_drawn(name, layout):
    graph = GRAPHS[name]()
    root = check(views.graph_view(graph))
    assert named(root, "node") == set(map(str, range(len(graph.nodes))))
    titles = " ".join(e.text for e in root.iter(f"{SVG}title"))
    for name, _ in graph.outputs:
        assert name in titles


def test_both_layouts_draw_the_same_things(monkeypatch):
    view = views.graph_view(attention())
    with_dot = sorted(content for content, _ in texts(parse(view)))
    monkeypatch.setenv("PATH", "")
    assert sorted(content for content, _ in texts(parse(view))) == with_dot


@settings(max_examples=40)
@given(st.data())
def test_pictures_of_random_programs_hold_together(data):
    plan = data.draw(plans(data.draw(graphs()), 6))
    placement = data.draw(placements(plan, 4))
    taskgraph = lower(plan, placement)
    check(views.plan_view(plan, placement))
    check(views.plan_view(plan))
    for i in range(len(plan.graph.nodes)):
        check(views.partition_view(plan, placement, i))
        check(views.join_view(plan, placement, i))
    check(views.taskgraph_view(taskgraph))
    check(views.taskgraph_view(taskgraph, limit=0))
    check(views.traffic_view(taskgraph))


@pytest.mark.parametrize("sites", [1, 2, 3, 8, 16, 64, 100])
def test_pictures_for_any_number_of_sites(sites):
    plan = everywhere(chain(8), 4)
    placement = in_turn(plan, sites)
    taskgraph = lower(plan, placement)
    root = check(views.plan_view(plan, placement))
    assert {int(s) for s in named(root, "site")} <= set(range(sites))
    check(views.taskgraph_view(taskgraph))
    check(views.traffic_view(taskgraph, hosts=[s // 4 for s in range(sites)]))


def test_every_task_is_drawn_once():
    root = check(views.taskgraph_view(small_taskgraph()))
    tasks = [e.get("data-task") for e in root.iter() if e.get("data-task") is not None]
    assert sorted(tasks) == sorted(map(str, range(8)))


def test_every_bar_of_a_run_is_drawn():
    root = check(views.timeline_view(small_record()))
    assert {t for t, _ in texts(root)} >= {"site 0", "site 1", "58%", "62%", "Z", "waiting", "20 ms"}
    check(views.timeline_view(small_record("engine 1 died <&>")))


def test_costs_are_drawn_to_scale():
    root = check(views.costs_view(COSTS, bound=1e9))
    widths = {}
    for group in root.iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        if title is not None and group.find(f"{SVG}rect") is not None:
            widths[title.text] = float(group.find(f"{SVG}rect").get("width"))
    joined, partial = widths["EinDecomp: join inputs 810 MB"], widths["EinDecomp: partial sums 400 MB"]
    assert joined / partial == pytest.approx(8.1 / 4, rel=0.01)
    check(views.costs_view([]))
    check(views.costs_view([{"name": "alone", "kernels": 0.02}], unit="seconds"))


def test_blocks_are_as_large_as_their_extents():
    g = GraphBuilder()
    g.output("x", g.input("x", (7, 30)))
    plan = Plan(g.build(), (Partition(("d0", "d1"), (3, 4)),), 12)
    root = check(views.partition_view(plan, in_turn(plan, 8), 0))
    areas = []
    for group in root.iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        if title is not None and title.text.startswith("["):
            rect = group.find(f"{SVG}rect")
            areas.append(float(rect.get("width")) * float(rect.get("height")))
    wanted = [r * c for r in (2, 2, 3) for c in (7, 8, 7, 8)]
    assert [a / sum(areas) for a in areas] == pytest.approx([w / 210 for w in wanted], rel=0.02)


def test_a_cube_shows_three_faces_and_every_call():
    plan = matmul_plan(9, 3, 3, 3)
    root = check(views.join_view(plan, in_turn(plan, 27), 2))
    facets = [e for e in root.iter(f"{SVG}path") if e.get("d").count("L") == 3 and "Z" in e.get("d")]
    assert len(facets) >= 27
    assert {t for t, _ in texts(root)} >= {"Z[i,k]", "A[i,j]", "B[j,k]", "j 9 ÷ 3"}


def test_text_of_a_user_is_escaped():
    g = GraphBuilder()
    name = '<script>&"x"'
    g.output(name, g.input(name, (2, 2)))
    plan = Plan(g.build(), (Partition(("d0", "d1"), (1, 1)),), 1)
    for view in (views.graph_view(plan.graph), views.plan_view(plan)):
        assert "<script>" not in views.html(view)
        assert any(name in content for content, _ in texts(check(view)))


def test_several_pictures_live_in_one_page():
    plan = matmul_plan()
    shown = [views.graph_view(plan.graph), views.plan_view(plan), views.plan_view(plan)]
    page = views.html(shown)
    root = ET.fromstring(f"<div>{page}</div>")
    assert len(root.findall("figure")) == 3
    assert " id=" not in page
    assert [f.find("figcaption").text for f in root.findall("figure")] == [v["caption"] for v in shown]


def test_colours_follow_the_theme():
    svg = views.svg(views.graph_view(chain()))
    assert "var(--jp-ui-font-color1" in svg
    assert "prefers-color-scheme:dark" in svg
    root = ET.fromstring(svg)
    for element, _, _ in elements(root):
        if element.tag == f"{SVG}text":
            assert {"fi", "fp"} & set(element.get("class").split())


def test_what_is_drawn_lies_in_the_picture():
    d = drawing.Drawing()
    d.rect(-50, -20, 10, 10)
    inner = drawing.Drawing()
    inner.text(0, 0, "far to the right")
    d.place(inner, 300, 100)
    left, top, right, bottom = d.box
    assert (left, top) == (-50, -20)
    assert right == pytest.approx(300 + drawing.text_width("far to the right"))
    assert bottom > 100


def test_hatches_stay_in_their_rectangle():
    for width, height in ((30, 10), (10, 30), (20, 20), (2, 2)):
        d = drawing.Drawing()
        d.hatch(5, 7, width, height)
        path = d._parts[-1] if d._parts else ""
        numbers = [
            p.split(",")
            for p in path.partition('d="')[2].partition('"')[0].replace("M", " ").replace("L", " ").split()
        ]
        for x, y in numbers:
            assert 5 <= float(x) <= 5 + width
            assert 7 <= float(y) <= 7 + height
