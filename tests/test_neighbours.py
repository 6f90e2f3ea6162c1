"""What lights up with a task: its node and span, what it reads and who reads it, through moves and copies."""

from hypothesis import given, settings
from test_held import programs
from test_views import small_taskgraph

from einsummable.taskgraph.tasks import Assemble, Move, Slice
from einsummable.views.folding import fold
from einsummable.views.links import graph_links
from einsummable.views.neighbours import item_links, neighbour_links
from einsummable.views.taskgraphs import taskgraph_view


def test_a_kernel_call_lights_its_move_and_what_waits_for_it():
    found = neighbour_links(small_taskgraph())
    assert found["task:5"] == ["node:2", "task:3", "task:4", "task:6", "task:7"]
    assert found["task:6"] == ["node:2", "task:5", "task:7"]
    assert found["site:1"] == ["task:3", "task:4", "task:5"]
    assert found["node:2"][-4:] == ["task:2", "task:5", "task:6", "task:7"]


def test_without_tasks_there_are_the_links_of_the_graph():
    assert neighbour_links(small_taskgraph(), each=False) == graph_links(small_taskgraph().graph)


def test_a_fold_belongs_to_its_node_and_to_what_it_exchanges_with():
    taskgraph = small_taskgraph()
    found = item_links(taskgraph, fold(taskgraph_view(taskgraph), nodes={2}))
    assert found["fold:2:0"] == ["node:2", "task:0", "task:1", "fold:2:1"]
    assert found["fold:2:1"] == ["node:2", "task:3", "task:4", "fold:2:0"]
    assert found["site:1"] == ["task:3", "task:4", "fold:2:1"]


@settings(deadline=None, max_examples=40)
@given(programs())
def test_with_nothing_folded_the_links_are_those_of_the_tasks(taskgraph):
    view = fold(taskgraph_view(taskgraph, limit=10**6))
    assert item_links(taskgraph, view) == neighbour_links(taskgraph)


@settings(deadline=None, max_examples=40)
@given(programs())
def test_what_belongs_to_a_task_belongs_to_it_both_ways(taskgraph):
    found = neighbour_links(taskgraph)
    passed = Move | Slice | Assemble
    for t, task in enumerate(taskgraph.tasks):
        near = {int(key[5:]) for key in found[f"task:{t}"] if key.startswith("task:")}
        assert set(task.inputs) | set(taskgraph.consumers[t]) <= near
        if not isinstance(task, passed):  # from a move, both of its ends are seen through other moves
            for other in near:
                if not isinstance(taskgraph.tasks[other], passed):
                    assert f"task:{t}" in found[f"task:{other}"]
        assert f"task:{t}" in found[f"site:{task.site}"]
