"""Layouts: ours, and dot's where there is one, keep boxes apart and frames around their members only."""

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from einsummable.views import dot, framed
from einsummable.views.layered import Edge


@st.composite
def boxes(draw):
    """Draw sizes of boxes, edges of a DAG, disjoint groups."""
    n = draw(st.integers(1, 12))
    sizes = [(draw(st.integers(20, 90)), draw(st.integers(20, 50))) for _ in range(n)]
    edges = []
    for target in range(1, n):
        sources = draw(st.lists(st.integers(0, target - 1), max_size=3))
        edges += [Edge(s, target, draw(st.sampled_from([(0.0, 0.0), (40.0, 30.0)]))) for s in sources]
    keys = [draw(st.integers(0, 5)) for _ in range(n)]
    groups = [[i for i in range(n) if keys[i] == g] for g in (1, 2)]
    return sizes, edges, [g for g in groups if len(g) > 1]


def rectangle(centre, size):
    return (
        centre[0] - size[0] / 2,
        centre[1] - size[1] / 2,
        centre[0] + size[0] / 2,
        centre[1] + size[1] / 2,
    )


def overlap(a, b, slack=0.5):
    return a[0] + slack < b[2] and b[0] + slack < a[2] and a[1] + slack < b[3] and b[1] + slack < a[3]


def check(layout, sizes, edges, groups, *, tight):
    rectangles = [rectangle(*pair) for pair in zip(layout.boxes, sizes, strict=True)]
    for i, a in enumerate(rectangles):
        assert not any(overlap(a, b) for b in rectangles[i + 1 :])
    for edge, route in zip(edges, layout.routes, strict=True):
        assert layout.boxes[edge.source][0] < layout.boxes[edge.target][0]
        assert len(route.points) % 3 == 1
        if edge.label[0] and tight:
            label = rectangle(route.label, edge.label)
            assert not any(overlap(label, r) for r in rectangles)
        start, end = rectangles[edge.source], rectangles[edge.target]
        assert route.points[0][0] == pytest.approx(start[2], abs=1.5)
        assert end[0] - 1.5 <= route.points[-1][0] <= end[2]
    for members, frame in zip(groups, layout.frames, strict=True):
        if frame is not None:
            inside = (frame.left, frame.top, frame.left + frame.width, frame.top + frame.height)
            for i, r in enumerate(rectangles):
                held = inside[0] <= r[0] and r[2] <= inside[2] and inside[1] <= r[1] and r[3] <= inside[3]
                assert held if i in members else not overlap(r, inside)


@given(boxes())
def test_boxes_labels_and_frames_do_not_overlap(drawn):
    check(framed.lay_out(*drawn), *drawn, tight=True)


def test_a_group_that_a_path_leaves_and_enters_again_has_no_frame():
    sizes = [(30, 30)] * 3
    layout = framed.lay_out(sizes, [Edge(0, 1), Edge(1, 2)], [[0, 2]])
    assert layout.frames == (None,)
    assert framed.lay_out(sizes, [Edge(0, 1), Edge(1, 2)], [[1, 2]]).frames != (None,)


def test_two_groups_that_would_wait_for_each_other_are_not_both_framed():
    edges = [Edge(0, 2), Edge(1, 3)]  # group a → group b, and group b → group a
    layout = framed.lay_out([(30, 30)] * 4, edges, [[0, 3], [1, 2]])
    assert sum(frame is not None for frame in layout.frames) == 1


def test_an_order_without_crossings_is_found():
    edges = [Edge(0, 5), Edge(1, 4), Edge(2, 3)]
    layout = framed.lay_out([(30, 30)] * 6, edges)
    assert all(layout.boxes[e.source][1] == pytest.approx(layout.boxes[e.target][1]) for e in edges)


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_dot_answers_the_same_contract():
    sizes = [(80, 44), (80, 44), (60, 44), (60, 44), (60, 44)]
    edges = [Edge(0, 2, (40, 30)), Edge(1, 2, (40, 30)), Edge(2, 3), Edge(3, 4), Edge(2, 4, (40, 30))]
    layout = dot.lay_out(sizes, edges, [[3, 4]])
    assert layout is not None
    rectangles = [rectangle(*pair) for pair in zip(layout.boxes, sizes, strict=True)]
    assert not any(overlap(a, b) for i, a in enumerate(rectangles) for b in rectangles[i + 1 :])
    (frame,) = layout.frames
    inside = (frame.left, frame.top, frame.left + frame.width, frame.top + frame.height)
    assert [overlap(r, inside) for r in rectangles] == [False, False, False, True, True]
    assert all(layout.boxes[e.source][0] < layout.boxes[e.target][0] for e in edges)
    assert all(len(route.points) % 3 == 1 for route in layout.routes)


def test_without_dot_there_is_no_layout(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert dot.lay_out([(30, 30)], []) is None
