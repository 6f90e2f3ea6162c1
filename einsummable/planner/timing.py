"""Predicted seconds: what a cut costs on a given hardware.

Contract: tables over candidates, as in `tables`; `seconds` of a plan is their sum for its partitions.  A node
takes as long as its largest call, as many times as a site has calls: the call's fixed cost plus the slower of
computing and touching memory (the roofline model; Williams, Waterman and Patterson, 2009), where matrix
products lose speed as their extents get small.  Blocks that travel are shared out over the links of the sites
that receive them; between hosts they share the hosts' links, and as many cross as would if sites talked to
each other at random.  Nodes run one after another and nothing overlaps, so the sum is an upper estimate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

import numpy as np

from einsummable import dtypes
from einsummable.graph import EinGraph
from einsummable.nodes import Input, Node
from einsummable.planner import candidates, tables
from einsummable.planner.cost import is_product, read_shape
from einsummable.planner.hardware import Hardware
from einsummable.work import operations

#: How much longer than the fastest cut's the calls of a cut may take.
SLOWER = 4.0


def kernels(graph: EinGraph, i: int, rows: np.ndarray, hardware: Hardware) -> np.ndarray:
    """Return the seconds that the kernel calls of node `i` take, for each of `rows`."""
    node = graph.nodes[i]
    if isinstance(node, Input):
        return np.zeros(len(rows))
    block = np.maximum(-(-_extents(node) // rows), 1)
    points = block.prod(axis=1, dtype=float)
    taken = points * _each(node) / _rate(node, block, hardware)
    touching = _touched(graph, node, rows) / hardware.memory_bandwidth
    rounds = -(-rows.prod(axis=1) // hardware.sites)
    return rounds * (hardware.overhead + np.maximum(taken, touching))


def computing(node: Node, block: Sequence[int], hardware: Hardware) -> float:
    """Return the seconds that one kernel call of `node` computes on a block of these extents."""
    points = prod(block)
    if not points:
        return 0.0
    return points * _each(node) / float(_rate(node, np.array([block], np.int64).reshape(1, -1), hardware)[0])


def _each(node: Node) -> float:
    """Return the operations of `node` for each point of its space."""
    return operations(node) / max(prod(n for _, n in node.space), 1)


def _extents(node: Node) -> np.ndarray:
    return np.array([n for _, n in node.space], np.int64).reshape(1, -1)


def _rate(node: Node, block: np.ndarray, hardware: Hardware) -> np.ndarray:
    """Return the operations a second of a kernel call on a block of these extents, by row."""
    if not is_product(node):
        return np.full(len(block), hardware.map_flops)
    first, second = (set(labels) for labels in node.labels)
    # Rows, columns and the summed labels of the matrix product; labels of a batch only repeat it.  What is
    # no matrix has no rows, or no columns: memory bounds it, not the small size of what is not there.
    sizes = []
    for group in (first - second, second - first, {x for x in first & second if x not in node.out}):
        columns = [d for d, (label, _) in enumerate(node.space) if label in group]
        if columns:
            sizes.append(block[:, columns].prod(axis=1, dtype=float))
    return hardware.product_rate(dtypes.accumulator(node.dtype), *sizes)


def _touched(graph: EinGraph, node: Node, rows: np.ndarray) -> np.ndarray:
    """Return the bytes that the largest call reads and writes, by row."""
    bytes_ = node.dtype.itemsize * _block(node.shape, tables.out_rows(node, rows))
    for k, j in enumerate(node.inputs):
        bytes_ += graph.nodes[j].dtype.itemsize * _block(read_shape(node, k), tables.in_rows(node, rows, k))
    return bytes_


def _block(shape: tuple[int, ...], parts: np.ndarray) -> np.ndarray:
    return np.prod(-(-np.array(shape, np.int64).reshape(1, -1) // parts), axis=1, dtype=float)


def travel(nbytes: np.ndarray, receivers: np.ndarray, hardware: Hardware) -> np.ndarray:
    """Return the seconds in which `nbytes` in all reach `receivers` sites (arrays that broadcast)."""
    sites = np.minimum(receivers, hardware.sites)
    taken = nbytes / (sites * hardware.near.bandwidth)
    latency = hardware.near.latency + hardware.near.gap
    hosts = Counter(hardware.hosts)
    if len(hosts) > 1:
        pairs = hardware.sites * (hardware.sites - 1)
        across = 1 - sum(n * (n - 1) for n in hosts.values()) / pairs
        links = np.ceil(sites * len(hosts) / hardware.sites)
        taken = np.maximum(taken, nbytes * across / (links * hardware.far.bandwidth))
        latency = max(latency, hardware.far.latency + hardware.far.gap)
    return taken + latency * (nbytes > 0)


def candidates_in_time(graph: EinGraph, i: int, p: int, hardware: Hardware) -> np.ndarray:
    """Return the cuts of node `i` worth looking at when time counts: fewer blocks, too, where these are fast.

    A cut is left out if its calls take longer than the best cut's by more than it could save: the time in
    which one site receives all that the node touches.  Of a node that takes long, no cut is tried that takes
    `SLOWER` times as long as the best: what messages take is little beside that.
    """
    node = graph.nodes[i]
    rows = candidates.union(candidates.balanced(node, p), candidates.coarse(node, p))
    taken = kernels(graph, i, rows, hardware)
    whole = _touched(graph, node, np.ones((1, len(node.space)), np.int64))
    most = travel(whole, np.array([1]), hardware)[0] + (1 + len(node.inputs)) * hardware.near.latency
    latency = max(hardware.near.latency, hardware.far.latency)
    return rows[taken <= np.minimum(taken.min() + most, SLOWER * (taken.min() + 2 * latency))]
