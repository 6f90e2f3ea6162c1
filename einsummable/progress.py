"""How long computations say where they are, and are told to stop.

Contract: whoever starts a computation may watch it with `watched`, in its own thread; whoever computes calls
`step` now and then, which costs next to nothing where nobody watches.  The watcher stops the computation by
raising an exception, `Stopped` for instance.

>>> said = []
>>> with watched(said.append):
...     step("placing")
>>> step("nobody hears this"), said
(None, ['placing'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Is told what is done, or nothing where only time has passed.
Watcher = Callable[[str], None]

_WATCHER: ContextVar[Watcher | None] = ContextVar("einsummable_watcher", default=None)


class Stopped(Exception):  # noqa: N818 - nothing went wrong
    """Raised by a watcher: nobody wants the result any more."""


def step(what: str = "") -> None:
    """Tell the watcher, if there is one, that `what` begins, or that the computation goes on."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(what)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Have `watcher` told of each `step` that the computations inside this block take in this thread."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)
