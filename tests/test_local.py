"""The local executor: equal to the oracle, clean after errors, interrupts and time-outs."""

import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_same, data_for
from test_engine import chain, matmul, programs
from threadpoolctl import ThreadpoolController

from einsummable.errors import EngineError, PlanError, ShapeError, UnknownNameError
from einsummable.runtime.events import MoveEnded, Progress, RunEnded, RunStarted, TaskEnded
from einsummable.runtime.local import LocalExecutor
from einsummable.taskgraph.tasks import evaluate


@pytest.fixture(autouse=True)
def _nothing_is_left():
    before = blas_threads()
    yield
    deadline = time.monotonic() + 5
    while site_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert site_threads() == []
    assert blas_threads() == before


def site_threads():
    return [t.name for t in threading.enumerate() if t.name.startswith("einsummable")]


def blas_threads():
    """Return the threads of the BLAS that numpy calls: scipy brings one of its own, loaded when it likes."""
    libraries = ThreadpoolController().lib_controllers
    libraries = [lib for lib in libraries if lib.user_api == "blas" and "scipy.libs" not in lib.filepath]
    return [lib.num_threads for lib in libraries]


@settings(deadline=None, max_examples=150)
@given(programs(), st.integers(0, 9))
def test_random_programs_equal_the_oracle(taskgraph, seed):
    arrays, params = data_for(taskgraph.graph, seed)
    got = LocalExecutor(taskgraph.sites).run(taskgraph, arrays, params)
    assert_same(got, evaluate(taskgraph, arrays, params))


def data(n=4):
    rng = np.random.default_rng(0)
    return {"A": rng.random((n, n)), "B": rng.random((n, n))}


def test_events_tell_the_whole_run():
    seen = []
    local = LocalExecutor(2)
    local.run(matmul(), data(), observers=[seen.append])
    assert seen[0] == RunStarted(0.0, 2, 8)
    assert isinstance(seen[-1], RunEnded)
    assert sorted(e.task for e in seen if isinstance(e, TaskEnded)) == [0, 1, 2, 3, 4, 5, 7]
    (move,) = [e for e in seen if isinstance(e, MoveEnded)]
    assert (move.task, move.source, move.site, move.nbytes) == (6, 1, 0, 128)
    assert 0 <= move.sent <= move.received <= seen[-1].at
    told = [e for e in seen if not isinstance(e, Progress)]
    assert set(told[1:-1]) == set(local.last.events[1:-1])
    assert local.last.error == ""


def test_observers_hear_what_sites_are_at_while_the_run_goes_on(monkeypatch):
    breaking(matmul(), monkeypatch, lambda: time.sleep(0.3))
    seen = []
    LocalExecutor(2).run(matmul(), data(), observers=[seen.append])
    assert seen[0].taskgraph == matmul()
    reports = [i for i, e in enumerate(seen) if isinstance(e, Progress)]
    assert seen[reports[0]].working == (2, 5)  # both in their kernel call
    assert {e.task for e in seen[: reports[0]] if isinstance(e, TaskEnded)} == {0, 1, 3, 4}
    assert all(0 < e.ended <= seen[reports[-1]].at for e in seen[: reports[-1]] if isinstance(e, TaskEnded))


def test_a_run_that_fails_ends_for_its_observers(monkeypatch):
    def run():
        raise ZeroDivisionError("one over nothing")

    breaking(matmul(), monkeypatch, run)
    seen = []
    with pytest.raises(EngineError, match="one over nothing"):
        LocalExecutor(2).run(matmul(), data(), observers=[seen.append])
    assert isinstance(seen[-1], RunEnded)
    assert "one over nothing" in seen[-1].error


def test_blas_is_limited_while_it_runs():
    seen = []
    LocalExecutor(2).run(matmul(), data(), observers=[lambda _: seen.append(blas_threads())])
    assert set(seen[0]) == {1}


def breaking(taskgraph, monkeypatch, run):
    """Make every kernel of programs loaded from now on call `run` first."""
    from einsummable.runtime import engine

    prepare = engine.kernels.prepare

    def prepared(call, shape):
        kernel = prepare(call, shape)

        def broken(*given):
            run()
            return kernel(*given)

        return broken

    monkeypatch.setattr(engine.kernels, "prepare", prepared)


def test_an_exception_in_a_kernel_names_site_and_formula(monkeypatch):
    def run():
        raise ZeroDivisionError("one over nothing")

    breaking(matmul(), monkeypatch, run)
    local = LocalExecutor(2)
    with pytest.raises(EngineError, match=r"site [01] failed in Z: ZeroDivisionError: one over nothing") as e:
        local.run(matmul(), data())
    assert isinstance(e.value.__cause__, ZeroDivisionError)
    assert "ZeroDivisionError" in local.last.error


def test_a_time_out_names_what_was_being_done(monkeypatch):
    breaking(matmul(), monkeypatch, lambda: time.sleep(0.5))
    with pytest.raises(EngineError, match=r"given up: it took longer than 0.1 s") as e:
        LocalExecutor(2).run(matmul(), data(), timeout=0.1)
    assert "site 1 was working on Z" in e.value.notes


def test_ctrl_c_stops_all_sites(monkeypatch):
    breaking(matmul(), monkeypatch, lambda: time.sleep(0.02))
    local = LocalExecutor(1)

    def interrupt(event):
        if isinstance(event, TaskEnded):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        local.run(chain(500), {"X": np.ones(8)}, observers=[interrupt])
    assert 0 < len(local.last.logs[0].ran) < 500


def test_an_observer_that_raises_ends_the_run():
    def observer(event):
        raise RuntimeError("I do not like it")

    with pytest.raises(RuntimeError, match="I do not like it"):
        LocalExecutor(2).run(matmul(), data(), observers=[observer])


def test_runs_at_the_same_time_do_not_disturb_each_other():
    local, wrong = LocalExecutor(2), []
    taskgraph = matmul(64)

    def work(seed):
        rng = np.random.default_rng(seed)
        arrays = {"A": rng.random((64, 64)), "B": rng.random((64, 64))}
        for _ in range(10):
            got = local.run(taskgraph, arrays)["Z"]
            if not np.allclose(got, arrays["A"] @ arrays["B"]):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_does_not_fit_is_refused_before_anything_runs():
    local = LocalExecutor(1)
    with pytest.raises(PlanError, match="the program is for 2 sites, this executor has 1"):
        local.run(matmul(), data())
    with pytest.raises(PlanError, match="0 sites of 1 threads"):
        LocalExecutor(0)
    with pytest.raises(ShapeError, match=r"A has shape \(3, 3\), the program was compiled for \(4, 4\)"):
        LocalExecutor(2).run(matmul(), {"A": np.ones((3, 3)), "B": np.ones((4, 4))})
    with pytest.raises(UnknownNameError, match="no array is given for the input 'B'"):
        LocalExecutor(2).run(matmul(), {"A": np.ones((4, 4))})
