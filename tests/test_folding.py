"""Folded pictures: every task is in one item, what moves and what is read is kept, order is left to right."""

from hypothesis import given, settings
from hypothesis import strategies as st
from test_held import programs
from test_views import small_taskgraph

from einsummable import views
from einsummable.views import lanes
from einsummable.views.folding import fold

EVERY = 10**6


def test_a_fold_says_what_it_stands_for():
    view = fold(views.taskgraph_view(small_taskgraph(), limit=EVERY), nodes={2})
    here, there = (task for task in view["tasks"] if task["type"] == "Fold")
    assert here["text"] == "1 kernel call, 1 aggregation, 1 move of Z on site 0"
    assert (here["members"], here["calls"], there["members"]) == ([2, 6, 7], 1, [5])
    assert here["arrows"] == [{"source": there["id"], "moves": 1, "bytes": 64, "text": "64 B of Z in 1 move"}]
    assert here["back"] == [there["id"]]  # under each other, not one after the other


def test_all_sites_as_one_lane():
    view = views.taskgraph_view(small_taskgraph(), limit=EVERY)
    view = fold(view, nodes={0, 1, 2}, lanes=[[0, 1]])
    assert [task["members"] for task in view["tasks"]] == [[0, 3], [1, 4], [2, 5, 6, 7]]
    assert view["tasks"][2]["text"].endswith("of Z on sites 0–1; 64 B move inside")
    assert views.svg(view).count('data-item="') == 3


def test_folds_of_a_node_stand_under_each_other():
    view = fold(views.taskgraph_view(small_taskgraph(), limit=EVERY), nodes={0, 1, 2})
    levels = lanes._levels(view["tasks"])
    assert [levels[task["id"]] for task in view["tasks"] if task["node"] == 2] == [1, 1]


@settings(deadline=None, max_examples=60)
@given(programs())
def test_all_folds_of_nodes_that_exchange_are_in_one_column(taskgraph):
    view = views.taskgraph_view(taskgraph, limit=EVERY)
    view = fold(view, nodes=range(len(taskgraph.graph.nodes)))
    levels = lanes._levels(view["tasks"])
    for task in view["tasks"]:
        assert all(levels[j] < levels[task["id"]] for j in task["inputs"])
        assert all(levels[arrow["source"]] == levels[task["id"]] for arrow in task["arrows"])


@settings(deadline=None, max_examples=60)
@given(programs(), st.data())
def test_nothing_is_lost(taskgraph, data):
    whole = views.taskgraph_view(taskgraph, limit=EVERY)
    nodes = data.draw(st.sets(st.integers(0, len(taskgraph.graph.nodes) - 1)))
    sites = data.draw(st.sets(st.integers(0, taskgraph.sites - 1)))
    lanes = data.draw(st.sampled_from([None, [list(range(taskgraph.sites))]]))
    view = fold(whole, nodes=nodes, sites=sites, lanes=lanes)
    items = view["tasks"]
    assert [item["id"] for item in items] == list(range(len(items)))
    assert sorted(t for item in items for t in item["members"]) == list(range(len(taskgraph.tasks)))
    item_of = {t: item["id"] for item in items for t in item["members"]}
    edges = {(item_of[j], item_of[t]) for t, task in enumerate(taskgraph.tasks) for j in task.inputs}
    kept = {(j, item["id"]) for item in items for j in (*item["inputs"], *item["back"])}
    assert kept == {(a, b) for a, b in edges if a != b}
    assert all(j < item["id"] for item in items for j in item["inputs"])
    moved = sum(a["bytes"] for item in items for a in item.get("arrows", ()))
    inside = sum(item["bytes"] for item in items if item["type"] == "Fold")
    left = sum(item["bytes"] for item in items if item["type"] == "Move")
    assert moved + inside + left == taskgraph.bytes_moved
    assert views.svg(view).count('data-item="') == len(items)


@settings(deadline=None, max_examples=20)
@given(programs())
def test_with_nothing_folded_it_is_the_picture_of_all_tasks(taskgraph):
    whole = views.taskgraph_view(taskgraph, limit=EVERY)
    assert views.svg(fold(whole)) == views.svg(whole)
