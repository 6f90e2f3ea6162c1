"""The assignment problem: rows to sites, evenly, for the greatest gain.

Contract: a thin border around scipy's solver, which is imported when it is first needed: that takes longer
than planning does.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from einsummable.planner.reads import Entries, Hosts

#: Weighs evenness against bytes: it only ever decides between equals.
TIE = 1e-6
#: More entries than that, columns repeated for what they take, are not solved exactly: it would take seconds.
LARGE = 1 << 18


def assignment(gain: np.ndarray) -> np.ndarray:
    """Return for each row a column of its own, for the greatest sum of `gain`; at least as many columns."""
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(gain, maximize=True)[1]


def share_out(
    rows: int,
    entries: Entries,
    load: np.ndarray,
    *,
    slots: int | None = None,
    group: np.ndarray | None = None,
    hosts: Hosts | None = None,
) -> np.ndarray:
    """Return a site for each row, for the greatest sum of `entries` (row, site, gain).

    Parameters
    ----------
    load
        Of every site; between equals, sites with little load and few rows come first.
    slots
        How many rows a site takes at most; if not given, as few as will do.
    group
        The host that each row must go to as far as there is room.
    hosts
        Given these, sites of `entries` may be whole hosts (see `Hosts.levels`).
    """
    scale, slots = float(entries[2].max(initial=1.0)), slots or ceil(rows / len(load))
    if group is not None:
        found = _within_hosts(entries, load, slots, group, hosts, scale)
        if found is not None:
            return found
    gain = _gain(rows, entries, len(load), hosts)
    if group is not None:
        gain += (gain.max() - gain.min() + scale) * rows * (group[:, None] == hosts.host)
    return _best(gain, load, slots, scale)


def _gain(rows: int, entries: Entries, sites: int, hosts: Hosts | None) -> np.ndarray:
    """Return what each row gains on each site."""
    row, site, gained = entries
    if hosts is None:
        return np.bincount(row * sites + site, gained, rows * sites).astype(float).reshape(rows, sites)
    width = sites + hosts.count
    gain = np.bincount(row * width + site, gained, rows * width).astype(float).reshape(rows, width)
    return gain[:, :sites] + gain[:, sites:][:, hosts.host]


def _best(gain: np.ndarray, load: np.ndarray, slots: int, scale: float) -> np.ndarray:
    """Return the column of each row, each taken `slots` times at most, for the greatest sum of `gain`."""
    if slots == 1 and not load.any():
        found = undisputed(gain)
        if found is not None:
            return found
    if load.any():
        gain = gain - TIE * scale * load / load.max()
    sites = gain.shape[1]
    if slots > 1 and gain.size * slots > LARGE:
        return _in_rounds(gain, slots)
    if slots > 1:
        gain = np.concatenate([gain - 2 * TIE * scale * k for k in range(slots)], axis=1)
    return assignment(gain) % sites


def _within_hosts(
    entries: Entries, load: np.ndarray, slots: int, group: np.ndarray, hosts: Hosts, scale: float
) -> np.ndarray | None:
    """Return the best site of each row on its own host, None where a host has not enough room."""
    if not hosts.even or np.bincount(group).max(initial=0) > slots * hosts.members.shape[1]:
        return None
    row, site, gained = entries
    mine = site < len(load)  # all sites of a host gain alike by what is on the host
    row, site, gained = row[mine], site[mine], gained[mine]
    mine = hosts.host[site] == group[row]
    row, site, gained = row[mine], site[mine], gained[mine]
    width = hosts.members.shape[1]
    place = np.empty(len(load), np.int64)
    place[hosts.members] = np.arange(width)
    gain = np.bincount(row * width + place[site], gained, len(group) * width).astype(float).reshape(-1, width)
    found = np.empty(len(group), np.int64)
    for host, members in enumerate(hosts.members):
        rows = np.flatnonzero(group == host)
        if len(rows):
            found[rows] = members[_best(gain[rows], load[members], slots, scale)]
    return found


def _in_rounds(gain: np.ndarray, slots: int) -> np.ndarray:
    """Return about the best column of each row, each taken `slots` times at most.

    In every round each row that is left asks for its best column with room, and a column takes those that
    would lose most by their second best.
    """
    rows, columns = gain.shape
    found, room = np.full(rows, -1), np.full(columns, slots)
    left = np.arange(rows)
    while len(left):
        open_ = np.flatnonzero(room)
        mine = gain[np.ix_(left, open_)]
        best = mine.argmax(axis=1)
        value = mine[np.arange(len(left)), best]
        mine[np.arange(len(left)), best] = -np.inf
        loss = value - mine.max(axis=1) if len(open_) > 1 else np.zeros(len(left))
        order = np.lexsort((-loss, best))
        rank = np.arange(len(left)) - np.searchsorted(best[order], best[order])
        taken = order[rank < room[open_[best[order]]]]
        found[left[taken]] = open_[best[taken]]
        room -= np.bincount(open_[best[taken]], minlength=columns)
        left = np.delete(left, taken)
    return found


def undisputed(gain: np.ndarray) -> np.ndarray | None:
    """Return the best site of every row if no two rows want the same, else None; gains are not negative."""
    rows, sites = gain.shape
    best = gain.argmax(axis=1)
    wanting = gain[np.arange(rows), best] > 0
    taken = np.zeros(sites, bool)
    taken[best[wanting]] = True
    if taken.sum() < wanting.sum():
        return None
    best[~wanting] = np.flatnonzero(~taken)[: rows - wanting.sum()]
    return best
