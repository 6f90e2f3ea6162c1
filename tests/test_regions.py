"""Grids and disjoint boxes, held to counting elements one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from einsummable.taskgraph.regions import Grid, disjoint, intersect, volume, within


def index(box):
    return tuple(slice(*r) for r in box)


@st.composite
def grids_and_boxes(draw):
    rank = draw(st.integers(0, 3))
    shape = [draw(st.integers(1, 6)) for _ in range(rank)]
    parts = [draw(st.integers(1, n)) for n in shape]
    spans = [sorted(draw(st.tuples(st.integers(0, n), st.integers(0, n)))) for n in shape]
    return shape, Grid.of(shape, parts), tuple(map(tuple, spans))


@given(grids_and_boxes())
def test_pieces_put_a_box_together_from_its_blocks(drawn):
    shape, grid, box = drawn
    tensor = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    found = np.full([b - a for a, b in box], -1)
    for block, inside, place in grid.pieces(box):
        piece = tensor[index(grid.box(block))][index(inside)]
        assert piece.size
        assert (found[index(place)] == -1).all()
        found[index(place)] = piece
    np.testing.assert_array_equal(found, tensor[index(box)])


@given(grids_and_boxes())
def test_a_grid_knows_its_blocks(drawn):
    _, grid, _ = drawn
    boxes = grid.boxes
    assert len(boxes) == grid.blocks
    for block, box in enumerate(boxes):
        assert grid.box(block) == box
        assert grid.block_at(box) == block


def boxes_in(rank):
    span = st.tuples(st.integers(0, 5), st.integers(1, 3)).map(lambda r: (r[0], r[0] + r[1]))
    return st.lists(st.tuples(*[span] * rank), max_size=6)


@given(st.integers(0, 3).flatmap(boxes_in))
def test_disjoint_covers_the_union_once(boxes):
    rank = len(boxes[0]) if boxes else 0
    wanted, found = np.zeros((8,) * rank, int), np.zeros((8,) * rank, int)
    for box in boxes:
        wanted[index(box)] = 1
    for box in disjoint(boxes):
        found[index(box)] += 1
    np.testing.assert_array_equal(found, wanted if boxes else 0)


def test_boxes_that_do_not_overlap_stay_themselves():
    assert disjoint([((2, 4),), ((0, 2),), ((0, 2),)]) == [((0, 2),), ((2, 4),)]


def test_a_union_that_is_a_box_is_sent_as_one():
    assert disjoint([((0, 3),), ((2, 5),), ((4, 6),)]) == [((0, 6),)]
    assert disjoint([((0, 4), (0, 4)), ((1, 2), (0, 4))]) == [((0, 4), (0, 4))]


def test_an_l_is_sent_as_its_cells():
    assert sum(map(volume, disjoint([((0, 2), (0, 4)), ((0, 4), (0, 2))]))) == 12


def test_intersect_and_within():
    assert intersect(((0, 2),), ((2, 3),)) is None
    assert intersect((), ()) == ()
    assert intersect(((0, 3), (1, 4)), ((2, 5), (0, 9))) == ((2, 3), (1, 4))
    assert within(((2, 3), (1, 4)), ((1, 9), (1, 9))) == ((1, 2), (0, 3))
