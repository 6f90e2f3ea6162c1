"""TaskGraph: check with a twin for every error, str, JSON, the oracle."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from einsummable.builder import GraphBuilder
from einsummable.codec import from_json, to_json
from einsummable.dtypes import F32
from einsummable.errors import TaskError
from einsummable.taskgraph import tasks
from einsummable.taskgraph.check import check
from einsummable.taskgraph.covers import covers_once
from einsummable.taskgraph.tasks import (
    Aggregate,
    Apply,
    Assemble,
    Move,
    Output,
    Read,
    Slice,
    TaskGraph,
)


def sum_on_two_sites():
    """Y[i] = sum[j] X[i,j] of a 4×6 tensor, j cut in two, the result at site 0."""
    builder = GraphBuilder()
    x = builder.input("X", (4, 6))
    builder.output("Y", builder.contract("i", (x, "ij")))
    whole, left, right = ((0, 4), (0, 6)), ((0, 4), (0, 3)), ((0, 4), (3, 6))
    return TaskGraph(
        builder.build(),
        2,
        (
            Read(0, "X", whole, (4, 6), F32, 0),
            Slice(0, (0,), left, (4, 3), F32, 0),
            Slice(0, (0,), right, (4, 3), F32, 0),
            Move(1, (2,), (4, 3), F32, 0),
            Apply(0, (1,), left, (4,), F32, 1),
            Apply(1, (3,), right, (4,), F32, 1),
            Move(0, (5,), (4,), F32, 1),
            Aggregate(0, (4, 6), "sum", (4,), F32, 1),
            Slice(0, (7,), ((0, 1),), (1,), F32, 1),
            Slice(0, (7,), ((1, 4),), (3,), F32, 1),
            Assemble(0, (9, 8), (((1, 4),), ((0, 1),)), (4,), F32, 1),
        ),
        (Output("Y", (4,), F32, ((10, ((0, 4),)),)),),
    )


def test_evaluate_runs_every_kind_of_task():
    program = sum_on_two_sites()
    check(program)
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(tasks.evaluate(program, {"X": x})["Y"], x.sum(axis=1))


def test_bytes_moved_counts_moves_only():
    assert sum_on_two_sites().bytes_moved == 4 * 3 * 4 + 4 * 4


def test_prints_each_task_with_its_site_and_its_inputs(golden):
    golden(str(sum_on_two_sites()))


def test_json_round_trip():
    program = sum_on_two_sites()
    assert from_json(TaskGraph, to_json(program)) == program


def test_consumers_are_each_named_once():
    program = sum_on_two_sites()
    assert program.consumers[0] == (1, 2)
    assert program.consumers[7] == (8, 9)


#: Which task is replaced by what, and what `check` says of it.
TWINS = {
    "site that does not exist": (0, {"site": 2}, "#0 .Read of %0. is on site 2, there are 2"),
    "cycle": (1, {"inputs": (1,)}, "#1 .*does not come before it: a cycle"),
    "later input": (4, {"inputs": (9,)}, "#4 .*reads #9, which does not come before"),
    "missing move": (5, {"inputs": (2,)}, "#5 .*on site 1 and reads #2 on site 0: a move is missing"),
    "move of two": (3, {"inputs": (1, 2)}, "#3 .*a move has one input"),
    "move within a site": (3, {"site": 0}, "#3 .*a move within site 0 is no move"),
    "slice beyond a block": (2, {"box": ((0, 4), (4, 7))}, r"#2 .*slices \[0:4,4:7\] out of a block"),
    "slice of a wrong shape": (2, {"shape": (4, 2)}, r"#2 .*has shape \(4, 2\)"),
    "read of a wrong shape": (0, {"shape": (6, 4)}, r"#0 .*has shape \(6, 4\)"),
    "move of a wrong shape": (6, {"shape": (3,)}, r"#6 .*has shape \(3,\)"),
    "kernel given another box": (4, {"inputs": (0,)}, r"#4 .*its input 0 has shape \(4, 6\)"),
    "kernel with too few inputs": (4, {"inputs": ()}, r"#4 .*has 0 inputs, its node reads 1"),
    "kernel of a wrong shape": (4, {"shape": (3,)}, r"#4 .*has shape \(3,\)"),
    "kernel of an input": (4, {"origin": 0}, "#4 .*is a kernel call of an input"),
    "origin that does not exist": (4, {"origin": 2}, "#4 .*belongs to %2, which does not exist"),
    "read of an unknown input": (0, {"name": "Z"}, "#0 .*reads 'Z', which is no input"),
    "partial results of two shapes": (7, {"inputs": (4, 1)}, r"#7 .*has shape \(4,\)"),
    "aggregate of nothing": (7, {"inputs": ()}, "#7 .*combines nothing"),
    "aggregate unknown": (7, {"aggregate": "mean"}, "#7 .*'mean' is no aggregate"),
    "piece that does not fit": (10, {"inputs": (8, 9)}, "#10 .*a piece does not fit its place"),
    "gap in a block": (
        10,
        {"inputs": (9,), "places": (((1, 4),),)},
        "#10 .*do not cover the block exactly once",
    ),
    "dtype changed on the way": (6, {"dtype": np.dtype("f8")}, "#6 .*is float64, it reads float32"),
}


@pytest.mark.parametrize("name", TWINS)
def test_check_names_what_is_wrong(name):
    at, changes, message = TWINS[name]
    program = sum_on_two_sites()
    broken = list(program.tasks)
    broken[at] = replace(broken[at], **changes)
    with pytest.raises(TaskError, match=message):
        check(replace(program, tasks=tuple(broken)))


def test_check_refuses_a_second_move_of_one_block():
    program = sum_on_two_sites()
    twice = replace(program, tasks=(*program.tasks, Move(1, (2,), (4, 3), F32, 0)))
    with pytest.raises(TaskError, match="#11 moves #2 to site 1 a second time"):
        check(twice)


def test_check_refuses_a_move_of_a_move():
    program = sum_on_two_sites()
    back = replace(program, tasks=(*program.tasks, Move(0, (3,), (4, 3), F32, 0)))
    with pytest.raises(TaskError, match=r"#11 .*one input, which is no move"):
        check(back)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (((10, ((0, 3),)),), r"a block of the output 'Y' is not made: #10, \[0:3\]"),
        (((11, ((0, 4),)),), "is not made: #11"),
        (((8, ((0, 1),)),), "do not cover it exactly once"),
    ],
)
def test_check_refuses_an_output_that_is_not_all_there(blocks, message):
    program = sum_on_two_sites()
    with pytest.raises(TaskError, match=message):
        check(replace(program, outputs=(replace(program.outputs[0], blocks=blocks),)))


def boxes_of(rank):
    span = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda r: (min(r), max(r)))
    return st.lists(st.tuples(*[span] * rank), max_size=5)


@given(st.integers(0, 3).flatmap(lambda rank: st.tuples(st.just(rank), boxes_of(rank))))
def test_covers_once_counts_every_element(drawn):
    rank, boxes = drawn
    shape = (3,) * rank
    count = np.zeros((4,) * rank, int)
    for box in boxes:
        count[tuple(slice(*r) for r in box)] += 1
    inside = tuple(slice(n) for n in shape)
    expected = (count[inside] == 1).all() and count.sum() == count[inside].sum()
    assert covers_once(boxes, shape) == expected


def test_covers_once_of_many_blocks_along_the_last_dimension_is_linear():
    boxes = [((0, 5), (i, i + 1)) for i in range(20_000)]
    assert covers_once(boxes, (5, 20_000))
    assert not covers_once([*boxes[:-1], boxes[0]], (5, 20_000))
