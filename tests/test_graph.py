"""EinGraph: boxes, printing, and the oracle against numpy written by hand."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import data_for, graphs, partitions, random_array

import einsummable as ein
from einsummable import dtypes
from einsummable.builder import GraphBuilder
from einsummable.dtypes import BF16, BOOL, C64, C128, F16, F32, F64, I32, I64
from einsummable.errors import DtypeError, ShapeError, UnknownNameError
from einsummable.evaluate import evaluate, evaluate_node, read_params
from einsummable.nodes import Einsummable, Gather, Input, Position, box_shape, whole
from einsummable.scalar import COPY, ScalarBuilder


def index(box):
    return tuple(slice(*r) for r in box)


def program(build, *shapes, dtype=F32):
    """Return a program of inputs X0, X1 … and the result Y of ``build(builder, *ids)``."""
    g = GraphBuilder()
    ids = [g.input(f"X{k}", shape, dtype) for k, shape in enumerate(shapes)]
    g.output("Y", build(g, *ids))
    return g.build()


def result(graph, *arrays, **params):
    named = {f"X{k}": a for k, a in enumerate(arrays)}
    return evaluate(graph, named, params)["Y"]


def expr(make):
    b = ScalarBuilder()
    return b.build(make(b))


def whole_space(node):
    return whole([n for _, n in node.space])


# -------------------------------------------------------------------------------------- boxes


@given(graphs(max_nodes=5))
def test_the_whole_space_makes_the_whole_output_from_parts_of_the_inputs(graph):
    for node in graph.nodes:
        ranges = whole_space(node)
        assert node.out_box(ranges) == whole(node.shape)
        for k, j in enumerate(node.inputs):
            for (start, stop), n in zip(node.in_box(k, ranges), graph.nodes[j].shape, strict=True):
                assert 0 <= start <= stop <= n


@settings(max_examples=60)
@given(graphs(max_nodes=4), st.integers(1, 6), st.data())
def test_a_node_on_smaller_ranges_is_its_own_kernel(graph, p, data):
    """Blocks evaluated one by one and put together equal the node as a whole; that is the idea of it all."""
    arrays, params = data_for(graph, 2)
    scalars, values = read_params(graph, params), []
    for node in graph.nodes:
        if isinstance(node, Input):
            values.append(arrays[node.name])
            continue

        def call(ranges, node=node, values=values):
            args = [values[j][index(node.in_box(k, ranges))] for k, j in enumerate(node.inputs)]
            return evaluate_node(graph, node, ranges, args, scalars)

        values.append(call(whole_space(node)))
        cuttable = node.out if isinstance(node, Einsummable | Gather) else node.cuttable
        found = np.zeros(node.shape, node.dtype)
        for ranges in data.draw(partitions(node.space, cuttable, p)).boxes(node.space):
            found[index(node.out_box(ranges))] = call(ranges)
        # The same values are computed one by one, but numpy's vector loops may round their ends differently.
        np.testing.assert_allclose(found.astype(C128), values[-1].astype(C128), rtol=1e-5, atol=1e-6)


def test_an_einsummable_answers_for_its_inputs():
    g = GraphBuilder()
    node = g[g.contract("ik", (g.input("A", (4, 6)), "ij"), (g.input("B", (6, 5)), "jk"))]
    ranges = ((0, 2), (1, 3), (4, 6))
    assert node.space == (("i", 4), ("k", 5), ("j", 6))
    assert node.in_box(0, ranges) == ((0, 2), (4, 6))
    assert node.in_box(1, ranges) == ((4, 6), (1, 3))
    assert node.out_box(ranges) == ((0, 2), (1, 3))
    assert node.is_contraction


def test_only_the_slowest_atom_of_a_group_may_be_cut():
    g = GraphBuilder()
    a = g.input("A", (4, 6))
    atoms = (("m", 4), ("h", 2), ("d", 3))
    split = g[g.reshape(a, atoms, (1, 2), (1, 1, 1))]
    assert (split.shape, split.cuttable, split.out) == ((4, 2, 3), ("m", "h"), ("m", "h", "d"))
    merged = g[g.reshape(a, (("m", 4), ("n", 6)), (1, 1), (2,))]
    assert (merged.shape, merged.cuttable, merged.out) == ((24,), ("m",), ("m",))
    assert merged.out_box(((1, 3), (0, 6))) == ((6, 18),)


def test_an_empty_group_is_a_dimension_of_one():
    g = GraphBuilder()
    node = g[g.reshape(g.input("A", (1, 5)), (("n", 5),), (0, 1), (1, 0, 0))]
    assert (node.shape, node.out) == ((5, 1, 1), ("n", "", ""))
    assert node.in_box(0, ((2, 4),)) == ((0, 1), (2, 4))


@pytest.mark.parametrize(
    ("ranges", "box"),
    [(((0, 2),), ((1, 4),)), (((1, 3),), ((3, 6),)), (((2, 2),), ((5, 5),)), (((0, 0),), ((1, 1),))],
)
def test_a_selection_reads_no_more_than_its_steps_reach(ranges, box):
    g = GraphBuilder()
    node = g[g.select(g.input("A", (6,)), [Position("r", start=1, step=2)], (("r", 3),))]
    assert node.in_box(0, ranges) == box


def test_a_scalar_index_reads_all_of_its_dimension():
    g = GraphBuilder()
    g.param("n", dtypes.WEAK_INT)
    node = g[g.select(g.input("A", (6, 4)), [Position(param="n"), Position("j")], (("j", 4),))]
    assert node.in_box(0, ((1, 2),)) == ((0, 6), (1, 2))


# ------------------------------------------------------------------------- the oracle by hand

EQUATIONS = [
    "ij,jk->ik", "ij->ji", "ii->i", "ii->", "ij->", "i,j->ij", "bij,bjk->bik", "ijk,jkl->il", "ij,ij->ij",
    "iij->ij", "ijij->ij", "ij,jk,kl->il", "i,i,i->", "ijk->kij", "a->a", ",->", "ij,i->j",
]  # fmt: skip
SHAPE = {"i": 3, "j": 4, "k": 5, "l": 2, "b": 2, "a": 6}


@pytest.mark.parametrize("dtype", [F32, F64, C128, I64, C64, I32])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_products_summed_are_einsum(equation, dtype):
    sources, out = equation.split("->")
    labels = sources.split(",")
    shapes = [[SHAPE[x] for x in ls] for ls in labels]
    if equation == "ijij->ij":
        shapes = [[3, 4, 3, 4]]
    join = expr(lambda b: _product(b, len(labels)))
    aggregate = "sum" if set("".join(labels)) - set(out) else None
    graph = program(
        lambda g, *ids: g.einsummable(out, list(zip(ids, labels, strict=True)), join, aggregate),
        *shapes,
        dtype=dtype,
    )
    rng = np.random.default_rng(0)
    arrays = [random_array(rng, shape, dtype) for shape in shapes]
    np.testing.assert_array_equal(result(graph, *arrays), np.einsum(equation, *arrays))


def _product(b, n):
    x = b.arg(0)
    for k in range(1, n):
        x = b.call("mul", x, b.arg(k))
    return x


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64, I32, I64, BOOL])
@pytest.mark.parametrize("aggregate", ["sum", "prod", "max", "min", "any", "all"])
def test_aggregates_are_numpys_reductions(aggregate, dtype):
    graph = program(lambda g, x: g.einsummable("i", [(x, "ij")], COPY, aggregate), (3, 4), dtype=dtype)
    x = random_array(np.random.default_rng(1), (3, 4), dtype)
    wide = x if dtype in (BOOL, I32, I64) else x.astype(F64)
    expected = getattr(np, aggregate)(wide, axis=1).astype(graph.nodes[1].dtype)
    np.testing.assert_array_equal(result(graph, x), expected)


def test_a_join_need_not_be_a_product():
    """Squared distances, from the first page of the language."""
    square = expr(lambda b: b.call("square", b.call("sub", b.arg(0), b.arg(1))))
    graph = program(
        lambda g, x, t: g.einsummable("ij", [(x, "ik"), (t, "jk")], square, "sum"), (3, 4), (5, 4)
    )
    x, t = np.arange(12, dtype=F32).reshape(3, 4), np.ones((5, 4), F32)
    np.testing.assert_array_equal(result(graph, x, t), ((x[:, None] - t[None]) ** 2).sum(-1))


def test_labels_are_values_of_the_whole_not_of_the_block():
    mask = expr(
        lambda b: b.call("where", b.call("le", b.label("k"), b.label("q")), b.arg(0), b.const(-np.inf))
    )
    graph = program(lambda g, s: g.einsummable("qk", [(s, "qk")], mask), (4, 4))
    s = np.ones((4, 4), F32)
    np.testing.assert_array_equal(result(graph, s), np.where(np.tri(4, dtype=bool), s, -np.inf))
    node = graph.nodes[1]
    block = evaluate_node(graph, node, ((1, 3), (2, 4)), [s[1:3, 2:4]], {})
    np.testing.assert_array_equal(block, [[-np.inf, -np.inf], [1, -np.inf]])


def test_fills_have_no_inputs():
    graph = program(
        lambda g: g.einsummable(
            "ij", [], expr(lambda b: b.call("eq", b.label("i"), b.label("j"))), extents={"i": 3, "j": 3}
        )
    )
    np.testing.assert_array_equal(result(graph), np.eye(3, dtype=bool))


def test_a_label_that_nothing_reads_counts():
    graph = program(lambda g, x: g.einsummable("", [(x, "")], COPY, "sum", extents={"i": 7}), ())
    assert result(graph, np.array(2, F32)) == 14


def test_an_empty_aggregate_is_the_identity():
    for aggregate, expected in (("sum", 0), ("prod", 1), ("max", -np.inf), ("min", np.inf)):
        graph = program(lambda g, x, a=aggregate: g.einsummable("i", [(x, "ij")], COPY, a), (2, 0))
        np.testing.assert_array_equal(result(graph, np.zeros((2, 0), F32)), np.full(2, expected, F32))


def test_narrow_floats_are_summed_in_f32():
    graph = program(lambda g, x: g.contract("", (x, "i")), (5000,), dtype=F16)
    assert result(graph, np.ones(5000, F16)) == 5000  # in float16 it would stop at 2048


def test_reshape_is_numpys():
    atoms = (("m", 4), ("h", 2), ("d", 3))
    graph = program(lambda g, x: g.reshape(x, atoms, (1, 2), (2, 0, 1)), (4, 6))
    x = np.arange(24, dtype=F32).reshape(4, 6)
    np.testing.assert_array_equal(result(graph, x), x.reshape(8, 1, 3))


def test_select_is_numpys_indexing():
    positions = [Position(start=2), Position("j", start=1, step=2), Position("k")]
    graph = program(lambda g, x: g.select(x, positions, (("j", 2), ("k", 3))), (4, 5, 3))
    x = np.arange(60, dtype=F32).reshape(4, 5, 3)
    np.testing.assert_array_equal(result(graph, x), x[2, 1:4:2, :])


def pick():
    g = GraphBuilder()
    g.param("n", dtypes.WEAK_INT)
    x = g.input("X0", (4, 3))
    g.output("Y", g.select(x, [Position(param="n"), Position("j")], (("j", 3),)))
    return g.build()


def test_a_scalar_index_is_read_when_it_runs():
    x = np.arange(12, dtype=F32).reshape(4, 3)
    for n in range(-4, 4):
        np.testing.assert_array_equal(result(pick(), x, n=n), x[n])


# ------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("n", [4, -5])
def test_a_scalar_index_out_of_range_is_refused(n):
    with pytest.raises(ShapeError, match=f"the scalar 'n' is {n}, but the dimension it indexes has extent 4"):
        result(pick(), np.zeros((4, 3), F32), n=n)


def test_missing_or_wrong_scalars_are_refused():
    with pytest.raises(UnknownNameError, match="no value is given for the scalar 'n'"):
        result(pick(), np.zeros((4, 3), F32))
    with pytest.raises(DtypeError, match=r"the scalar 'n' is 0\.5, the program was compiled for an integer"):
        result(pick(), np.zeros((4, 3), F32), n=0.5)


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(UnknownNameError, match="no array is given for the input 'X0'"):
        result(pick(), n=0)
    with pytest.raises(ShapeError, match=r"X0 has shape \(3, 4\), the program was compiled for \(4, 3\)"):
        result(pick(), np.zeros((3, 4), F32), n=0)
    with pytest.raises(DtypeError, match="X0 is f64, the program was compiled for f32"):
        result(pick(), np.zeros((4, 3)), n=0)


# ------------------------------------------------------------------------------------- printing


def test_prints_a_line_a_node(golden):
    g = GraphBuilder()
    g.param("n", dtypes.WEAK_INT)
    g.param("lr", dtypes.ScalarType(F32))
    x, w = g.input("X", (4, 6)), g.input("W", (6, 5), F64)
    y = g.contract("ik", (x, "ij"), (w, "jk"))
    z = g.einsummable(
        "ik", [(y, "ik")], expr(lambda b: b.call("mul", b.param("lr"), b.call("exp", b.arg(0))))
    )
    r = g.reshape(z, (("i", 4), ("h", 1), ("d", 5)), (1, 2), (1, 1, 1))
    s = g.select(r, [Position("i", start=1, step=2), Position(start=0), Position(param="n")], (("i", 2),))
    g.output(
        "Y",
        g.einsummable("", [(s, "i"), (s, "j")], expr(lambda b: b.call("maximum", b.arg(0), b.arg(1))), "max"),
    )
    g.output("Z", z)
    golden(str(g.build()))


def test_names_of_nodes():
    g = GraphBuilder()
    x = g.input("X", (4,))
    g.output("Y", g.einsummable("", [(g.einsummable("i", [(x, "i")], COPY), "i")], COPY, "sum"))
    graph = g.build()
    assert [graph.name_of(i) for i in range(3)] == ["X", "%1", "Y"]


def test_consumers_are_each_named_once():
    g = GraphBuilder()
    x = g.input("X", (4,))
    g.output("Y", g.contract("", (x, "i"), (x, "i")))
    assert g.build().consumers == ((1,), ())


def test_boxes():
    assert whole((2, 3)) == ((0, 2), (0, 3))
    assert box_shape(((1, 4), (2, 2))) == (3, 0)
    assert [list(product(*map(range, box_shape(whole(()))))), whole(())] == [[()], ()]


@pytest.mark.parametrize("value", [300, -1])
def test_a_scalar_must_fit_the_integers_it_meets(value):
    net = ein.compile("Z[i] = x[i] * n", x=np.ones(2, "u1"), n=3, sites=1)
    assert net.run(n=255)["Z"].tolist() == [255, 255]
    with pytest.raises(DtypeError, match=rf"the scalar 'n' is {value}, which does not fit uint8\n1 \| Z"):
        net.run(n=value)


def test_all_arrays_that_do_not_fit_are_shown():
    net = ein.compile("Z[i] = x[i] * y[i]", x=(2,), y=(2,), sites=1)
    message = r"x has shape \(3,\), .* \(2,\)\n1 \| .*\n  \| +\^ +\^\nnote: y is f64, .* for f32\nnote: give"
    with pytest.raises(ShapeError, match=message):
        net.run(x=np.ones(3, "f4"), y=np.ones(2))
