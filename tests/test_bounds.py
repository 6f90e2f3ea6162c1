"""Lower bounds of what contractions move: closed forms, and that no plan beats them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import attention, chain, matmul, multi_head

from einsummable.planner import bounds
from einsummable.planner.eindecomp import plan
from einsummable.planner.placement import place
from einsummable.taskgraph.lower import lower


@pytest.mark.parametrize("p", [8, 27, 64])
def test_a_cube_of_sites_moves_three_faces_less_what_is_there(p):
    assert bounds.matmul(600, 600, 600, p) == pytest.approx(3 * 600**2 * (p ** (1 / 3) - 1))


def test_a_long_product_brings_the_small_matrix_to_all():
    assert bounds.matmul(10000, 10, 10, 4) == pytest.approx(3 * 10 * 10)


def test_a_flat_product_is_cut_along_two_labels():
    assert bounds.matmul(1000, 1000, 1, 16) == pytest.approx(2 * 1000 * 4 - 2 * 1000)


@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 500), st.integers(1, 60))
def test_the_shapes_of_a_share_meet(m, n, k, p):
    """The bound is the least volume of faces: a little more sites never make it jump."""
    here, there = bounds.matmul(m, n, k, p), bounds.matmul(m, n, k, p + 1e-9)
    assert here >= 0
    assert there == pytest.approx(here, rel=1e-6, abs=1e-3)


def test_independent_batches_need_not_move():
    assert bounds.moved(attention(2, 32, 4, 8), 8) == 0


@settings(deadline=None, max_examples=30)
@given(st.sampled_from([2, 4, 8, 16]), st.sampled_from(["matmul", "chain", "heads"]))
def test_no_even_plan_moves_less(p, name):
    graph = {
        "matmul": matmul(64, 32, 128),
        "chain": chain(*[(64, 64)] * 5),
        "heads": multi_head(1, 64, 64, 4, 16),
    }[name]
    found = plan(graph, p)
    assert lower(found, place(found, p)).bytes_moved >= bounds.moved(graph, p) * (1 - 1e-9)


def test_products_that_share_an_input_are_counted_once():
    graph = multi_head(1, 64, 64, 4, 16)
    products = sorted((bounds.contraction(n, 8) for n in graph.nodes if len(n.inputs) == 2
                       and getattr(n, "is_contraction", False)), reverse=True)  # fmt: skip
    assert 0 < bounds.moved(graph, 8) < 4 * sum(products)


def test_inputs_that_lie_somewhere_are_left_out():
    assert bounds.moved(matmul(64, 64, 64), 8, {"A": None}) == 0
