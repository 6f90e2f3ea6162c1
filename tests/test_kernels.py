"""Kernels against the graph's oracle: random programs, blocks, strides and dtypes."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_same, data_for, graphs, random_array

from einsummable import dtypes
from einsummable.builder import GraphBuilder
from einsummable.dtypes import BF16, BOOL, C128, F16, F32, F64, I32, I64, ScalarType
from einsummable.errors import DtypeError, ShapeError
from einsummable.evaluate import evaluate, evaluate_node, read_params
from einsummable.functions import FUNCTIONS
from einsummable.kernels import blocks, contraction, fused, tiling
from einsummable.kernels.blocks import Call, prepare
from einsummable.nodes import Einsummable, Input, Position, box_shape, whole
from einsummable.scalar import ScalarBuilder


def strided(x, how):
    """Return the values of `x` in other strides."""
    if not x.ndim:
        return x
    match how:
        case 0:
            return x
        case 1:
            return np.asfortranarray(x)
        case 2:
            return np.repeat(x, 2, axis=-1)[..., ::2]
        case 3:
            return x[::-1].copy()[::-1]
        case _:
            return np.repeat(x, 3, axis=0)[1::3].swapaxes(0, -1).copy().swapaxes(0, -1)


def call_kernel(graph, node, ranges, args, params):
    kernel = prepare(Call.of(graph, node), box_shape(ranges))
    with np.errstate(all="ignore"):
        return kernel(args, tuple(start for start, _ in ranges), params)


def part_of(draw, node):
    """Draw ranges of a space that blocks of it could have."""
    ranges = []
    for label, n in node.space:
        start = draw(st.integers(0, max(n - 1, 0))) if label in node.cuttable else 0
        ranges.append((start, draw(st.integers(start + 1, n)) if n and label in node.cuttable else n))
    return tuple(ranges)


def boxes_of(node, ranges, values):
    boxes = [node.in_box(k, ranges) for k in range(len(node.inputs))]
    return [values[j][tuple(slice(*r) for r in box)] for j, box in zip(node.inputs, boxes, strict=True)]


def run_by_kernels(graph, arrays, params, kernel_of=prepare, how=0):
    values = []
    for node in graph.nodes:
        if isinstance(node, Input):
            values.append(strided(arrays[node.name], how))
            continue
        space = whole([n for _, n in node.space])
        kernel = kernel_of(Call.of(graph, node), box_shape(space))
        with np.errstate(all="ignore"):
            values.append(kernel(boxes_of(node, space, values), (0,) * len(space), params))
        assert isinstance(values[-1], np.ndarray)
        assert values[-1].shape == node.shape
    return {name: values[o] for name, o in graph.outputs}


@settings(deadline=None, max_examples=300)
@given(graphs(), st.integers(0, 4), st.integers(0, 9))
def test_programs_by_kernels_equal_the_oracle(graph, how, seed):
    arrays, params = data_for(graph, seed)
    before = {name: x.copy() for name, x in arrays.items()}
    for x in arrays.values():
        x.flags.writeable = False
    assert_same(run_by_kernels(graph, arrays, params, how=how), evaluate(graph, arrays, params))
    for name, x in arrays.items():
        np.testing.assert_array_equal(x, before[name])


def in_tiny_pieces(call, shape):
    if isinstance(call.node, Einsummable):
        return fused.fused(call.node, call.args, call.params, shape, piece_bytes=24)
    return prepare(call, shape)


@settings(deadline=None, max_examples=200)
@given(graphs(max_nodes=3), st.integers(0, 4))
def test_the_size_of_pieces_changes_nothing(graph, how):
    arrays, params = data_for(graph)
    got = run_by_kernels(graph, arrays, params, in_tiny_pieces, how)
    assert_same(got, evaluate(graph, arrays, params))


@settings(deadline=None, max_examples=150)
@given(st.data(), graphs(max_nodes=2))
def test_a_kernel_on_part_of_the_space_is_the_node_there(data, graph):
    arrays, params = data_for(graph)
    values = []
    for node in graph.nodes:
        if isinstance(node, Input):
            values.append(arrays[node.name])
            continue
        space = whole([n for _, n in node.space])
        values.append(evaluate_node(graph, node, space, boxes_of(node, space, values), params))
        ranges = part_of(data.draw, node)
        if not all(stop > start for start, stop in ranges):
            continue
        pieces = boxes_of(node, ranges, values)
        got = call_kernel(graph, node, ranges, pieces, params)
        want = evaluate_node(graph, node, ranges, pieces, params)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-3)
        assert got.dtype == want.dtype
        assert got.shape == want.shape


# ------------------------------------------------------------------------------------ contractions


@st.composite
def contractions(draw):
    extents = {label: draw(st.sampled_from([1, 2, 3, 4, 5])) for label in "abcdef"}
    left, right = (draw(st.lists(st.sampled_from("abcdef"), max_size=4)) for _ in range(2))
    used = sorted({*left, *right})
    out = draw(st.permutations(used))[: draw(st.integers(0, max(len(used) - 1, 0)))]
    kinds = [F32, F64, C128, I64, I32, BOOL, F16, BF16, np.dtype(np.uint8), np.dtype(np.longdouble)]
    types = draw(st.sampled_from(kinds)), draw(st.sampled_from(kinds))
    b = GraphBuilder()
    ids = [
        b.input(name, [extents[x] for x in ls], dtype)
        for name, ls, dtype in zip("XY", (left, right), types, strict=True)
    ]
    b.output("Z", b.contract(out, *zip(ids, (left, right), strict=True)))
    return b.build()


@settings(deadline=None, max_examples=400)
@given(contractions(), st.integers(0, 4), st.integers(0, 99))
def test_any_contraction_is_a_matrix_product(graph, how, seed):
    arrays, params = data_for(graph, seed)

    def always_gemm(call, shape):
        if call.node.is_contraction:
            return contraction.contraction(call.node, call.args, shape)
        return prepare(call, shape)

    arrays = {name: x & 3 if x.dtype == np.uint8 else x for name, x in arrays.items()}
    got = run_by_kernels(graph, arrays, params, always_gemm, how)["Z"]
    want = evaluate(graph, arrays, params)["Z"]
    assert got.dtype == want.dtype
    assert got.flags.c_contiguous
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("left", "right", "out", "copied"),
    [
        ("ij", "jk", "ik", 0),
        ("ji", "kj", "ki", 0),
        ("ij", "kj", "ki", 0),
        ("bhqd", "bhkd", "bhqk", 0),
        ("bhqk", "bkhd", "bqhd", 0),
        ("bthd", "mhd", "btm", 0),
        ("btm", "mhd", "bthd", 0),
        ("ijb", "jkb", "ikb", 3 * 5**3),
        ("ijk", "lik", "jl", 5**3),
    ],
)
def test_no_more_is_copied_than_must_be(left, right, out, copied):
    extent = dict.fromkeys({*left, *right}, 5)
    assert contraction.lower(tuple(left), tuple(right), tuple(out), extent).copied == copied


@pytest.mark.parametrize("big", [2**20, 2**40])
def test_integers_stay_exact_and_wrap_like_numpy(big):
    x = np.arange(40 * 40).reshape(40, 40) + big
    b = GraphBuilder()
    ids = [b.input(name, x.shape, I64) for name in "XY"]
    b.output("Z", b.contract("ik", (ids[0], "ij"), (ids[1], "jk")))
    graph = b.build()
    got = run_by_kernels(graph, {"X": x, "Y": x - 3}, {})["Z"]
    np.testing.assert_array_equal(got, x @ (x - 3))


def test_sixteen_bit_floats_are_summed_in_float32():
    b = GraphBuilder()
    ids = [b.input(name, (1, 5000), F16) for name in "XY"]
    b.output("Z", b.contract("ik", (ids[0], "ij"), (ids[1], "kj")))
    b.output("S", b.contract("i", (ids[0], "ij")))
    ones = np.ones((1, 5000), F16)
    got = run_by_kernels(b.build(), {"X": ones, "Y": ones}, {})
    assert got["Z"] == got["S"] == 5000  # in float16, 2048 + 1 is 2048


# ------------------------------------------------------------------------------------------ joins


def has_meaning(name, dtype):
    row = FUNCTIONS[name]
    try:
        row.rule(name, [ScalarType(dtype)] * row.arity)
    except DtypeError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in FUNCTIONS
        for dtype in (F32, F16, BF16, F64, I64, BOOL, C128)
        if has_meaning(name, dtype)
    ],
)
def test_every_function_in_one_piece_and_in_many(name, dtype):
    row = FUNCTIONS[name]
    s = ScalarBuilder()
    operands = [s.arg(k) for k in range(row.arity)]
    if name == "pow" and dtype == I64:
        operands[1] = s.call("abs", operands[1])
    inner = s.call(name, *operands)
    b = GraphBuilder()
    ids = [b.input(f"X{k}", (4, 9), dtype) for k in range(row.arity)]
    reads = [(i, "ij") for i in ids]
    b.output("once", b.einsummable("ij", reads, s.build(inner)))
    then = "sub" if dtype not in (BOOL,) and name != "bool" else "eq"
    if name not in ("lt", "le", "gt", "ge", "eq", "ne", "isnan"):
        inner = s.call(then, inner, inner)
        b.output("chain", b.einsummable("ji", reads, s.build(inner)))
    graph = b.build()
    arrays = {k: random_array(np.random.default_rng(3), n.shape, dtype) for k, n in graph.inputs.items()}
    for kernel_of in (prepare, in_tiny_pieces):
        got, want = run_by_kernels(graph, arrays, {}, kernel_of), evaluate(graph, arrays)
        for key in want:
            assert got[key].dtype == want[key].dtype
            np.testing.assert_allclose(
                got[key].astype(C128), want[key].astype(C128), rtol=1e-6 if dtype != BF16 else 1e-2
            )


def squared_distances(n, m, k):
    s = ScalarBuilder()
    b = GraphBuilder()
    x, t = b.input("X", (n, k)), b.input("T", (m, k))
    join = s.build(s.call("pow", s.call("sub", s.arg(0), s.arg(1)), s.const(2)))
    b.output("D", b.einsummable("ij", [(x, "ik"), (t, "jk")], join, "sum"))
    return b.build()


@pytest.mark.parametrize("k", [3, 64])
def test_a_space_far_larger_than_memory_needs_little(k):
    graph = squared_distances(300, 500, k)
    rng = np.random.default_rng(0)
    arrays = {name: rng.random(node.shape, "f4") for name, node in graph.inputs.items()}
    kernel = prepare(Call.of(graph, graph.nodes[2]), (300, 500, k))
    tracemalloc.start()
    got = kernel([arrays["X"], arrays["T"]], (0, 0, 0), {})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < got.nbytes + 1_000_000
    want = ((arrays["X"][:, None].astype("f8") - arrays["T"]) ** 2).sum(-1)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_scalar_and_label_values_with_an_offset():
    s = ScalarBuilder()
    b = GraphBuilder()
    b.param("lr", dtypes.WEAK_FLOAT)
    late = s.call("le", s.label("k"), s.label("q"))
    join = s.build(s.call("where", late, s.param("lr"), s.const(float("-inf"))))
    b.output("M", b.einsummable("qk", [], join, extents={"q": 6, "k": 6}))
    graph = b.build()
    params = read_params(graph, {"lr": 2})
    got = call_kernel(graph, graph.nodes[0], ((2, 4), (1, 5)), [], params)
    inf = -np.inf
    np.testing.assert_array_equal(got, [[2, 2, inf, inf], [2, 2, 2, inf]])


@pytest.mark.parametrize("aggregate", ["sum", "prod", "max", "min", "any", "all"])
@pytest.mark.parametrize("dtype", [F32, BF16, I32, BOOL], ids=dtypes.name)
def test_an_empty_aggregate_is_the_identity(aggregate, dtype):
    b = GraphBuilder()
    s = ScalarBuilder()
    x = b.input("X", (3, 0), dtype)
    b.output("Z", b.einsummable("i", [(x, "ij")], s.build(s.arg(0)), aggregate))
    graph = b.build()
    arrays = {"X": np.empty((3, 0), dtype)}
    got, want = run_by_kernels(graph, arrays, {})["Z"], evaluate(graph, arrays)["Z"]
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


# ---------------------------------------------------------------------------------------- the rest


def test_an_index_from_a_scalar_is_checked():
    b = GraphBuilder()
    b.param("n", dtypes.WEAK_INT)
    x = b.input("X", (3, 4))
    b.output("Z", b.select(x, [Position(param="n"), Position(label="j", start=1, step=2)], (("j", 2),)))
    graph = b.build()
    data = np.arange(12, dtype="f4").reshape(3, 4)
    kernel = prepare(Call.of(graph, graph.nodes[1]), (2,))
    np.testing.assert_array_equal(kernel([data[:, 1:4]], (0,), {"n": np.int64(2)}), [9, 11])
    np.testing.assert_array_equal(kernel([data[:, 1:4]], (0,), {"n": np.int64(-3)}), [1, 3])
    for n in (3, -4):
        with pytest.raises(ShapeError, match=f"the scalar 'n' is {n}, the dimension it indexes has 3"):
            kernel([data[:, 1:4]], (0,), {"n": np.int64(n)})


def test_equal_calls_share_a_kernel():
    b = GraphBuilder()
    x = b.input("X", (4, 4))
    y = b.contract("ik", (x, "ij"), (x, "jk"))
    b.output("Z", b.contract("ik", (y, "ij"), (y, "jk")))
    graph = b.build()
    one, two = (prepare(Call.of(graph, node), (4, 4, 4)) for node in graph.nodes[1:])
    assert one is two


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("sum", BF16), ("sum", C128), ("prod", F32), ("max", I64), ("min", BF16), ("any", BOOL)],
)
@pytest.mark.parametrize("reuse", [-1, 0, 2])
def test_partial_results_are_aggregated(name, dtype, reuse):
    rng = np.random.default_rng(1)
    for shape in ((2, 3), (), (0,)):
        parts = [random_array(rng, shape, dtype) for _ in range(4)]
        before = [x.copy() for x in parts]
        want = before[0]
        for x in before[1:]:
            want = blocks.AGGREGATES[name].ufunc(want, x)
        got = blocks.aggregate(parts, (name, reuse))
        np.testing.assert_array_equal(got, want)
        assert got.dtype == dtype
        for i, x in enumerate(parts):
            if i != reuse:
                np.testing.assert_array_equal(x, before[i])


def test_a_read_only_block_is_not_reused():
    parts = [np.ones(3), np.ones(3)]
    parts[0].flags.writeable = False
    np.testing.assert_array_equal(blocks.aggregate(parts, ("sum", 0)), [2, 2, 2])
    np.testing.assert_array_equal(parts[0], [1, 1, 1])


def test_pieces_cover_a_space_once():
    order, extent = ("k", "i", "j"), {"i": 5, "j": 7, "k": 4}
    size = tiling.tile(order, extent, frozenset("ijk"), frozenset("k"), 10)
    assert size == {"j": 7, "i": 1, "k": 1}
    seen = np.zeros((4, 5, 7), int)
    firsts = 0
    for piece, first in tiling.pieces(order, frozenset("ij"), extent, size):
        seen[piece] += 1
        firsts += first
    assert (seen == 1).all()
    assert firsts == 5
