"""A line that says how far a long run is: in a terminal on standard error, in a notebook below the cell.

Contract: `for_run` answers an observer, or None where nobody would see it.  It hears ten times a second how
many tasks are done and of no single one, shows nothing before `PATIENCE` seconds, and nothing stays when the
run is over.  ``run(progress=False)`` turns it off for one run, the environment variable
``EINSUMMABLE_PROGRESS=off`` for all.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from html import escape
from typing import Any, Protocol, TextIO

from einsummable.runtime.events import Event, Progress, RunEnded, RunStarted
from einsummable.views import amounts

VARIABLE = "EINSUMMABLE_PROGRESS"
#: Runs that take fewer seconds show nothing.
PATIENCE = 1.0
_COLUMNS = 30


class Painter(Protocol):
    """Somewhere to show one line that changes."""

    def paint(self, share: float, words: str) -> None:
        """Show a bar that is `share` full, and `words`."""

    def clear(self) -> None:
        """Take it away again."""


class TerminalLine:
    """The last line of a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def paint(self, share: float, words: str) -> None:
        """Write the line anew."""
        full = int(share * _COLUMNS)
        line = f"▕{'█' * full}{'·' * (_COLUMNS - full)}▏ {words}"
        self._write(f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K")

    def clear(self) -> None:
        """Empty the line."""
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # a stream that is closed meanwhile is no reason to end a run
            self._stream.write(text)
            self._stream.flush()


class NotebookLine:
    """A display of a notebook that is updated."""

    def __init__(self) -> None:
        self._handle: Any = None

    def paint(self, share: float, words: str) -> None:
        """Show the bar."""
        self._show(bar_html(share, words), f"{100 * share:.0f}% {words}")

    def clear(self) -> None:
        """Leave the display empty."""
        self._show("", "")

    def _show(self, html: str, text: str) -> None:
        from IPython.display import display

        bundle = {"text/html": html, "text/plain": text}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def bar_html(share: float, words: str) -> str:
    """Return a bar and words as HTML in the colours of the notebook."""
    return (
        '<div style="display:flex;gap:10px;align-items:center;font-size:12px;'
        'color:var(--jp-ui-font-color1,inherit)">'
        f'<div role="progressbar" aria-valuenow="{100 * share:.0f}" style="flex:0 0 220px;height:8px;'
        'border-radius:4px;overflow:hidden;background:var(--jp-layout-color2,#d8dee4)">'
        f'<div style="height:100%;width:{100 * share:.1f}%;'
        'background:var(--jp-brand-color1,#0969da)"></div></div>'
        f"<span>{escape(words)}</span></div>"
    )


class ProgressBar:
    """An observer that paints how far a run is."""

    ticks = True

    def __init__(self, painter: Painter) -> None:
        self._painter, self._tasks, self._painted = painter, 0, False

    def __call__(self, event: Event) -> None:
        """Take one event."""
        match event:
            case RunStarted():
                self._tasks = event.tasks
            case Progress(at=at, done=done) if at >= PATIENCE:
                self._painted = True
                self._painter.paint(done / max(self._tasks, 1), self._words(at, done))
            case RunEnded() if self._painted:
                self._painter.clear()

    def _words(self, at: float, done: int) -> str:
        words = f"{amounts.count(done)} of {amounts.many(self._tasks, 'task')}, {amounts.seconds(at)}"
        if 0 < done < self._tasks:
            words += f", about {amounts.seconds(at * (self._tasks - done) / done)} to go"
        return words


def for_run() -> ProgressBar | None:
    """Return an observer for a run that begins now, if there is somebody to see it."""
    if os.environ.get(VARIABLE, "").lower() in ("off", "0", "no", "false"):
        return None
    if in_notebook():
        return ProgressBar(NotebookLine())
    if sys.stderr is not None and sys.stderr.isatty():
        return ProgressBar(TerminalLine(sys.stderr))
    return None


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook; imports nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
