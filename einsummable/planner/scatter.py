"""Where blocks with partial results on several sites are finished, and in which pieces.

Contract: `scatters` names the ways to cut every block of a tensor into as many pieces as sites have a part of
it; `finishers` gives each piece to one of these sites, as near to its readers as can be.
"""

from __future__ import annotations

from math import prod

import numpy as np

from einsummable.planner.assign import TIE, assignment
from einsummable.planner.reads import Entries, Hosts


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
    there = calls[inside[piece]]
    used = np.zeros((len(inside), calls.shape[1]))
    np.add.at(used, piece, (there == site[:, None]) * (size * near)[:, None])
    if hosts is not None:
        same = hosts.host[there] == hosts.host[site][:, None]
        np.add.at(used, piece, same * (size * (1 - near))[:, None])
    return used


def finishers(calls: np.ndarray, inside: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the site that finishes each piece, of those with a part of it, and the bytes used there."""
    # Among equals the calls take turns, so that no site ends with more than its share.
    turn = (np.arange(len(inside)) + inside) % calls.shape[1]
    value = used + TIE * (np.arange(calls.shape[1]) == turn[:, None])
    chosen = value.argmax(axis=1)
    # Where two pieces of a block want the same call, the block's pieces are shared out.
    taken = np.bincount(inside * calls.shape[1] + chosen, minlength=calls.size).reshape(calls.shape)
    for block in np.flatnonzero((taken > 1).any(axis=1)):
        rows = np.flatnonzero(inside == block)
        chosen[rows] = assignment(value[rows])
    return calls[inside, chosen], float(used[np.arange(len(inside)), chosen].sum())
