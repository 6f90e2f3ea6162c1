"""What a placed plan takes at least, told without its tasks: for plans whose messages are too many to list.

Contract: `least` counts the blocks that come to each site from others, in messages and in bytes, each once
however many calls read it there.  No run of the plan is shorter than the time in which the busiest site's
port lets them in, nor than the busiest site computes; this is for programs whose every block is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from einsummable.nodes import Input
from einsummable.planner.hardware import Hardware
from einsummable.planner.plan import Placement, Plan, out_parts
from einsummable.planner.reads import NOTHING, concatenate, merge, needs, reads
from einsummable.planner.scatter import refined
from einsummable.planner.timing import computing


@dataclass(frozen=True, slots=True)
class Least:
    """Messages and bytes that a plan sends at least, and the seconds that it takes at least."""

    messages: int
    nbytes: float
    seconds: float


def least(plan: Plan, placement: Placement, hardware: Hardware) -> Least:
    """Return what `plan` placed by `placement` sends and takes at least; its inputs lie as it says."""
    messages, nbytes = np.zeros(placement.sites), np.zeros(placement.sites)
    for j in range(len(plan.graph.nodes)):
        site, size = _coming(plan, placement, j)
        messages += np.bincount(site, minlength=placement.sites)
        nbytes += np.bincount(site, size, placement.sites)
    into = messages * hardware.near.gap + nbytes / hardware.near.bandwidth
    seconds = max(float(into.max()), float(_working(plan, placement, hardware).max()))
    return Least(int(messages.sum()), float(nbytes.sum()), seconds)


def _coming(plan: Plan, placement: Placement, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the site of every block of node `j` that comes to a site from another, and its bytes."""
    graph, edges, found = plan.graph, placement.held_edges(plan, j), [NOTHING]
    for c in graph.consumers[j]:
        node, calls = graph.nodes[c], np.array(placement.calls[c])
        for k in (k for k, source in enumerate(node.inputs) if source == j):
            r = reads(node, plan.partitions[c], k, edges, graph.nodes[j].dtype.itemsize)
            found.append(needs(r, calls, placement.sites))
    block, site, size = merge([concatenate(found)], placement.sites)
    away = np.array(placement.homes[j])[block] != site
    if not isinstance(graph.nodes[j], Input):  # who makes a part of a block has it, or one partial result
        parts = out_parts(graph.nodes[j], plan.partitions[j])
        calls, each = np.array(placement.calls[j]), plan.partitions[j].blocks // max(prod(parts), 1)
        makers = np.arange(len(calls)) // each * placement.sites + calls
        inside = refined(parts, placement.held_parts(plan, j))
        away &= ~np.isin(inside[block] * placement.sites + site, makers)
    return site[away], size[away]


def _working(plan: Plan, placement: Placement, hardware: Hardware) -> np.ndarray:
    """Return the seconds that every site computes at least: every call counts as the smallest of its node."""
    busy = np.zeros(placement.sites)
    for node, cuts, calls in zip(plan.graph.nodes, plan.partitions, placement.calls, strict=True):
        if not isinstance(node, Input):
            smallest = [n // parts for (_, n), parts in zip(node.space, cuts.parts, strict=True)]
            each = computing(node, smallest, hardware) if prod(smallest) else 0.0
            busy += each * np.bincount(calls, minlength=placement.sites)
    return busy
