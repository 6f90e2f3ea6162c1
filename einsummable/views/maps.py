"""How much of a TaskGraph is drawn, and what of it is folded: the pure half of the TaskGraph widget.

Contract: a `TaskMap` answers views of `taskgraph_view`, folded as it is told.  A detail is a choice only
where it does not draw more than `DRAWN` things; "summary" always is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from einsummable.taskgraph.tasks import TaskGraph
from einsummable.views import collapsed, lanes
from einsummable.views.drawing import Drawing
from einsummable.views.folding import fold
from einsummable.views.links import Links, node_key, site_key
from einsummable.views.neighbours import item_links
from einsummable.views.taskgraphs import taskgraph_view

DETAILS = ("tasks", "nodes", "sites", "summary")
#: So many tasks and folds are drawn at most in a widget, and in a picture that stands still.
DRAWN, STILL = 3000, 600


class TaskMap:
    """The pictures of one TaskGraph."""

    def __init__(self, taskgraph: TaskGraph, *, hosts: Sequence[int] | None = None) -> None:
        self._taskgraph, self._hosts = taskgraph, hosts

    @cached_property
    def _whole(self) -> dict[str, Any]:
        return taskgraph_view(self._taskgraph, limit=len(self._taskgraph.tasks), hosts=self._hosts)

    @cached_property
    def choices(self) -> list[str]:
        """The details that can be drawn."""
        count = len(self._taskgraph.tasks)
        nodes = len({(task.origin, task.site) for task in self._taskgraph.tasks})
        fits = {"tasks": count <= DRAWN, "nodes": nodes <= DRAWN, "sites": len(self._all) <= DRAWN}
        return [name for name in DETAILS if fits.get(name, True)]

    @cached_property
    def _all(self) -> list[int]:
        return sorted({task.origin for task in self._taskgraph.tasks})

    def view(self) -> dict[str, Any]:
        """Return what stands around the picture."""
        graph = self._taskgraph.graph
        summary = self.drawn("summary", ())
        spans = dict.fromkeys(node.origin.span for node in graph.nodes if node.origin.span is not None)
        return {
            "kind": "tasks",
            "choices": self.choices,
            "nodes": summary["nodes"],
            "text": graph.text,
            "spans": [[span.start, span.stop] for span in spans],
            "caption": summary["caption"],
        }

    def drawn(self, detail: str, folded: Collection[str]) -> dict[str, Any]:
        """Return the view to draw: of all tasks but those of the nodes and sites whose keys are `folded`."""
        if detail == "summary":
            return taskgraph_view(self._taskgraph, limit=0, hosts=self._hosts)
        nodes = [i for i in self._all if detail != "tasks" or node_key(i) in folded]
        sites = [site for site in range(self._taskgraph.sites) if site_key(site) in folded]
        lanes = [list(range(self._taskgraph.sites))] if detail == "sites" else None
        return fold(self._whole, nodes=nodes, sites=sites, lanes=lanes)

    def links(self, drawn: Mapping[str, Any]) -> Links:
        """Return the links of what is drawn; where that is counts only, those of the graph."""
        return item_links(self._taskgraph, drawn)

    def folds(self, key: str) -> list[str]:
        """Return the keys of the nodes and sites that can be folded where `key` is selected."""
        kind, _, name = key.partition(":")
        match kind:
            case "task":
                task = self._taskgraph.tasks[int(name)]
                return [node_key(task.origin), site_key(task.site)]
            case "fold":
                return [node_key(int(name.partition(":")[0]))]
            case "site":
                return [key]
            case "node" if int(name) in self._all:
                return [key]
            case _:
                return []


def pictures(view: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the picture of a view as SVG, and what its shapes mean as pictures of their own."""
    if view["tasks"]:
        drawn, keys = lanes.draw_tasks(view), lanes.keys(view)
    else:
        drawn, keys = collapsed.draw_tasks(view), []
        for line in collapsed.words(view):
            keys.append(Drawing())
            keys[-1].text(0, 13, line, muted=True)
    return drawn.finish(view["caption"]), [key.finish("", margin=2) for key in keys]
