"""Views: data that says what its IR says, and text and golden JSON of it."""

import json
from itertools import pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_graphs import GRAPHS, attention, chain, everywhere, in_turn, knn, matmul_plan
from strategies import graphs, placements, plans

from einsummable import views
from einsummable.builder import GraphBuilder
from einsummable.errors import EinsummableError
from einsummable.language.elaborate import InputSpec, elaborate
from einsummable.language.parser import parse
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Plan
from einsummable.runtime.events import RunRecord, SiteLog
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.tasks import Aggregate, Apply, Assemble, Move, Output, Read, TaskGraph, nbytes

F32 = np.dtype("f4")


def shown(view):
    return json.dumps(view, indent=1, ensure_ascii=False)


def small_taskgraph():
    """A 4 × 2 · 2 × 4 matmul on two sites, cut along j, by hand."""
    plan = matmul_plan(4, 1, 1, 2)
    row, column, whole = ((0, 4), (0, 2)), ((0, 2), (0, 4)), (4, 4)
    ranges = [((0, 4), (0, 4), (0, 2)), ((0, 4), (0, 4), (2, 4))]
    tasks = (
        Read(0, "A", row, (4, 2), F32, 0),
        Read(0, "B", column, (2, 4), F32, 1),
        Apply(0, (0, 1), ranges[0], whole, F32, 2),
        Read(1, "A", ((0, 4), (2, 4)), (4, 2), F32, 0),
        Read(1, "B", ((2, 4), (0, 4)), (2, 4), F32, 1),
        Apply(1, (3, 4), ranges[1], whole, F32, 2),
        Move(0, (5,), whole, F32, 2),
        Aggregate(0, (2, 6), "sum", whole, F32, 2),
    )
    return TaskGraph(plan.graph, 2, tasks, (Output("Z", whole, F32, ((7, ((0, 4), (0, 4))),)),))


def small_record(error=""):
    ran = (
        [(0, 0.0, 0.001), (1, 0.001, 0.002), (2, 0.002, 0.012), (7, 0.02, 0.021)],
        [(3, 0.0, 0.001), (4, 0.001, 0.002), (5, 0.002, 0.014)],
    )
    logs = (
        SiteLog(0, ran[0], received=[(6, 0.02)], offset=0.0),
        SiteLog(1, ran[1], sent=[(6, 0.014)], offset=0.0),
    )
    return RunRecord(small_taskgraph(), logs, 0.0, 0.0225, error)


# ---------------------------------------------------------------------------------------- golden


def test_graph_view_of_knn(golden):
    golden(shown(views.graph_view(knn())))


def test_plan_view_of_a_matmul(golden):
    plan = matmul_plan()
    golden(shown(views.plan_view(plan, in_turn(plan, 8))))


def test_join_view_of_a_matmul(golden):
    plan = matmul_plan()
    golden(shown(views.join_view(plan, in_turn(plan, 8), 2)))


def test_taskgraph_view_of_two_sites(golden):
    golden(shown(views.taskgraph_view(small_taskgraph())))


def test_timeline_view_of_two_sites(golden):
    golden(shown(views.timeline_view(small_record())))


def test_texts(golden):
    """Every view as a terminal shows it."""
    plan = matmul_plan()
    placement = in_turn(plan, 8)
    four = everywhere(attention(), 2)
    shown = [
        views.graph_view(attention()),
        views.plan_view(plan, placement),
        views.plan_view(plan),
        views.partition_view(four, in_turn(four, 3), 10),
        views.join_view(plan, placement, 2),
        views.taskgraph_view(small_taskgraph()),
        views.timeline_view(small_record()),
        views.traffic_view(small_taskgraph()),
        views.costs_view(COSTS, bound=1e9),
    ]
    golden("\n\n".join(views.text(view) for view in shown))


# ------------------------------------------------------------------------- views say what IRs say


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_view_has_every_node_edge_and_byte(name):
    graph = GRAPHS[name]()
    view = views.graph_view(graph)
    assert [n["id"] for n in view["nodes"]] == list(range(len(graph.nodes)))
    assert [n["bytes"] for n in view["nodes"]] == [prod(n.shape) * n.dtype.itemsize for n in graph.nodes]
    edges = [(e["source"], e["target"], e["input"]) for e in view["edges"]]
    assert edges == [(j, i, k) for i, n in enumerate(graph.nodes) for k, j in enumerate(n.inputs)]
    assert [n["id"] for n in view["nodes"] if n["outputs"]] == sorted({o for _, o in graph.outputs})
    for node in view["nodes"]:
        assert len(node["labels"]) == len(node["shape"])
    for edge in view["edges"]:
        assert len(edge["labels"]) == len(view["nodes"][edge["source"]]["shape"])


