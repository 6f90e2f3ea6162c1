"""The assignment problem: rows to sites, evenly, for the greatest gain.

Contract: a thin border around scipy's solver, which is imported when it is first needed: that takes longer
than planning does.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from einsummable.planner.reads import Entries

#: Weighs evenness against bytes: it only ever decides between equals.
TIE = 1e-6


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
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Return a site for each row, for the greatest sum of `entries` (row, site, gain).

    Parameters
    ----------
    load
        Of every site; between equals, sites with little load and few rows come first.
    slots
        How many rows a site takes at most; if not given, as few as will do.
    group, groups
        The group that each row must go to as far as there is room, and the group of every site.
    """
    (row, site, gained), sites = entries, len(load)
    scale = float(gained.max(initial=1.0))
    gain = np.bincount(row * sites + site, gained, rows * sites).astype(float).reshape(rows, sites)
    if rows <= sites and group is None and not load.any():
        found = undisputed(gain)
        if found is not None:
            return found
    if load.any():
        gain -= TIE * scale * load / load.max()
    if group is not None:
        gain += (gain.max() - gain.min() + scale) * rows * (group[:, None] == groups)
    slots = slots or ceil(rows / sites)
    if slots > 1:
        gain = np.concatenate([gain - 2 * TIE * scale * k for k in range(slots)], axis=1)
    return assignment(gain) % sites


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
