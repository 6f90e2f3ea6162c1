"""Small tensors in fewer pieces: legal, and next to nothing dearer."""

from hypothesis import given, settings
from hypothesis import strategies as st
from networks import MUL, RSQRT, SQUARE
from strategies import graphs, plans

from einsummable.builder import GraphBuilder
from einsummable.nodes import Input
from einsummable.planner.cost import is_product, moved_bytes
from einsummable.planner.light import SHARE, gathered
from einsummable.planner.partition import Partition
from einsummable.planner.placement import place
from einsummable.planner.plan import Plan
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.tasks import Move


@settings(max_examples=100)
@given(graphs(max_nodes=6), st.integers(2, 9), st.data())
def test_hardly_moves_more_and_leaves_products_and_what_is_fixed(graph, p, data):
    before = data.draw(plans(graph, p))
    before = type(before)(graph, before.partitions, p, "by hand", moved_bytes(graph, before.partitions))
    fixed = set(data.draw(st.lists(st.integers(0, len(graph.nodes) - 1), max_size=2)))
    after = gathered(before, {}, fixed)
    after.check()
    assert after.cost == moved_bytes(graph, after.partitions)
    assert after.cost <= before.cost * (1 + SHARE) + 1e-9
    for i, (node, old, new) in enumerate(zip(graph.nodes, before.partitions, after.partitions, strict=True)):
        assert new == old or new.blocks < old.blocks
        assert new == old or not (i in fixed or isinstance(node, Input) or is_product(node))


def test_statistics_of_a_normalisation_are_not_scattered():
    g = GraphBuilder()
    x = g.input("X", (64, 512))
    total = g.einsummable("t", [(x, "tm")], SQUARE, "sum")
    scale = g.einsummable("t", [(total, "t")], RSQRT)
    g.output("Y", g.einsummable("tm", [(x, "tm"), (scale, "t")], MUL))
    graph = g.build()
    parts = ((2, 4), (2, 4), (8,), (2, 4))
    cuts = tuple(
        Partition(tuple(x for x, _ in node.space), cut) for node, cut in zip(graph.nodes, parts, strict=True)
    )
    before = Plan(graph, cuts, 8, "by hand", moved_bytes(graph, cuts))
    after = gathered(before, {}, ())
    assert after.partitions == (*cuts[:2], Partition(("t",), (2,)), cuts[3])

    def messages(plan):
        program = lower(plan, place(plan, 8))
        return sum(isinstance(task, Move) for task in program.tasks)

    # Of each half, three parts come together and three copies go out.
    assert messages(after) == 2 * (3 + 3) < messages(before)