def test_nodes_of_one_macro_are_together_and_two_uses_apart():
    view = views.graph_view(attention())
    (macro,) = view["macros"]
    assert macro["name"] == "softmax"
    assert len(macro["nodes"]) == 4
    assert {view["nodes"][i]["name"] for i in macro["nodes"]} >= {"P"}


def test_a_macro_that_is_a_whole_line_has_the_last_node_of_the_line():
    text = "P[i,k] = softmax[k](X[i,k])\nY[i,k] = 2 * softmax[k](P[i,k])"
    graph = elaborate(parse(text), {"X": InputSpec((3, 4), F32)}, {})
    view = views.graph_view(graph)
    names = [[view["nodes"][i]["name"] for i in macro["nodes"]] for macro in view["macros"]]
    assert [macro["name"] for macro in view["macros"]] == ["softmax", "softmax"]
    assert ["P" in members for members in names] == [True, False]
    assert not any("Y" in members for members in names)


def test_an_input_borrows_the_labels_of_its_reader():
    names = {n["name"]: n["labels"] for n in views.graph_view(knn())["nodes"]}
    assert names["X"] == ["i", "k"]
    assert names["y"] == ["j"]
    g = GraphBuilder()
    g.output("t", g.contract((), (g.input("A", (3, 3)), "ii")))
    assert views.graph_view(g.build())["nodes"][0]["labels"] == ["d0", "d1"]


@settings(max_examples=40)
@given(st.data())
def test_blocks_cover_their_tensors_and_are_where_the_placement_says(data):
    plan = data.draw(plans(data.draw(graphs()), 6))
    placement = data.draw(placements(plan, 5))
    view = views.plan_view(plan, placement)
    held = [0] * placement.sites
    for i, (table, node) in enumerate(zip(view["tensors"], plan.graph.nodes, strict=True)):
        assert table["id"] == i
        sizes = [prod(b - a for a, b in block["box"]) for block in table["blocks"]]
        assert sum(sizes) == prod(node.shape)
        assert len(sizes) == table["count"] == prod(placement.held_parts(plan, i))
        for block in table["blocks"]:
            assert block["site"] in (*placement.homes[i], *placement.calls[i])
        for site, size in table["held"]:
            held[site] += size
    assert sum(held) == sum(t["bytes"] for t in view["tensors"])
    assert lower(plan, placement) is not None  # what is drawn can run


def test_partial_sums_and_copies_are_counted():
    plan = matmul_plan()
    tables = views.plan_view(plan, in_turn(plan, 8))["tensors"]
    assert {b["copies"] for b in tables[0]["blocks"]} == {2}  # A[i,j] is read for both k
    assert {b["partials"] for b in tables[2]["blocks"]} == {2}
    local = views.partition_view(plan, in_turn(plan, 1), 2)["tensor"]
    assert {b["partials"] for b in local["blocks"]} == {1}  # added on their site, they are no partial sums
    assert {b["partials"] for b in views.partition_view(plan, None, 2)["tensor"]["blocks"]} == {2}


def test_uneven_extents_make_uneven_blocks():
    g = GraphBuilder()
    g.output("x", g.input("x", (7,)))
    plan = Plan(g.build(), (Partition(("d0",), (3,)),), 3)
    assert views.partition_view(plan, None, 0)["tensor"]["dims"][0]["edges"] == [0, 2, 4, 7]


def test_many_blocks_are_drawn_several_in_one():
    g = GraphBuilder()
    g.output("x", g.input("x", (200, 100)))
    plan = Plan(g.build(), (Partition(("d0", "d1"), (100, 50)),), 5000)
    table = views.partition_view(plan, in_turn(plan, 5), 0)["tensor"]
    assert table["count"] == 5000
    assert len(table["blocks"]) <= 1024
    assert sum(b["count"] for b in table["blocks"]) == 5000
    assert sum(prod(b - a for a, b in block["box"]) for block in table["blocks"]) == 20000
    assert [d["parts"] for d in table["dims"]] == [100, 50]
    for dim in table["dims"]:
        assert all(a < b for a, b in pairwise(dim["edges"]))
    assert "5,000 blocks" in views.partition_view(plan, None, 0)["caption"]


