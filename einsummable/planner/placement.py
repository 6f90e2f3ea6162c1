"""Placement: which site makes every kernel call, and which holds every block.

Contract: `place` gives the calls of every node to the sites in equal shares and, among such placements, seeks
the one that moves the fewest bytes.  It is deterministic.  Tensors that already live on sites stay there.

One node at a time, with all others where they are: what each call would find on each site (blocks held there
or brought there for another node, readers of its result that are there) is a matrix of bytes saved, and the
best sharing out is an assignment problem.  Nodes are visited forwards, then backwards and forwards again
while that changes anything.  More calls than sites are first put into groups that share the most.  A block
with partial results on several sites is finished in as many pieces as there are sites, one on each
(reduce-scatter), cut the way its readers cut it, unless the pieces are small or its readers want it whole.
Where sites share hosts, the hosts of all calls are sought first, then sites among those of each host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from einsummable.errors import PlanError
from einsummable.nodes import Input
from einsummable.planner.placer import Placer
from einsummable.planner.plan import Layout, Placement, Plan
from einsummable.planner.reads import Hosts

#: Sweeps over the graph after the first.
SWEEPS = 4
#: More sites are placed by way of their hosts only, where hosts have equally many: all at once takes seconds.
MANY_SITES = 128
#: So many kernel calls are placed from one start only.
MANY_CALLS = 20_000


def place(
    plan: Plan,
    sites: int,
    layouts: Mapping[str, Layout] | None = None,
    *,
    hosts: Sequence[int] | None = None,
    near: float = 0.1,
) -> Placement:
    """Return sites for all kernel calls and blocks of `plan`.

    Parameters
    ----------
    sites
        How many there are.
    layouts
        Of inputs that already live on sites, by name; other inputs are homed where they are used.
    hosts
        The host of every site, where some share one.
    near
        What a byte costs that moves between sites of one host, where one between hosts costs 1.

    Raises
    ------
    PlanError
        There is no site, a site has no host, or a layout does not fit its input.
    """
    if sites < 1:
        raise PlanError(f"a program cannot be placed on {sites} sites")
    if hosts is not None and len(hosts) != sites:
        raise PlanError(f"hosts are given for {len(hosts)} sites, there are {sites}")
    layouts = layouts or {}
    groups_of_sites = Hosts.of(hosts)
    even = groups_of_sites is not None and groups_of_sites.even
    tried = [] if even and sites > MANY_SITES else _placers(plan, sites, layouts, hosts, near)
    if even:
        # First the host of every call, then its site there: a better start where hosts are far apart.
        host = groups_of_sites.host
        outer = {
            name: replace(at, sites=tuple(host[list(at.sites)].tolist())) for name, at in layouts.items()
        }
        coarse = _placers(plan, len(groups_of_sites.members), outer, None, near)
        best = min(coarse, key=Placer.moved)
        tried += _placers(plan, sites, layouts, hosts, near, best.calls)
    placement = min(tried, key=Placer.moved).placement()
    placement.check(plan)
    return placement


def _placers(
    plan: Plan,
    sites: int,
    layouts: Mapping[str, Layout],
    hosts: Sequence[int] | None,
    near: float,
    wanted: Sequence[np.ndarray | None] | None = None,
) -> list[Placer]:
    """Return placements that no move of one node improves, from different starts."""
    order = [i for i, node in enumerate(plan.graph.nodes) if not isinstance(node, Input)]
    found, solved = [], {}
    # What is seeded first has no neighbours to go by, so it matters where that is; less so in large programs.
    large = sum(cuts.blocks for cuts in plan.partitions) > MANY_CALLS
    for first in [order[::-1]] if large else [order, order[::-1]]:
        placer = Placer(plan, sites, layouts, hosts, near, wanted, solved)
        for k in range(SWEEPS):
            if not placer.sweep(first if k % 2 == 0 else first[::-1]):
                break
        found.append(placer)
    return found
