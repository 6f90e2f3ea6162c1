"""Stepping through a run: every block has its numbers, sums grow to them, and pictures hold them all."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_same, data_for
from svg_checks import check
from test_engine import programs
from test_views import small_taskgraph

import einsummable as ein
from einsummable import views
from einsummable.errors import PlanError, ShapeError
from einsummable.taskgraph.check import check as check_tasks
from einsummable.taskgraph.fuse import fuse
from einsummable.taskgraph.tasks import Fused, Move, evaluate, evaluate_task
from einsummable.taskgraph.unfuse import unfuse
from einsummable.views import digits, steps

A = np.arange(16, dtype="f4").reshape(4, 4) / 4
B = np.array([[1, -2, 0, 3], [0.5, 1e6, -np.inf, np.nan], [1, 0, 0, 1], [0, 1, 2, 3]], "f4")


def blocks_of(taskgraph, arrays, params=None):
    """The oracle's blocks, task by task."""
    made = []
    for task in taskgraph.tasks:
        made.append(
            evaluate_task(taskgraph.graph, task, [made[j] for j in task.inputs], arrays, params or {})
        )
    return made


@settings(deadline=None, max_examples=60)
@given(programs(), st.integers(0, 9))
def test_unfusing_changes_no_result(taskgraph, seed):
    arrays, params = data_for(taskgraph.graph, seed)
    apart = unfuse(fuse(taskgraph))
    check_tasks(apart)
    assert not any(isinstance(task, Fused) for task in apart.tasks)
    assert_same(evaluate(apart, arrays, params), evaluate(taskgraph, arrays, params))


@settings(deadline=None, max_examples=60)
@given(programs(), st.integers(0, 9))
def test_every_task_ends_in_the_numbers_of_its_block(taskgraph, seed):
    arrays, params = data_for(taskgraph.graph, seed)
    view = views.steps_view(taskgraph, arrays, params)
    check(view)
    apart = unfuse(taskgraph)
    assert [t["id"] for t in view["tasks"]] == list(range(len(apart.tasks)))
    made = [] if taskgraph.graph.params else blocks_of(apart, arrays)
    for task, block in zip(view["tasks"], made, strict=False):
        assert task["shape"] == list(block.shape)
        assert len(task["frames"][-1]["cells"]) == block.size
        exact = block.dtype.kind in "bui"  # sums of floats grow in another order than the oracle adds
        if exact or len(task["frames"]) == 1:
            assert task["frames"][-1]["cells"] == digits.cells(block)


def test_steps_of_a_matmul(golden):
    golden(json.dumps(views.steps_view(small_taskgraph(), {"A": A, "B": B}), indent=1, ensure_ascii=False))


def test_steps_in_words(golden):
    golden(views.text(views.steps_view(small_taskgraph(), {"A": A, "B": B})))


def test_a_partial_sum_grows_and_says_what_it_reads():
    view = views.steps_view(small_taskgraph(), {"A": np.ones((4, 4), "f4"), "B": np.ones((4, 4), "f4")})
    call, whole = view["tasks"][2], view["tasks"][7]
    assert call["partial"]
    assert "a partial result" in call["words"]
    assert [f["cells"][0] for f in call["frames"]] == ["1", "2"]
    assert [f["cells"][0] for f in whole["frames"]] == ["2", "4"]
    assert whole["frames"][0]["reads"] == [[[0, 4], [0, 4]], None]
    assert not whole["partial"]
    assert whole["result"]


def test_a_sum_over_many_grows_in_a_few_steps_and_ends_right():
    x = np.arange(50, dtype="i8")
    net = ein.compile("s = sum[i] x[i]", x=x, sites=1)
    frames = views.steps_view(net.tasks, {"x": x})["tasks"][-1]["frames"]
    assert len(frames) == steps.FRAMES
    assert frames[-1]["cells"] == ["1225"]
    assert frames[0]["words"] == "i = 0…3"
    assert [f["reads"][0][0] for f in frames][-1] == [45, 50]


def test_what_is_put_together_fills_up():
    x, w = np.ones((4, 5), "f4"), np.ones((5, 4), "f4")
    net = ein.compile("H[i,k] = relu(sum[j] x[i,j] * w[j,k])", x=x, w=w, sites=4)
    view = views.steps_view(net.tasks, {"x": x, "w": w})
    filling = [t["frames"] for t in view["tasks"] if t["type"] == "Assemble"]
    assert filling
    for frames in filling:
        assert "" in frames[0]["cells"]
        assert "" not in frames[-1]["cells"]


def test_a_large_block_has_its_shape_only():
    x = np.ones((30, 30), "f4")
    net = ein.compile("y[i] = sum[j] x[i,j]", x=x, sites=1)
    view = views.steps_view(net.tasks, {"x": x})
    assert view["tasks"][0]["frames"][-1]["cells"] is None
    assert view["tasks"][-1]["frames"][-1]["cells"] == ["30"] * 30
    assert "30 × 30 elements" in views.svg(view)


def test_nothing_is_computed_where_the_oracle_would_take_long():
    net = ein.compile("C[i,k] = A[i,j] * B[j,k]", A=(400, 400), B=(400, 400), sites=2)
    arrays = {name: np.zeros((400, 400), "f4") for name in "AB"}
    view = check(views.steps_view(net.tasks, arrays))
    assert view.tag.endswith("svg")


def test_too_many_tasks_are_refused():
    net = ein.compile("C[i,k] = A[i,j] * B[j,k]", A=(64, 64), B=(64, 64), sites=64)
    arrays = {name: np.zeros((64, 64), "f4") for name in "AB"}
    with pytest.raises(PlanError, match=r"the program has \d+ tasks, too many to step through: 400 at most"):
        views.steps_view(net.tasks, arrays)


def test_a_wrong_input_is_refused():
    with pytest.raises(ShapeError, match=r"A has shape \(2, 2\)"):
        views.steps_view(small_taskgraph(), {"A": np.ones((2, 2), "f4"), "B": B})


def test_moves_are_arrows_and_cards_carry_their_task():
    view = views.steps_view(small_taskgraph(), {"A": A, "B": B})
    root = check(view)
    groups = list(root.iter("{http://www.w3.org/2000/svg}g"))
    moves = [i for i, t in enumerate(small_taskgraph().tasks) if isinstance(t, Move)]
    assert [int(g.get("data-move")) for g in groups if g.get("data-move")] == moves
    assert [int(g.get("data-task")) for g in groups if g.get("data-task")] == list(range(8))
    grids = {int(g.get("data-cells")): g for g in groups if g.get("data-cells")}
    assert [t.text for t in grids[7].iter("{http://www.w3.org/2000/svg}text")] == view["tasks"][7]["frames"][
        -1
    ]["cells"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.float32(1 / 3), "0.333"),
        (np.float64(-0.0), "0"),
        (np.float64(1000.0), "1000"),
        (np.float64(123.456), "123"),
        (np.float64(1.5e-7), "1.5e-7"),
        (np.float64(-2e12), "−2e12"),
        (np.float64(np.nan), "nan"),
        (np.float64(-np.inf), "−∞"),
        (np.bool_(True), "1"),
        (np.int64(-5), "−5"),
        (np.complex64(1 - 2j), "1−2i"),
        (np.complex128(2 + 0.5j), "2+0.5i"),
    ],
)
def test_numbers_are_short(value, shown):
    assert digits.cell(value) == shown
