"""GraphBuilder: what it derives, merges and refuses; `check`, with a twin for every error."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from strategies import graphs

from einsummable import dtypes
from einsummable.builder import GraphBuilder, check
from einsummable.dtypes import BOOL, C64, F16, F32, F64, I64, ScalarType
from einsummable.errors import DtypeError, ShapeError, UnknownNameError
from einsummable.nodes import Position
from einsummable.scalar import COPY, PRODUCT, ScalarBuilder


def expr(fn, *args):
    """Return `fn` of inputs (ints), labels (strings) and constants (floats)."""
    b = ScalarBuilder()
    make = {int: b.arg, str: b.label, float: b.const}
    return b.build(b.call(fn, *(make[type(a)](a) for a in args)))


@given(graphs(max_nodes=5))
def test_random_programs_check(graph):
    check(graph)


def test_equal_nodes_are_appended_once():
    g = GraphBuilder()
    a, b = g.input("A", (2, 3)), g.input("B", (3, 4))
    assert g.contract("ik", (a, "ij"), (b, "jk")) == g.contract("ik", (a, "ij"), (b, "jk"))
    assert g.contract("ik", (a, "ij"), (b, "jk")) != g.contract("ki", (a, "ij"), (b, "jk"))


def test_build_drops_what_no_output_needs_but_no_input():
    g = GraphBuilder()
    a, unused = g.input("A", (2, 3)), g.input("U", (5,))
    g.contract("", (unused, "i"))
    g.output("Y", g.contract("i", (a, "ij")))
    assert str(g.build()).splitlines() == [
        "%0 = input A [2, 3] f32",
        "%1 = input U [5] f32",
        "%2 = [i] sum[j] x  of %0[i,j]  : [2] f32",
        "return Y = %2",
    ]


def test_space_is_the_outputs_labels_then_the_others_in_order_of_use():
    g = GraphBuilder()
    a, b = g.input("A", (2, 3, 5)), g.input("B", (5, 7))
    node = g[g.contract("lj", (a, "ijk"), (b, "kl"))]
    assert node.space == (("l", 7), ("j", 3), ("i", 2), ("k", 5))
    assert (node.shape, node.aggregated) == ((7, 3), ("i", "k"))


def test_broadcast_labels_need_an_extent():
    g = GraphBuilder()
    a = g.input("A", (2,))
    assert g[g.einsummable("ij", [(a, "i")], COPY, extents={"j": 4})].shape == (2, 4)
    with pytest.raises(ShapeError, match="the extent of label 'j' is not known"):
        g.einsummable("ij", [(a, "i")], COPY)


def test_labels_as_values_are_part_of_the_space():
    g = GraphBuilder()
    a = g.input("A", (2, 3))
    node = g[g.einsummable("ij", [(a, "ij")], expr("mul", 0, "j"))]
    assert (node.dtype, node.shape) == (F32, (2, 3))
    with pytest.raises(ShapeError, match="the extent of label 'k' is not known"):
        g.einsummable("ij", [(a, "ij")], expr("mul", 0, "k"))


@pytest.mark.parametrize(
    ("dtype", "aggregate", "expected"),
    [(F16, "sum", F16), (BOOL, "sum", I64), (BOOL, "max", BOOL), (F64, "any", BOOL), (C64, "prod", C64)],
)
def test_dtypes_of_results(dtype, aggregate, expected):
    g = GraphBuilder()
    assert g[g.einsummable("", [(g.input("A", (3,), dtype), "i")], COPY, aggregate)].dtype == expected


def test_a_parameter_gives_its_type():
    g = GraphBuilder()
    a = g.input("A", (3,), F32)
    g.param("lr", dtypes.WEAK_FLOAT)
    g.param("h", ScalarType(F64))
    for name, dtype in (("lr", F32), ("h", F64)):
        b = ScalarBuilder()
        assert (
            g[g.einsummable("i", [(a, "i")], b.build(b.call("mul", b.arg(0), b.param(name))))].dtype == dtype
        )


def test_a_reshape_to_the_same_groups_is_nothing():
    g = GraphBuilder()
    a = g.input("A", (6,))
    assert g.reshape(a, (("x", 2), ("y", 3)), (2,), (2,)) == a
    node = g[g.reshape(a, (("x", 2), ("y", 3)), (2,), (1, 1))]
    assert (node.shape, node.cuttable) == ((2, 3), ("x",))


def test_a_selection_reads_and_keeps_what_it_says():
    g = GraphBuilder()
    a = g.input("A", (6, 4))
    node = g[g.select(a, [Position("r", start=1, step=2), Position(start=3)], (("r", 3),))]
    assert (node.shape, node.in_box(0, ((1, 3),))) == ((3,), ((3, 6), (3, 4)))


# ----------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("out", "operands", "message"),
    [
        ("ik", "ij jl", "label .k.|'k'"),
        ("i", "ijk jk", "a tensor of 2 dimensions is given 3 labels: i, j, k"),
        ("ik", "ij ik", "label 'i' is 2 in one place but 3 in another"),
        ("ii", "ij jk", "a label stands twice in the result: i, i"),
    ],
)
def test_labels_that_do_not_fit_are_refused(out, operands, message):
    g = GraphBuilder()
    ids = g.input("A", (2, 3)), g.input("B", (3, 4))
    with pytest.raises(ShapeError, match=message):
        g.contract(out, *zip(ids, operands.split(), strict=True))


def test_a_diagonal_of_unequal_dimensions_is_refused():
    g = GraphBuilder()
    with pytest.raises(ShapeError, match="label 'i' is 2 in one place but 3 in another"):
        g.contract("i", (g.input("A", (2, 3)), "ii"))


def test_labels_left_over_are_refused():
    g = GraphBuilder()
    with pytest.raises(ShapeError, match="label 'j' is neither in the result nor aggregated"):
        g.einsummable("i", [(g.input("A", (2, 3)), "ij")], COPY)


def test_functions_without_meaning_are_refused():
    g = GraphBuilder()
    a = g.input("A", (2,), C64)
    with pytest.raises(DtypeError, match="maximum of complex numbers has no meaning"):
        g.einsummable("i", [(a, "i"), (a, "i")], expr("maximum", 0, 1))
    with pytest.raises(DtypeError, match="max of complex numbers has no meaning"):
        g.einsummable("", [(a, "i")], COPY, "max")
    with pytest.raises(DtypeError, match="sub of booleans has no meaning"):
        g.einsummable("i", [(g.input("B", (2,), BOOL), "i")] * 2, expr("sub", 0, 1))


def test_an_input_of_no_number_is_refused():
    with pytest.raises(DtypeError, match="is neither a number nor a boolean"):
        GraphBuilder().input("A", (2,), np.dtype("U3"))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ((2, (1,)), "do not use every atom once"),
        ((2, (1, 1, 1)), "do not use every atom once"),
        ((1, (2,)), "do not use every atom once"),
    ],
)
def test_groups_that_do_not_fit_are_refused(groups, message):
    g = GraphBuilder()
    a = g.input("A", (6,))
    with pytest.raises(ShapeError, match=message):
        g.reshape(a, (("x", 2), ("y", 3)), (groups[0],), groups[1])


def test_a_group_whose_product_is_wrong_is_refused():
    g = GraphBuilder()
    with pytest.raises(ShapeError, match=r"make the shape \(8,\), the tensor has \(6,\)"):
        g.reshape(g.input("A", (6,)), (("x", 2), ("y", 4)), (2,), (1, 1))


@pytest.mark.parametrize(
    ("positions", "space", "message"),
    [
        ([Position(start=6), Position("j")], (("j", 4),), "index 6 is out of range for a dimension of 6"),
        ([Position(start=-1), Position("j")], (("j", 4),), "index -1 is out of range for a dimension of 6"),
        ([Position("i", start=2), Position(start=0)], (("i", 5),), "index 6 is out of range"),
        ([Position("i", step=3), Position(start=0)], (("i", 3),), "index 6 is out of range"),
        ([Position(start=0)], (), "1 indices are given for a tensor of shape"),
        ([Position("i"), Position("j")], (("j", 4), ("i", 6)), "in the order of the tensor's dimensions"),
    ],
)
def test_selections_out_of_range_are_refused(positions, space, message):
    g = GraphBuilder()
    with pytest.raises(ShapeError, match=message):
        g.select(g.input("A", (6, 4)), positions, space)


# -------------------------------------------------------------------------------- check's twins


def small():
    g = GraphBuilder()
    a = g.input("A", (4, 3))
    y = g.contract("i", (a, "ij"))
    r = g.reshape(y, (("x", 2), ("y", 2)), (2,), (1, 1))
    g.output("Z", g.select(r, [Position(start=1), Position("k")], (("k", 2),)))
    return g.build()


TWINS = {
    "later input": (1, {"inputs": (2,)}, ShapeError, "%1 reads %2, which is not defined before it"),
    "extent": (
        1,
        {"space": (("i", 4), ("j", 5))},
        ShapeError,
        "label 'j' is 5 in one place but 3 in another",
    ),
    "order of space": (
        1,
        {"space": (("j", 3), ("i", 4))},
        ShapeError,
        "does not begin with the labels of its output",
    ),
    "spare label": (
        1,
        {"out": ("i", "j"), "space": (("i", 4), ("j", 3))},
        ShapeError,
        "an aggregate and no label",
    ),
    "no aggregate": (1, {"aggregate": None}, ShapeError, "labels to aggregate and no aggregate"),
    "unknown aggregate": (1, {"aggregate": "mean"}, UnknownNameError, "'mean' is no aggregate"),
    "dtype": (1, {"dtype": F64}, ShapeError, "its dtype is float64, its join makes float32"),
    "join of too many": (1, {"join": PRODUCT}, ShapeError, "its join reads input 1, it has 1"),
    "labels of too many": (1, {"labels": (("i", "j"), ("i",))}, ShapeError, "labels for 2 inputs, it has 1"),
    "reshape": (2, {"groups_in": (1,)}, ShapeError, "do not use every atom once"),
    "dtype of reshape": (2, {"dtype": F64}, ShapeError, "its dtype is float64, its input's is float32"),
    "select": (3, {"source_shape": (2, 3)}, ShapeError, "2 indices are given for a tensor of shape"),
    "range": (3, {"space": (("k", 3),)}, ShapeError, "index 2 is out of range for a dimension of 2"),
    "dtype of select": (3, {"dtype": F64}, ShapeError, "its dtype is float64, its input's is float32"),
}


@pytest.mark.parametrize("name", TWINS)
def test_check_names_what_is_wrong(name):
    at, changes, kind, message = TWINS[name]
    graph = small()
    check(graph)
    nodes = list(graph.nodes)
    nodes[at] = replace(nodes[at], **changes)
    with pytest.raises(kind, match=message):
        check(replace(graph, nodes=tuple(nodes)))


def test_check_names_an_output_that_does_not_exist():
    with pytest.raises(UnknownNameError, match="the output 'Z' is %9, which does not exist"):
        check(replace(small(), outputs=(("Z", 9),)))


def test_check_names_a_parameter_that_is_not_declared():
    g = GraphBuilder()
    g.param("lr", dtypes.WEAK_FLOAT)
    b = ScalarBuilder()
    a = g.input("A", (4,))
    scaled = g.einsummable("i", [(a, "i")], b.build(b.call("mul", b.arg(0), b.param("lr"))))
    g.output("Y", scaled)
    with pytest.raises(UnknownNameError, match="the scalar 'lr' is not declared"):
        check(replace(g.build(), params=()))
