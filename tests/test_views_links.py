"""Links: what belongs to what, and that pictures carry the keys that links speak of."""

import json

import pytest
from sample_graphs import GRAPHS, attention, everywhere, in_turn, matmul_plan
from svg_checks import parse

from einsummable import views
from einsummable.planner.strategies import shared_axes
from einsummable.taskgraph.fuse import fuse
from einsummable.taskgraph.lower import lower
from einsummable.views import links


def carried(view):
    """Return every key that an element of the picture carries."""
    return {key for e in parse(view).iter() for key in e.get("data-keys", "").split()}


def test_links_of_a_matmul(golden):
    golden(json.dumps(links.graph_links(matmul_plan().graph), indent=1))


@pytest.mark.parametrize("name", GRAPHS)
def test_links_name_what_there_is(name):
    graph = GRAPHS[name]()
    found = links.graph_links(graph)
    known = {links.node_key(i) for i in range(len(graph.nodes))}
    known |= {links.tensor_key(graph.name_of(i)) for i in range(len(graph.nodes))}
    known |= {links.edge_key(j, i) for i, node in enumerate(graph.nodes) for j in node.inputs}
    known |= {links.label_key(i, label) for i, node in enumerate(graph.nodes) for label, _ in node.space}
    spans = [n.origin.span for n in graph.nodes if n.origin.span is not None]
    known |= {links.span_key(span.start, span.stop) for span in spans}
    assert set(found) <= known
    for key, others in found.items():
        assert set(others) <= known - {key}
        assert len(set(others)) == len(others)


def test_a_label_is_linked_with_itself_in_other_nodes_only():
    graph = attention()
    axes = shared_axes(graph)
    found = links.label_links(graph)
    for (i, label), axis in axes.items():
        same = {links.label_key(j, other) for (j, other), a in axes.items() if a == axis}
        linked = {key for key in found[links.label_key(i, label)] if key.startswith("label:")}
        assert linked == same - {links.label_key(i, label)}


def test_every_task_is_linked_with_the_nodes_that_it_computes():
    plan = everywhere(attention(), 2)
    tasks = fuse(lower(plan, in_turn(plan, 4)))
    found = links.task_links(tasks)
    assert len([key for key in found if key.startswith("task:")]) == len(tasks.tasks)
    for t, task in enumerate(tasks.tasks):
        assert links.node_key(task.origin) in found[links.task_key(t)]
        assert links.task_key(t) in found[links.node_key(task.origin)]


def test_pictures_carry_the_keys_of_blocks_sites_labels_and_nodes():
    plan = matmul_plan()
    placement = in_turn(plan, 8)
    graph = plan.graph
    blocks = {
        links.block_key(t["name"], index)
        for t in views.plan_view(plan, placement)["tensors"]
        for index in _indices([len(dim["edges"]) - 1 for dim in t["dims"]])
    }
    found = carried(views.plan_view(plan, placement))
    assert blocks <= found
    assert {links.site_key(s) for s in range(8)} <= found
    assert {links.tensor_key(graph.name_of(i)) for i in range(3)} <= found
    assert {links.node_key(i) for i in range(3)} | {"edge:0-2", "edge:1-2"} <= carried(
        views.graph_view(graph)
    )
    assert {"node:2", "site:7", "label:2:j"} <= carried(views.join_view(plan, placement, 2))


def _indices(counts):
    if not counts:
        return [()]
    return [(k, *rest) for k in range(counts[0]) for rest in _indices(counts[1:])]


def test_links_are_merged_without_repeats():
    assert links.merge({"a": ["b"]}, {"a": ["b", "c"], "d": []}) == {"a": ["b", "c"], "d": []}
