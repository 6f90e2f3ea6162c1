"""Pausing the collection of cycles while very many small objects are made.

Contract: inside `uncollected()` the collector rests, and is as it was afterwards.  Tasks and events have no
cycles, and walking all of them again and again takes longer than making them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the collection of cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
