"""Ways for one block to many sites, and for many partial results to one: trees over hosts and sites.

Contract: pure functions of sites and their hosts.  A block crosses to each other host once and is passed on
there; partial results of a host are combined before they leave it; blocks of different sites are passed on,
or combined, by different sites of a host.  Inside a host, and between hosts, a large block takes a binomial
tree: after k rounds 2^k sites have it, where its holder alone could have served k.

>>> broadcast(0, [1, 2, 3, 4, 5], None, tree=True)
{1: 0, 2: 0, 3: 1, 4: 0, 5: 1}
"""

from __future__ import annotations

from collections.abc import Sequence

#: The host of every site; None where every site is alone on its own.
Hosts = Sequence[int] | None


def broadcast(holder: int, sites: Sequence[int], hosts: Hosts, *, tree: bool) -> dict[int, int]:
    """Return for each of `sites` the site that it gets the block from, parents before their children."""
    if hosts is None:
        return _fan_out(holder, sites, tree)
    by_host: dict[int, list[int]] = {hosts[holder]: []}
    for site in sites:
        by_host.setdefault(hosts[site], []).append(site)
    here = by_host.pop(hosts[holder])
    leaders = [_leader(members, holder) for members in by_host.values()]
    found = _fan_out(holder, leaders, tree)
    for leader, members in zip(leaders, by_host.values(), strict=True):
        found |= _fan_out(leader, [site for site in members if site != leader], tree)
    return found | _fan_out(holder, here, tree)


def _fan_out(holder: int, sites: Sequence[int], tree: bool) -> dict[int, int]:
    if not tree:
        return dict.fromkeys(sites, holder)
    having = [holder]
    found: dict[int, int] = {}
    for i, site in enumerate(sites):
        found[site] = having[(i + 1) - (1 << ((i + 1).bit_length() - 1))]
        having.append(site)
    return found


def reduction(home: int, sites: Sequence[int], hosts: Hosts, *, tree: bool) -> list[tuple[int, list[int]]]:
    """Return steps ``(site, others)``: `site` combines what the `others` have with its own, if it has any.

    The last step is that of `home`, which need not be among `sites`.
    """
    if hosts is None:
        return _fan_in(home, sites, tree)
    by_host: dict[int, list[int]] = {}
    for site in sites:
        by_host.setdefault(hosts[site], []).append(site)
    here = by_host.pop(hosts[home], [])
    steps, leaders = [], [_leader(members, home) for members in by_host.values()]
    for leader, members in zip(leaders, by_host.values(), strict=True):
        steps += _fan_in(leader, members, tree)
    return steps + _fan_in(home, here + leaders, tree)


def _leader(members: Sequence[int], other: int) -> int:
    """Return the site of a host that deals with site `other` elsewhere: blocks of others go to others."""
    return members[other % len(members)]


def _fan_in(home: int, sites: Sequence[int], tree: bool) -> list[tuple[int, list[int]]]:
    others = [site for site in sites if site != home]
    if not tree:
        return [(home, others)] if others else []
    # The broadcast run backwards: the last who would get the block gives its part first.
    into: dict[int, list[int]] = {}
    for site, parent in reversed(_fan_out(home, others, True).items()):
        into.setdefault(parent, []).append(site)
    order = [site for site in [*reversed(others), home] if site in into]
    return [(site, into[site]) for site in order]
