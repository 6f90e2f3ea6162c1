"""What the loop of a site within a budget asks of whoever carries its blocks.

Contract: every call of a `Port` returns at once; what it began ends with a `Done` in the site's inbox, and
until then the array that was passed is in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from einsummable.runtime.part import Source

#: What was begun: its kind and a number.
Key: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Done:
    """Put into an inbox when what was begun is done, or went wrong."""

    key: Key
    error: BaseException | None = None


class Port(Protocol):
    """The way to other sites and to the driver; every call returns at once."""

    def offer(self, site: int, tag: int, block: np.ndarray) -> None:
        """Send `block` when `site` has space for it; then ``Done(("sent", tag))``."""

    def accept(self, site: int, tag: int, place: np.ndarray) -> None:
        """Tell `site` that there is space; when `place` is filled, ``Done(("arrived", tag))``."""

    def fetch(self, source: Source, number: int, place: np.ndarray) -> None:
        """Fill `place` with a box of an input; then ``Done(("input", number))``."""

    def deliver(self, task: int, block: np.ndarray) -> None:
        """Take a block of a result; when it may change, ``Done(("result", task))``."""
