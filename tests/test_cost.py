"""What a cut costs: values worked out by hand, and the tables against the plain functions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import ffnn, llama, matmul, multi_head
from strategies import graphs, partitions

from einsummable.builder import GraphBuilder
from einsummable.dtypes import F64
from einsummable.nodes import Position
from einsummable.planner import cost, tables
from einsummable.planner.eindecomp import plan
from einsummable.planner.partition import Partition
from einsummable.planner.placement import place
from einsummable.planner.plan import Layout
from einsummable.planner.strategies import named_plans
from einsummable.taskgraph.lower import lower
from einsummable.work import flops

IKJ = ("i", "k", "j")  # the order of the iteration space: the output's labels first


def test_published_values_of_a_matmul():
    node, cut = matmul(20, 40, 60).nodes[2], Partition(IKJ, (2, 2, 2))
    assert cost.join_cost(node, cut) == 6400
    assert cost.aggregation_cost(node, cut) == 1200
    shift = cost.repartition_cost(node.shape, (2, 2), (4, 2))
    assert cost.aggregation_cost(node, cut) + shift == 3600


def test_published_value_where_only_the_contracted_label_is_cut():
    node, cut = matmul(20, 40, 60).nodes[2], Partition(IKJ, (1, 1, 8))
    assert cost.aggregation_cost(node, cut) + cost.repartition_cost(node.shape, (1, 1), (4, 2)) == 18000


@pytest.mark.parametrize(
    ("have", "want", "elements"),
    [
        ((1, 2), (1, 4), 512),
        ((1, 8), (8, 1), 3840),
        ((2, 4), (4, 2), 768),
        ((1, 1), (4, 4), 4096),
        ((3, 1), (3, 1), 0),
    ],
)
def test_published_repartitions_of_16_by_16(have, want, elements):
    assert cost.repartition_cost((16, 16), have, want) == elements


def test_cube_of_eight_sites_moves_three_faces():
    graph = matmul(100, 100, 100)
    cuts = (Partition(("d0", "d1"), (2, 2)),) * 2 + (Partition(IKJ, (2, 2, 2)),)
    assert cost.moved_bytes(graph, cuts) == 3 * 100 * 100 * 4


def test_bytes_follow_the_dtype():
    cuts = (Partition(("d0", "d1"), (2, 2)),) * 2 + (Partition(IKJ, (2, 2, 2)),)
    f64 = GraphBuilder()
    a, b = f64.input("A", (20, 40), F64), f64.input("B", (40, 60), F64)
    f64.output("C", f64.contract("ik", (a, "ij"), (b, "jk")))
    assert cost.moved_bytes(f64.build(), cuts) == 2 * cost.moved_bytes(matmul(20, 40, 60), cuts)


ROWS = (Partition(("d0", "d1"), (4, 1)), Partition(("d0", "d1"), (1, 1)), Partition(IKJ, (4, 1, 1)))


def test_what_is_read_as_it_lies_moves_nothing_and_what_all_read_is_sent_to_the_others():
    graph = matmul(20, 40, 60)
    assert [cost.tensor_bytes(graph, ROWS, i) for i in range(3)] == [0, 3 * 40 * 60 * 4, 0]


def test_a_tensor_on_one_site_is_sent_to_all_others():
    layouts = {"A": Layout((4, 1), (3, 3, 3, 3))}
    assert cost.tensor_bytes(matmul(20, 40, 60), ROWS, 0, layouts) == 3 * 20 * 40 // 4 * 4


def test_what_two_nodes_read_on_the_same_sites_is_sent_once():
    g = GraphBuilder()
    x = g.input("X", (8, 8))
    for name in "UV":
        g.output(name + "x", g.contract("ik", (x, "ij"), (g.input(name, (8, 8)), "jk")))
    columns = Partition(IKJ, (1, 4, 1))
    cuts = (Partition(("d0", "d1"), (1, 1)), *[Partition(("d0", "d1"), (1, 4)), columns] * 2)
    assert cost.moved_bytes(g.build(), cuts) == 3 * 8 * 8 * 4


def test_a_selection_reads_only_what_it_takes():
    g = GraphBuilder()
    x = g.input("X", (6, 8))
    g.output("Y", g.select(x, (Position(start=2), Position("j")), (("j", 8),)))
    graph = g.build()
    assert cost.read_shape(graph.nodes[1], 0) == (1, 8)
    assert cost.in_labels(graph.nodes[1], 0) == ("", "j")


def test_operations_count_the_join_and_the_aggregate():
    graph = matmul(2, 3, 4)
    assert [flops(node) for node in graph.nodes] == [0, 0, 2 * 2 * 3 * 4]


def test_partial_results_are_scattered_to_who_reads_them():
    # Eight partial results of one block, each site ends with an eighth of it; its reader wants just that.
    have = cost.form_of(matmul(40, 40, 40).nodes[2], Partition(IKJ, (1, 1, 8)))
    assert have == cost.Form((1, 1), 8, once=True)
    assert cost.transfer((40, 40), have, (40, 40), cost.Form((8, 1), 8)) == 0
    gathered = cost.Form((1, 1), 1)
    assert cost.transfer((40, 40), gathered, (40, 40), cost.Form((8, 1), 8)) == 40 * 40 * 7 / 8
    assert cost.transfer((40, 40), have, (40, 40), cost.Form((1, 1), 8)) == 40 * 40 * 7


@settings(max_examples=60)
@given(st.data())
def test_tables_equal_the_plain_functions(data):
    graph = data.draw(graphs())
    for node in graph.nodes:
        cuts = data.draw(st.lists(partitions(node.space, node.cuttable, 9), min_size=1, max_size=3))
        rows = np.array([c.parts for c in cuts], np.int64).reshape(len(cuts), len(node.space))
        assert tables.join(node, rows).tolist() == [cost.join_cost(node, c) for c in cuts]
        assert tables.aggregation(node, rows).tolist() == [cost.aggregation_cost(node, c) for c in cuts]
        for k, j in enumerate(node.inputs):
            source = graph.nodes[j]
            have = [tuple(min(2, max(n, 1)) for n in source.shape), (1,) * len(source.shape)]
            have_rows = np.array(have, np.int64).reshape(2, len(source.shape))
            shape, read = source.shape, cost.read_shape(node, k)
            for held in (1, 2, 6):
                forms = tables.replicated(have_rows, np.array([held] * 2))
                got = tables.transfer(shape, forms, read, tables.forms_read(node, k, rows))
                wanted = [cost.form_read(node, k, c) for c in cuts]
                want = [[cost.transfer(shape, cost.Form(h, held), read, w) for w in wanted] for h in have]
                np.testing.assert_allclose(got, want, atol=1e-9)
            parts = tables.in_rows(node, rows, k)
            want = [[cost.repartition_cost(read, h, tuple(c)) for c in parts.tolist()] for h in have]
            np.testing.assert_allclose(tables.repartition(read, have_rows, parts), want)
        made = tables.forms_of(node, rows)
        assert [cost.form_of(node, c) for c in cuts] == [
            cost.Form(tuple(parts), held, once=True)
            for parts, held in zip(made.parts.tolist(), made.holders.tolist(), strict=True)
        ]


@pytest.mark.parametrize("p", [2, 4, 8])
@pytest.mark.parametrize(
    "graph", [ffnn(), multi_head(1, 64, 64, 8, 8), llama(1, 1, 64, 8, 16, 352)], ids=["ffnn", "mha", "llama"]
)
def test_predicted_bytes_are_those_of_the_task_graph(graph, p):
    for found in (plan(graph, p), *named_plans(graph, p)):
        moved = lower(found, place(found, p)).bytes_moved
        assert moved == pytest.approx(cost.moved_bytes(graph, found.partitions), rel=0.03)
