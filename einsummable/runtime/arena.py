"""The memory in which a site with a budget keeps its blocks.

Contract: an `Arena` serves one run after the other, and grows to the largest.
"""

from __future__ import annotations

import numpy as np

from einsummable.taskgraph.memory import ALIGNMENT


class Arena:
    """The memory of one site, which one run after the other uses."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def of(self, size: int) -> np.ndarray:
        """Return the first `size` bytes, at an aligned address."""
        if self._bytes.nbytes < size:
            self._bytes = np.empty(0, np.uint8)  # let go of the old one first
            raw = np.empty(size + ALIGNMENT, np.uint8)
            skip = -raw.ctypes.data % ALIGNMENT
            self._bytes = raw[skip : skip + size]
        return self._bytes[:size]

    def abandon(self) -> None:
        """Use other memory from now on: something may still write to this."""
        self._bytes = np.empty(0, np.uint8)
