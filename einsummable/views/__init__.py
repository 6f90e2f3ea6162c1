"""Pictures of programs, plans and runs, as data first.

Contract: a *view* is a JSON-able dict made by a pure function from an IR or a record of a run.  It holds what
there is to see (ids, sizes, sites, a caption in words) and no coordinates; `svg`, `html` and `text` turn any
view into a picture or into readable text.

>>> from einsummable.builder import GraphBuilder
>>> g = GraphBuilder()
>>> g.output("t", g.contract((), (g.input("A", (3, 3)), ("i", "i"))))
>>> print(text(graph_view(g.build())))
1 input of 36 B, 1 einsummable; the largest tensor is A with 36 B
  A[d0,d1]  3 × 3 f32   36 B  input
  t         scalar f32   4 B  sum[i] A   → t
"""

from einsummable.views.charts import costs_view, traffic_view
from einsummable.views.curves import curve_view
from einsummable.views.eingraphs import graph_view
from einsummable.views.partitions import join_view, partition_view, plan_view
from einsummable.views.render import html, svg, text
from einsummable.views.scaling import scaling_view
from einsummable.views.steps import steps_view
from einsummable.views.taskgraphs import taskgraph_view
from einsummable.views.timelines import timeline_view

__all__ = [
    "costs_view",
    "curve_view",
    "graph_view",
    "html",
    "join_view",
    "partition_view",
    "plan_view",
    "scaling_view",
    "steps_view",
    "svg",
    "taskgraph_view",
    "text",
    "timeline_view",
    "traffic_view",
]
