"""Where blocks with partial results on several sites are finished, and in which pieces.

Contract: `scatters` names the ways to cut every block of a tensor into as many pieces as sites have a part of
it; `finishers` gives each piece to one of these sites, as near to its readers as can be.
"""

from __future__ import annotations

from math import prod

import numpy as np

from einsummable.planner.assign import TIE, assignment
from einsummable.planner.reads import Entries, Hosts

#: A block is not scattered into smaller pieces for evenness alone.
PIECE_BYTES = 1 << 16
#: Into so many pieces a block may be scattered even if these are small.
FEW = 16


def most_pieces(sites: int, nbytes: float, hosts: Hosts | None) -> int:
    """Return into how many pieces a block of `nbytes` is cut at most when `sites` have partial results of it.

    With as many pieces as sites all ports are equally busy, but then messages grow with the square of their
    number.  So pieces stay large, and where hosts combine what they have before it leaves them, as many
    pieces as a host has sites keep all of these busy.  Sites without a piece fetch what they read.
    """
    most = max(FEW, int(nbytes / PIECE_BYTES))
    if hosts is not None:
        most = min(most, max(FEW, hosts.members.shape[1]))
    return min(sites, most)


def scatters(parts: tuple[int, ...], shape: tuple[int, ...], ways: int) -> list[tuple[int, ...]]:
    """Return the parts that cut each block of a tensor in `parts` into `ways` pieces, that exist."""
    if not parts:
        return [()] if ways == 1 else []
    return [
        (parts[0] * k, *rest)
        for k in range(1, ways + 1)
        if ways % k == 0 and parts[0] * k <= max(shape[0], 1)
        for rest in scatters(parts[1:], shape[1:], ways // k)
    ]


def refined(parts: tuple[int, ...], finer: tuple[int, ...]) -> np.ndarray:
    """Return for every block of a tensor in `finer` parts the block of one in `parts` that it lies in."""
    if not parts:
        return np.zeros(1, np.int64)
    index = np.unravel_index(np.arange(prod(finer)), finer)
    coarse = [i // (k // m) for i, k, m in zip(index, finer, parts, strict=True)]
    return np.ravel_multi_index(coarse, parts)


def used_bytes(
    calls: np.ndarray, inside: np.ndarray, wanted: Entries, hosts: Hosts | None, near: float
) -> np.ndarray:
    """Return for each piece and each call of its block the bytes that are used where that call is.

    Parameters
    ----------
    calls
        For each block the sites of its calls.
    inside
        For each piece its block.
    wanted
        The bytes of each piece that each site reads.
    hosts, near
        What is used on another site of the same host saves all but the share `near`.
    """
    piece, site, size = wanted
    there = calls[inside]
    sites = int(max(there.max(initial=0), site.max(initial=0))) + 1 if hosts is None else len(hosts.host)
    row = np.arange(len(inside))[:, None]
    each = np.bincount(piece * sites + site, size * near, len(inside) * sites).reshape(-1, sites)
    used = each[row, there]
    if hosts is not None:
        flat = piece * hosts.count + hosts.host[site]
        each = np.bincount(flat, size * (1 - near), len(inside) * hosts.count).reshape(-1, hosts.count)
        used = used + each[row, hosts.host[there]]
    return used


def finishers(calls: np.ndarray, inside: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the site that finishes each piece, of those with a part of it, and the bytes used there."""
    # Among equals the calls take turns, so that no site ends with more than its share.
    apart = max(calls.size // max(len(inside), 1), 1)
    turn = (np.arange(len(inside)) * apart + inside) % calls.shape[1]
    value = used + TIE * (np.arange(calls.shape[1]) == turn[:, None])
    chosen = value.argmax(axis=1)
    # Where two pieces of a block want the same call, the block's pieces are shared out.
    taken = np.bincount(inside * calls.shape[1] + chosen, minlength=calls.size).reshape(calls.shape)
    for block in np.flatnonzero((taken > 1).any(axis=1)):
        rows = np.flatnonzero(inside == block)
        chosen[rows] = assignment(value[rows])
    return calls[inside, chosen], float(used[np.arange(len(inside)), chosen].sum())
