"""Lowering: what a Plan and a Placement mean as tasks on sites.

Contract: the TaskGraph computes what the graph does, for every legal plan and placement.  No element of a
block is sent to a site twice, however many calls and nodes read it there; partial results of one site are
combined before they travel, and travel once.  Blocks that nothing needs are not made.

A finished block is held by the site that finished it: that of its kernel calls where they all ran on one
site, else its home.  Blocks of outputs end at their homes, inputs start there; an input with a `Layout`
starts where, and cut as, that says, whatever the plan's partition of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from einsummable.errors import PlanError
from einsummable.graph import EinGraph
from einsummable.nodes import Box, Input, Node, box_shape, whole
from einsummable.planner.plan import Layout, Placement, Plan, out_edges
from einsummable.progress import step
from einsummable.taskgraph.check import check
from einsummable.taskgraph.regions import Grid, Piece, disjoint, intersect, volume, within
from einsummable.taskgraph.routes import broadcast, reduction
from einsummable.taskgraph.tasks import Aggregate, Apply, Assemble, Move, Output, Read, Slice, Task, TaskGraph
from einsummable.taskgraph.uncollected import uncollected

_whole = lru_cache(maxsize=4096)(whole)
#: So many sites are served one after the other, however large the block; smaller blocks are for any number.
FLAT, TREE_BYTES = 4, 1 << 14


def lower(
    plan: Plan,
    placement: Placement,
    layouts: Mapping[str, Layout] | None = None,
    *,
    hosts: Sequence[int] | None = None,
    tree_bytes: float = TREE_BYTES,
) -> TaskGraph:
    """Return the tasks of `plan` placed by `placement`.

    Parameters
    ----------
    layouts
        Of inputs that already live on sites, by name.
    hosts
        The host of every site: what several sites of a host need crosses to it once and is passed on there,
        and partial results of a host are combined before they leave it.
    tree_bytes
        Blocks from this size on that go to many sites, or come together from many, take a tree of sites
        where that relieves the busiest of them; infinite for none.

    Raises
    ------
    PlanError
        The placement does not fit the plan, a layout its input, or the hosts the sites.
    """
    if hosts is not None and len(hosts) != placement.sites:
        raise PlanError(f"hosts are given for {len(hosts)} sites, there are {placement.sites}")
    plan.check()
    placement.check(plan)
    with uncollected():
        tensors = [_tensor(plan, placement, layouts or {}, i) for i in range(len(plan.graph.nodes))]
        _demand(plan.graph, tensors)
        taskgraph = _Emitter(plan.graph, placement.sites, tensors, hosts, tree_bytes).emit()
        check(taskgraph)
    return taskgraph


@dataclass(slots=True)
class _Tensor:
    """The output of a node: its kernel calls, the blocks it is held in, and who needs what of it where."""

    node: Node
    grid: Grid
    homes: Sequence[int]
    calls: list[list[tuple[Box, int]]] = field(
        default_factory=list
    )  # of each block of the plan: ranges, site
    parents: list[int] = field(default_factory=list)  # for each block held, the block of the plan it is in
    holders: Sequence[int] = ()  # for each block held, the site that finishes it
    needs: dict[tuple[int, Box], list[Piece]] = field(default_factory=dict)  # by site and box
    sent: dict[tuple[int, int], set[Box]] = field(
        default_factory=lambda: defaultdict(set)
    )  # by block and site
    wanted: set[int] = field(default_factory=set)  # blocks held

    def need(self, site: int, box: Box) -> None:
        """Note that `site` reads `box`."""
        if (site, box) in self.needs:
            return
        pieces = self.needs[site, box] = self.grid.pieces(box)
        for block, inside, _ in pieces:
            self.wanted.add(block)
            if self.holders[block] != site:
                self.sent[block, site].add(inside)


def _tensor(plan: Plan, placement: Placement, layouts: Mapping[str, Layout], i: int) -> _Tensor:
    node, partition = plan.graph.nodes[i], plan.partitions[i]
    if isinstance(node, Input) and node.name in layouts:
        layout = layouts[node.name]
        layout.check(node, placement.sites)
        return _Tensor(node, Grid.of(node.shape, layout.parts), layout.sites, holders=layout.sites)
    grid, homes = Grid(placement.held_edges(plan, i)), placement.homes[i]
    if isinstance(node, Input):
        return _Tensor(node, grid, homes, holders=homes)
    coarse = Grid(out_edges(node, partition))
    parents = [coarse.block_at(box) for box in grid.boxes]
    pairs = list(zip(partition.boxes(node.space), placement.calls[i], strict=True))
    each = len(pairs) // coarse.blocks
    calls = [pairs[b * each : (b + 1) * each] for b in range(coarse.blocks)]
    alone = [pairs[0][1] if len({site for _, site in pairs}) == 1 else None for pairs in calls]
    holders = [
        home if alone[parent] is None else alone[parent] for home, parent in zip(homes, parents, strict=True)
    ]
    return _Tensor(node, grid, homes, calls, parents, holders)


def _demand(graph: EinGraph, tensors: list[_Tensor]) -> None:
    """Note what every site needs of every tensor, from the outputs back."""
    for _, o in graph.outputs:
        for block, home in enumerate(tensors[o].homes):
            tensors[o].wanted.add(block)
            tensors[o].need(home, tensors[o].grid.box(block))
    for tensor in reversed(tensors):
        if isinstance(tensor.node, Input):
            continue
        for block in {tensor.parents[held] for held in tensor.wanted}:
            for ranges, site in tensor.calls[block]:
                for k, j in enumerate(tensor.node.inputs):
                    tensors[j].need(site, tensor.node.in_box(k, ranges))


class _Emitter:
    """Appends tasks, each distinct one once; `made[j][block]` is the task that finished a block of node j."""

    def __init__(
        self,
        graph: EinGraph,
        sites: int,
        tensors: list[_Tensor],
        hosts: Sequence[int] | None,
        tree_bytes: float,
    ) -> None:
        self.graph, self.sites, self.tensors = graph, sites, tensors
        self.hosts, self.tree_bytes = hosts, tree_bytes
        self.tasks: list[Task] = []
        self.made: list[dict[int, int]] = [{} for _ in tensors]
        self.ids: dict[tuple, int] = {}  # of slices, moves and assembled boxes
        self.sends: dict[tuple[int, int, int], list[Box]] = {}  # by node, block and site
        self.parents: dict[tuple[int, int, Box], dict[int, int]] = {}  # of sites, by node, block and box
        self.gathering = [self.gather(tensor) if tensor.calls else (0, 0) for tensor in tensors]
        for j in range(len(tensors)):
            self.route(j)

    def emit(self) -> TaskGraph:
        for i, tensor in enumerate(self.tensors):
            step()
            if not isinstance(tensor.node, Input):
                self.compute(i, tensor)
        outputs = []
        for name, o in self.graph.outputs:
            tensor = self.tensors[o]
            pairs = zip(tensor.homes, tensor.grid.boxes, strict=True)
            blocks = [(self.fetch(o, home, box), box) for home, box in pairs]
            outputs.append(Output(name, tensor.node.shape, tensor.node.dtype, tuple(blocks)))
        return TaskGraph(self.graph, self.sites, tuple(self.tasks), tuple(outputs))

    def add(self, task: Task) -> int:
        self.tasks.append(task)
        return len(self.tasks) - 1

    # --------------------------------------------------------------------------- kernel calls

    def compute(self, i: int, tensor: _Tensor) -> None:
        """Append the calls that make the blocks of node `i` that are wanted."""
        held = defaultdict(list)
        for block in sorted(tensor.wanted):
            held[tensor.parents[block]].append(block)
        node = tensor.node
        for parent, blocks in held.items():
            partials = defaultdict(list)
            for ranges, site in tensor.calls[parent]:
                inputs = tuple(self.fetch(j, site, node.in_box(k, ranges)) for k, j in enumerate(node.inputs))
                box = node.out_box(ranges)
                partials[site].append(self.add(Apply(site, inputs, ranges, box_shape(box), node.dtype, i)))
            local = {site: self.aggregate(i, ids) for site, ids in partials.items()}
            for block in blocks:
                inside = within(tensor.grid.box(block), box)
                self.made[i][block] = self.finish(i, local, inside, tensor.holders[block])

    def finish(self, i: int, local: dict[int, int], inside: Box, home: int) -> int:
        """Return the task at `home` that combines what every site has of a block."""
        have = {site: self.slice(task, inside) for site, task in sorted(local.items())}
        large = volume(inside) * self.graph.nodes[i].dtype.itemsize >= self.tree_bytes
        tree = large and self.relieved(*self.gathering[i], have)
        for site, others in reduction(home, list(have), self.hosts, tree=tree):
            parts = [have[site]] if site in have else []
            have[site] = self.aggregate(i, [*parts, *(self.move(have[other], site) for other in others)])
        return have[home]

    def aggregate(self, i: int, ids: list[int]) -> int:
        if len(ids) == 1:
            return ids[0]
        node, first = self.graph.nodes[i], self.tasks[ids[0]]
        return self.add(Aggregate(first.site, tuple(ids), node.aggregate, first.shape, node.dtype, i))

    # ---------------------------------------------------------------------------- data to sites

    def fetch(self, j: int, site: int, box: Box) -> int:
        """Return the task that has `box` of node `j` on `site`."""
        key = (j, site, box)
        if key not in self.ids:
            parts: list[tuple[int, Box]] = []
            for block, inside, place in self.tensors[j].needs[site, box]:
                parts += self.parts(j, site, block, inside, place)
            self.ids[key] = parts[0][0] if len(parts) == 1 else self.assemble(j, site, box_shape(box), parts)
        return self.ids[key]

    def assemble(self, j: int, site: int, shape: tuple[int, ...], parts: list[tuple[int, Box]]) -> int:
        ids, places = tuple(t for t, _ in parts), tuple(place for _, place in parts)
        return self.add(Assemble(site, ids, places, shape, self.graph.nodes[j].dtype, j))

    def parts(self, j: int, site: int, block: int, inside: Box, place: Box) -> list[tuple[int, Box]]:
        """Return tasks on `site` that together have `inside` of a block, and the part of `place` of each."""
        tensor, source = self.tensors[j], self.block(j, block)
        if tensor.holders[block] == site:
            return [(self.slice(source, inside), place)]
        found = []
        for box in self.sends[j, block, site]:
            if box == inside:
                return [(self.sent(j, site, block, box), place)]
            shared = intersect(box, inside)
            if shared is not None:
                at = tuple(
                    (s + p, e + p) for (s, e), (p, _) in zip(within(shared, inside), place, strict=True)
                )
                found.append((self.slice(self.sent(j, site, block, box), within(shared, box)), at))
        return found

    def sent(self, j: int, site: int, block: int, box: Box) -> int:
        """Return the task that has on `site` what of a block is sent there as one message."""
        return self.bring(self.slice(self.block(j, block), box), site, self.parents.get((j, block, box), {}))

    def route(self, j: int) -> None:
        """Decide what of each block of node `j` is sent where, and by which site."""
        tensor, to = self.tensors[j], defaultdict(list)
        sent, received = defaultdict(int), defaultdict(int)
        for (block, site), boxes in tensor.sent.items():
            self.sends[j, block, site] = disjoint(boxes)
            for box in self.sends[j, block, site]:
                to[block, box].append(site)
                sent[tensor.holders[block]] += volume(box)
                received[site] += volume(box)
        busiest, most = max(sent.values(), default=0), max(received.values(), default=0)
        for (block, box), sites in to.items():
            large = volume(box) * tensor.node.dtype.itemsize >= self.tree_bytes
            tree = large and self.relieved(busiest, most, sites)
            if tree or self.hosts is not None:
                self.parents[j, block, box] = broadcast(
                    tensor.holders[block], sorted(sites), self.hosts, tree=tree
                )

    def relieved(self, busiest: int, most: int, sites: Collection[int]) -> bool:
        """Return whether a tree of `sites` relieves the busiest site, which handles `busiest` elements.

        All others handle `most` at most.  A tree takes as many rounds as the number of sites has bits, and
        must halve the work of the busiest.  Where sites share hosts, the hosts share it already.
        """
        ways, share = len(sites), 1.0
        if self.hosts is not None:
            hosts = Counter(self.hosts[site] for site in sites)
            ways = max(len(hosts), *hosts.values())
            share = min(1.0, (len(hosts) + max(hosts.values())) / len(sites))
        return ways > FLAT and busiest * share >= 2 * most * ways.bit_length()

    def gather(self, tensor: _Tensor) -> tuple[int, int]:
        """Return the most elements of partial results that a site receives, and the most that one sends."""
        sent, received = defaultdict(int), defaultdict(int)
        inside = defaultdict(list)
        for block in tensor.wanted:
            inside[tensor.parents[block]].append(block)
        for parent, blocks in inside.items():
            sites, whole = {site for _, site in tensor.calls[parent]}, 0
            for block in blocks:
                size, home = volume(tensor.grid.box(block)), tensor.holders[block]
                received[home] += size * len(sites - {home})
                sent[home] -= size
                whole += size
            for site in sites:
                sent[site] += whole
        return max(received.values(), default=0), max(sent.values(), default=0)

    def bring(self, source: int, site: int, parents: Mapping[int, int]) -> int:
        """Return the block of `source` on `site`, passed on by other sites where `parents` says so."""
        parent = parents.get(site, self.tasks[source].site)
        if parent != self.tasks[source].site:
            source = self.bring(source, parent, parents)
        return self.move(source, site)

    def block(self, j: int, block: int) -> int:
        if block not in self.made[j]:  # of an input: the others are made before they are read
            tensor = self.tensors[j]
            node, box = tensor.node, tensor.grid.box(block)
            task = Read(tensor.holders[block], node.name, box, box_shape(box), node.dtype, j)
            self.made[j][block] = self.add(task)
        return self.made[j][block]

    def slice(self, source: int, box: Box) -> int:
        task = self.tasks[source]
        if box == _whole(task.shape):
            return source
        if (source, box) not in self.ids:
            piece = Slice(task.site, (source,), box, box_shape(box), task.dtype, task.origin)
            self.ids[source, box] = self.add(piece)
        return self.ids[source, box]

    def move(self, source: int, site: int) -> int:
        task = self.tasks[source]
        if task.site == site:
            return source
        if isinstance(task, Move):  # what is passed on is a block made on the site, be it a view of what came
            source = self.relay(source)
        if (source, site) not in self.ids:
            self.ids[source, site] = self.add(Move(site, (source,), task.shape, task.dtype, task.origin))
        return self.ids[source, site]

    def relay(self, moved: int) -> int:
        task = self.tasks[moved]
        if (moved, "relay") not in self.ids:
            view = Slice(task.site, (moved,), whole(task.shape), task.shape, task.dtype, task.origin)
            self.ids[moved, "relay"] = self.add(view)
        return self.ids[moved, "relay"]
