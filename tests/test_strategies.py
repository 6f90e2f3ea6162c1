"""Named plans: each is what a person would write down, and costs what the moved model says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import RELU, ffnn, multi_head
from strategies import graphs, layouts

from einsummable.builder import GraphBuilder
from einsummable.planner.cost import moved_bytes
from einsummable.planner.strategies import named_plans
from einsummable.scalar import PRODUCT


def cuts(graph, p):
    """Return by strategy the cuts of the computed nodes, as text."""
    inputs = len(graph.inputs)
    return {
        plan.strategy: [
            str(c) for n, c in zip(graph.nodes, plan.partitions, strict=True) if not hasattr(n, "name")
        ]
        for plan in named_plans(graph, p)
        if inputs
    }


def test_the_plans_of_a_feed_forward_network():
    assert cuts(ffnn(), 4) == {
        "single site": ["whole", "whole", "whole"],
        "data parallel": ["b:4", "b:4", "b:4"],
        "tensor parallel": ["h:4", "h:4", "h:4"],
        "2-D": ["b:2 h:2", "b:2 h:2", "b:2 o:2"],
    }


def test_tensor_parallel_pays_for_its_partial_results_only_once():
    by_name = {plan.strategy: plan for plan in named_plans(ffnn(), 4)}
    assert by_name["single site"].cost == 0
    assert by_name["data parallel"].cost == 3 * (32 * 128 + 128 * 16) * 4
    assert by_name["tensor parallel"].cost == 3 * (64 * 32 + 64 * 16) * 4


def test_multi_head_attention_has_a_sequence_and_heads():
    found = cuts(multi_head(b=4), 4)
    assert set(found) == {"single site", "data parallel", "tensor parallel", "sequence parallel", "2-D"}
    assert found["sequence parallel"] == ["t:4", "t:4", "t:4", "q:4", *["q:4"] * 5, "q:4", "q:4"]
    assert found["tensor parallel"] == ["h:4"] * 11


def test_a_batch_of_one_is_no_data_parallelism():
    assert "data parallel" in cuts(multi_head(b=2), 4)
    assert "b" not in str(cuts(multi_head(b=1), 4))


def test_a_map_has_no_tensor_parallel_plan():
    g = GraphBuilder()
    x = g.input("X", (8, 8))
    g.output("Y", g.einsummable(("i", "j"), [(x, ("i", "j"))], RELU))
    assert "tensor parallel" not in cuts(g.build(), 4)


@pytest.mark.parametrize(("p", "cut"), [(6, "i:3 k:2"), (7, "i:7"), (16, "i:4 k:4")])
def test_two_dimensions_are_as_square_as_p_allows(p, cut):
    g = GraphBuilder()
    a, b = g.input("A", (64, 64)), g.input("B", (64, 64))
    g.output("C", g.einsummable(("i", "k"), [(a, ("i", "j")), (b, ("j", "k"))], PRODUCT, "sum"))
    assert cuts(g.build(), p)["2-D"] == [cut]


@settings(max_examples=50)
@given(st.data(), st.integers(1, 9))
def test_every_strategy_of_every_graph_is_a_legal_plan(data, p):
    graph = data.draw(graphs())
    given_layouts = data.draw(layouts(graph, p))
    for plan in named_plans(graph, p, layouts=given_layouts):
        plan.check()
        assert (
            max((c.blocks for n, c in zip(graph.nodes, plan.partitions, strict=True) if n.inputs), default=1)
            <= p
        )
        assert plan.cost == moved_bytes(graph, plan.partitions, given_layouts)
        for name, layout in given_layouts.items():
            assert plan.partitions[graph.nodes.index(graph.inputs[name])].parts == layout.parts
