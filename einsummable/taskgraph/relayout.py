"""Laying a tensor that lives on sites out in another way.

Contract: `relayout` answers the TaskGraph that copies a tensor from one `Layout` to another: every site sends
what others are to have, once and to nobody else, and keeps what stays.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from einsummable.graph import EinGraph
from einsummable.nodes import Einsummable, Input
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Layout, Placement, Plan
from einsummable.scalar import Arg, ScalarExpr
from einsummable.taskgraph.lower import lower
from einsummable.taskgraph.tasks import TaskGraph


@lru_cache(maxsize=256)
def relayout(shape: tuple[int, ...], dtype: np.dtype, old: Layout, new: Layout, sites: int) -> TaskGraph:
    """Return the tasks that make output ``out``, laid out as `new`, of input ``x``, laid out as `old`.

    Raises
    ------
    PlanError
        A layout does not fit the shape or the number of sites.
    """
    given = Input("x", shape, dtype)
    new.check(given, sites)
    labels = given.out
    copy = Einsummable((0,), (labels,), labels, given.space, ScalarExpr((Arg(0),)), None, dtype)
    graph = EinGraph((given, copy), (("out", 1),))
    plan = Plan(graph, (Partition(labels, old.parts), Partition(labels, new.parts)), len(new.sites), "given")
    placed = (old.sites, new.sites)
    return lower(plan, Placement(sites, placed, placed), {"x": old})
