"""What a cut costs: values worked out by hand, and the tables against the plain functions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs, partitions

from einsummable.builder import GraphBuilder
from einsummable.dtypes import F64
from einsummable.graph import Position
from einsummable.planner import cost, tables
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Layout
from einsummable.scalar import ScalarBuilder


def matmul(i=20, j=40, k=60, dtype=None):
    g = GraphBuilder()
    kind = {} if dtype is None else {"dtype": dtype}
    a, b = g.input("A", (i, j), **kind), g.input("B", (j, k), **kind)
    g.output("C", g.contract(("i", "k"), (a, ("i", "j")), (b, ("j", "k"))))
    return g.build()


IKJ = ("i", "k", "j")  # the order of the iteration space: the output's labels first


def test_published_values_of_a_matmul():
    node, cut = matmul().nodes[2], Partition(IKJ, (2, 2, 2))
    assert cost.join_cost(node, cut) == 6400
    assert cost.aggregation_cost(node, cut) == 1200
    shift = cost.repartition_cost(node.shape, (2, 2), (4, 2))
    assert cost.aggregation_cost(node, cut) + shift == 3600


def test_published_value_where_only_the_contracted_label_is_cut():
    node, cut = matmul().nodes[2], Partition(IKJ, (1, 1, 8))
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
    assert cost.moved_bytes(matmul(dtype=F64), cuts) == 2 * cost.moved_bytes(matmul(), cuts)


def test_what_is_read_as_it_lies_moves_nothing():
    graph = matmul()
    cuts = (Partition(("d0", "d1"), (4, 1)), Partition(("d0", "d1"), (1, 1)), Partition(IKJ, (4, 1, 1)))
    assert cost.input_bytes(graph.nodes[0], (4, 1), 4, graph.nodes[2], 0, cuts[2]) == 0
    assert cost.input_bytes(graph.nodes[1], (1, 1), 1, graph.nodes[2], 1, cuts[2]) == 3 * 40 * 60 * 4


def test_a_tensor_on_one_site_is_sent_to_all_others():
    graph = matmul()
    cuts = (Partition(("d0", "d1"), (4, 1)), Partition(("d0", "d1"), (1, 1)), Partition(IKJ, (4, 1, 1)))
    layouts = {"A": Layout((4, 1), (3, 3, 3, 3))}
    assert cost.node_bytes(graph, cuts, 2, layouts) == (3 * 20 * 40 // 4 + 3 * 40 * 60) * 4


def test_a_selection_reads_only_what_it_takes():
    g = GraphBuilder()
    x = g.input("X", (6, 8))
    g.output("Y", g.select(x, (Position(start=2), Position("j")), (("j", 8),)))
    graph = g.build()
    assert cost.read_shape(graph.nodes[1], 0) == (1, 8)
    assert cost.in_labels(graph.nodes[1], 0) == ("", "j")


def test_operations_count_the_join_and_the_aggregate():
    graph = matmul(2, 3, 4)
    assert [cost.flops(node) for node in graph.nodes] == [0, 0, 2 * 2 * 3 * 4]


def test_partial_results_are_scattered_to_who_reads_them():
    graph = matmul(40, 40, 40)
    total = 40 * 40
    # Eight partial results of one block, each site ends with an eighth of it; its reader wants just that.
    assert cost.holders(Partition(IKJ, (1, 1, 8))) == 8
    reader = relu_of(graph)
    cut = Partition(("i", "k"), (8, 1))
    assert cost.input_bytes(graph.nodes[2], (1, 1), 8, reader, 0, cut) == 0
    assert cost.input_bytes(graph.nodes[2], (1, 1), 1, reader, 0, cut) == total * 4 * 7 / 8


def relu_of(graph):
    g = GraphBuilder()
    x = g.input("X", graph.nodes[2].shape)
    s = ScalarBuilder()
    g.output("Y", g.einsummable(("i", "k"), [(x, ("i", "k"))], s.build(s.call("relu", s.arg(0)))))
    return g.build().nodes[1]


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
            for held in (1, 2, 6):
                got = tables.moved(source, have_rows, np.array([held, held]), node, k, rows)
                want = [[cost.input_bytes(source, h, held, node, k, c) for c in cuts] for h in have]
                np.testing.assert_allclose(got, want, atol=1e-9)
            shape, parts = cost.read_shape(node, k), tables.in_rows(node, rows, k)
            want = [[cost.repartition_cost(shape, h, tuple(c)) for c in parts.tolist()] for h in have]
            np.testing.assert_allclose(tables.repartition(shape, have_rows, parts), want)
