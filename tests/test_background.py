"""A run in the background is watched, waited for, and cancelled; then the executor runs the next program."""

import threading
import time

import numpy as np
import pytest

import einsummable as ein
from einsummable.background import CancelledError, LiveRun
from einsummable.errors import ShapeError, UnknownNameError
from einsummable.widgets.live import Live

N = 64
A = np.eye(N, dtype="f4") * 2
CHAIN = "\n".join(f"X{i + 1}[i,k] = X{i}[i,j] * A[j,k]" for i in range(40))


@pytest.fixture
def net():
    return ein.compile(CHAIN, X0=A, A=A, sites=2)


class Slow:
    """An observer that makes the driver wait, and so a run as long as a test needs it."""

    def __init__(self):
        self.go = threading.Event()

    def __call__(self, event):
        self.go.wait(10)


def test_a_run_comes_to_its_results(net):
    run = net.run_live()
    results = run.result()
    np.testing.assert_array_equal(results["X40"], net.run()["X40"])
    assert run.done
    assert run.error is None
    assert run.view()["state"] == "done"
    assert run.view()["done"] == len(net.tasks.tasks)
    assert "done in" in str(run)
    assert repr(run).startswith("<LiveRun, done in")


def test_arrays_and_scalars_are_those_of_the_call():
    net = ein.compile("y[i] = a * x[i]", x=(3,), a=2.0, sites=2)
    run = net.run_live(x=np.ones(3, "f4"), a=3.0)
    assert run.result()["y"].tolist() == [3, 3, 3]
    with pytest.raises(UnknownNameError, match="no array is given for the input 'x'"):
        net.run_live()


def test_cancelling_ends_it_and_leaves_the_executor_usable(net):
    slow = Slow()
    net.observers.append(slow)
    run = net.run_live()
    assert not run.done
    run.cancel()
    assert run.view()["state"] == "cancelling"
    slow.go.set()
    with pytest.raises(CancelledError, match="the run was cancelled"):
        run.result(timeout=10)
    view = run.view()
    assert view["state"] == "cancelled"
    assert view["caption"].startswith("cancelled after")
    net.observers.clear()
    assert net.run()["X40"].shape == (N, N)


def test_waiting_may_end_before_the_run(net):
    slow = Slow()
    net.observers.append(slow)
    run = net.run_live()
    with pytest.raises(TimeoutError, match=r"not over after 0\.05 s"):
        run.result(timeout=0.05)
    slow.go.set()
    assert set(run.result()) == {"X40"}


def test_an_interrupt_while_waiting_cancels(net, monkeypatch):
    slow = Slow()
    net.observers.append(slow)
    run = net.run_live()

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run._ended, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.result()
    monkeypatch.undo()
    slow.go.set()
    with pytest.raises(CancelledError, match="cancelled"):
        run.result()


def test_what_the_run_refuses_the_result_raises(net):
    run = net.run_live(A=np.ones((2, 2), "f4"))
    with pytest.raises(ShapeError, match=r"A has shape \(2, 2\)"):
        run.result()
    view = run.view()
    assert view["state"] == "failed"
    assert "A has shape" in view["error"]


def test_listeners_hear_of_the_end_even_if_they_come_late(net):
    run = net.run_live()
    run.result()
    heard = []
    run.listen(lambda r: heard.append(r.view()["state"]))
    assert heard == ["done"]


def test_whoever_waits_goes_on_when_listeners_know_of_the_end(net):
    held, heard = threading.Event(), []

    def run_later(observer):
        held.wait(10)
        return net.run(observers=[observer])

    def slow(run):
        if run.done:
            time.sleep(0.05)
            heard.append(run.result()["X40"].shape)  # a listener need not wait

    run = LiveRun(run_later, net.tasks)
    run.listen(slow)
    held.set()
    run.result()
    assert heard == [(N, N)]


def test_listeners_hear_while_it_runs_but_not_of_every_event(net):
    heard = []
    held = threading.Event()

    def run_slowly(observer):
        held.wait(10)
        return net.run(observers=[observer, lambda _: time.sleep(0.01)])

    run = LiveRun(run_slowly, net.tasks)
    run.listen(lambda r: heard.append(r.view()["state"]))
    held.set()
    run.result()
    assert heard[0] == "running"
    assert heard.count("done") == 1
    assert len(heard) < len(net.tasks.tasks)


# --------------------------------------------------------------------------------------- widget


def test_a_notebook_shows_it_as_a_widget_and_stands_still_elsewhere(net):
    run = net.run_live()
    run.result()
    data, _ = run._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "<svg" in data["text/html"]
    assert "done in" in data["text/plain"]


def test_the_widget_follows_and_its_button_cancels(net):
    slow = Slow()
    net.observers.append(slow)
    widget = Live(net.run_live())
    assert widget.view["state"] in ("waiting", "running")
    widget._answer(widget, {"do": "cancel"}, [])
    assert widget.view["state"] == "cancelling"
    slow.go.set()
    with pytest.raises(CancelledError, match="cancelled"):
        widget.run.result()
    assert widget.view["state"] == "cancelled"
    widget.close()
