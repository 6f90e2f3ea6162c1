"""Lookups and concatenations: what numpy says, however tables and results are cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_same, random_array

from einsummable.builder import GraphBuilder, check
from einsummable.codec import from_json, to_json
from einsummable.dtypes import BF16, BOOL, C64, C128, F16, F32, F64, I32, I64
from einsummable.errors import DtypeError, EngineError, ShapeError
from einsummable.evaluate import evaluate
from einsummable.graph import EinGraph
from einsummable.kernels.blocks import Call, prepare
from einsummable.nodes import Concat, Gather
from einsummable.planner.eindecomp import plan as eindecomp
from einsummable.planner.partition import Partition
from einsummable.planner.placement import place
from einsummable.planner.plan import Layout, Plan
from einsummable.runtime.local import LocalExecutor
from einsummable.taskgraph import tasks
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.tasks import Assemble, Move, Read
from einsummable.views import naming
from einsummable.work import flops

DTYPES = [F16, BF16, F32, F64, C64, C128, I32, I64, BOOL]


def lookup(rows=10, width=6, n=5, dtype=F32):
    """Y[t,d] = E[tok[t],d]"""
    g = GraphBuilder()
    e, tok = g.input("E", (rows, width), dtype), g.input("tok", (n,), I64)
    g.output("Y", g.gather("td", (e, "rd"), {"r": (tok, "t")}, ("E", "tok")))
    return g.build()


def joined(*lengths, width=3):
    """Y[t,d] = concat[t](X0[t,d], …)"""
    g = GraphBuilder()
    ids = [g.input(f"X{k}", (n, width)) for k, n in enumerate(lengths)]
    g.output("Y", g.concat(ids, "td", 0))
    return g.build()


def cut(graph, **parts):
    """Return a plan that cuts the last node so and nothing else."""
    last = graph.nodes[-1]
    partitions = [Partition.whole(node.space) for node in graph.nodes[:-1]]
    own = Partition(tuple(label for label, _ in last.space), tuple(parts.get(x, 1) for x, _ in last.space))
    return Plan(graph, (*partitions, own), own.blocks)


def program(plan, sites, layouts=None):
    return lower(plan, place(plan, sites, layouts), layouts)


# --------------------------------------------------------------------------------------- lookups


@pytest.mark.parametrize("p", range(1, 10))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_table_cut_by_rows_is_looked_up_in_parts_that_add_up(p, dtype):
    graph, rng = lookup(dtype=dtype), np.random.default_rng(p)
    arrays = {"E": random_array(rng, (10, 6), dtype), "tok": np.array([3, 9, 0, 3, 7])}
    made = program(cut(graph, r=p), p)
    expected = {"Y": arrays["E"][arrays["tok"]]}
    assert_same(tasks.evaluate(made, arrays), expected)
    assert_same(LocalExecutor(p).run(made, arrays), expected)


def test_what_no_number_is_survives_the_sum():
    graph = lookup(4, 1, 4)
    arrays = {"E": np.array([[np.nan], [np.inf], [-np.inf], [2]], "f4"), "tok": np.arange(4)}
    assert_same(tasks.evaluate(program(cut(graph, r=3), 3), arrays), {"Y": arrays["E"]})


def test_a_large_table_that_lies_by_rows_does_not_move():
    graph = lookup(rows=4000, width=16, n=4)
    layouts = {"E": Layout((4, 1), (0, 1, 2, 3))}
    plan = eindecomp(graph, 4, layouts=layouts)
    assert plan.partitions[-1]["r"] == 4
    made = program(plan, 4, layouts)
    assert made.bytes_moved <= 4 * 16 * 4 * 4 + 3 * 4 * 8
    assert not [t for t in made.tasks if isinstance(t, Move) and t.origin == 0]


def test_many_tokens_of_a_small_table_are_shared_out():
    plan = eindecomp(lookup(rows=8, width=2, n=4000), 4)
    assert plan.partitions[-1]["t"] == 4


@pytest.mark.parametrize("value", [-1, 10])
@pytest.mark.parametrize("parts", [{}, {"r": 3}, {"t": 2, "d": 2}], ids=str)
def test_an_index_out_of_range_names_tensor_value_and_extent(value, parts):
    graph = lookup()
    arrays = {"E": np.ones((10, 6), "f4"), "tok": np.array([3, 9, 0, value, 7])}
    words = f"the index {value} in tok is out of range: dimension 0 of E has extent 10"
    with pytest.raises(ShapeError, match=words):
        evaluate(graph, arrays)
    with pytest.raises(EngineError, match=words):
        LocalExecutor(3).run(program(cut(graph, **parts), 3), arrays)


#: Labels of the table (r and s are looked up), of both tensors of indices, and of the result.
FORMS = [
    ("rd", "t", None, "td"),
    ("dr", "t", None, "dt"),
    ("rd", "t", None, "dt"),
    ("r", "tu", None, "ut"),
    ("r", "", None, ""),
    ("rd", "", None, "d"),
    ("rt", "t", None, "t"),
    ("rdd", "t", None, "dt"),
    ("rd", "tt", None, "td"),
    ("rds", "t", "u", "utd"),
    ("srd", "t", "t", "dt"),
    ("rs", "td", "t", "dt"),
    ("drs", "", "d", "d"),
]


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(FORMS), st.data())
def test_kernels_on_any_range_equal_the_oracle(form, data):
    table, first, second, out = form
    extents = {"d": 4, "t": 3, "u": 2, "r": 5, "s": 3}
    g, rng = GraphBuilder(), np.random.default_rng(0)
    e = g.input("E", [extents[x] for x in table], data.draw(st.sampled_from(DTYPES)))
    given_ = {row: labels for row, labels in (("r", first), ("s", second)) if labels is not None}
    held = {
        row: (g.input(f"tok{row}", [extents[x] for x in labels], I32), labels)
        for row, labels in given_.items()
    }
    node = g[g.gather(out, (e, table), held)]
    ranges = tuple(
        tuple(sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))) for _, n in node.space
    )
    arrays = [random_array(rng, g[e].shape, g[e].dtype)]
    arrays += [rng.integers(0, extents[row], g[i].shape).astype(I32) for row, (i, _) in held.items()]
    blocks = [x[tuple(slice(*r) for r in node.in_box(k, ranges))] for k, x in enumerate(arrays)]
    graph = EinGraph((*(g[i] for i in (e, *(i for i, _ in held.values()))), node), (("Y", len(arrays)),))
    check(graph)
    shape = tuple(b - a for a, b in ranges)
    kernel, at = prepare(Call.of(graph, node), shape), tuple(a for a, _ in ranges)
    # By hand: the whole result, with zero where another part of the rows is meant.
    grid = dict(zip(out, np.ogrid[tuple(slice(extents[x]) for x in out)], strict=True)) if out else {}
    rows = {
        row: x[tuple(grid[label] for label in given_[row])] for row, x in zip(held, arrays[1:], strict=True)
    }
    whole = np.broadcast_to(
        arrays[0][tuple(rows[x] if x in rows else grid[x] for x in table)], [extents[x] for x in out]
    )
    where = dict(zip((x for x, _ in node.space), ranges, strict=True))
    inside = np.ones(whole.shape, bool)
    for row, x in rows.items():
        inside &= (x >= where[row][0]) & (x < where[row][1])
    want = np.where(inside, whole, np.zeros((), whole.dtype))[tuple(slice(*where[x]) for x in out)]
    got = kernel(blocks, at, {})
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    assert not any(np.shares_memory(got, x) for x in arrays)
    given_out = np.empty(want.shape[::-1], want.dtype).T
    assert kernel(blocks, at, {}, given_out) is given_out
    np.testing.assert_array_equal(given_out, want)


def test_a_lookup_costs_an_operation_an_element():
    assert flops(lookup(rows=1000).nodes[-1]) == 5 * 6


# -------------------------------------------------------------------------------- concatenations


@pytest.mark.parametrize("p", range(1, 10))
@pytest.mark.parametrize("lengths", [(4, 5), (1, 7, 2), (3, 0, 6), (9, 1)], ids=str)
def test_a_concatenation_may_be_cut_anywhere(p, lengths):
    graph = joined(*lengths)
    rng = np.random.default_rng(p)
    arrays = {f"X{k}": rng.random((n, 3), np.float32) for k, n in enumerate(lengths)}
    made = program(cut(graph, t=p), p)
    expected = {"Y": np.concatenate(list(arrays.values()))}
    assert_same(tasks.evaluate(made, arrays), expected)
    assert_same(LocalExecutor(p).run(made, arrays), expected)


def test_what_a_range_does_not_touch_is_not_read_and_not_moved():
    graph = joined(4, 4)
    node = graph.nodes[-1]
    assert node.in_box(0, ((4, 8), (0, 3))) == ((0, 0), (0, 3))
    assert node.in_box(1, ((3, 6), (1, 3))) == ((0, 2), (1, 3))
    made = program(cut(graph, t=2), 2)
    assert made.bytes_moved == 0
    assert sum(isinstance(t, Read) for t in made.tasks) == 2
    assert [t.inputs for t in made.tasks if isinstance(t, Assemble)] == [(), ()]


def test_an_input_has_no_more_parts_than_elements():
    plan = eindecomp(joined(1, 8, width=1), 4)
    assert plan.partitions[-1]["t"] == 4
    assert plan.partitions[0]["d0"] == 1


# ------------------------------------------------------------------------------------ both, as IR


def test_they_read_as_a_reader_writes_them():
    g = GraphBuilder()
    e, tok = g.input("E", (10, 6)), g.input("tok", (5,), I64)
    y = g.gather("td", (e, "rd"), {"r": (tok, "t")})
    g.output("Z", g.concat([y, e], "td", 0))
    graph = g.build()
    assert str(graph).splitlines()[2:4] == [
        "%2 = [t,d] gather[r=%1[t]]  of %0[r,d]  : [5, 6] f32",
        "%3 = [t,d] concat[t]  of %2[t=5,d], %0[t=10,d]  : [15, 6] f32",
    ]
    assert naming.formula(graph, 2) == "E[tok[t],d]"
    assert naming.formula(graph, 3) == "concat[t](%2, E)"
    assert from_json(EinGraph, to_json(graph)) == graph


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda g, e, x, i: g.gather("td", (e, "rd"), {"r": (x, "t")}), DtypeError, "index 0 is f32"),
        (lambda g, e, x, i: g.gather("td", (e, "rd"), {"r": (i, "d")}), ShapeError, "label 'd' is 6"),
        (lambda g, e, x, i: g.gather("d", (e, "rd"), {"r": (i, "t")}), ShapeError, "all labels"),
        (lambda g, e, x, i: g.gather("tdu", (e, "rd"), {"r": (i, "t")}), ShapeError, "'u' is not known"),
        (lambda g, e, x, i: g.gather("rd", (e, "rd"), {}), ShapeError, "gathers 0 labels"),
        (lambda g, e, x, i: g.gather("dt", (e, "dt"), {"r": (i, "r")}), ShapeError, "one dimension"),
        (lambda g, e, x, i: g.concat([], "td", 0), ShapeError, "nothing to concatenate"),
        (lambda g, e, x, i: g.concat([e, x], "td", 0), ShapeError, "no dimension 0 in common"),
        (lambda g, e, x, i: g.concat([e, e], "td", 2), ShapeError, "no dimension 2 in common"),
        (lambda g, e, x, i: g.concat([x, i], "t", 0), DtypeError, "f32 and i64 cannot stand in one tensor"),
    ],
)  # fmt: skip
def test_refusals(build, error, message):
    g = GraphBuilder()
    with pytest.raises(error, match=message):
        build(g, g.input("E", (10, 6)), g.input("x", (5,)), g.input("i", (5,), I64))


@pytest.mark.parametrize(
    ("graph", "change", "message"),
    [
        (joined(4, 5), {"lengths": (5, 4)}, "its parts have extents"),
        (joined(4, 5), {"space": (("t", 8), ("d", 3))}, "which its inputs do not make"),
        (lookup(), {"space": (("t", 5), ("d", 6), ("r", 9))}, "does not fit its operands"),
        (lookup(), {"dtype": F64}, "its table's is float32"),
        (lookup(), {"names": ("E",)}, "by 1 tensors"),
    ],
)
def test_check_recomputes_what_a_node_says(graph, change, message):
    *inputs, node = graph.nodes
    fields = {name: getattr(node, name) for name in type(node).__dataclass_fields__} | change
    assert isinstance(node, Concat | Gather)
    with pytest.raises(ShapeError, match=message):
        check(EinGraph((*inputs, type(node)(**fields)), graph.outputs))
