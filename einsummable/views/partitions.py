"""How tensors are cut and who has what, as data.

Contract: `partition_view` is one tensor, `plan_view` all of a graph, `join_view` the kernel calls of a node.
All hold *tables*: dimensions with their edges, and one entry a block in the order of the blocks, the last
dimension fastest.  More than `LIMIT` blocks are drawn several in one; ``count`` says how many.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise, product
from math import ceil, prod
from typing import Any

from einsummable import dtypes
from einsummable.nodes import Box, Einsummable, Gather, Input
from einsummable.planner.partition import cut
from einsummable.planner.plan import Placement, Plan, calls_of_block, out_edges, out_parts
from einsummable.views import amounts, naming

LIMIT = 1024
#: Beyond this many pairs of a kernel call and a block nobody waits for who reads what.
_PATIENCE = 2_000_000


def partition_view(
    plan: Plan, placement: Placement | None, node_id: int, *, hosts: Sequence[int] | None = None
) -> dict[str, Any]:
    """Return how the output of node `node_id` is cut and where its blocks are.

    Parameters
    ----------
    placement
        Without one the blocks are drawn grey.
    hosts
        The host of every site, where sites have hosts.
    """
    table = _tensor_table(plan, placement, node_id)
    view = {"kind": "partition", **_sites(placement, hosts), "tensor": table}
    return view | {"caption": _partition_caption(table)}


def plan_view(
    plan: Plan, placement: Placement | None = None, *, hosts: Sequence[int] | None = None
) -> dict[str, Any]:
    """Return how every tensor is cut and where its blocks are; parameters as in `partition_view`."""
    tables = [_tensor_table(plan, placement, i) for i in range(len(plan.graph.nodes))]
    view = {
        "kind": "plan",
        **_sites(placement, hosts),
        "strategy": plan.strategy,
        "p": plan.p,
        "tensors": tables,
    }
    return view | {"caption": _plan_caption(plan, placement, tables)}


def join_view(
    plan: Plan, placement: Placement | None, node_id: int, *, hosts: Sequence[int] | None = None
) -> dict[str, Any]:
    """Return the kernel calls of node `node_id`: a table whose dimensions are the labels that are cut."""
    graph, node, partition = plan.graph, plan.graph.nodes[node_id], plan.partitions[node_id]
    names = naming.space_labels(graph, node_id)
    kept = [d for d, n in enumerate(partition.parts) if n > 1]
    dims = []
    for d in kept:
        label, extent = node.space[d]
        dims.append(_dimension(names[d], label, [0, *(b for _, b in cut(extent, partition.parts[d]))]))
    out = len(node.out) if isinstance(node, Einsummable | Gather) else len(node.space)
    for d, dim in zip(kept, dims, strict=True):
        dim["aggregated"] = d >= out
    calls = placement.calls[node_id] if placement is not None else (None,) * partition.blocks
    boxes = [tuple(box[d] for d in kept) for box in partition.boxes(node.space)]
    table = {
        "id": node_id,
        "name": graph.name_of(node_id),
        "dims": dims,
        "blocks": _merge([_block(b, s) for b, s in zip(boxes, calls, strict=True)], dims),
        "count": partition.blocks,
    }
    reads = [
        {"name": graph.name_of(j), "labels": list(naming.read_labels(node, k))}
        for k, j in enumerate(node.inputs)
    ]
    view = {
        "kind": "join",
        **_sites(placement, hosts),
        "table": table,
        "formula": naming.formula(graph, node_id),
        "output": {"name": graph.name_of(node_id), "labels": list(naming.labels(graph, node_id))},
        "inputs": reads,
    }
    words = f"{naming.tensor(graph, node_id)} is made by {amounts.many(partition.blocks, 'kernel call')}"
    parts = " × ".join(f"{d['name']} {d['parts']}" for d in dims)
    words += f", {parts}" if dims else ""
    if placement is not None:
        words += f", on {amounts.many(len(set(calls)), 'site')}"
    aggregated = [d for d in dims if d["aggregated"]]
    if aggregated:
        n = prod(d["parts"] for d in aggregated)
        words += f"; cutting {', '.join(d['name'] for d in aggregated)} makes {n} partial sums of every block"
    return view | {"caption": words}


def _sites(placement: Placement | None, hosts: Sequence[int] | None) -> dict[str, Any]:
    return {
        "sites": placement.sites if placement is not None else 0,
        "hosts": list(hosts) if hosts is not None else None,
    }


def _dimension(name: str, label: str, edges: Sequence[int]) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "extent": edges[-1] - edges[0],
        "parts": len(edges) - 1,
        "edges": list(edges),
    }


def _block(box: Box, site: int | None) -> dict[str, Any]:
    return {"box": [list(r) for r in box], "site": site, "count": 1, "copies": None, "partials": 1}


def _tensor_table(plan: Plan, placement: Placement | None, i: int) -> dict[str, Any]:
    graph, node, partition = plan.graph, plan.graph.nodes[i], plan.partitions[i]
    edges = placement.held_edges(plan, i) if placement is not None else out_edges(node, partition)
    names = naming.labels(graph, i)
    dims = [_dimension(name, node.out[d], edges[d]) for d, name in enumerate(names)]
    blocks = [_block(box, None) for box in product(*map(pairwise, edges))]
    _fill(blocks, plan, placement, i, dims)
    return {
        "id": i,
        "name": graph.name_of(i),
        "dims": dims,
        "dtype": dtypes.name(node.dtype),
        "bytes": prod(node.shape) * node.dtype.itemsize,
        "cuts": naming.cuts(naming.space_labels(graph, i), partition),
        "held": _held(blocks, node.dtype.itemsize),
        "count": len(blocks),
        "blocks": _merge(blocks, dims),
    }


def _held(blocks: list[dict[str, Any]], itemsize: int) -> list[list[int]]:
    """Return the bytes that each site holds, as pairs of a site and bytes."""
    held: dict[int, int] = {}
    for block in blocks:
        if block["site"] is not None:
            size = prod(b - a for a, b in block["box"]) * itemsize
            held[block["site"]] = held.get(block["site"], 0) + size
    return [[site, held[site]] for site in sorted(held)]


def _fill(
    blocks: list[dict[str, Any]], plan: Plan, placement: Placement | None, i: int, dims: list[dict[str, Any]]
) -> None:
    """Note for each block where it is, from how many partial results it is made, who reads all of it."""
    node, partition = plan.graph.nodes[i], plan.partitions[i]
    coarse = out_parts(node, partition)
    each = partition.blocks // max(prod(coarse), 1)
    if placement is None:
        for block in blocks:
            block["partials"] = each
        return
    makers: list[set[int]] = [set() for _ in range(prod(coarse))]
    for call, made in enumerate(calls_of_block(node, partition)):
        makers[made].add(placement.calls[i][call])
    finer = [dim["parts"] for dim in dims]
    for index, block, home, copies in zip(
        product(*map(range, finer)),
        blocks,
        placement.homes[i],
        _readers(plan, placement, i, dims),
        strict=True,
    ):
        at = 0
        for k, n, m in zip(index, finer, coarse, strict=True):
            at = at * m + k * m // n
        # A block that one site makes stays there, whatever home it was given.
        alone = len(makers[at]) == 1 and not isinstance(node, Input)
        block["site"] = next(iter(makers[at])) if alone else home
        block["partials"] = 1 if isinstance(node, Input) else len(makers[at])
        block["copies"] = copies


def _readers(plan: Plan, placement: Placement, i: int, dims: list[dict[str, Any]]) -> list[int | None]:
    """Return for each block of tensor `i` on how many sites all of it is read."""
    parts = tuple(dim["parts"] for dim in dims)
    readers: list[set[int]] = [set() for _ in range(prod(parts))]
    consumers = plan.graph.consumers[i]
    if sum(plan.partitions[c].blocks for c in consumers) * len(readers) > _PATIENCE:
        return [None] * len(readers)
    for c in consumers:
        node = plan.graph.nodes[c]
        for ranges, site in zip(plan.partitions[c].boxes(node.space), placement.calls[c], strict=True):
            for k in (k for k, j in enumerate(node.inputs) if j == i):
                for b in _covered(node.in_box(k, ranges), dims, parts):
                    readers[b].add(site)
    return [len(sites) for sites in readers]


def _covered(box: Box, dims: list[dict[str, Any]], parts: tuple[int, ...]) -> list[int]:
    """Return the blocks that lie inside `box`."""
    inside = []
    for (start, stop), dim in zip(box, dims, strict=True):
        first = bisect_left(dim["edges"], start)
        inside.append(range(first, max(first, min(bisect_right(dim["edges"], stop) - 1, dim["parts"]))))
    found = []
    for index in product(*inside):
        at = 0
        for k, n in zip(index, parts, strict=True):
            at = at * n + k
        found.append(at)
    return found


def _merge(blocks: list[dict[str, Any]], dims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return at most `LIMIT` blocks, neighbours merged; `dims` get the edges that are left."""
    parts = [dim["parts"] for dim in dims]
    factors = [1] * len(parts)

    def left() -> list[int]:
        return [ceil(n / f) for n, f in zip(parts, factors, strict=True)]

    while prod(left()) > LIMIT:
        factors[max(range(len(parts)), key=lambda d: left()[d])] *= 2
    if all(f == 1 for f in factors):
        return blocks
    merged: dict[tuple[int, ...], list[dict[str, Any]]] = {}
    for index, block in zip(product(*map(range, parts)), blocks, strict=True):
        key = tuple(k // f for k, f in zip(index, factors, strict=True))
        merged.setdefault(key, []).append(block)
    for dim, f in zip(dims, factors, strict=True):
        dim["edges"] = [*dim["edges"][:-1][::f], dim["edges"][-1]]
    return [_union(members) for members in merged.values()]


def _union(members: list[dict[str, Any]]) -> dict[str, Any]:
    sites = {m["site"] for m in members}
    copies = [m["copies"] for m in members if m["copies"] is not None]
    return {
        "box": [[a[0], b[1]] for a, b in zip(members[0]["box"], members[-1]["box"], strict=True)],
        "site": members[0]["site"] if len(sites) == 1 else None,
        "sites": sorted(s for s in sites if s is not None),
        "count": len(members),
        "copies": max(copies) if copies else None,
        "partials": members[0]["partials"],
    }


def _title(table: dict[str, Any]) -> str:
    labels = ",".join(d["name"] for d in table["dims"])
    return table["name"] + (f"[{labels}]" if labels else "")


def _partition_caption(table: dict[str, Any]) -> str:
    parts = " × ".join(str(d["parts"]) for d in table["dims"]) or "1"
    size = f"{amounts.shape([d['extent'] for d in table['dims']])} {table['dtype']}"
    words = f"{_title(table)}, {size} ({amounts.nbytes(table['bytes'])}), in {parts}"
    words += f" = {amounts.many(table['count'], 'block')}" if len(table["dims"]) > 1 else ""
    words += " block" + ("s" if table["count"] != 1 else "") if len(table["dims"]) <= 1 else ""
    sites = {s for b in table["blocks"] for s in b.get("sites", [b["site"]]) if s is not None}
    words += f" on {amounts.many(len(sites), 'site')}" if sites else ", not placed yet"
    copies = {b["copies"] for b in table["blocks"]} - {None, 0, 1}
    if copies:
        words += f", blocks read whole on up to {max(copies)} sites"
    partials = max((b["partials"] for b in table["blocks"]), default=1)
    return words + (f"; each block is made of {partials} partial results" if partials > 1 else "")


def _plan_caption(plan: Plan, placement: Placement | None, tables: list[dict[str, Any]]) -> str:
    nodes = zip(plan.graph.nodes, plan.partitions, strict=True)
    calls = sum(p.blocks for node, p in nodes if not isinstance(node, Input))
    total = sum(t["bytes"] for t in tables)
    words = f"{plan.strategy}, p = {plan.p}: {amounts.many(len(tables), 'tensor')} of {amounts.nbytes(total)}"
    words += f" in {amounts.many(sum(t['count'] for t in tables), 'block')}"
    words += f", made by {amounts.many(calls, 'kernel call')}"
    if placement is None:
        return words + "; not placed yet"
    held = [0] * placement.sites
    for table in tables:
        for site, size in table["held"]:
            held[site] += size
    low, high = amounts.nbytes(min(held)), amounts.nbytes(max(held))
    each = high if low == high else f"{low} to {high}"
    return words + f", on {amounts.many(placement.sites, 'site')} with {each} each"
