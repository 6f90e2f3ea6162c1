"""The line that says how far a long run is: when it is seen, what it says, and that it goes."""

import io
import sys
import types

import numpy as np
import pytest

import einsummable as ein
from einsummable import progressbar
from einsummable.errors import PlanError
from einsummable.progressbar import NotebookLine, ProgressBar, TerminalLine, for_run
from einsummable.runtime.events import Progress, RunEnded, RunStarted, TaskEnded
from einsummable.runtime.local import LocalExecutor


class Recorder:
    """A painter that remembers."""

    def __init__(self):
        self.said = []

    def paint(self, share, words):
        self.said.append((round(share, 2), words))

    def clear(self):
        self.said.append("clear")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_short_run_shows_nothing():
    painter = Recorder()
    bar = ProgressBar(painter)
    for event in (RunStarted(0.0, 2, 8), Progress(0.5, (-1, -1), 4), RunEnded(0.9)):
        bar(event)
    assert painter.said == []


def test_a_long_run_says_how_far_it_is_and_leaves_nothing():
    painter = Recorder()
    bar = ProgressBar(painter)
    for event in (
        RunStarted(0.0, 2, 1200),
        Progress(1.0, (0, 1), 0),
        Progress(2.0, (0, 1), 400),
        Progress(6.0, (0, 1), 1200),
        RunEnded(6.1),
    ):
        bar(event)
    assert painter.said == [
        (0.0, "0 of 1,200 tasks, 1.00 s"),
        (0.33, "400 of 1,200 tasks, 2.00 s, about 4.00 s to go"),
        (1.0, "1,200 of 1,200 tasks, 6.00 s"),
        "clear",
    ]


def test_a_terminal_gets_one_line_that_is_emptied():
    stream = Terminal()
    line = TerminalLine(stream)
    line.paint(0.5, "half")
    line.clear()
    assert stream.getvalue() == f"\r▕{'█' * 15}{'·' * 15}▏ half\x1b[K\r\x1b[K"
    stream.close()
    line.paint(0.6, "nobody sees this")  # and nothing is raised


def test_a_notebook_gets_a_bar_that_is_updated(monkeypatch):
    shown = []

    class Handle:
        def update(self, bundle, raw):
            shown.append(bundle["text/plain"])

    def display(bundle, raw, display_id):
        shown.append(bundle["text/plain"])
        assert "progressbar" in bundle["text/html"]
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    line = NotebookLine()
    line.paint(0.25, "a < b")
    line.paint(0.5, "half")
    line.clear()
    assert shown == ["25% a < b", "50% half", ""]
    assert "a &lt; b" in progressbar.bar_html(0.25, "a < b")


def test_it_is_seen_in_a_terminal_and_in_a_notebook_only(monkeypatch):
    monkeypatch.delenv(progressbar.VARIABLE, raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert for_run() is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert isinstance(for_run(), ProgressBar)
    monkeypatch.setenv(progressbar.VARIABLE, "off")
    assert for_run() is None
    monkeypatch.delenv(progressbar.VARIABLE)
    kernel = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: kernel))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(for_run(), ProgressBar)


@pytest.mark.parametrize("progress", [True, False])
def test_a_run_has_one_unless_it_is_told_not_to(monkeypatch, progress):
    heard = []

    class Bar(ProgressBar):
        def __call__(self, event):
            heard.append(type(event))
            super().__call__(event)

    monkeypatch.setattr(progressbar, "for_run", lambda: Bar(Recorder()))
    net = ein.compile("y[i] = 2 * x[i]", x=np.ones(5), sites=2)
    assert net.run(progress=progress)["y"].tolist() == [2] * 5
    assert (RunStarted in heard) == (RunEnded in heard) == progress
    assert TaskEnded not in heard


def test_who_ticks_hears_of_no_task_and_counts_all():
    lines = [f"X{i + 1}[i,k] = X{i}[i,j] * A[j,k]" for i in range(20)]
    a = np.eye(300, dtype="f4")
    net = ein.compile("\n".join(lines), X0=a, A=a, sites=2)
    heard, keen = [], []

    def ticking(event):
        heard.append(event)

    ticking.ticks = True  # as an attribute of a function
    LocalExecutor(2).run(net.tasks, {"X0": a, "A": a}, observers=[ticking, keen.append])
    assert {type(e) for e in heard} <= {RunStarted, Progress, RunEnded}
    assert sum(type(e) is TaskEnded for e in keen) > 0
    done = [e.done for e in heard if isinstance(e, Progress)]
    assert done == sorted(done)
    assert all(0 <= n <= len(net.tasks.tasks) for n in done)


def test_what_is_no_switch_is_refused():
    net = ein.compile("y[i] = 2 * x[i]", x=np.ones(5), sites=2)
    with pytest.raises(PlanError, match="progress must be True or False"):
        net.run(progress=np.ones(5))