def test_a_join_has_a_call_for_every_key():
    plan = matmul_plan(9, 3, 2, 2)
    view = views.join_view(plan, in_turn(plan, 5), 2)
    assert [d["name"] for d in view["table"]["dims"]] == ["i", "k", "j"]
    assert [d["aggregated"] for d in view["table"]["dims"]] == [False, False, True]
    assert [b["site"] for b in view["table"]["blocks"]] == [k % 5 for k in range(12)]
    assert sum(prod(b - a for a, b in c["box"]) for c in view["table"]["blocks"]) == 9**3


@settings(max_examples=40)
@given(st.data())
def test_a_taskgraph_view_counts_every_task_and_byte(data):
    plan = data.draw(plans(data.draw(graphs()), 4))
    taskgraph = lower(plan, data.draw(placements(plan, 3)))
    view = views.taskgraph_view(taskgraph, limit=40)
    counts = [n for cell in view["cells"] for n in cell["tasks"].values()]
    assert sum(counts) == len(taskgraph.tasks)
    assert sum(f["bytes"] for f in view["flows"]) == taskgraph.bytes_moved
    assert sum(map(sum, views.traffic_view(taskgraph)["bytes"])) == taskgraph.bytes_moved
    assert bool(view["tasks"]) == (0 < len(taskgraph.tasks) <= 40)
    for task, mine in zip(taskgraph.tasks, view["tasks"], strict=False):
        assert mine["type"] == type(task).__name__
        assert (mine["site"], mine["node"], tuple(mine["inputs"])) == (task.site, task.origin, task.inputs)
        assert mine["bytes"] == nbytes(task)
    nodes = {n["id"] for n in view["nodes"]}
    assert nodes <= set(range(len(plan.graph.nodes)))
    assert {c["node"] for c in view["cells"]} | {f["target"] for f in view["flows"]} <= nodes


def test_many_sites_share_lanes():
    plan = everywhere(chain(16), 8)
    view = views.taskgraph_view(lower(plan, in_turn(plan, 100)))
    assert len(view["lanes"]) <= 32
    assert [s for lane in view["lanes"] for s in lane] == list(range(100))


def test_a_caption_names_the_partial_results():
    view = views.taskgraph_view(small_taskgraph())
    assert view["caption"] == (
        "8 tasks on 2 sites: 2 kernel calls, 1 aggregation; 1 move of 64 B, of which 64 B are partial results"
    )


def test_a_timeline_tells_where_time_went():
    view = views.timeline_view(small_record())
    assert view["caption"].startswith("22.5 ms on 2 sites: 51% of it in kernels, 9% copying, 40% waiting")
    assert {b["task"] for b in view["bars"]} | {m["task"] for m in view["moves"]} == set(range(8))
    assert view["moves"][0]["bytes"] == 64
    assert view["nodes"] == [{"id": 2, "name": "Z", "seconds": pytest.approx(0.023)}]
    assert "given up: engine 1 died" in views.timeline_view(small_record("engine 1 died"))["caption"]


def test_traffic_between_hosts_is_told():
    view = views.traffic_view(small_taskgraph(), hosts=[0, 1])
    assert view["bytes"] == [[0, 0], [64, 0]]
    assert view["caption"].endswith("64 B between hosts")


COSTS = [
    {"name": "EinDecomp", "join inputs": 8.1e8, "partial sums": 4e8},
    {"name": "data parallel", "join inputs": 2.1e9, "partial sums": 0, "repartition": 5e8},
]


def test_costs_are_sums_of_their_parts():
    view = views.costs_view(COSTS, bound=1e9)
    assert [row["total"] for row in view["strategies"]] == [1.21e9, 2.6e9]
    assert view["caption"] == (
        "EinDecomp: 1.21 GB; the best of the others, data parallel: 2.60 GB (2.15 times); lower bound 1.00 GB"
    )
    assert views.costs_view([])["caption"] == "no strategy to compare"
    assert "1.21 G elements" in views.costs_view(COSTS, unit="elements")["caption"]


def test_an_unknown_kind_of_view_is_refused():
    with pytest.raises(EinsummableError, match="'pie' is no kind of view"):
        views.svg({"kind": "pie", "caption": ""})


def test_tasks_are_told_in_words():
    graph = chain(4)
    tasks = (
        Read(0, "A", ((0, 2), (0, 4)), (2, 4), F32, 0),
        Read(0, "A", ((2, 4), (0, 4)), (2, 4), F32, 0),
        Assemble(0, (0, 1), (((0, 2), (0, 4)), ((2, 4), (0, 4))), (4, 4), F32, 0),
    )
    view = views.taskgraph_view(TaskGraph(graph, 1, tasks))
    assert [t["text"] for t in view["tasks"]] == [
        "read A[0:2, 0:4]",
        "read A[2:4, 0:4]",
        "2 pieces of A put together",
    ]
